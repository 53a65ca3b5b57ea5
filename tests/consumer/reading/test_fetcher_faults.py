"""What goes wrong with some partitions while they are fetched: the others do not notice, and it heals."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from kohort.client.offsets import OffsetAndTimestamp
from kohort.client.waiting import Backoff
from kohort.consumer.events import OffsetReset, PartitionFailed
from kohort.consumer.reading.delivery import DECODE_TRIES
from kohort.consumer.reading.positions import Phase, Position
from kohort.protocol import CorruptBatchError, ErrorCode, KafkaError, TopicPartition
from tests.consumer.batches import batch
from tests.consumer.fetch_bench import LEADER, A, B, FetchBench, fetched
from tests.waiting import until

C = TopicPartition("orders", 2)


def position_of(bench: FetchBench, partition: TopicPartition) -> Position:
    position = bench.positions.get(partition)
    assert position is not None
    return position


async def test_a_partition_that_was_read_is_asked_for_behind_the_others_from_then_on() -> None:
    """Brokers fill an answer in the order of the request: the last ones would wait for ever."""
    bench = FetchBench({LEADER: [{A: fetched(batch([b"x"]))}, {B: fetched(batch([b"x"]))}, {}]})
    bench.begin(A, B, C)
    asked = await bench.run(3)
    assert [list(start) for _, start, _ in asked] == [[A, B, C], [B, C, A], [C, A, B]]


async def take_until_error(bench: FetchBench) -> list[bytes | None]:
    """What is given before a partition has an error."""
    taken: list[bytes | None] = []

    def poll() -> bool:
        taken.extend(record.value for record in bench.delivery.take(10))
        return bench.positions.first_error() is not None

    running = asyncio.create_task(bench.fetcher.run())
    await until(poll, timeout_s=20)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return taken


async def test_what_is_before_a_damaged_header_is_given_and_polls_raise_when_it_stays_damaged() -> None:
    good, bad = batch([b"x"]), b"\x01" * 100
    answers = [{A: fetched(good + bad)}, *({A: fetched(bad)} for _ in range(DECODE_TRIES - 1))]
    bench = FetchBench({LEADER: answers})
    bench.begin(A)
    assert await take_until_error(bench) == [b"x"]
    assert isinstance(bench.positions.first_error(), CorruptBatchError)
    assert [next(iter(start.values())).offset for _, start, _ in bench.cluster.asked] == [0, 1, 1]


async def test_nothing_behind_a_damaged_header_is_asked_for_before_somebody_gets_there() -> None:
    bench = FetchBench({LEADER: [{A: fetched(b"\x01" * 100)}, {B: fetched()}, {B: fetched()}]})
    bench.begin(A, B)
    asked = await bench.run(3)
    assert [sorted(start) for _, start, _ in asked] == [[A, B], [B], [B]]


async def test_what_the_broker_cannot_read_is_raised_behind_what_is_before_it() -> None:
    corrupt = {A: fetched(error=ErrorCode.CORRUPT_MESSAGE)}
    bench = FetchBench({LEADER: [{A: fetched(batch([b"x"]))}, *(corrupt for _ in range(DECODE_TRIES))]})
    bench.begin(A)
    assert await take_until_error(bench) == [b"x"]
    error = bench.positions.first_error()
    assert isinstance(error, CorruptBatchError)
    assert "the broker cannot read the batch of orders-0 at offset 1" in str(error)
    assert "CORRUPT_MESSAGE" in str(error)
    assert len(bench.cluster.asked) == 1 + DECODE_TRIES
    bench.positions.seek(A, 2)
    assert bench.positions.first_error() is None


async def test_leader_errors_do_not_count_as_tries_to_read_a_batch() -> None:
    moved = fetched(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    bench = FetchBench({LEADER: [{A: moved}, {A: moved}, {A: fetched(b"\x01" * 100)}]})
    bench.begin(A)
    running = asyncio.create_task(bench.fetcher.run())
    await until(lambda: bench.delivery.undelivered_bytes(A) > 0, timeout_s=20)
    bench.delivery.take(1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert position_of(bench, A).phase is Phase.READING
    assert bench.positions.first_error() is None


async def test_what_may_not_be_read_is_raised_and_read_as_soon_as_it_may() -> None:
    refused = fetched(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    bench = FetchBench({LEADER: [{A: refused}] * 100_000})
    bench.begin(A)
    running = asyncio.create_task(bench.fetcher.run())
    await until(lambda: len(bench.cluster.asked) > 3, timeout_s=20)
    error = bench.positions.first_error()
    # the right is given
    bench.cluster.answers[LEADER] = [{A: fetched(batch([b"x"]))}]
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert "needs the right to read the topic" in str(error)
    await until(lambda: bench.delivery.undelivered_bytes(A) > 0, timeout_s=20)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert bench.positions.first_error() is None
    assert [record.value for record in bench.delivery.take(9)] == [b"x"]
    # told once, however often it was refused
    assert len([event for event in bench.events if isinstance(event, PartitionFailed)]) == 1


async def test_a_partition_without_a_leader_is_told_once_and_keeps_no_other_from_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = FetchBench({})
    listed: list[list[TopicPartition]] = []

    async def list_offsets(at: dict[TopicPartition, int], **_: Any) -> dict[TopicPartition, Any]:
        listed.extend([sorted(at)] if at else [])
        return {partition: OffsetAndTimestamp(7, -1, 0) for partition in at}

    monkeypatch.setattr(bench.cluster, "list_offsets", list_offsets, raising=False)
    bench.cluster.leaderless = {B}
    bench.positions.add([A, B], 1)
    bench.positions.hold_partitions([A, B], held=False)
    for partition in (A, B):
        bench.positions.found_committed(partition, None)
    running = asyncio.create_task(bench.fetcher.run())
    await until(lambda: position_of(bench, A).phase is Phase.READING, timeout_s=20)
    await until(lambda: any(isinstance(event, PartitionFailed) for event in bench.events), timeout_s=20)
    await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert listed == [[A]]
    assert position_of(bench, B).phase is Phase.RESETTING
    assert [e.partition for e in bench.events if isinstance(e, PartitionFailed)] == [B]


@pytest.mark.parametrize("wrong", ["answer", "broken"])
async def test_one_partition_that_is_not_answered_keeps_no_other_of_its_leader_from_starting(
    monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    bench = FetchBench({})

    async def list_offsets(
        at: dict[TopicPartition, int], *, errors: dict[TopicPartition, Any], **_: Any
    ) -> dict[TopicPartition, Any]:
        if wrong == "broken" and B in at:
            errors[B] = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        return {partition: OffsetAndTimestamp(7, -1, 0) for partition in at if partition != B}

    monkeypatch.setattr(bench.cluster, "list_offsets", list_offsets, raising=False)
    bench.positions.add([A, B], 1)
    bench.positions.hold_partitions([A, B], held=False)
    for partition in (A, B):
        bench.positions.found_committed(partition, None)
    running = asyncio.create_task(bench.fetcher.run())
    await until(lambda: position_of(bench, A).phase is Phase.READING, timeout_s=20)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert position_of(bench, B).phase is Phase.RESETTING


async def test_a_fault_of_ours_in_a_fetch_is_tried_again_after_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = FetchBench({})
    calls = 0

    async def broken(*_: object, **__: object) -> dict[TopicPartition, Any]:
        nonlocal calls
        calls += 1
        raise TypeError("a fault of ours")

    seen: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: seen.append(context))
    monkeypatch.setattr(bench.cluster, "fetch", broken)
    pauses: list[int] = []

    def delay_ms(_: Backoff, failures: int) -> float:
        pauses.append(failures)
        return 3_600_000

    monkeypatch.setattr(Backoff, "delay_ms", delay_ms)
    bench.begin(A)
    running = asyncio.create_task(bench.fetcher.run())
    await until(lambda: bool(seen), timeout_s=20)
    await asyncio.sleep(0.05)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (calls, len(seen), pauses) == (1, 1, [0])


async def test_a_topic_that_was_made_anew_is_read_by_the_policy_and_its_old_records_are_void(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = FetchBench({LEADER: [{A: fetched(batch([b"old"]))}, {}]})
    bench.cluster.topic_ids = {"orders": uuid.uuid4()}

    async def list_offsets(at: dict[TopicPartition, int], **_: Any) -> dict[TopicPartition, Any]:
        return {partition: OffsetAndTimestamp(0, -1, 0) for partition in at}

    monkeypatch.setattr(bench.cluster, "list_offsets", list_offsets, raising=False)
    bench.begin(A)
    await bench.run(2)
    (record,) = bench.delivery.take(9)
    session_id = bench.delivery.session_id(A)
    bench.cluster.topic_ids = {"orders": uuid.uuid4()}
    running = asyncio.create_task(bench.fetcher.run())
    await until(lambda: any(isinstance(event, OffsetReset) for event in bench.events), timeout_s=20)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    (reset,) = [event for event in bench.events if isinstance(event, OffsetReset)]
    assert (reset.asked, reset.offset) == (1, 0)
    assert reset.reason.startswith("the topic was deleted and recreated")
    assert bench.delivery.session_id(A) != session_id
    assert record.session_id not in bench.tracker.sessions
