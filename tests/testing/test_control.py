"""Faults, time and groups under a test's control; each seen by our consumer and, on the wire, by any.

Covers: testing/_records.py, testing/_running_broker.py, testing/_steering.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from kohort.consumer import AsyncGroupConsumer, FatalGroupError, ShareConsumer
from kohort.consumer.events import PartitionsLost, RebalanceCompleted
from kohort.consumer.share.events import LockLost
from kohort.protocol import ApiKey, ErrorCode, KafkaError
from kohort.testing import RunningBroker, running_broker
from tests.broker.wire import Wire
from tests.consumer.members import read
from tests.waiting import until

HOUR_S = 3_600


def _member(broker: RunningBroker, **more: Any) -> AsyncGroupConsumer:
    settings: dict[str, Any] = {
        "heartbeat_interval_ms": 50,
        "retry_backoff_ms": 10,
        "retry_backoff_max_ms": 50,
        **more,
    }
    return AsyncGroupConsumer(
        "orders", bootstrap=broker.bootstrap, group="billing", auto_offset_reset="earliest", **settings
    )


@pytest.fixture
def broker(kohort_broker: RunningBroker) -> RunningBroker:
    kohort_broker.create_topic("orders", 2)
    return kohort_broker


def test_records_go_in_and_come_out(broker: RunningBroker) -> None:
    broker.produce("orders", [b"a", "b", {"total": 3}, None, ("key", "c")])
    broker.produce("orders", ["last"], partition=1)
    values = {record.value for record in broker.read("orders")}
    assert values == {b"a", b"b", b'{"total": 3}', None, b"c", b"last"}
    assert [record.key for record in broker.read("orders") if record.value == b"c"] == [b"key"]
    assert broker.read("nothing") == []


async def test_virtual_time_ends_sessions_and_members_come_back(broker: RunningBroker) -> None:
    async with _member(broker, session_timeout_ms=600_000) as consumer:
        await until(lambda: len(consumer.assignment()) == 2)
        before = consumer.state
        began = time.monotonic()
        broker.advance_time(601)
        await until(lambda: consumer.state.generation > before.generation and len(consumer.assignment()) == 2)
        assert time.monotonic() - began < 60, "ten minutes went by without being waited for"
        assert consumer.state.member_id != before.member_id
        assert any(isinstance(event, PartitionsLost) for event in consumer.events.recent)


async def test_one_members_session_ends_and_the_other_takes_over(broker: RunningBroker) -> None:
    async with _member(broker, assignor="range") as stays:
        await until(lambda: len(stays.assignment()) == 2)
        silent = _member(broker, assignor="range", heartbeat_interval_ms=20_000)
        await silent.start()
        await until(lambda: len(stays.assignment()) == len(silent.assignment()) == 1)
        assert len(broker.members("billing")) == 2
        broker.expire_session("billing", silent.state.member_id)
        await until(lambda: len(stays.assignment()) == 2)
        assert list(broker.members("billing")) == [stays.state.member_id]
        await silent.parts.cluster.close()


async def test_a_rebalance_can_be_forced(broker: RunningBroker) -> None:
    async with _member(broker) as consumer:
        await until(lambda: len(consumer.assignment()) == 2)
        generation = consumer.state.generation
        assert broker.force_rebalance("billing")
        await until(
            lambda: len([e for e in consumer.events.recent if isinstance(e, RebalanceCompleted)]) == 2
        )
        assert consumer.state.generation == generation + 1
        assert not [e for e in consumer.events.recent if isinstance(e, PartitionsLost)]


async def test_a_static_member_is_fenced_by_another_process_with_its_name(broker: RunningBroker) -> None:
    async with _member(broker, group_instance_id="billing-1") as consumer:
        await until(lambda: len(consumer.assignment()) == 2)
        broker.fence("billing", "billing-1")
        with pytest.raises(FatalGroupError, match="billing-1"):
            await read(consumer, 1)


async def test_the_coordinator_goes_away_and_comes_back(broker: RunningBroker) -> None:
    async with _member(broker) as consumer:
        await until(lambda: len(consumer.assignment()) == 2)
        generation = consumer.state.generation
        broker.produce("orders", ["1", "2"])
        records = await read(consumer, 2)
        with broker.coordinator_stopped():
            consumer.done_all(records)
            with pytest.raises(Exception, match="not committed within"):
                await consumer.commit(timeout_ms=200)
        await consumer.commit(timeout_ms=10_000)
        committed = await consumer.committed()
        assert sum(row.offset for row in committed.values()) == 2
        assert consumer.state.generation == generation, "a short absence costs nobody a partition"


def test_errors_delays_and_drops_are_for_the_next_requests_only(broker: RunningBroker) -> None:
    fault = broker.faults.error("find_coordinator", "COORDINATOR_NOT_AVAILABLE", times=2)
    with Wire(broker.bootstrap) as wire:

        def ask() -> int:
            answer = wire.call(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["billing"])
            return int(answer.coordinators[0].error_code)

        expected = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2 + [ErrorCode.NONE]
        assert [ask() for _ in range(3)] == expected
        assert fault.hits == 2

        broker.faults.delay(ApiKey.FIND_COORDINATOR, 0.2)
        began = time.monotonic()
        assert ask() == ErrorCode.NONE
        assert time.monotonic() - began >= 0.2

        broker.faults.drop(ApiKey.FIND_COORDINATOR)
        with pytest.raises(EOFError):
            ask()
    with Wire(broker.bootstrap) as wire:
        assert (
            not wire.call(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["b"])
            .coordinators[0]
            .error_code
        )


async def test_a_lost_answer_is_not_a_lost_commit(broker: RunningBroker) -> None:
    broker.produce("orders", ["1"], partition=0)
    async with _member(broker, enable_auto_commit=False) as consumer:
        [record] = await read(consumer, 1)
        consumer.done(record)
        fault = broker.faults.drop("offset_commit", answer_only=True)
        await consumer.commit()
        assert fault.hits == 1
        assert (await consumer.committed())[record.topic_partition].offset == 1


def test_faults_may_be_for_one_client(broker: RunningBroker) -> None:
    fault = broker.faults.error("metadata", "LEADER_NOT_AVAILABLE", client_id="somebody-else")
    with Wire(broker.bootstrap) as wire:
        wire.call(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["billing"])
    assert (fault.hits, fault.left) == (0, 1)
    broker.faults.clear()
    assert not broker.faults.active()


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda broker: broker.faults.drop("fetsch"), "'fetsch' is no API of Kafka"),
        (lambda broker: broker.faults.error("fetch", "NO"), "'NO' is no error of Kafka"),
        (lambda broker: broker.faults.drop("fetch", 0), "happens at least once"),
        (lambda broker: broker.advance_time(-1), "time goes forward only"),
    ],
)
def test_what_cannot_be_is_said(
    broker: RunningBroker, ask: Callable[[RunningBroker], object], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        ask(broker)


def test_wrong_names_are_said(broker: RunningBroker) -> None:
    with pytest.raises(KafkaError, match="there is no group 'nobody'"):
        broker.expire_session("nobody", "m-1")


def test_a_broker_is_ready_in_under_a_tenth_of_a_second_once_python_has_it() -> None:
    with running_broker():
        pass  # imports, once a test run
    times = []
    for _ in range(3):
        began = time.perf_counter()
        with running_broker():
            times.append(time.perf_counter() - began)
    print(f"ready in {min(times) * 1000:.0f} ms")


async def test_the_locks_of_a_share_group_end_and_its_member_joins_again_when_its_session_does(
    broker: RunningBroker,
) -> None:
    broker.configure_share_group("queue", share_delivery_count_limit=3)
    broker.produce("orders", range(3), partition=0)
    assert broker.expire_locks("queue") == 0, "there is no such group yet"
    lost: list[LockLost] = []
    async with ShareConsumer("orders", bootstrap=broker.bootstrap, group="queue") as consumer:
        consumer.events.listen(lambda event: lost.append(event) if isinstance(event, LockLost) else None)
        for delivery in (1, 2):
            records = await consumer.getmany(timeout_ms=30_000)
            assert [record.delivery_count for record in records] == [delivery] * 3
            assert broker.expire_locks("queue") == 3
        await until(lambda: len(lost) == 6)
        epoch = consumer.state.epoch
        broker.expire_session("queue", consumer.state.member_id)
        assert broker.members("queue") == {}
        await until(lambda: consumer.state.epoch > epoch)
        assert list(broker.members("queue")) == [consumer.state.member_id]
    with pytest.raises(KafkaError, match=r"delivery\.count\.limit"):
        broker.configure_share_group("queue", share_delivery_count_limit=1)
