"""A fetcher on a bench: what the brokers answer is the test's."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from kohort.client.errors import BrokerConnectionError
from kohort.client.fetch import Fetched
from kohort.client.offsets import Errors, OffsetAndTimestamp
from kohort.client.pool import Channel
from kohort.client.waiting import Backoff
from kohort.consumer import Cluster, CommittedOffset, FetchedPartition, FetchFrom
from kohort.consumer.done.tracker import Tracker
from kohort.consumer.events import Event
from kohort.consumer.reading.delivery import Delivery
from kohort.consumer.reading.fetcher import Fetcher
from kohort.consumer.reading.positions import Positions
from kohort.consumer.reading.start_offsets import ReadingContext
from kohort.protocol import TopicPartition
from tests.consumer.configs import config
from tests.waiting import until

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
LEADER, NEAR = 1, 2


def nothing() -> None:
    """Nobody polls."""


def fetched(records: bytes = b"", *, error: int = 0, preferred: int = -1) -> FetchedPartition:
    return FetchedPartition(error, 100, 100, 0, records, preferred_replica=preferred)


@dataclass
class ScriptedCluster:
    """Node 1 leads all but what others ``lead``; what each answers, one after the other, is the test's."""

    answers: dict[int, list[dict[TopicPartition, FetchedPartition]]]
    asked: list[tuple[int, dict[TopicPartition, FetchFrom], int]] = field(default_factory=list)
    #: Answers to polls beside a long one; when there are no more, those wait for ``answered``.
    beside: list[dict[TopicPartition, FetchedPartition]] = field(default_factory=list)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    #: Whether ListOffsets is answered.
    lists: asyncio.Event = field(default_factory=asyncio.Event)
    nodes: set[int] = field(default_factory=lambda: {LEADER, NEAR})
    #: Nodes that the next metadata has too.
    back: set[int] = field(default_factory=set)
    topic_ids: dict[str, uuid.UUID] = field(default_factory=dict)
    leaderless: set[TopicPartition] = field(default_factory=set)
    lead: dict[TopicPartition, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    under_way: int = 0
    most_under_way: int = 0
    #: The channel and the longest wait of each request; which channels cannot be opened.
    how: list[tuple[Channel, int]] = field(default_factory=list)
    closed: set[Channel] = field(default_factory=set)

    @property
    def known_metadata(self) -> ScriptedCluster:
        return self

    def leader(self, partition: TopicPartition) -> int | None:
        return None if partition in self.leaderless else self.lead.get(partition, LEADER)

    def topic(self, _: str) -> None:
        return None

    def leader_epoch(self, _: TopicPartition) -> int:
        return -1

    def topic_id(self, topic: str) -> uuid.UUID | None:
        return self.topic_ids.get(topic)

    async def list_offsets(
        self, at: Mapping[TopicPartition, int], **_: Any
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        await self.lists.wait()
        return {partition: OffsetAndTimestamp(0, -1, -1) for partition in at}

    async def metadata(self, _: Any) -> None:
        self.nodes |= self.back

    async def connect_to(self, node_id: int, channel: Channel) -> None:
        if channel in self.closed:
            await asyncio.sleep(0.001)
            raise BrokerConnectionError(f"node {node_id}", "refused")

    async def fetch(
        self,
        start: Mapping[TopicPartition, FetchFrom],
        *,
        node_id: int,
        max_bytes: int,
        max_wait_ms: int,
        channel: Channel,
        on_fetched: Callable[[Fetched], None],
        **_: Any,
    ) -> Fetched:
        self.asked.append((node_id, dict(start), max_bytes))
        self.how.append((channel, max_wait_ms))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0.001)
        self.under_way -= 1
        script = self.answers.get(node_id, []) if channel is Channel.DATA else self.beside
        if not script:
            await self.answered.wait()
            return {}
        on_fetched(answer := script.pop(0))
        # a turn of the event loop later, as with a connection
        await asyncio.sleep(0)
        return answer


class FetchBench:
    def __init__(
        self,
        answers: dict[int, list[dict[TopicPartition, FetchedPartition]]],
        *,
        policy: str = "earliest",
        **settings: Any,
    ) -> None:
        self.cluster = ScriptedCluster(answers)
        self.events: list[Event] = []
        self.positions, self.tracker = Positions(policy), Tracker()
        self.backoff = Backoff(1, 1)
        #: What the coordinator was asked to commit as starts; it answers when the event is set.
        self.kept: list[frozenset[TopicPartition]] = []
        self.coordinator = asyncio.Event()
        #: Called when there are records to take.
        self.wake: Callable[[], None] = nothing
        self.delivery = Delivery(
            self.positions,
            self.tracker,
            max_undone=1_000,
            wake=lambda: self.wake(),
            report=self.events.append,
            on_room=lambda: self.fetcher.made_room(),
            on_jump=lambda: self.fetcher.wake(),
        )
        given = config(
            client_rack="r2",
            fetch_max_bytes=50_000,
            max_partition_fetch_bytes=1_000,
            fetch_max_wait_ms=100,
            prefetch_max_bytes=4_000,
        )
        reading = ReadingContext(
            cast(Cluster, self.cluster),
            self.positions,
            self.delivery,
            self.backoff,
            report=self.events.append,
            polled=nothing,
            keep=self._keep,
        )
        self.fetcher = Fetcher(reading, given.model_copy(update=settings))

    def begin(self, *partitions: TopicPartition) -> None:
        self.positions.add(partitions, 1)
        self.positions.hold_partitions(partitions, held=False)
        for partition in partitions:
            self.positions.found_committed(partition, CommittedOffset(0))
            position = self.positions.get(partition)
            assert position is not None
            self.delivery.start(position)

    def begin_anew(self, *partitions: TopicPartition) -> None:
        """Without a committed offset, as the policy says."""
        self.positions.add(partitions, 1)
        self.positions.hold_partitions(partitions, held=False)
        for partition in partitions:
            self.positions.found_committed(partition, None)

    async def _keep(self, starts: Mapping[TopicPartition, int], _: Errors) -> bool:
        if starts:
            self.kept.append(frozenset(starts))
            await self.coordinator.wait()
        return True

    async def run(self, requests: int) -> list[tuple[int, dict[TopicPartition, FetchFrom], int]]:
        """Until so many requests were made."""
        running = asyncio.create_task(self.fetcher.run())
        try:
            await until(lambda: len(self.cluster.asked) >= requests)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        return self.cluster.asked[:requests]
