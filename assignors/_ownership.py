"""The book of who has which partition: reads claims, counts, deals, and writes the answer."""

from __future__ import annotations

import gc
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain, pairwise, repeat
from typing import Protocol

from ..protocol import TopicPartition
from ._owned_partitions import Claimed
from ._group import UNCLAIMED, Group, settle
from .base import GroupAssignment

#: Some partitions of one topic: topic index, and partitions as they are numbered through, ascending.
Piece = tuple[int, Sequence[int]]


#: From so many partitions on, numpy pays for its calls.
_MANY = 10_000


class Book(Protocol):
    """Opened with the claims settled; then some of the partitions after the other are dealt."""

    def owned(self, pieces: Sequence[Piece]) -> list[int]:
        """How many of these partitions each member owns, whether it may keep them or not."""

    def deal(self, pieces: Sequence[Piece], own: Sequence[int], given: Mapping[int, int]) -> None:
        """Give each member as many of these partitions as ``given`` says: first what it owns.

        Who owns more than it is given keeps the lowest numbers, so that it gives up some of each topic. The
        rest goes round among those short of some, by topic and number.
        """

    def withhold(self) -> None:
        """Leave out what someone else than its new owner may still be reading (of two rivals: either)."""

    def assignment(self) -> GroupAssignment:
        """Partitions of each member, sorted."""


class ListBook:
    """The reference. ``newest``: claimants, settled; ``owner``: the same at first, then what is dealt."""

    def __init__(self, group: Group, claims: Sequence[Claimed]) -> None:
        self.group = group
        self.starts = group.starts
        self.newest = [UNCLAIMED] * self.starts[-1]
        settle(self.newest, self._partitions_of(claims), [claim.generation for claim in claims])
        self.owner = self.newest[:]

    def _partitions_of(self, claims: Sequence[Claimed]) -> Iterator[tuple[int, int]]:
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

    def owned(self, pieces: Sequence[Piece]) -> list[int]:
        units = Counter[int]()
        for _, partitions in pieces:
            if isinstance(partitions, range):
                units.update(self.owner[partitions.start : partitions.stop])
            else:
                units.update(map(self.owner.__getitem__, partitions))
        found = [0] * len(self.group.member_ids)
        for m, count in units.items():
            if m >= 0:
                found[m] = count
        return found

    def deal(self, pieces: Sequence[Piece], own: Sequence[int], given: Mapping[int, int]) -> None:
        if any(own[m] for m in given):
            rest = self._rest(pieces, own, given)
        else:
            rest = list(chain.from_iterable(partitions for _, partitions in pieces))
        short = {m: units - own[m] for m, units in given.items() if units > own[m]}
        for partition, m in zip(rest, _in_turn(short), strict=True):
            self.owner[partition] = m

    def _rest(self, pieces: Sequence[Piece], own: Sequence[int], given: Mapping[int, int]) -> list[int]:
        """What has no owner, no longer a subscriber for one, or one with more than it is given."""
        lowest: dict[int, list[tuple[int, int]]] = {m: [] for m, units in given.items() if units < own[m]}
        rest: list[int] = []
        for t, partitions in pieces:
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
        for partition, (claimant, m) in enumerate(zip(self.newest, self.owner, strict=True)):
            if claimant not in (UNCLAIMED, m):
                self.owner[partition] = UNCLAIMED

    def assignment(self) -> GroupAssignment:
        lists: list[list[TopicPartition]] = [[] for _ in self.group.member_ids]
        nobodys: list[TopicPartition] = []
        put = [*(mine.append for mine in lists), nobodys.append]  # the last is that of UNCLAIMED
        for topic, (start, end) in zip(self.group.topics, pairwise(self.starts), strict=True):
            for m, partition in zip(
                self.owner[start:end], made(repeat(topic), range(end - start)), strict=True
            ):
                put[m](partition)
        return dict(zip(self.group.member_ids, lists, strict=True))


def made(topics: Iterable[str], numbers: Iterable[int]) -> Iterator[TopicPartition]:
    """Partitions, as calling their class makes them, but without the Python in it."""
    return map(tuple.__new__, repeat(TopicPartition), zip(topics, numbers, strict=False))


def _in_turn(short: Mapping[int, int]) -> Iterator[int]:
    """Each member as often as it is short, round and round."""
    waiting, turn = list(short), 0
    while waiting:
        turns = min(short[m] for m in waiting) - turn
        yield from waiting * turns
        turn += turns
        waiting = [m for m in waiting if short[m] > turn]


def open_book(group: Group, claims: Sequence[Claimed]) -> Book:
    """In numpy where it is installed and there is much to count."""
    if sum(group.partition_counts) >= _MANY and find_spec("numpy"):
        from ._ownership_arrays import ArrayBook

        return ArrayBook(group, claims)
    return ListBook(group, claims)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the garbage collector: a great many partitions are made, and none of them is garbage.

    Afterwards they count as old, so that it does not look at all of them the moment it is back.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            if not gc.get_freeze_count():  # or others would thaw with them
                gc.freeze()
                gc.unfreeze()
            gc.enable()
