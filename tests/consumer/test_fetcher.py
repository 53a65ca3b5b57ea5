"""Which broker is asked, for what and for how much: leaders, replicas near by, prefetch."""

from __future__ import annotations

import asyncio

from kohort.consumer import FetchFrom
from kohort.consumer.positions import Phase
from kohort.protocol import ErrorCode, TopicPartition
from tests.consumer.batches import batch
from tests.consumer.fetch_bench import LEADER, NEAR, A, B, FetchBench, fetched


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


async def test_the_next_request_is_out_before_a_taker_sees_what_the_last_one_brought() -> None:
    bench = FetchBench({LEADER: [{A: fetched(batch([b"x"]))}]})
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
    assert asked == [2]
