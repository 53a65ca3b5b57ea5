"""Five members restarted one after the other while records flow."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from kohort.consumer import AsyncGroupConsumer
from kohort.consumer.events import PartitionsLost, PartitionsRevoked, RebalanceCompleted
from kohort.protocol import TopicPartition
from tests.consumer.conftest import QUICK, both_protocols
from tests.waiting import until

pytestmark = [pytest.mark.kafka, both_protocols]

MEMBERS = 5
PARTITIONS = 10
#: Longest silence of a partition that did not move. Records come every few milliseconds.
SILENCE_S = 1.0
#: Pause between two records of a partition.
_PACE_S = 0.005
#: Longer than any machine takes for a restart: that a seat is free again must come from its owner.
SESSION_MS = 60_000


class _Member:
    """Reads, marks done, and notes when it got what of which partition."""

    def __init__(self, consumer: AsyncGroupConsumer, seen: dict[int, list[int]]) -> None:
        self.consumer = consumer
        self.times: dict[int, list[float]] = defaultdict(list)
        self._seen = seen
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for record in self.consumer:
            self._seen[record.partition].append(record.offset)
            self.times[record.partition].append(time.monotonic())
            self.consumer.done(record)
            await asyncio.sleep(0)

    async def stop(self) -> None:
        await self.consumer.close(drain_timeout_ms=5_000)
        await asyncio.wait_for(self._task, 30)

    def events(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.consumer.events.recent if isinstance(event, kind)]

    def gave_up(self) -> set[TopicPartition]:
        return {
            p
            for event in self.events(PartitionsRevoked) + self.events(PartitionsLost)
            for p in event.partitions
        }

    def longest_silence_s(self, partition: int, since: float) -> float:
        times = [since, *(at for at in self.times[partition] if at >= since), time.monotonic()]
        return max(later - earlier for earlier, later in pairwise(times))


@dataclass
class _Flow:
    """``rounds`` of a record for each partition; ``stall_s``: the longest that none of them was stored."""

    rounds: int = 0
    stall_s: float = 0.0
    began: float = field(default_factory=time.monotonic)
    stored: float = field(default_factory=time.monotonic)

    def slowness(self) -> float:
        """How much longer than meant a round has taken: all members share its event loop."""
        return (time.monotonic() - self.began) / (self.rounds * _PACE_S)

    def acknowledged(self, error: object, _: object) -> None:
        assert error is None
        now = time.monotonic()
        self.stall_s, self.stored = max(self.stall_s, now - self.stored), now


@contextlib.asynccontextmanager
async def _flowing(bootstrap: str, topic: str) -> AsyncIterator[_Flow]:
    """A record for each partition every few milliseconds."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    records = _Flow()

    async def flow() -> None:
        while True:
            for partition in range(PARTITIONS):
                producer.produce(topic, b"x", partition=partition, on_delivery=records.acknowledged)
            producer.poll(0)
            records.rounds += 1
            await asyncio.sleep(_PACE_S)

    flowing = asyncio.create_task(flow())
    try:
        yield records
    finally:
        flowing.cancel()
        await asyncio.gather(flowing, return_exceptions=True)
        producer.flush(10)


async def _start(bootstrap: str, topic: str, seen: dict[int, list[int]], **settings: Any) -> _Member:
    consumer = AsyncGroupConsumer(
        topic, **{**QUICK, "bootstrap": bootstrap, "session_timeout_ms": SESSION_MS, **settings}
    )
    await consumer.start()
    return _Member(consumer, seen)


def _even(members: list[_Member]) -> bool:
    return all(len(m.consumer.assignment()) == PARTITIONS // MEMBERS for m in members)


async def _finish(members: list[_Member], seen: dict[int, list[int]], rounds: int) -> None:
    """Everything was read, in order, and nothing twice."""
    await until(lambda: all(len(seen[partition]) >= rounds for partition in range(PARTITIONS)))
    for member in members:
        await member.stop()
    assert all(offsets == list(range(rounds)) for offsets in seen.values())


async def test_five_static_members_are_restarted_without_a_rebalance(
    bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic, name = new_topic("orders", partitions=PARTITIONS), group("billing")
    seen: dict[int, list[int]] = defaultdict(list)
    async with _flowing(bootstrap, topic) as flow:
        members = [
            await _start(bootstrap, topic, seen, group=name, group_instance_id=str(n)) for n in range(MEMBERS)
        ]
        await until(lambda: _even(members))
        # a consumer group's members hear of a new epoch one by one, though it gives them nothing else
        await until(lambda: len({member.consumer.state.generation for member in members}) == 1)
        generation = members[0].consumer.state.generation
        for n in range(MEMBERS):
            before = members[n].consumer.assignment()
            await members[n].stop()
            members[n] = await _start(bootstrap, topic, seen, group=name, group_instance_id=str(n))
            await until(lambda n=n, before=before: members[n].consumer.assignment() == before)  # type: ignore[misc]
        await asyncio.sleep(0.5)
        assert {member.consumer.state.generation for member in members} == {generation}
    await _finish(members, seen, flow.rounds)


@pytest.mark.slow(4)
async def test_of_five_cooperative_members_that_are_restarted_what_stays_never_stops(
    bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic, name = new_topic("orders", partitions=PARTITIONS), group("billing")
    seen: dict[int, list[int]] = defaultdict(list)
    silences: list[float] = []
    async with _flowing(bootstrap, topic) as flow:
        members = [await _start(bootstrap, topic, seen, group=name) for _ in range(MEMBERS)]
        await until(lambda: _even(members))
        for n in range(MEMBERS):
            began = time.monotonic()
            others = [member for member in members if member is not members[n]]
            owned = {member: member.consumer.assignment() for member in others}
            given_up = {member: member.gave_up() for member in others}
            rebalances = {member: len(member.events(RebalanceCompleted)) for member in others}
            await members[n].stop()
            members[n] = await _start(bootstrap, topic, seen, group=name)
            await until(lambda: _even(members))
            gone = {member: owned[member] & (member.gave_up() - given_up[member]) for member in others}
            share = PARTITIONS // MEMBERS
            alone = any(
                len(event.assignment) > share
                for member in others
                for event in member.events(RebalanceCompleted)[rebalances[member] :]
            )
            # if the group settled without the restarted one first, that one has to be given a share again
            assert sum(map(len, gone.values())) <= (share if alone else 0)
            for member in others:
                stayed = owned[member] - gone[member]
                silences += [member.longest_silence_s(p.partition, began) for p in stayed]
        assert all(member.events(RebalanceCompleted) for member in members)
    print(f"longest silence of a partition that stayed: {max(silences) * 1000:.0f} ms")
    # as long as the machine let nothing be stored, nothing could be read either
    assert max(silences) < SILENCE_S * flow.slowness() + flow.stall_s
    await _finish(members, seen, flow.rounds)
