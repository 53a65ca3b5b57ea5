"""What users of other consumers ran into, tried on ours: the number is the row of docs/complaints.md.

Rows that other tests hold are named there. The broker is the test kit's, which can be made to misbehave.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest

from kohort.consumer import AsyncGroupConsumer, CommitFailedError, Record, StaleRecordError
from kohort.consumer.events import PartitionsLost, RebalanceCompleted
from kohort.coordinator.consumer_groups import heartbeat
from kohort.protocol import KafkaError, TopicPartition
from kohort.statemachine import MemberState
from kohort.testing import RunningBroker
from tests.consumer.conftest import both_protocols
from tests.consumer.members import Worker, read
from tests.waiting import until

pytestmark = pytest.mark.slow(1)

PARTITIONS = 4
Member = Callable[..., Any]


@pytest.fixture
def broker(kohort_broker: RunningBroker) -> RunningBroker:
    kohort_broker.create_topic("orders", PARTITIONS)
    return kohort_broker


@pytest.fixture
async def member(broker: RunningBroker, protocol: str) -> AsyncIterator[Member]:
    """``await member()`` is a member of the group "billing" that reads "orders"."""
    async with AsyncExitStack() as stack:

        async def make(*topics: str, **more: Any) -> AsyncGroupConsumer:
            settings: dict[str, Any] = {
                "heartbeat_interval_ms": 50,
                "retry_backoff_ms": 10,
                "retry_backoff_max_ms": 50,
                "fetch_max_wait_ms": 50,
                "auto_offset_reset": "earliest",
                "protocol": protocol,
                **more,
            }
            consumer = AsyncGroupConsumer(
                *(topics or ("orders",)), bootstrap=broker.bootstrap, group="billing", **settings
            )
            return await stack.enter_async_context(consumer)

        yield make


def _assign_without_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker does as Apache Kafka: committed offsets do not come with an assignment."""
    monkeypatch.setattr(heartbeat, "starts_of", lambda *_: ())


def _stable(consumer: AsyncGroupConsumer, partitions: int = PARTITIONS) -> bool:
    return consumer.state.state is MemberState.STABLE and len(consumer.assignment()) == partitions


@both_protocols
async def test_01_who_is_thrown_out_joins_again_and_reads_nothing_in_between(
    broker: RunningBroker, member: Member
) -> None:
    consumer = await member()
    broker.produce("orders", ["1"], partition=0)
    [old] = await read(consumer, 1)
    before = consumer.state
    broker.expire_session("billing", before.member_id)
    broker.produce("orders", ["2"], partition=0)
    await until(lambda: any(isinstance(e, PartitionsLost) for e in consumer.events.recent))
    with pytest.raises(StaleRecordError):
        consumer.done(old)
    records = await read(consumer, 2)
    assert [record.value for record in records] == [b"1", b"2"], "from what was committed"
    assert {record.generation for record in records} == {consumer.state.generation}
    assert consumer.state.generation > before.generation


@both_protocols
async def test_02_being_unknown_to_the_coordinator_blocks_no_call(
    broker: RunningBroker, member: Member
) -> None:
    consumer = await member()
    polling = asyncio.create_task(_poll(consumer))
    for _ in range(4):
        await until(lambda: consumer.state.member_id in _members(broker) and _stable(consumer))
        broker.expire_session("billing", consumer.state.member_id)
        async with asyncio.timeout(30):
            with suppress(CommitFailedError):  # it is out, and may be told so
                await consumer.commit(timeout_ms=1_000)
    await until(lambda: consumer.state.member_id in _members(broker) and _stable(consumer))
    polling.cancel()


def _members(broker: RunningBroker) -> set[str]:
    try:
        return set(broker.members("billing"))
    except KafkaError:  # there is no such group, for now
        return set()


async def _poll(consumer: AsyncGroupConsumer) -> None:
    while True:
        await consumer.getmany(timeout_ms=20)


@both_protocols
async def test_03_heartbeats_that_fail_are_sent_again_at_their_pace(
    broker: RunningBroker, member: Member, protocol: str
) -> None:
    consumer = await member()
    await until(lambda: _stable(consumer))
    generation = consumer.state.generation
    api = "heartbeat" if protocol == "classic" else "consumer_group_heartbeat"
    fault = broker.faults.error(api, "COORDINATOR_LOAD_IN_PROGRESS", times=5)
    began = time.monotonic()
    await until(lambda: fault.hits == 5)
    assert time.monotonic() - began > 0.02, "no endless loop"
    await asyncio.sleep(0.2)
    assert (consumer.state.generation, consumer.state.state) == (generation, MemberState.STABLE)


async def test_05_an_idle_member_keeps_its_seat_and_may_commit(broker: RunningBroker, member: Member) -> None:
    broker.produce("orders", ["1"], partition=0)
    consumer = await member(session_timeout_ms=2_000, enable_auto_commit=False)
    [record] = await read(consumer, 1)
    generation = consumer.state.generation
    await asyncio.sleep(3)  # a session and a half without a record or a commit
    assert consumer.state.generation == generation
    consumer.done(record)
    await consumer.commit()
    assert (await consumer.committed())[record.topic_partition].offset == 1


@both_protocols
@pytest.mark.parametrize("by", ["async for", "getmany"])
async def test_05_a_busy_member_that_never_waits_keeps_its_seat_too(
    broker: RunningBroker, member: Member, by: str
) -> None:
    """All records are at hand and handled without an await: heartbeats must go out all the same."""
    broker.produce("orders", (b"%d" % n for n in range(3_000)), partition=0)
    consumer = await member(session_timeout_ms=2_000, enable_auto_commit=False)
    [first] = await read(consumer, 1)
    consumer.done(first)
    await asyncio.sleep(0.2)  # until the rest is fetched
    generation, count = consumer.state.generation, 0
    if by == "async for":
        async for record in consumer:
            time.sleep(0.001)  # noqa: ASYNC251 - that is what it is about
            consumer.done(record)
            count += 1
            if count == 2_999:
                break
    else:
        while count < 2_999:
            for record in await consumer.getmany(50):
                time.sleep(0.001)  # noqa: ASYNC251
                consumer.done(record)
                count += 1
    await consumer.commit()
    assert consumer.state.generation == generation, "three seconds of work are more than a session"


@pytest.mark.parametrize("error", ["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS"])
async def test_07_an_error_in_the_middle_of_a_join_ends_in_one_good_generation(
    broker: RunningBroker, member: Member, error: str
) -> None:
    fault = broker.faults.error("sync_group", error)
    # the coordinator waits one session for a member that this error makes start anew
    consumer = await member(session_timeout_ms=6_000)
    await until(lambda: _stable(consumer))
    assert fault.hits == 1
    generation = consumer.state.generation
    assert generation > 0
    await asyncio.sleep(0.3)
    assert consumer.state.generation == generation, "no endless rebalance"


async def test_08_a_lock_shared_by_a_callback_and_the_poll_loop_is_no_deadlock(
    broker: RunningBroker, member: Member
) -> None:
    lock = asyncio.Lock()
    revoked: list[TopicPartition] = []

    async def on_revoked(partitions: tuple[TopicPartition, ...]) -> None:
        async with lock:
            revoked.extend(partitions)

    consumer = await member(assignor="range", on_partitions_revoked=on_revoked)
    await until(lambda: _stable(consumer))

    async def poll() -> None:
        while True:
            async with lock:
                await consumer.getmany(timeout_ms=50)
            await asyncio.sleep(0)

    polling = asyncio.create_task(poll())
    assert broker.force_rebalance("billing")
    await until(lambda: len(revoked) == PARTITIONS and _stable(consumer))
    polling.cancel()


async def test_11_the_leader_does_not_rebalance_for_metadata_it_has_already(member: Member) -> None:
    consumer = await member(metadata_max_age_ms=100)
    await until(lambda: _stable(consumer))
    await asyncio.sleep(0.8)
    assert consumer.state.generation == 1


@both_protocols
async def test_17_a_commit_that_fails_in_a_rebalance_stops_no_reading(
    broker: RunningBroker, member: Member
) -> None:
    consumer = await member(auto_commit_interval_ms=50)
    seen: list[int] = []

    async def run() -> None:
        async for record in consumer:
            seen.append(int(record.value or b"-1"))
            with suppress(StaleRecordError):
                consumer.done(record)

    running = asyncio.create_task(run())
    broker.produce("orders", [str(n) for n in range(20)])
    await until(lambda: len(seen) == 20)
    broker.faults.error("offset_commit", "ILLEGAL_GENERATION", times=1)
    broker.force_rebalance("billing")
    broker.produce("orders", [str(n) for n in range(20, 40)])
    await until(lambda: set(range(40)) <= set(seen))
    running.cancel()


async def test_18_what_is_read_never_jumps_back_at_a_rebalance(broker: RunningBroker, member: Member) -> None:
    seen: list[Record] = []
    consumer = await member(assignor="range")

    async def run() -> None:
        async for record in consumer:
            seen.append(record)
            consumer.done(record)

    running = asyncio.create_task(run())
    await until(lambda: _stable(consumer))
    for start in range(0, 60, 20):
        broker.produce("orders", [str(n) for n in range(start, start + 20)])
        broker.force_rebalance("billing")
        await until(lambda upto=start + 20: len(seen) >= upto)  # type: ignore[misc]
    running.cancel()
    for partition in range(PARTITIONS):
        offsets = [record.offset for record in seen if record.partition == partition]
        assert offsets == list(range(len(offsets)))


@both_protocols
async def test_19_committed_offsets_that_are_refused_at_first_are_asked_for_again(
    broker: RunningBroker, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    _assign_without_offsets(monkeypatch)
    broker.produce("orders", [str(n) for n in range(8)])
    fault = broker.faults.error("offset_fetch", "NOT_COORDINATOR", times=2)
    assert len(await read(await member(), 8)) == 8
    assert fault.hits == 2


@both_protocols
async def test_20_a_coordinator_that_moved_is_found_again(broker: RunningBroker, member: Member) -> None:
    consumer = await member()
    worker = Worker(consumer)
    await until(lambda: _stable(consumer))
    with broker.coordinator_stopped():
        await asyncio.sleep(0.3)
    broker.produce("orders", [str(n) for n in range(8)])
    await until(lambda: len(worker.seen) == 8)
    await consumer.commit(timeout_ms=30_000)
    await worker.stop()


@both_protocols
async def test_21_close_leaves_at_once_and_never_waits_for_long(
    broker: RunningBroker, member: Member
) -> None:
    stays, leaves = await member(), await member()
    await until(lambda: _stable(stays, 2) and _stable(leaves, 2))
    began = time.monotonic()
    await leaves.close()
    await until(lambda: _stable(stays))
    assert time.monotonic() - began < 10, "long before its session of 45 s was over"
    with broker.coordinator_stopped():
        began = time.monotonic()
        await stays.close(timeout_ms=1_000)
        assert time.monotonic() - began < 10


@both_protocols
@pytest.mark.parametrize("delay_ms", [0, 20, 40, 60])
async def test_21_close_right_after_a_lost_session_is_as_quick(
    broker: RunningBroker, member: Member, delay_ms: int
) -> None:
    consumer = await member()
    await until(lambda: _stable(consumer))
    broker.expire_session("billing", consumer.state.member_id)
    await asyncio.sleep(delay_ms / 1000)
    began = time.monotonic()
    await consumer.close()
    assert time.monotonic() - began < 10, "not the whole time that a close may take"


@both_protocols
async def test_25_members_that_read_different_topics_share_a_group_without_duplicates(
    broker: RunningBroker, member: Member
) -> None:
    broker.create_topic("payments", PARTITIONS)
    workers = [Worker(await member("orders")), Worker(await member("payments"))]
    workers.append(Worker(await member("orders", "payments")))
    consumers = [worker.consumer for worker in workers]
    await until(lambda: sum(len(consumer.assignment()) for consumer in consumers) == 2 * PARTITIONS)
    broker.produce("orders", [str(n) for n in range(40)])
    broker.produce("payments", [str(n) for n in range(40, 80)])
    broker.force_rebalance("billing")
    await until(lambda: sum(len(worker.seen) for worker in workers) >= 80)
    for worker in workers:
        await worker.stop()
    seen = Counter(number for worker in workers for number in worker.seen)
    assert (set(seen), set(seen.values())) == (set(range(80)), {1})
    assert max(workers[0].seen, default=0) < 40 <= min(workers[1].seen, default=40)


async def test_40_switching_to_cooperative_leaves_nothing_unowned_and_tells_nothing_twice(
    member: Member,
) -> None:
    told: dict[str, set[TopicPartition]] = {}

    def callbacks(name: str) -> dict[str, Any]:
        mine = told[name] = set()

        def assigned(partitions: tuple[TopicPartition, ...]) -> None:
            assert not mine & set(partitions), "told twice"
            mine.update(partitions)

        return {"on_partitions_assigned": assigned, "on_partitions_revoked": mine.difference_update}

    old = {name: await member(assignor="range", **callbacks(name)) for name in ("a", "b")}
    await until(lambda: all(_stable(each, 2) for each in old.values()))
    for assignor in (["range", "cooperative-sticky"], "cooperative-sticky"):
        for name in ("a", "b"):
            await old[name].close()
            assert told[name] == set()
            old[name] = await member(assignor=assignor, **callbacks(name))
            await until(lambda: all(_stable(each, 2) for each in old.values()))
    # a partition is owned a moment before its callback is called
    await until(lambda: [len(mine) for mine in told.values()] == [2, 2])
    assert sorted(p.partition for mine in told.values() for p in mine) == list(range(PARTITIONS))
    last = [e for e in old["a"].events.recent if isinstance(e, RebalanceCompleted)][-1]
    assert last.protocol == "cooperative-sticky"


async def test_41_a_join_waits_as_long_as_the_rebalance_may_take(
    broker: RunningBroker, member: Member
) -> None:
    broker.produce("orders", ["1"], partition=0)
    slow = await member(assignor="range")
    [record] = await read(slow, 1)
    newcomer = await member(assignor="range", request_timeout_ms=1_000)
    await asyncio.sleep(2.5)  # two request timeouts, in which the record is not done
    slow.done(record)
    await until(lambda: _stable(slow, 2) and _stable(newcomer, 2))
    assert len(broker.members("billing")) == 2
    assert newcomer.state.generation == slow.state.generation == 2, "one join, not a loop of them"


@both_protocols
@pytest.mark.parametrize("api", ["the join", "offset_commit", "offset_fetch"])
async def test_42_a_coordinator_that_loads_is_waited_for(
    broker: RunningBroker, member: Member, api: str, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _assign_without_offsets(monkeypatch)
    if api == "the join":
        api = "join_group" if protocol == "classic" else "consumer_group_heartbeat"
    broker.produce("orders", ["1"], partition=0)
    fault = broker.faults.error(api, "COORDINATOR_LOAD_IN_PROGRESS", times=3)
    consumer = await member(enable_auto_commit=False)
    [record] = await read(consumer, 1)
    consumer.done(record)
    await consumer.commit()
    assert fault.hits == 3
    assert (await consumer.committed())[record.topic_partition].offset == 1
