"""Ownership of partitions in numpy arrays: the same results as ``ListOwnership``, faster for large groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, pairwise
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from ._group import UNCLAIMED, Group, TopicSlice, settle, topic_partitions
from ._owned_partitions import Layout, OwnedPartitions
from .base import GroupAssignment

Numbers = NDArray[np.int64]

_INT16_MAX = 0x7FFF
_INT32_SIZE = 4
#: Last entries of an array indexed by owner: those for UNCLAIMED (-1) and CONTESTED (-2).
_NO_OWNER = 2


class ArrayOwnership:
    """An :class:`~._ownership.Ownership` in arrays."""

    def __init__(self, group: Group, claims: Sequence[OwnedPartitions]) -> None:
        self.group = group
        self.starts = group.starts
        self.numbers = _ranges([0] * len(group.topics), group.partition_counts)
        self.newest: Numbers = np.full(self.starts[-1], UNCLAIMED)
        partitions, members = self._find_claims(claims)
        self.newest[partitions] = members
        rivals = np.unique(partitions[self.newest[partitions] != members])
        if rivals.size:
            contested = np.isin(partitions, rivals)
            claimed = zip(members[contested].tolist(), partitions[contested].tolist(), strict=True)
            settled = dict.fromkeys(rivals.tolist(), UNCLAIMED)
            settle(settled, claimed, [claim.generation for claim in claims])
            self.newest[rivals] = list(settled.values())
        self.owner = self.newest.copy()

    def _find_claims(self, claims: Sequence[OwnedPartitions]) -> tuple[Numbers, Numbers]:
        """Claimed partitions that exist, and the member that claims each."""
        alike: dict[int, list[int]] = {}  # members by the identity of the layout that they share
        for m, claim in enumerate(claims):
            alike.setdefault(id(claim.layout), []).append(m)
        ordered = list(chain.from_iterable(alike.values()))
        numbers = np.frombuffer(b"".join([claims[m].numbers for m in ordered]), ">i4")
        members = np.repeat(ordered, [len(claims[m].numbers) // _INT32_SIZE for m in ordered])
        topics = self._topics([(claims[sharing[0]].layout, len(sharing)) for sharing in alike.values()])
        # index -1, no such topic, starts at the last entry and ends before the first: no number is in it
        starts = np.array(self.starts)
        found = starts[topics] + numbers
        real = (numbers >= 0) & (found < starts[topics + 1])
        return found[real], members[real]

    def _topics(self, layouts: Sequence[tuple[Layout, int]]) -> Numbers:
        """Topic index of each number, -1 if there is no such topic. ``layouts``: each with its members."""
        places = {topic: t for t, topic in enumerate(self.group.topics)}
        topics = list(chain.from_iterable(layout for layout, _ in layouts))
        each = np.repeat(
            [places.get(topic, -1) for topic, _ in topics] or [0], [units for _, units in topics] or 0
        )
        ends = pairwise(accumulate((sum(map(itemgetter(1), layout)) for layout, _ in layouts), initial=0))
        return np.concatenate(
            [
                np.tile(each[begin:end], sharing)
                for (begin, end), (_, sharing) in zip(ends, layouts, strict=True)
            ]
        )

    def owned(self, slices: Sequence[TopicSlice]) -> list[int]:
        owner = self.owner[_partitions(slices)]
        found: list[int] = np.bincount(owner[owner >= 0], minlength=len(self.group.member_ids)).tolist()
        return found

    def distribute(self, slices: Sequence[TopicSlice], own: Sequence[int], given: Mapping[int, int]) -> None:
        partitions = _partitions(slices)
        if any(own):
            partitions = partitions[self._rest(partitions, own, given)]
        short = {m: units - own[m] for m, units in given.items() if units > own[m]}
        self.owner[partitions] = _in_turn(short)

    def _rest(self, partitions: Numbers, own: Sequence[int], given: Mapping[int, int]) -> NDArray[np.bool_]:
        """Mask of partitions without an owner that subscribes, and those beyond what their owner is given."""
        owner = self.owner[partitions]
        places = len(self.group.member_ids) + _NO_OWNER
        may_keep = np.zeros(places, bool)
        may_keep[list(given)] = True
        rest = ~may_keep[owner]
        if surplus := [m for m, units in given.items() if units < own[m]]:
            limits = np.full(places, len(partitions))
            limits[surplus] = [given[m] for m in surplus]
            rest[self._beyond(limits, partitions, owner)] = True
        return rest

    def _beyond(self, limits: Numbers, partitions: Numbers, owner: Numbers) -> Numbers:
        """Places in ``partitions`` of what members own beyond their limits; the lowest numbers are kept."""
        places = np.flatnonzero(limits[owner] < len(partitions))
        places = places[np.lexsort((self.numbers[partitions[places]], owner[places]))]
        owner = owner[places]
        rank = np.arange(len(places)) - np.searchsorted(owner, owner)
        return places[rank >= limits[owner]]

    def withhold(self) -> None:
        self.owner[(self.newest != UNCLAIMED) & (self.newest != self.owner)] = UNCLAIMED

    def assignment(self) -> GroupAssignment:
        member_ids = self.group.member_ids
        by_owner = np.argsort(_narrow(self.owner, len(member_ids)), kind="stable")
        units = np.bincount(self.owner - UNCLAIMED, minlength=len(member_ids) + 1).tolist()
        by_owner = by_owner[units[0] :]
        # each name and each number is one object, however often it occurs
        counts = self.group.partition_counts
        topics = np.arange(len(counts)).repeat(counts)
        names = np.array([*self.group.topics, ""], object)[topics[by_owner]]
        numbers = np.arange(max(counts, default=0)).astype(object)[self.numbers[by_owner]]
        given = list(topic_partitions(names.tolist(), numbers.tolist()))
        ends = pairwise(accumulate(units[1:], initial=0))
        return {member_id: given[start:end] for member_id, (start, end) in zip(member_ids, ends, strict=True)}


def _partitions(slices: Sequence[TopicSlice]) -> Numbers:
    """Partitions of the slices in the group's sequence, ascending."""
    found = [partitions for _, partitions in slices]
    ranges = [one for one in found if isinstance(one, range)]
    if len(ranges) == len(found):
        return _ranges([one.start for one in ranges], list(map(len, ranges)))
    return np.fromiter(chain.from_iterable(found), np.int64)


def _ranges(starts: Sequence[int], counts: Sequence[int]) -> Numbers:
    """Concatenate ``range(start, start + count)`` of all starts and counts."""
    units = np.array(counts, np.int64)
    before = units.cumsum() - units
    numbers: Numbers = np.arange(units.sum()) + (np.array(starts, np.int64) - before).repeat(units)
    return numbers


def _in_turn(short: Mapping[int, int]) -> Numbers:
    """Members in round-robin order, each as often as ``short`` says."""
    members, units = np.array(list(short), np.int64), np.array(list(short.values()), np.int64)
    turns = [np.empty(0, np.int64)]
    for before, level in pairwise([0, *sorted(set(short.values()))]):
        turns.append(np.tile(members[units >= level], level - before))
    return np.concatenate(turns)


def _narrow(numbers: Numbers, highest: int) -> Numbers | NDArray[np.int16]:
    """Convert to int16 if the numbers fit, since numpy sorts those in linear time."""
    return numbers.astype(np.int16) if highest <= _INT16_MAX else numbers
