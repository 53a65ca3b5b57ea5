"""Owner of each partition while an assignment is made: counted by class, changed, and listed by member."""

from __future__ import annotations

import gc
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise, repeat
from typing import Protocol

from ..protocol import TopicPartition, has_native
from ._group import UNCLAIMED, IndexedGroup, TopicSlice, settle_claims, topic_partitions
from ._owned_partitions import OwnedPartitions
from .base import GroupAssignment, TopicInfo

NATIVE = has_native("assignors")
if NATIVE:
    from ._native import NativeOwnership

#: From this number of partitions on the garbage collector is kept from visiting them soon.
_OLD_FROM_PARTITIONS = 10_000


class Ownership(Protocol):
    """Owner of each partition: at first its newest claimant, then the member it is distributed to."""

    def owned(self, slices: Sequence[TopicSlice]) -> list[int]:
        """Count these partitions by owner (member index), whether the owner may keep them or not."""

    def distribute(self, slices: Sequence[TopicSlice], own: Sequence[int], given: Mapping[int, int]) -> None:
        """Give ``given[m]`` of these partitions to each member ``m``: first those that it owns.

        ``own`` is the result of :meth:`owned` for members that may keep what they own, else 0. A member that
        owns more than it is given keeps the lowest partition numbers, so that it gives up some of each topic.
        The rest goes round robin, by topic and number, to the members that own fewer than they are given.
        """

    def withhold(self) -> None:
        """Leave partitions unowned that a member other than the new owner may still be reading."""

    def assignment(self) -> GroupAssignment:
        """Return the sorted partitions of each member, by member id."""


class ListOwnership:
    """Ownership in lists: the reference.

    ``newest``: the newest claimant of each partition. ``owner``: its owner.
    """

    def __init__(self, group: IndexedGroup, claims: Sequence[OwnedPartitions]) -> None:
        self.group = group
        self.starts = group.starts
        self.newest = [UNCLAIMED] * self.starts[-1]
        settle_claims(self.newest, self._partitions_of(claims), [claim.generation for claim in claims])
        self.owner = self.newest[:]

    def _partitions_of(self, claims: Sequence[OwnedPartitions]) -> Iterator[tuple[int, int]]:
        counts = self.group.partition_counts
        bounds = {topic: (self.starts[t], counts[t]) for t, topic in enumerate(self.group.topics)}
        for m, claim in enumerate(claims):
            numbers = struct.unpack(f">{len(claim.numbers) // 4}i", claim.numbers)
            position = 0
            for topic, units in claim.layout:
                start, count = bounds.get(topic, (0, 0))
                for number in numbers[position : position + units]:
                    if 0 <= number < count:
                        yield m, start + number
                position += units

    def owned(self, slices: Sequence[TopicSlice]) -> list[int]:
        """See Ownership."""
        units = Counter[int]()
        for _, partitions in slices:
            if isinstance(partitions, range):
                units.update(self.owner[partitions.start : partitions.stop])
            else:
                units.update(map(self.owner.__getitem__, partitions))
        found = [0] * len(self.group.member_ids)
        for m, count in units.items():
            if m >= 0:
                found[m] = count
        return found

    def distribute(self, slices: Sequence[TopicSlice], own: Sequence[int], given: Mapping[int, int]) -> None:
        """See Ownership."""
        short = {m: units - own[m] for m, units in given.items() if units > own[m]}
        if any(own):
            rest = self._take_rest(slices, own, given)
        elif len(slices) == 1 and isinstance(partitions := slices[0][1], range):
            self.owner[partitions.start : partitions.stop] = _in_turn(short)
            return
        else:
            rest = list(chain.from_iterable(partitions for _, partitions in slices))
        for partition, m in zip(rest, _in_turn(short), strict=True):
            self.owner[partition] = m

    def _take_rest(
        self, slices: Sequence[TopicSlice], own: Sequence[int], given: Mapping[int, int]
    ) -> list[int]:
        """Partitions without an owner that subscribes, and those beyond what their owner is given."""
        lowest: dict[int, list[tuple[int, int]]] = {m: [] for m, units in given.items() if units < own[m]}
        rest: list[int] = []
        for t, partitions in slices:
            start = self.starts[t]
            for partition in partitions:
                m = self.owner[partition]
                if m in lowest:
                    lowest[m].append((partition - start, partition))
                elif m not in given:
                    rest.append(partition)
        if lowest:
            for m, mine in lowest.items():
                rest.extend(partition for _, partition in sorted(mine)[given[m] :])
            rest.sort()
        return rest

    def withhold(self) -> None:
        """See Ownership."""
        for partition, (claimant, m) in enumerate(zip(self.newest, self.owner, strict=True)):
            if claimant not in (UNCLAIMED, m):
                self.owner[partition] = UNCLAIMED

    def assignment(self) -> GroupAssignment:
        """See Ownership."""
        lists: list[list[TopicPartition]] = [[] for _ in self.group.member_ids]
        nobodys: list[TopicPartition] = []
        put = [*(mine.append for mine in lists), nobodys.append]  # index -1 is UNCLAIMED
        for topic, (start, end) in zip(self.group.topics, pairwise(self.starts), strict=True):
            takers = map(put.__getitem__, self.owner[start:end])
            for take, partition in zip(
                takers, topic_partitions(repeat(topic), range(end - start)), strict=True
            ):
                take(partition)
        return dict(zip(self.group.member_ids, lists, strict=True))


def _in_turn(short: Mapping[int, int]) -> list[int]:
    """Members in round-robin order, each as often as ``short`` says."""
    found: list[int] = []
    for before, level in pairwise([0, *sorted(set(short.values()))]):
        found += [m for m, units in short.items() if units >= level] * (level - before)
    return found


def ownership_of(group: IndexedGroup, claims: Sequence[OwnedPartitions]) -> Ownership:
    """Ownership in C if that is compiled, else in lists."""
    return NativeOwnership(group, claims) if NATIVE else ListOwnership(group, claims)


@contextmanager
def collector_paused(topics: Mapping[str, TopicInfo]) -> Iterator[None]:
    """Pause the garbage collector while partitions are made, as none of them is garbage.

    Very many are moved to the oldest generation afterwards, so that the next collections do not visit them.
    Few are not: ``gc.get_freeze_count()`` takes milliseconds in a process that froze many objects, as the
    broker does.
    """
    many = sum(topic.partition_count for topic in topics.values()) >= _OLD_FROM_PARTITIONS
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            if many and not gc.get_freeze_count():  # else unfreeze() would release what others froze
                gc.freeze()
                gc.unfreeze()
            gc.enable()
