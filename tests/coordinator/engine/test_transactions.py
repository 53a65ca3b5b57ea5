"""Transactional offsets: batches of their own, pending until the marker, and read back alike.

Covers: coordinator/engine/effects.py.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from kohort.coordinator import Append, EndMarker, GroupSettings, group_shard
from kohort.coordinator.groups.groups import GroupShard
from kohort.offsets_topic import OffsetCommitted
from kohort.protocol import ErrorCode, KafkaError, TopicPartition
from tests.coordinator.bodies import START_MS
from tests.coordinator.memory_log import MemoryLog, commit, coordinator, fetch

T0 = TopicPartition("t", 0)


@dataclass
class Outcome:
    """What became of a write."""

    told: list[ErrorCode] = field(default_factory=list)

    def __call__(self, error: ErrorCode, _now_ms: int) -> None:
        self.told.append(error)


def offset(number: int, group: str = "g") -> tuple[OffsetCommitted, ...]:
    return (OffsetCommitted(group, "t", 0, number, -1, "", START_MS),)


def committed(shard: GroupShard, group: str = "g") -> int | None:
    entry = shard.state.durable.offset(group, T0)
    return None if entry is None else entry.offset


@pytest.mark.parametrize(("commits", "left"), [(True, 5), (False, 1)])
def test_offsets_of_a_transaction_are_pending_until_its_marker_is_in_the_log(
    commits: bool, left: int
) -> None:
    shard, outcome = group_shard(GroupSettings(), str), Outcome()
    shard.activate(START_MS)
    shard.append("g", offset(1), outcome)
    shard.append("g", offset(5), outcome, producer_id=7, producer_epoch=2)
    shard.append(None, (), outcome, producer_id=7, producer_epoch=2, marker=EndMarker(commits, 3))
    appends = [effect for effect in shard.take_effects() if isinstance(effect, Append)]
    assert [(one.producer_id, one.producer_epoch, one.marker) for one in appends] == [
        (-1, -1, None),
        (7, 2, None),
        (7, 2, EndMarker(commits, 3)),
    ]
    for at, append in enumerate(appends[:2]):
        shard.on_appended(append.ticket, at, START_MS)
    assert (committed(shard), shard.state.durable.is_pending("g", T0)) == (1, True)
    shard.on_appended(appends[2].ticket, 2, START_MS)
    assert (committed(shard), shard.state.durable.is_pending("g", T0)) == (left, False)
    assert outcome.told == [ErrorCode.NONE] * 3


def test_a_marker_that_is_not_written_ends_nothing() -> None:
    shard, outcome = group_shard(GroupSettings(), str), Outcome()
    shard.apply(offset(5), 0, 7)
    shard.append(None, (), outcome, producer_id=7, producer_epoch=0, marker=EndMarker(True, 0))
    (append,) = shard.take_effects()
    assert isinstance(append, Append)
    shard.append_failed(append.ticket, ErrorCode.NOT_ENOUGH_REPLICAS, START_MS)
    assert shard.state.durable.is_pending("g", T0)
    assert outcome.told == [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert not shard.is_busy("g")


async def test_each_producer_has_batches_of_its_own_in_the_order_of_writes_and_they_load_alike() -> None:
    log = MemoryLog(partition_count=1)
    c = coordinator(log, clock_ms=lambda: START_MS)
    await c.start()
    outcome = Outcome()

    def write(shard: GroupShard, _now_ms: int) -> None:
        for group in "gh":
            shard.append(group, offset(1, group), outcome)
        for group in "gh":
            shard.append(group, offset(5, group), outcome, producer_id=7, producer_epoch=2)
        shard.append("g", offset(6), outcome, producer_id=8, producer_epoch=0)
        shard.append(None, (), outcome, producer_id=7, producer_epoch=2, marker=EndMarker(True, 4))
        shard.append(None, (), outcome, producer_id=8, producer_epoch=0, marker=EndMarker(False, 4))
        shard.append("i", offset(9, "i"), outcome)

    c.steer("g", write)
    await asyncio.sleep(0)
    assert outcome.told == [ErrorCode.NONE] * 8
    assert [
        (len(batch.records), batch.producer_id, batch.producer_epoch, batch.transactional, batch.control)
        for batch in log.batches[0]
    ] == [
        (2, -1, -1, False, False),
        (2, 7, 2, True, False),
        (1, 8, 0, True, False),
        (1, 7, 2, True, True),
        (1, 8, 0, True, True),
        (1, -1, -1, False, False),
    ]
    (aborted,) = log.batches[0][4].records
    assert aborted[2:] == (b"\0\0\0\0", b"\0\0\0\0\0\4")
    again = coordinator(log, clock_ms=lambda: START_MS)
    await again.start()
    for each in (c, again):
        found = [(await fetch(each, group)).groups[0].topics[0].partitions[0] for group in "ghi"]
        assert [one.committed_offset for one in found] == [5, 5, 9]
        await each.stop()


async def test_a_producer_that_the_log_refuses_costs_others_nothing() -> None:
    class Fences(MemoryLog):
        def append(self, *args: Any, **options: Any) -> int:
            if options["producer_id"] == 7:
                raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, "an old epoch")
            return super().append(*args, **options)

    c = coordinator(Fences(partition_count=1))
    await c.start()
    fenced = Outcome()
    c.steer("g", lambda shard, _now_ms: shard.append("g", offset(5), fenced, producer_id=7, producer_epoch=0))
    assert await commit(c, "h", 3) == [0]
    assert fenced.told == [ErrorCode.INVALID_PRODUCER_EPOCH]
    await c.stop()
