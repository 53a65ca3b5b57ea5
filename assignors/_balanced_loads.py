"""Balanced loads: the best that the subscriptions allow.

A load is the number of partitions of a member. The best loads are those whose list, sorted from the highest,
is lexicographically smallest. Members fall into ordered blocks: within a block every load is ``high`` or
``high - 1`` and their sum is fixed. An assignment is best exactly if no path m0 -> m1 -> ... -> mk, on which
each member holds a topic that the next one subscribes to, leads to a load that is lower by two or more
(decreasing minimisation on an M-convex set: Frank and Murota, 2018). Partitions of a topic are
interchangeable here, so the work is proportional to members x topics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..protocol import has_native
from ._group import IndexedGroup
from .base import Member, TopicInfo

NATIVE = has_native("assignors")
if NATIVE:
    from ._native import balanced

#: Most members or topics that a sentence names.
_NAMED = 5
#: Most passes over all topics before the exact search; each changes less than the one before.
_SWEEPS = 2


@dataclass(slots=True)
class Block:
    """Members whose loads are ``high`` or ``low`` in every best assignment; ``total`` is their sum."""

    members: list[int]
    high: int
    total: int
    low: int = field(init=False)

    def __post_init__(self) -> None:
        self.low = self.high if self.total == self.high * len(self.members) else self.high - 1


@dataclass(slots=True)
class BalancedLoads:
    """``given[topic][member]``: counts of one best assignment. ``blocks``: the highest loads first."""

    given: list[list[int]]
    blocks: list[Block]


def balanced_loads(group: IndexedGroup) -> BalancedLoads:
    """Return one assignment of best balance, and the blocks that all such assignments have in common."""
    if NATIVE:
        given, blocks = balanced(group)
        return BalancedLoads(given, [Block(*block) for block in blocks])
    return _Search(group).run()


@dataclass(slots=True)
class _Search:
    group: IndexedGroup
    given: list[list[int]] = field(init=False)
    loads: list[int] = field(init=False)
    holds: list[int] = field(init=False)  # bit set of topics, by member
    readers: list[int] = field(init=False)  # bit set of members, by topic

    def __post_init__(self) -> None:
        size = len(self.group.member_ids)
        self.given = [[0] * size for _ in self.group.topics]
        self.loads = [0] * size
        self.holds = [0] * size
        self.readers = [sum(1 << m for m in members) for members in self.group.subscribers]

    def run(self) -> BalancedLoads:
        self._refill_topics()
        for t, row in enumerate(self.given):
            for m in self.group.subscribers[t]:
                if row[m]:
                    self.holds[m] |= 1 << t
        blocks: list[Block] = []
        active = sum(1 << m for m in self.group.active)
        while active:
            high = max(self.loads[m] for m in bits_of(active))
            seen = self._lower_loads(active, high)
            members = list(bits_of(seen))
            loads = [self.loads[m] for m in members]
            blocks.append(Block(members, max(loads), sum(loads)))
            active &= ~seen
        return BalancedLoads(self.given, blocks)

    def _refill_topics(self) -> None:
        """Take each topic back and redistribute it over its subscribers, lowest loads first: a good start."""
        group = self.group
        rarest_first = sorted(range(len(group.topics)), key=lambda t: len(group.subscribers[t]))
        loads = self.loads
        for _ in range(_SWEEPS):
            changed = False
            for t in rarest_first:
                before, row = self.given[t], [0] * len(loads)
                for m in group.subscribers[t]:
                    loads[m] -= before[m]
                for m, units in water_level(loads, group.subscribers[t], group.partition_counts[t]):
                    row[m] = units
                    loads[m] += units
                self.given[t] = row
                changed = changed or row != before
            if not changed:
                break

    def _lower_loads(self, active: int, high: int) -> int:
        """Bring as many loads as possible below ``high``; return the block that remains, as a bit set."""
        while True:
            top = [m for m in bits_of(active) if self.loads[m] == high]
            if not top:
                high -= 1
                continue
            seen, path = self._search_path(active, top, high)
            if not path:
                return seen
            self._shift_along(path)

    def _search_path(self, active: int, top: list[int], high: int) -> tuple[int, list[int]]:
        """Search breadth-first from ``top``: return the members seen, as a bit set, and the path to a member
        with a load that is lower by two, or an empty path.

        A path alternates member, topic, member, ... and starts at the highest load.
        """
        seen = sum(1 << m for m in top)
        seen_topics = 0
        giver: dict[int, int] = {}  # topic -> member that holds it
        through: dict[int, int] = {}  # member -> topic it was reached by
        frontier = top
        while frontier:
            reached: list[int] = []
            for m in frontier:
                fresh = self.holds[m] & ~seen_topics
                seen_topics |= fresh
                for t in bits_of(fresh):
                    giver[t] = m
                    newcomers = self.readers[t] & active & ~seen
                    seen |= newcomers
                    for n in bits_of(newcomers):
                        through[n] = t
                        if self.loads[n] <= high - 2:
                            return seen, _walk_back(n, giver, through)
                        reached.append(n)
            frontier = reached
        return seen, []

    def _shift_along(self, path: list[int]) -> None:
        givers, topics, takers = path[:-2:2], path[1::2], path[2::2]
        steps = list(zip(givers, topics, takers, strict=True))
        units = min(self.given[t][m] for m, t, _ in steps)
        units = min(units, (self.loads[path[0]] - self.loads[path[-1]]) // 2)
        for m, t, n in steps:
            row = self.given[t]
            row[m] -= units
            row[n] += units
            self.holds[n] |= 1 << t
            if not row[m]:
                self.holds[m] &= ~(1 << t)
        self.loads[path[0]] -= units
        self.loads[path[-1]] += units


def _walk_back(member: int, giver: dict[int, int], through: dict[int, int]) -> list[int]:
    path = [member]
    while member in through:
        topic = through[member]
        member = giver[topic]
        path += [topic, member]
    return path[::-1]


def water_level(loads: list[int], members: list[int], units: int) -> list[tuple[int, int]]:
    """Distribute ``units`` to the lowest loads, until these are equal or differ by one.

    Returns (member, units) for each member that is reached.
    """
    heights = [loads[m] for m in members]
    level, extras = divmod(units + sum(heights), len(heights))
    if max(heights) > level:
        level, extras = _level_below(sorted(heights), units)
    given = []
    for m, height in zip(members, heights, strict=True):
        if height <= level:
            given.append((m, level - height + (extras > 0)))
            extras -= 1
    return given


def _level_below(heights: list[int], units: int) -> tuple[int, int]:
    """Level to which ``units`` raise the lowest of the sorted ``heights``, and how many get one more."""
    below, reached = 0, 0
    for height in heights:
        if height * reached - below >= units:
            break
        below += height
        reached += 1
    return divmod(units + below, reached) if reached else (-1, 0)


def bits_of(mask: int) -> Iterator[int]:
    """Positions of the bits that are set, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


@dataclass(frozen=True, slots=True)
class BalanceLimit:
    """Why the loads of some members cannot be more balanced: at best each has ``high`` or ``low`` partitions.

    Only ``members``, and members that have as many partitions or more, subscribe to ``topics``. So
    ``members`` divide the ``partitions`` of these topics among themselves. ``str()`` says this in a sentence.
    """

    members: tuple[str, ...]
    topics: tuple[str, ...]
    partitions: int
    high: int
    low: int

    def __str__(self) -> str:
        loads = f"{self.high}" if self.high == self.low else f"{self.low} or {self.high}"
        verb, each = ("has", "") if len(self.members) == 1 else ("share", " each")
        return (
            f"{_some_names(self.members, 'member')} {verb} the {self.partitions} partitions of "
            f"{_some_names(self.topics, 'topic')}, to which no member with fewer subscribes: {loads}{each}"
        )


def explain_balance(topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> list[BalanceLimit]:
    """Return the limits that subscriptions set to balance, highest loads first. Perfect balance has one
    limit.

    ``topics`` are by name, ``members`` by member id. Every member that subscribes to a topic with partitions
    is in exactly one limit. Claims and racks are ignored.
    """
    group = IndexedGroup.of(topics, members)
    best = balanced_loads(group)
    limits: list[BalanceLimit] = []
    for block in best.blocks:
        # every subscriber of a topic that is held in a block is in that block or in an earlier one
        mine = sorted({t for m in block.members for t in group.wanted[m] if best.given[t][m]})
        names, wanted = (group.member_ids[m] for m in block.members), (group.topics[t] for t in mine)
        limits.append(BalanceLimit(tuple(names), tuple(wanted), block.total, block.high, block.low))
    return limits


def _some_names(names: tuple[str, ...], what: str) -> str:
    if len(names) == 1:
        return f"{what} {names[0]}"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)} {what}s ({', '.join(names[:_NAMED])}{more})"
