"""``balanced-by-weight``: balances the total weights of the members' partitions, not their number.

Unowned partitions go to the lightest member; then heavy members give to light ones, pair by pair. Finding the
best balance by weight is NP-hard (number partitioning), so this is a local search: it ends when neither
moving one partition nor exchanging two brings a pair of members closer by more than the tolerance. The result
depends only on previous owners, weights and names, and a search that starts from the result changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from operator import attrgetter
from typing import Any, NamedTuple

from ..protocol import TopicPartition
from .base import GroupAssignment, Member, RebalanceProtocol, TopicInfo, in_member_order
from .user_data import NO_GENERATION, Claim, cooperative_claim, decode_sticky, encode_sticky
from .weights import Measure, MeasuringAssignor, Weights, WeightSource, whole_weights

#: Most members that one member tries to give to, the lightest first: a bound for the search in groups that
#: cannot be balanced.
_PARTNERS = 16


@dataclass(slots=True, eq=False)
class _WeightedPartition:
    """A partition. ``takers``: indexes of its subscribers, ascending. ``owner``: its previous owner.
    ``holder``: the member that has it in the new assignment. -1 is no member.
    """

    partition: TopicPartition
    weight: int
    takers: tuple[int, ...]
    owner: int = -1
    holder: int = -1

    def cost(self, holder: int) -> int:
        """Return 1 if ``holder`` is not the previous owner, else 0."""
        return int(self.owner not in (-1, holder))


class _Exchange(NamedTuple):
    """``given`` goes to the lighter member ``to``; ``taken``, if set, comes back. ``cost`` is in moves."""

    given: _WeightedPartition
    to: int
    taken: _WeightedPartition | None
    cost: int


@dataclass(slots=True)
class _Loads:
    """Total weights and partitions of the members. ``tolerance`` is in units of weight, at least 1."""

    wanted: Sequence[frozenset[str]]
    tolerance: int
    loads: list[int] = field(init=False)
    held: list[dict[str, list[_WeightedPartition]]] = field(init=False)

    def __post_init__(self) -> None:
        self.loads = [0] * len(self.wanted)
        self.held = [defaultdict(list) for _ in self.wanted]

    def give(self, item: _WeightedPartition, member: int) -> None:
        if item.holder >= 0:
            self.loads[item.holder] -= item.weight
            self.held[item.holder][item.partition.topic].remove(item)
        item.holder = member
        self.loads[member] += item.weight
        self.held[member][item.partition.topic].append(item)

    def place(self, items: Iterable[_WeightedPartition]) -> None:
        """Distribute unowned partitions, the heaviest first, each to its lightest subscriber."""
        heaps: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for item in sorted(items, key=lambda one: (-one.weight, one.partition)):
            heap = heaps.get(item.takers)
            if heap is None:
                heap = heaps[item.takers] = [(self.loads[m], m) for m in item.takers]
                heapify(heap)
            while heap[0][0] < self.loads[heap[0][1]]:  # the load has grown since it was pushed
                heapreplace(heap, (self.loads[heap[0][1]], heap[0][1]))
            self.give(item, heap[0][1])

    def even_out(self, moves: int | None) -> None:
        """Exchange until no exchange helps, or ``moves`` partitions have left their previous owners."""
        spent = 0
        while (found := self._best_exchange(None if moves is None else moves - spent)) is not None:
            heavy = found.given.holder
            spent += found.cost
            self.give(found.given, found.to)
            if found.taken is not None:
                self.give(found.taken, heavy)

    def _best_exchange(self, budget: int | None) -> _Exchange | None:
        by_load = sorted(
            (m for m, topics in enumerate(self.wanted) if topics), key=lambda m: (self.loads[m], m)
        )
        for heavy in reversed(by_load):
            if self.loads[heavy] - self.loads[by_load[0]] <= self.tolerance:
                return None
            holding = frozenset(topic for topic, items in self.held[heavy].items() if items)
            tried = 0
            for light in by_load:
                gap = self.loads[heavy] - self.loads[light]
                if gap <= self.tolerance or tried == _PARTNERS:
                    break
                shared = holding & self.wanted[light]
                if not shared:
                    continue
                tried += 1
                found = self._exchange_between(heavy, light, gap, shared, budget)
                if found is not None:
                    return found
        return None

    def _exchange_between(
        self, heavy: int, light: int, gap: int, topics: frozenset[str], budget: int | None
    ) -> _Exchange | None:
        """The exchange after which the loads differ least; within the tolerance, one with fewest moves."""
        gives = sorted((item for topic in topics for item in self.held[heavy][topic]), key=_by_partition)
        back = self.wanted[heavy] & self.held[light].keys()
        takes = sorted((item for topic in back for item in self.held[light][topic]), key=_by_weight)
        weights = [item.weight for item in takes]
        best: tuple[tuple[object, ...], _Exchange] | None = None
        for item in gives:
            near = bisect_left(weights, item.weight - gap // 2)
            for taken in (None, *takes[max(0, near - 1) : near + 1]):
                left = abs(gap - 2 * (item.weight - (taken.weight if taken else 0)))
                if gap - left <= self.tolerance:
                    continue
                cost = _cost_of(item, light) + (_cost_of(taken, heavy) if taken else 0)
                if budget is not None and cost > budget:
                    continue
                partitions = (item.partition, taken.partition if taken else ())
                key = (max(left, self.tolerance), cost, taken is not None, left, *partitions)
                if best is None or key < best[0]:
                    best = key, _Exchange(item, light, taken, cost)
        return None if best is None else best[1]


_by_partition = attrgetter("partition")


def _by_weight(item: _WeightedPartition) -> tuple[int, TopicPartition]:
    return item.weight, item.partition


def _cost_of(item: _WeightedPartition, to: int) -> int:
    return item.cost(to) - item.cost(item.holder)


class BalancedByWeightAssignor(MeasuringAssignor):
    """``balanced-by-weight``: members keep their partitions as long as their total weights are close enough.

    ``weights``: a mapping by partition or by topic, a function of the partitions that returns one, "lag" or
    "throughput" (measured by the leader, see :class:`~.weights.Measure`), or None: all weigh the same.
    ``moves``: most partitions that one rebalance takes from their owners to improve the balance; None is no
    limit. ``tolerance``: how far apart two members' total weights may be, as a fraction of the mean load (0
    to 1). ``window_ms``: the time over which throughput is measured, in milliseconds. Raises ValueError for a
    value out of these bounds.

    The result is not always the optimum, which is NP-hard to find, but always the same for the same weights,
    owners and names. A partition that another member still claims is withheld for one round, and then goes to
    the member for which it was withheld.
    """

    name = "balanced-by-weight"
    rebalance_protocols = frozenset({RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER})

    def __init__(
        self,
        weights: WeightSource | None = None,
        *,
        moves: int | None = None,
        tolerance: float = 0.05,
        window_ms: int = 600_000,
    ) -> None:
        if moves is not None and (isinstance(moves, bool) or not isinstance(moves, int) or moves < 0):
            raise ValueError(f"moves is {moves!r}: give a whole number of 0 or more, or None for no limit")
        if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance <= 1:
            raise ValueError(
                f"tolerance is {tolerance!r}: give a number from 0 to 1, a part of the mean load"
            )
        measure = Measure(weights, window_ms) if isinstance(weights, str) else None
        if not (weights is None or measure or callable(weights) or isinstance(weights, Mapping)):
            raise ValueError(f"weights {weights!r}: give 'lag', 'throughput', a mapping or a function")
        self.measure = measure
        self._weights: Any = {} if weights is None or measure else weights
        self._moves = moves
        self._tolerance = tolerance
        self._partitions: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION
        #: Partitions that this leader's last assignment withheld, with the member that is to get them.
        self._meant: dict[TopicPartition, str] = {}
        self._meant_in: object = None  # subscriptions and partition counts of that assignment

    def measured(self, weights: Mapping[TopicPartition, float]) -> None:
        """Take measured weights for the next ``assign``."""
        self._weights = dict(weights)

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        """Give each member about the same weight, moving no more than ``slack`` requires."""
        ordered = in_member_order(members.values())
        wanted = [frozenset(topic for topic in member.topics if topic in topics) for member in ordered]
        owned = _newest_claimants([cooperative_claim(member.subscription) for member in ordered])
        # in an eager round members own nothing: their last assignments are in the user data
        held = _newest_claimants([decode_sticky(member.user_data) for member in ordered])
        items = self._weighted_items(topics, wanted, {**held, **owned})
        subscribed = tuple((m.member_id, m.topics) for m in ordered)
        group = (subscribed, {t: topics[t].partition_count for t in topics})
        names = [member.member_id for member in ordered]
        self._share_out(items, wanted, names, finishing=group == self._meant_in)
        self._meant, self._meant_in = {}, group
        assignment: GroupAssignment = {name: [] for name in names}
        for item in items:
            if owned.get(item.partition, item.holder) == item.holder:
                assignment[names[item.holder]].append(item.partition)
            else:
                self._meant[item.partition] = names[item.holder]
        return assignment

    def _weighted_items(
        self,
        topics: Mapping[str, TopicInfo],
        wanted: Sequence[frozenset[str]],
        before: Mapping[TopicPartition, int],
    ) -> list[_WeightedPartition]:
        names = sorted(frozenset[str]().union(*wanted))
        takers = {name: tuple(m for m, mine in enumerate(wanted) if name in mine) for name in names}
        partitions = [TopicPartition(t, n) for t in names for n in range(topics[t].partition_count)]
        source = self._weights
        weights: Weights = source(partitions) if callable(source) else source
        items = []
        for partition, weight in whole_weights(weights, partitions).items():
            owner = before.get(partition, -1)
            if owner >= 0 and partition.topic not in wanted[owner]:
                owner = -1
            items.append(_WeightedPartition(partition, weight, takers[partition.topic], owner))
        return items

    def _share_out(
        self,
        items: list[_WeightedPartition],
        wanted: Sequence[frozenset[str]],
        names: Sequence[str],
        *,
        finishing: bool,
    ) -> None:
        active = sum(map(bool, wanted))
        mean = sum(item.weight for item in items) // max(1, active)
        loads = _Loads(wanted, max(1, int(mean * self._tolerance)))
        meant = {name: m for m, name in enumerate(names)} if finishing else {}
        came_free = 0
        for item in items:
            holder = item.owner
            if holder < 0 and item.partition in self._meant:
                holder = meant.get(self._meant[item.partition], -1)
                came_free += holder >= 0
            if holder >= 0:
                loads.give(item, holder)
        loads.place(item for item in items if item.holder < 0)
        if not came_free:  # otherwise this round only completes the previous one
            loads.even_out(self._moves)

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """The last assignment and its generation, in the format of ``sticky``."""
        del topics
        return None if self._partitions is None else encode_sticky(self._partitions, self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Keep the assignment for the next ``user_data``."""
        self._partitions, self._generation = tuple(partitions), generation


def _newest_claimants(claims: Sequence[Claim]) -> dict[TopicPartition, int]:
    """Index of each partition's newest claimant; -2 if several claim it in the newest generation."""
    newest: dict[TopicPartition, tuple[int, int]] = {}
    for m, claim in enumerate(claims):
        for partition in claim.partitions:
            generation, holder = newest.get(partition, (NO_GENERATION - 1, m))
            if claim.generation > generation:
                newest[partition] = claim.generation, m
            elif claim.generation == generation and holder != m:
                newest[partition] = generation, -2
    return {partition: holder for partition, (_, holder) in newest.items()}
