"""What a consumer may not do, and topics that are not there: nothing of it is silent.

Covers: consumer/event_lines.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from kohort.client.connection import Connection
from kohort.client.metadata import Address, ClusterMetadata
from kohort.client.surroundings import SURROUNDINGS, Surroundings
from kohort.consumer import (
    AsyncGroupConsumer,
    AuthenticationError,
    Cluster,
    CommitFailedError,
    FatalGroupError,
)
from kohort.consumer.event_lines import EventLines, line_of
from kohort.consumer.events import (
    BrokerUnavailable,
    CommitFailed,
    ConsumerFailed,
    OffsetReset,
    PartitionsLost,
    TopicMissing,
)
from kohort.protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from kohort.testing import RunningBroker
from tests.client.fake_broker import FakeBroker
from tests.consumer.members import read
from tests.messages import response_of
from tests.waiting import until

ORDERS = TopicPartition("orders", 0)


def consumer(bootstrap: str, *topics: str, **settings: Any) -> AsyncGroupConsumer:
    given = {"group": "billing", "auto_offset_reset": "earliest", "metadata_max_age_ms": 100, **settings}
    return AsyncGroupConsumer(*topics, bootstrap=bootstrap, **given)


async def test_a_group_that_may_not_be_described_is_an_error_that_says_what_to_change() -> None:
    async with FakeBroker() as broker:
        broker.topics = {"orders": 1}
        refused = {"error_code": 30, "error_message": None, "node_id": -1, "host": "", "port": -1}
        broker.answers[ApiKey.FIND_COORDINATOR] = _coordinator(refused)
        async with consumer(broker.address, "orders") as one:
            with pytest.raises(FatalGroupError, match="does not allow this client to read in group"):
                await asyncio.wait_for(one.getmany(timeout_ms=20_000), 20)
            with pytest.raises(FatalGroupError):
                await one.getmany(timeout_ms=0)


def _coordinator(row: dict[str, Any]) -> Callable[[Any], Any]:
    make = response_of(ApiKey.FIND_COORDINATOR)

    def answer(_: Any) -> Any:
        return make(
            throttle_time_ms=0,
            coordinators=[make.Coordinator(key="billing", **row)],
            **row,
        )

    return answer


async def test_a_topic_that_may_not_be_described_is_raised_by_polls_until_it_may(
    kohort_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    kohort_broker.create_topic("orders", 1)
    kohort_broker.produce("orders", ["x"])
    allowed = False
    updated = ClusterMetadata.update_from

    def without_right(state: ClusterMetadata, response: Any, asked: frozenset[str] | None) -> Any:
        if not allowed:
            code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            refused = [row._replace(error_code=code, partitions=[]) for row in response.topics]
            response = response._replace(topics=refused)
        return updated(state, response, asked)

    monkeypatch.setattr(ClusterMetadata, "update_from", without_right)
    monkeypatch.setattr("kohort.consumer.run.driver.MISSING_TOPIC_MS", 20)
    async with consumer(kohort_broker.bootstrap, "orders") as one:
        for _ in range(2):
            with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
                await asyncio.wait_for(one.getmany(timeout_ms=20_000), 20)
        allowed = True
        await until(lambda: one.parts.driver.topic_error is None, timeout_s=20)
        assert [record.value for record in await read(one, 1, timeout_s=20)] == [b"x"]


async def test_a_topic_that_is_deleted_leaves_the_assignment(
    kohort_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kohort.consumer.run.driver.MISSING_TOPIC_MS", 20)
    for name in ("orders", "payments"):
        kohort_broker.create_topic(name, 1)
    async with consumer(kohort_broker.bootstrap, "orders", "payments") as one:
        await until(lambda: len(one.assignment()) == 2, timeout_s=20)
        async with Cluster(kohort_broker.bootstrap) as cluster:
            await cluster.delete_topics(["payments"])
        await until(lambda: one.assignment() == {ORDERS}, timeout_s=20)
        kohort_broker.create_topic("payments", 1)
        await until(lambda: len(one.assignment()) == 2, timeout_s=20)


async def test_what_is_done_in_a_topic_is_not_committed_for_the_next_one_of_its_name(
    kohort_broker: RunningBroker,
) -> None:
    kohort_broker.create_topic("orders", 1)
    kohort_broker.produce("orders", ["a", "b"])
    # nobody tells this consumer in between that the topic is another one
    settings = {"metadata_max_age_ms": 600_000, "enable_auto_commit": False}
    async with consumer(kohort_broker.bootstrap, "orders", **settings) as one:
        one.done_all(await read(one, 2, timeout_s=20))
        async with Cluster(kohort_broker.bootstrap) as cluster:
            await cluster.delete_topics(["orders"])
            kohort_broker.create_topic("orders", 1)
            # unless it has heard of it all the same, and has nothing to commit
            with suppress(CommitFailedError):
                await one.commit()
            assert await cluster.committed("billing", [ORDERS]) == {}


async def test_a_cluster_that_stops_believing_this_client_is_an_error_of_every_call(
    kohort_broker: RunningBroker,
) -> None:
    kohort_broker.create_topic("orders", 1)
    believed = True

    async def connect(address: Address, **settings: Any) -> Connection:
        if not believed:
            raise AuthenticationError(str(address), "who is this?")
        return await Connection.open(address, **settings)

    token = SURROUNDINGS.set(Surroundings(open_connection=connect))
    try:
        one = consumer(kohort_broker.bootstrap, "orders", metadata_max_age_ms=300_000)
    finally:
        SURROUNDINGS.reset(token)
    async with one:
        await until(lambda: bool(one.assignment()), timeout_s=20)
        believed = False
        one.parts.cluster.break_connections()
        with pytest.raises(AuthenticationError, match="who is this"):
            await asyncio.wait_for(one.getmany(timeout_ms=20_000), 20)
        assert [event for event in one.events.recent if isinstance(event, ConsumerFailed)]


# seek


@pytest.mark.parametrize("offset", ["5", -7, 5.0, None, 2**63])
async def test_what_is_no_offset_is_refused_where_it_is_given(
    kohort_broker: RunningBroker, offset: Any
) -> None:
    kohort_broker.create_topic("orders", 1)
    kohort_broker.produce("orders", ["x"])
    async with consumer(kohort_broker.bootstrap, partitions=[ORDERS]) as one:
        await read(one, 1, timeout_s=20)
        with pytest.raises(ValueError, match="an offset is a whole number"):
            one.seek(ORDERS, offset)
        with pytest.raises(ValueError, match="milliseconds since 1970"):
            one.seek_to_time(ORDERS, offset)
        one.seek(ORDERS, 0)
        await read(one, 1, timeout_s=20)


# the log


async def test_a_plain_consumer_says_in_the_log_what_a_person_should_know(
    kohort_broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kohort.consumer")
    async with consumer(kohort_broker.bootstrap, "orders") as one:
        await until(lambda: "topic orders cannot be read" in caplog.text, timeout_s=20)
        kohort_broker.create_topic("orders", 1)
        kohort_broker.produce("orders", ["x"])
        await read(one, 1, timeout_s=20)
    lines = [line for line in caplog.records if line.name == "kohort.consumer"]
    (warning,) = [line.getMessage() for line in lines if line.levelname == "WARNING"]
    assert warning.startswith("group billing: topic orders cannot be read, and is looked for again: UNKNOWN")
    assert warning.endswith("Create it, or give this client the right to describe and read it")
    assert "group billing: gave up orders-0; 1 records were not done" in caplog.text


async def test_a_normal_first_start_is_no_warning(
    kohort_broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kohort.consumer")
    kohort_broker.create_topic("orders", 1)
    kohort_broker.produce("orders", ["x"])
    async with consumer(kohort_broker.bootstrap, "orders") as one:
        one.done((await read(one, 1, timeout_s=20))[0])
    assert [line for line in caplog.records if line.levelno >= logging.WARNING] == []
    assert "orders-0 starts at offset 0: nothing is committed" in caplog.text


@pytest.mark.parametrize(
    ("event", "level", "text"),
    [
        (OffsetReset(ORDERS, 5, "out of range", "earliest", 9), "WARNING", "starts at offset 9 instead of 5"),
        (PartitionsLost((ORDERS,), "forgotten"), "WARNING", "lost orders-0"),
        (CommitFailed((ORDERS,), TimeoutError()), "WARNING", "TimeoutError"),
        (ConsumerFailed(RuntimeError("x")), "ERROR", "cannot go on: RuntimeError: x"),
    ],
)
def test_lines_are_sentences_of_a_level(event: Any, level: str, text: str) -> None:
    number, line = line_of(event)
    assert (logging.getLevelName(number), text in line) == (level, True)


def test_a_line_that_repeats_is_written_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    lines = EventLines("billing", lambda: now)
    for _ in range(10):
        lines.write_event(BrokerUnavailable("fetching", OSError("refused")))
        lines.write_event(TopicMissing("orders", OSError("refused")))
    assert len(caplog.records) == 2
    now = 61.0
    lines.write_event(BrokerUnavailable("fetching", OSError("refused")))
    lines.write_event(BrokerUnavailable("committing", OSError("refused")))
    assert len(caplog.records) == 4
