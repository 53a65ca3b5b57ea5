"""What brokers say of a share group: how often it delivers a record, where they say so."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kohort.client.metadata import Address, ClusterMetadata, Node
from kohort.protocol import ErrorCode, KafkaError
from kohort.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kohort.service.handlers.registration import make_handler
from kohort.service.share.deliveries import USUAL_LIMIT
from kohort.service.share.share_group import read_delivery_limit
from kohort.service.share.share_source import ShareSource

GROUP, BROKER = 32, 4
DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED


class FakeCluster:
    """Answers DescribeConfigs by kind of resource: a config's value, None for no such config, or an error."""

    def __init__(self, group: str | ErrorCode | None, broker: str | ErrorCode | None) -> None:
        self.says = {GROUP: group, BROKER: broker}
        self.asked: list[tuple[object, int, str]] = []

    async def metadata(self, _: object) -> ClusterMetadata:
        return ClusterMetadata(nodes={3: Node(3, Address("localhost", 9092))})

    async def request(self, node: object, _: int, body: DescribeConfigsRequest) -> Any:
        (asked,) = body.resources
        self.asked.append((node, asked.resource_type, asked.resource_name))
        assert asked.configuration_keys is not None
        answer = self.says[asked.resource_type]
        code = answer if isinstance(answer, ErrorCode) else 0
        configs = []
        if isinstance(answer, str):
            configs = [DescribeConfigsResourceResult(asked.configuration_keys[0], answer)]
        row = DescribeConfigsResult(code, None, asked.resource_type, asked.resource_name, configs)
        return DescribeConfigsResponse(0, [row])


@pytest.mark.parametrize(
    ("group", "broker", "limit", "asked"),
    [
        ("7", "5", 7, 1),
        (None, "5", 5, 2),
        (DENIED, "4", 4, 2),
    ],
)
async def test_the_groups_limit_counts_and_else_the_brokers(
    group: str | ErrorCode | None, broker: str, limit: int, asked: int
) -> None:
    cluster: Any = FakeCluster(group, broker)
    assert await read_delivery_limit(cluster, "queue") == limit
    assert cluster.asked == [(None, GROUP, "queue"), (3, BROKER, "3")][:asked]


async def test_the_first_refusal_is_told_where_both_are_refused() -> None:
    cluster: Any = FakeCluster(DENIED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaError) as refused:
        await read_delivery_limit(cluster, "queue")
    assert refused.value.code is DENIED


async def test_without_the_right_kafkas_default_is_taken_and_a_warning_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handler = make_handler(print, ("orders",), in_share=True)
    config = {"bootstrap": "localhost:9092", "group": "queue"}
    source = ShareSource(["orders"], config, [handler], hold_ms=0, drop=lambda _: None)
    cluster: Any = FakeCluster(DENIED, DENIED)
    source._consumer.cluster = cluster
    with caplog.at_level(logging.WARNING, "kohort.service"):
        await source._learn_limit()
        await source._learn_limit()
    assert source.deliveries.limit == USUAL_LIMIT
    (line,) = caplog.records
    assert "DescribeConfigs on the group or the cluster" in line.getMessage()
    cluster.says[GROUP] = "9"
    await source._learn_limit()
    assert source.deliveries.limit == 9


async def test_a_start_that_is_cancelled_when_it_has_joined_leaves_the_group() -> None:
    asked, log = asyncio.Event(), list[str]()

    class HangingCluster:
        async def request(self, *_: object) -> None:
            asked.set()
            await asyncio.Event().wait()

    class FakeConsumer:
        cluster = HangingCluster()

        async def start(self) -> None:
            log.append("joined")

        async def close(self, *, timeout_ms: float) -> None:
            assert timeout_ms > 0
            log.append("left")

    handler = make_handler(print, ("orders",), in_share=True)
    config = {"bootstrap": "localhost:9092", "group": "queue"}
    source = ShareSource(["orders"], config, [handler], hold_ms=0, drop=lambda _: None)
    consumer: Any = FakeConsumer()
    source._consumer = consumer
    start = asyncio.create_task(source.start())
    await asked.wait()
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert log == ["joined", "left"]


@pytest.mark.parametrize(
    ("options", "given", "most"),
    [
        ([{"concurrency": 4}], {}, 8),
        ([{"concurrency": 4}, {"concurrency": 2, "batch": 10}], {}, 48),
        ([{"concurrency": 16, "batch": 500}], {}, 500),
        ([{"concurrency": 4}], {"max_locked_records": 5}, 5),
    ],
)
async def test_no_more_is_locked_than_twice_what_handlers_work_on(
    options: list[dict[str, Any]], given: dict[str, object], most: int
) -> None:
    handlers = [make_handler(print, ("orders",), in_share=True, **each) for each in options]
    config = {"bootstrap": "localhost:9092", "group": "queue", **given}
    source = ShareSource(["orders"], config, handlers, hold_ms=0, drop=lambda _: None)
    assert source.config.max_locked_records == most
