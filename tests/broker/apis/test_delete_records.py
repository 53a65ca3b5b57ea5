"""DeleteRecords: the start moves, and stays there over a crash."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.clusters import cluster, in_sync
from tests.broker.wire import Wire, batch, create_topic, fetch, offset_at, part, produce

EARLIEST = -2


def ask(wire: Wire, topic: str, offset: int, *, partition: int = 0, version: int = 2) -> tuple[int, int]:
    """Error and low watermark."""
    wanted = part(
        ApiKey.DELETE_RECORDS,
        version,
        "DeleteRecordsTopic",
        "DeleteRecordsPartition",
        partition_index=partition,
        offset=offset,
    )
    asked = part(ApiKey.DELETE_RECORDS, version, "DeleteRecordsTopic", name=topic, partitions=[wanted])
    answer = wire.call(ApiKey.DELETE_RECORDS, version, topics=[asked], timeout_ms=1_000)
    (found,) = answer.topics[0].partitions
    return found.error_code, found.low_watermark


@pytest.mark.parametrize("version", range(3))
def test_records_below_an_offset(wire: Wire, name: str, version: int) -> None:
    create_topic(wire, name)
    for _ in range(3):
        produce(wire, name, batch(2))
    assert ask(wire, name, 3, version=version) == (0, 3)
    assert offset_at(wire, name, EARLIEST).offset == 3
    assert fetch(wire, name, 2)[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert fetch(wire, name, 3)[0].log_start_offset == 3


def test_minus_one_is_everything(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    assert ask(wire, name, -1) == (0, 0)
    produce(wire, name, batch(4))
    assert ask(wire, name, -1) == (0, 4)
    assert fetch(wire, name, 4)[0].records == b""


def test_an_offset_below_the_start_changes_nothing(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    produce(wire, name, batch(4))
    ask(wire, name, 3)
    assert ask(wire, name, 1) == (0, 3)


@pytest.mark.parametrize("offset", [-2, 5, 2**62])
def test_offsets_out_of_range(wire: Wire, name: str, offset: int) -> None:
    create_topic(wire, name)
    assert ask(wire, name, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    produce(wire, name, batch(4))
    assert ask(wire, name, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_what_is_refused(wire: Wire, name: str) -> None:
    assert ask(wire, name, 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert ask(wire, "__consumer_offsets", 0) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    create_topic(wire, name, cleanup_policy="compact")
    assert ask(wire, name, 0) == (ErrorCode.POLICY_VIOLATION, -1)
    assert ask(wire, name, 0, partition=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


async def test_it_is_answered_when_all_live_replicas_in_sync_have_deleted_the_records(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "kohort.broker")
    async with cluster(replica_lag_time_max_ms=3_600_000) as nodes:
        await nodes.create("orders")
        await in_sync(nodes)
        leader, first, second = nodes.state("orders").isr
        replicas = {n: nodes.brokers[n].topics.logs.partition("orders", 0) for n in nodes.brokers}

        def send(count: int) -> None:
            with Wire(nodes.brokers[leader].bootstrap) as wire:
                assert produce(wire, "orders", batch(count), acks=-1).error_code == 0

        def deleted(offset: int) -> tuple[int, int]:
            with Wire(nodes.brokers[leader].bootstrap) as wire:
                return ask(wire, "orders", offset)

        await asyncio.to_thread(send, 20)
        assert await asyncio.to_thread(deleted, 5) == (ErrorCode.NONE, 5)
        assert [each.log_start_offset for each in replicas.values()] == [5, 5, 5]
        # one is out of the leader's reach, and may lead when this one is gone
        lonely = nodes.brokers[second]._require_running()._replicas
        assert lonely is not None
        lonely._stop_following(replicas[second])
        assert await asyncio.to_thread(deleted, 9) == (ErrorCode.REQUEST_TIMED_OUT, -1)
        assert (replicas[leader].log_start_offset, replicas[second].log_start_offset) == (9, 5)
        await nodes.kill(second)
        assert await asyncio.to_thread(deleted, 9) == (ErrorCode.NONE, 9)
        assert replicas[first].log_start_offset == 9
        # with an empty folder: the leader has nothing where its log ends
        await nodes.start(second)
        await nodes.until(lambda: "orders-0, which ended at 0, begins anew at 9" in caplog.text)
        anew = nodes.brokers[second].topics.logs.partition("orders", 0)
        await nodes.until(lambda: (anew.log_start_offset, anew.log_end_offset) == (9, 20))
