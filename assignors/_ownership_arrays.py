"""Ownership of partitions in numpy: the same results as ``ListOwnership``, for large groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from ._group import UNCLAIMED, Group, TopicSlice, settle, topic_partitions
from ._owned_partitions import Layout, OwnedPartitions
from .base import GroupAssignment

Numbers = NDArray[np.int64]

_INT16_MAX = 0x7FFF
#: Entries after the members' in an array indexed by owner: for UNCLAIMED and CONTESTED.
_NO_OWNER = 2


class ArrayOwnership:
    """An :class:`~._ownership.Ownership` of arrays."""

    def __init__(self, group: Group, claims: Sequence[OwnedPartitions]) -> None:
        self.group = group
        self.starts = group.starts
        self.numbers: Numbers = np.concatenate([np.arange(count) for count in (0, *group.partition_counts)])
        self.newest: Numbers = np.full(self.starts[-1], UNCLAIMED)
        partitions, members = self._claimed(claims)
        self.newest[partitions] = members
        rivals = np.unique(partitions[self.newest[partitions] != members])
        if rivals.size:
            contested = np.isin(partitions, rivals)
            claimed = zip(members[contested].tolist(), partitions[contested].tolist(), strict=True)
            settled = dict.fromkeys(rivals.tolist(), UNCLAIMED)
            settle(settled, claimed, [claim.generation for claim in claims])
            self.newest[rivals] = list(settled.values())
        self.owner = self.newest.copy()

    def _claimed(self, claims: Sequence[OwnedPartitions]) -> tuple[Numbers, Numbers]:
        """Claimed partitions that exist, and for each the member that claims it."""
        places = {topic: t for t, topic in enumerate(self.group.topics)}
        alike: dict[int, list[int]] = {}  # members by the layout they share
        for m, claim in enumerate(claims):
            if claim.layout:
                alike.setdefault(id(claim.layout), []).append(m)
        partitions, claimants = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for members in alike.values():
            starts, ends = self._bounds(claims[members[0]].layout, places)
            joined = b"".join(claims[m].numbers for m in members)
            numbers = np.frombuffer(joined, ">i4").reshape(len(members), -1)
            found = starts + numbers
            real = (numbers >= 0) & (found < ends)
            partitions.append(found[real])
            claimants.append(np.repeat(members, real.sum(1)))
        return np.concatenate(partitions), np.concatenate(claimants)

    def _bounds(self, layout: Layout, places: Mapping[str, int]) -> tuple[Numbers, Numbers]:
        """Start and end of the topic of each number; 0 and 0 if there is no such topic."""
        topics = [places.get(topic, -1) for topic, _ in layout]
        starts = np.array([self.starts[t] if t >= 0 else 0 for t in topics])
        ends = np.array([self.starts[t + 1] if t >= 0 else 0 for t in topics])
        units = [count for _, count in layout]
        return np.repeat(starts, units), np.repeat(ends, units)

    def owned(self, slices: Sequence[TopicSlice]) -> list[int]:
        owner = self.owner[_partitions(slices)]
        found: list[int] = np.bincount(owner[owner >= 0], minlength=len(self.group.member_ids)).tolist()
        return found

    def distribute(self, slices: Sequence[TopicSlice], own: Sequence[int], given: Mapping[int, int]) -> None:
        partitions = _partitions(slices)
        owner = self.owner[partitions]
        places = len(self.group.member_ids) + _NO_OWNER
        may_keep = np.zeros(places, bool)
        may_keep[list(given)] = True
        rest = ~may_keep[owner]
        if surplus := [m for m, units in given.items() if units < own[m]]:
            limits = np.full(places, len(partitions))
            limits[surplus] = [given[m] for m in surplus]
            rest[self._beyond(limits, partitions, owner)] = True
        short = {m: units - own[m] for m, units in given.items() if units > own[m]}
        self.owner[partitions[rest]] = _in_turn(short)

    def _beyond(self, limits: Numbers, partitions: Numbers, owner: Numbers) -> Numbers:
        """Places of what members own beyond their limits, counted from the lowest numbers of all topics."""
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
        # names and numbers are the same objects wherever they stand
        names = np.array([*self.group.topics, ""], object)[:-1].repeat(self.group.partition_counts)
        numbers = np.arange(max(self.group.partition_counts, default=0)).astype(object)[self.numbers]
        given = list(topic_partitions(names[by_owner].tolist(), numbers[by_owner].tolist()))
        ends = pairwise(accumulate(units[1:], initial=0))
        return {member_id: given[start:end] for member_id, (start, end) in zip(member_ids, ends, strict=True)}


def _partitions(slices: Sequence[TopicSlice]) -> Numbers:
    """As they are numbered through, ascending."""
    each = (
        np.arange(found.start, found.stop) if isinstance(found, range) else np.array(found)
        for _, found in slices
    )
    return np.concatenate(list(each))


def _in_turn(short: Mapping[int, int]) -> Numbers:
    """Each member as often as it is short, round and round."""
    units = np.array(list(short.values()), np.int64)
    firsts = np.cumsum(units) - units
    turn = np.arange(units.sum()) - np.repeat(firsts, units)
    order = np.argsort(_narrow(turn, units.max(initial=0)), kind="stable")
    return np.repeat(np.array(list(short), np.int64), units)[order]


def _narrow(numbers: Numbers, highest: int) -> Numbers | NDArray[np.int16]:
    """In the type that numpy sorts in linear time, where they fit."""
    return numbers.astype(np.int16) if highest <= _INT16_MAX else numbers
