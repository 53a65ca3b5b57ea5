"""Which broker is asked, for what and for how much: leaders, replicas near by, prefetch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from kohort.consumer import Cluster, CommittedOffset, FetchedPartition, FetchFrom
from kohort.consumer.backoff import Backoff
from kohort.consumer.delivery import Delivery
from kohort.consumer.events import Event
from kohort.consumer.fetcher import Fetcher, FetchSettings
from kohort.consumer.positions import Phase, Positions
from kohort.consumer.start_offsets import Reading
from kohort.consumer.tracker import Tracker
from kohort.protocol import ErrorCode, TopicPartition
from tests.consumer.batches import batch
from tests.consumer.members import until

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
LEADER, NEAR = 1, 2


def _nothing() -> None:
    """Nobody polls."""


def _fetched(records: bytes = b"", *, error: int = 0, preferred: int = -1) -> FetchedPartition:
    return FetchedPartition(error, 100, 100, 0, records, preferred_replica=preferred)


@dataclass
class _Cluster:
    """Node 1 leads everything; what each node answers, one after the other, is the test's."""

    answers: dict[int, list[dict[TopicPartition, FetchedPartition]]]
    asked: list[tuple[int, dict[TopicPartition, FetchFrom], int]] = field(default_factory=list)
    nodes: set[int] = field(default_factory=lambda: {LEADER, NEAR})
    under_way: int = 0
    most_under_way: int = 0

    @property
    def known(self) -> _Cluster:
        return self

    def leader(self, _: TopicPartition) -> int:
        return LEADER

    def leader_epoch(self, _: TopicPartition) -> int:
        return -1

    async def metadata(self, _: Any) -> None:
        """Nothing new."""

    async def fetch(
        self,
        start: Mapping[TopicPartition, FetchFrom],
        *,
        node_id: int,
        max_bytes: int,
        **_: Any,
    ) -> dict[TopicPartition, FetchedPartition]:
        self.asked.append((node_id, dict(start), max_bytes))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0.001)
        self.under_way -= 1
        script = self.answers.get(node_id, [])
        if not script:
            await asyncio.Event().wait()
        return script.pop(0)


class _Bench:
    def __init__(
        self, answers: dict[int, list[dict[TopicPartition, FetchedPartition]]], **settings: Any
    ) -> None:
        self.cluster = _Cluster(answers)
        self.events: list[Event] = []
        self.positions, tracker = Positions("earliest"), Tracker()
        #: Called when there are records to take.
        self.wake: Callable[[], None] = _nothing
        self.delivery = Delivery(
            self.positions, tracker, max_undone=1_000, wake=lambda: self.wake(), report=self.events.append
        )
        given = {
            "group": "billing",
            "rack": "r2",
            "read_committed": False,
            "min_bytes": 1,
            "max_bytes": 50_000,
            "partition_max_bytes": 1_000,
            "max_wait_ms": 100,
            "prefetch_max_bytes": 4_000,
            "check_crcs": True,
        }
        reading = Reading(
            cast(Cluster, self.cluster),
            self.positions,
            self.delivery,
            Backoff(1, 1),
            report=self.events.append,
            polled=_nothing,
        )
        self.fetcher = Fetcher(reading, FetchSettings(**{**given, **settings}))

    def begin(self, *partitions: TopicPartition) -> None:
        self.positions.add(partitions, 1)
        self.positions.hold(partitions, held=False)
        for partition in partitions:
            self.positions.found_committed(partition, CommittedOffset(0))
            position = self.positions.get(partition)
            assert position is not None
            self.delivery.start(position)

    async def run(self, requests: int) -> list[tuple[int, dict[TopicPartition, FetchFrom], int]]:
        """Until so many requests were made."""
        running = asyncio.create_task(self.fetcher.run())
        try:
            await until(lambda: len(self.cluster.asked) >= requests)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        return self.cluster.asked[:requests]


def _nodes(asked: list[tuple[int, dict[TopicPartition, FetchFrom], int]]) -> list[int]:
    return [node for node, _, _ in asked]


async def test_the_replica_that_the_leader_names_is_read_from_then_on() -> None:
    bench = _Bench({LEADER: [{A: _fetched(preferred=NEAR)}], NEAR: [{A: _fetched(batch([b"x"]))}] * 2})
    bench.begin(A)
    assert _nodes(await bench.run(4)) == [LEADER, NEAR, NEAR, NEAR]
    assert [record.offset for record in bench.delivery.take(9)] == [0]


async def test_an_offset_out_of_range_at_a_replica_is_asked_of_the_leader_and_nothing_is_reset() -> None:
    out = _fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    bench = _Bench({LEADER: [{A: _fetched(preferred=NEAR)}], NEAR: [{A: out}]})
    bench.begin(A)
    assert _nodes(await bench.run(3)) == [LEADER, NEAR, LEADER]
    position = bench.positions.get(A)
    assert position is not None
    assert (position.phase, bench.events) == (Phase.READING, [])


async def test_a_replica_is_left_when_its_lease_is_over_or_it_is_gone() -> None:
    answers = {LEADER: [{A: _fetched(preferred=NEAR)}], NEAR: [{A: _fetched()}] * 5}
    bench = _Bench(answers, replica_lease_ms=0)
    bench.begin(A)
    assert _nodes(await bench.run(2)) == [LEADER, LEADER]
    bench = _Bench({**answers, LEADER: [{A: _fetched(preferred=NEAR)}]})
    bench.cluster.nodes = {LEADER}
    bench.begin(A)
    assert _nodes(await bench.run(2)) == [LEADER, LEADER]


async def test_one_request_is_under_way_for_a_broker_and_asks_for_no_more_than_may_be_prefetched() -> None:
    some = batch([b"x" * 900])
    bench = _Bench({LEADER: [{A: _fetched(some)}, {B: _fetched(some)}, {A: _fetched(some)}]})
    bench.begin(A, B)
    asked = await bench.run(3)
    assert bench.cluster.most_under_way == 1
    assert [size for _, _, size in asked] == [4_000, 4_000 - len(some), 4_000 - 2 * len(some)]


async def test_a_partition_with_enough_buffered_is_not_asked_for_until_some_is_taken() -> None:
    much = batch([b"x" * 1_000])
    bench = _Bench({LEADER: [{A: _fetched(much), B: _fetched()}, {B: _fetched()}]})
    bench.begin(A, B)
    asked = await bench.run(2)
    assert [sorted(start) for _, start, _ in asked] == [[A, B], [B]]


async def test_the_next_request_is_out_before_a_taker_sees_what_the_last_one_brought() -> None:
    bench = _Bench({LEADER: [{A: _fetched(batch([b"x"]))}]})
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
