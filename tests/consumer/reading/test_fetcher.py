"""Which broker is asked, for what and for how much: leaders, replicas near by, prefetch."""

from __future__ import annotations

import asyncio

import pytest

from kohort.client.offsets import EARLIEST
from kohort.client.pool import Channel
from kohort.consumer import CommittedOffset, FetchFrom, Record
from kohort.consumer.reading.fetcher import Fetcher
from kohort.consumer.reading.positions import Phase
from kohort.protocol import ErrorCode, TopicPartition
from tests.consumer.batches import batch
from tests.consumer.fetch_bench import LEADER, NEAR, A, B, FetchBench, fetched
from tests.waiting import until


def _nodes(asked: list[tuple[int, dict[TopicPartition, FetchFrom], int]]) -> list[int]:
    return [node for node, _, _ in asked]


async def test_the_replica_that_the_leader_names_is_read_from_then_on() -> None:
    bench = FetchBench({LEADER: [{A: fetched(preferred=NEAR)}], NEAR: [{A: fetched(batch([b"x"]))}] * 2})
    bench.begin(A)
    assert _nodes(await bench.run(4)) == [LEADER, NEAR, NEAR, NEAR]
    assert [record.offset for record in bench.delivery.take(9)] == [0]


async def test_an_offset_out_of_range_at_a_replica_is_asked_of_the_leader_andnothing_is_reset() -> None:
    out = fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    bench = FetchBench({LEADER: [{A: fetched(preferred=NEAR)}], NEAR: [{A: out}]})
    bench.begin(A)
    assert _nodes(await bench.run(3)) == [LEADER, NEAR, LEADER]
    position = bench.positions.get(A)
    assert position is not None
    assert (position.phase, bench.events) == (Phase.READING, [])


async def test_a_replica_is_left_when_its_lease_is_over_or_it_is_gone() -> None:
    answers = {LEADER: [{A: fetched(preferred=NEAR)}], NEAR: [{A: fetched()}] * 5}
    bench = FetchBench(answers, metadata_max_age_ms=0)
    bench.begin(A)
    assert _nodes(await bench.run(2)) == [LEADER, LEADER]
    bench = FetchBench({**answers, LEADER: [{A: fetched(preferred=NEAR)}]})
    bench.cluster.nodes = {LEADER}
    bench.begin(A)
    assert _nodes(await bench.run(2)) == [LEADER, LEADER]


async def test_a_replica_that_is_not_known_yet_is_looked_for() -> None:
    answers = {LEADER: [{A: fetched(preferred=NEAR)}] * 6, NEAR: [{A: fetched()}] * 6}
    bench = FetchBench(answers)
    bench.cluster.nodes, bench.cluster.back = {LEADER}, {NEAR}
    bench.begin(A)
    assert _nodes(await bench.run(5))[-1] == NEAR


async def test_what_a_leader_sends_to_a_replica_is_read_beside_the_long_poll_there() -> None:
    bench = FetchBench({LEADER: [{A: fetched(preferred=NEAR)}], NEAR: []})
    bench.cluster.lead[B] = NEAR
    bench.cluster.beside = [{A: fetched(batch([b"x"]))}]
    # the leader goes on with another one
    another = TopicPartition("orders", 2)
    bench.begin(A, B, another)
    asked = [(node, sorted(start)) for node, start, _ in await bench.run(4)]
    assert asked == [(LEADER, [A, another]), (NEAR, [B]), (LEADER, [another]), (NEAR, [A])]


async def test_one_request_is_under_way_for_a_broker_and_asks_for_no_more_than_may_be_prefetched() -> None:
    some = batch([b"x" * 900])
    first, second, third = (fetched(bytes(bytearray(some))) for _ in range(3))
    bench = FetchBench({LEADER: [{A: first}, {B: second}, {A: third}]})
    bench.begin(A, B)
    asked = await bench.run(3)
    assert bench.cluster.most_under_way == 1
    assert [size for _, _, size in asked] == [4_000, 4_000 - len(some), 4_000 - 2 * len(some)]


async def test_a_partition_with_enough_buffered_is_not_asked_for_until_some_is_taken() -> None:
    much = batch([b"x" * 1_000])
    bench = FetchBench({LEADER: [{A: fetched(much), B: fetched()}, {B: fetched()}]})
    bench.begin(A, B)
    asked = await bench.run(2)
    assert [sorted(start) for _, start, _ in asked] == [[A, B], [B]]


async def test_the_next_response_is_asked_for_while_a_full_one_whose_last_batch_is_cut_is_unread() -> None:
    whole, cut = batch([b"x" * 500]), batch([b"y" * 500], 1)
    bench = FetchBench({LEADER: [{A: fetched((whole + cut)[:1_000])}]})
    bench.begin(A)
    assert [start[A].offset for _, start, _ in await bench.run(2)] == [0, 1]
    assert bench.delivery.undelivered_bytes(A) == 1_000


async def test_where_all_have_enough_the_next_request_goes_out_once_some_is_taken() -> None:
    much = batch([b"x" * 1_000])
    bench = FetchBench({LEADER: [{A: fetched(much)}]})
    bench.begin(A)
    running = asyncio.create_task(bench.run(2))
    await until(lambda: bench.delivery.undelivered_bytes(A))
    await asyncio.sleep(0.01)
    assert len(bench.cluster.asked) == 1
    assert len(bench.delivery.take(9)) == 1
    assert [start[A].offset for _, start, _ in await running] == [0, 1]


async def test_all_that_may_be_due_is_not_looked_at_for_each_record(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    look = Fetcher._start_what_is_due

    def noted(fetcher: Fetcher) -> None:
        looks.append(len(bench.cluster.asked))
        look(fetcher)

    monkeypatch.setattr(Fetcher, "_start_what_is_due", noted)
    bench = FetchBench({LEADER: [{A: fetched(batch([b"x"], offset))} for offset in range(20)]})
    bench.wake = lambda: taken.extend(bench.delivery.take(9))
    taken: list[Record] = []
    bench.begin(A)
    await bench.run(20)
    assert len(taken) >= 19
    assert looks == [0]


@pytest.mark.parametrize(
    ("size", "requests"),
    [pytest.param(20_000, 2, id="much"), pytest.param(1, 1, id="a lone record, which its taker has first")],
)
async def test_the_next_request_is_out_before_a_taker_sees_what_the_last_one_brought(
    size: int, requests: int
) -> None:
    answers = {LEADER: [{A: fetched(batch([b"x" * size]))}]}
    bench = FetchBench(answers, max_partition_fetch_bytes=50_000, prefetch_max_bytes=100_000)
    bench.begin(A)
    there = asyncio.Event()
    bench.wake = there.set
    asked: list[int] = []

    async def take() -> None:
        await there.wait()
        asked.append(len(bench.cluster.asked))

    taking = asyncio.create_task(take())
    await bench.run(2)
    await taking
    assert asked == [requests]


async def test_a_partition_that_comes_up_during_a_long_poll_is_read_beside_it_in_polls_that_grow() -> None:
    bench = FetchBench({LEADER: []})
    bench.cluster.beside = [{B: fetched()}, {}, {}, {}, {B: fetched(batch([b"x"]))}, {}]
    bench.begin(A)
    running = asyncio.create_task(bench.run(8))
    await until(lambda: len(bench.cluster.asked) == 1)
    bench.begin(B)
    bench.fetcher.wake()
    asked = await running
    assert [sorted(start) for _, start, _ in asked] == [[A], *[[B]] * 7]
    beside = [wait for channel, wait in bench.cluster.how if channel is Channel.BESIDE]
    assert beside == [0, 1, 3, 7, 15, 20, 20]
    assert [start[B].offset for _, start, _ in asked[1:]] == [0, 0, 0, 0, 0, 1, 1]
    assert [record.offset for record in bench.delivery.take(9)] == [0]


async def test_what_jumps_during_a_long_poll_is_asked_for_beside_it_too() -> None:
    bench = FetchBench({LEADER: []})
    bench.cluster.beside = [{} for _ in range(1_000)]
    bench.begin(A)
    running = asyncio.create_task(bench.run(1_000))
    asked = bench.cluster.asked
    await until(lambda: len(asked) == 1)
    bench.begin(B)
    bench.fetcher.wake()
    await until(lambda: len(asked) > 5)
    bench.positions.seek(A, 7)
    await until(lambda: A in asked[-1][1])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    first = next(number for number, (_, start, _) in enumerate(asked) if set(start) == {A, B})
    assert (asked[first][1][A].offset, bench.cluster.how[first]) == (7, (Channel.BESIDE, 0))


async def test_behind_a_long_poll_all_partitions_are_in_one_request_again() -> None:
    bench = FetchBench({LEADER: []})
    bench.begin(A)
    running = asyncio.create_task(bench.run(4))
    await until(lambda: len(bench.cluster.asked) == 1)
    bench.begin(B)
    bench.fetcher.wake()
    await until(lambda: len(bench.cluster.asked) == 2)
    # both are answered in the same moment
    bench.cluster.answered.set()
    asked = await running
    both = [sorted(start) for _, start, _ in asked]
    assert [A, B] in both
    assert not any(set(start) == {A, B} for start in both[:2])


async def test_without_a_second_connection_the_long_poll_is_waited_for() -> None:
    bench = FetchBench({LEADER: []})
    bench.cluster.closed = {Channel.BESIDE}
    bench.begin(A)
    running = asyncio.create_task(bench.run(2))
    await until(lambda: len(bench.cluster.asked) == 1)
    bench.begin(B)
    bench.fetcher.wake()
    await asyncio.sleep(0.01)
    assert (len(bench.cluster.asked), bench.events) == (1, [])
    bench.cluster.answered.set()
    assert [sorted(start) for _, start, _ in await running] == [[A], [A, B]]


async def test_a_partition_whose_committed_offset_is_told_is_fetched_without_asking_for_it() -> None:
    bench = FetchBench({LEADER: []})
    bench.positions.add([A, B], 1, {A: CommittedOffset(7), B: None})
    bench.positions.hold_partitions([A, B], held=False)
    (asked,) = await bench.run(1)
    assert {partition: where.offset for partition, where in asked[1].items()} == {A: 7}
    position = bench.positions.get(B)
    assert position is not None
    assert position.phase is Phase.RESETTING


async def test_a_seek_does_not_wait_for_the_coordinator_that_other_partitions_begin_with() -> None:
    bench = FetchBench({LEADER: [{B: fetched(batch([b"x"]))}]}, policy="latest")
    bench.cluster.lists.set()
    bench.begin_anew(A)
    running = asyncio.create_task(bench.fetcher.run())
    try:
        await until(lambda: bench.kept == [frozenset({A})])
        bench.begin(B)
        bench.positions.seek(B, EARLIEST)
        bench.fetcher.wake()
        await until(lambda: bench.delivery.undelivered_bytes(B) > 0)
        position = bench.positions.get(A)
        assert position is not None
        assert position.phase is Phase.RESETTING, "it is not read before its start is committed"
        bench.coordinator.set()
        await until(lambda: position.phase is Phase.READING)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert bench.kept == [frozenset({A})]
