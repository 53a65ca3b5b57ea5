"""Loads by weight: what is unowned goes to the lightest, then heavy members give to light ones, pair by pair.

Best balance by weight is NP-hard (it is number partitioning), so this is a local search: it ends where no
single partition, and no two exchanged, would bring a pair of members closer by more than the tolerance. The
end depends on who owned what and on weights alone, and starting again from it changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from operator import attrgetter
from typing import NamedTuple

from ..protocol import TopicPartition

#: Members that one member tries to give to, the lightest first: a limit for groups that cannot be balanced.
_PARTNERS = 16


@dataclass(slots=True, eq=False)
class Item:
    """A partition that is to be held by one of ``takers`` (member indexes, ascending). -1 is nobody."""

    partition: TopicPartition
    weight: int
    takers: tuple[int, ...]
    owner: int = -1
    holder: int = -1

    def cost(self, holder: int) -> int:
        """1 where it would be held by somebody else than its owner."""
        return int(self.owner not in (-1, holder))


class Exchange(NamedTuple):
    """``given`` goes to the lighter member ``to``, and ``taken`` comes back where it is set."""

    given: Item
    to: int
    taken: Item | None
    cost: int


@dataclass(slots=True)
class Scales:
    """The members' loads, and what each holds. ``fewest`` is the tolerance in units of weight, at least 1."""

    wanted: Sequence[frozenset[str]]
    fewest: int
    loads: list[int] = field(init=False)
    held: list[dict[str, list[Item]]] = field(init=False)

    def __post_init__(self) -> None:
        self.loads = [0] * len(self.wanted)
        self.held = [defaultdict(list) for _ in self.wanted]

    def put(self, item: Item, member: int) -> None:
        if item.holder >= 0:
            self.loads[item.holder] -= item.weight
            self.held[item.holder][item.partition.topic].remove(item)
        item.holder = member
        self.loads[member] += item.weight
        self.held[member][item.partition.topic].append(item)

    def place(self, items: Iterable[Item]) -> None:
        """Hand out what nobody holds, the heaviest first, each to the lightest member that wants it."""
        heaps: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for item in sorted(items, key=lambda one: (-one.weight, one.partition)):
            heap = heaps.get(item.takers)
            if heap is None:
                heap = heaps[item.takers] = [(self.loads[m], m) for m in item.takers]
                heapify(heap)
            while heap[0][0] < self.loads[heap[0][1]]:  # it has grown since
                heapreplace(heap, (self.loads[heap[0][1]], heap[0][1]))
            self.put(item, heap[0][1])

    def level(self, moves: int | None) -> None:
        """Exchange until no exchange helps, or ``moves`` partitions are held by others than their owners."""
        spent = 0
        while (found := self._best(None if moves is None else moves - spent)) is not None:
            heavy = found.given.holder
            spent += found.cost
            self.put(found.given, found.to)
            if found.taken is not None:
                self.put(found.taken, heavy)

    def _best(self, budget: int | None) -> Exchange | None:
        by_load = sorted(
            (m for m, topics in enumerate(self.wanted) if topics), key=lambda m: (self.loads[m], m)
        )
        for heavy in reversed(by_load):
            if self.loads[heavy] - self.loads[by_load[0]] <= self.fewest:
                return None
            holding = frozenset(topic for topic, items in self.held[heavy].items() if items)
            tried = 0
            for light in by_load:
                gap = self.loads[heavy] - self.loads[light]
                if gap <= self.fewest or tried == _PARTNERS:
                    break
                shared = holding & self.wanted[light]
                if not shared:
                    continue
                tried += 1
                found = self._exchange(heavy, light, gap, shared, budget)
                if found is not None:
                    return found
        return None

    def _exchange(
        self, heavy: int, light: int, gap: int, topics: frozenset[str], budget: int | None
    ) -> Exchange | None:
        """What brings the two closest: any within the tolerance is as good as another, then moves decide."""
        gives = sorted((item for topic in topics for item in self.held[heavy][topic]), key=_by_partition)
        back = self.wanted[heavy] & self.held[light].keys()
        takes = sorted((item for topic in back for item in self.held[light][topic]), key=_by_weight)
        weights = [item.weight for item in takes]
        best: tuple[tuple[object, ...], Exchange] | None = None
        for item in gives:
            near = bisect_left(weights, item.weight - gap // 2)
            for taken in (None, *takes[max(0, near - 1) : near + 1]):
                left = abs(gap - 2 * (item.weight - (taken.weight if taken else 0)))
                if gap - left <= self.fewest:
                    continue
                cost = _cost(item, light) + (_cost(taken, heavy) if taken else 0)
                if budget is not None and cost > budget:
                    continue
                two = taken is not None
                key = (
                    max(left, self.fewest),
                    cost,
                    two,
                    left,
                    item.partition,
                    taken.partition if taken else (),
                )
                if best is None or key < best[0]:
                    best = key, Exchange(item, light, taken, cost)
        return None if best is None else best[1]


_by_partition = attrgetter("partition")


def _by_weight(item: Item) -> tuple[int, TopicPartition]:
    return item.weight, item.partition


def _cost(item: Item, to: int) -> int:
    return item.cost(to) - item.cost(item.holder)
