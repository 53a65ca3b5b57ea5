"""``balanced-by-weight``: loads even by what partitions weigh, not by their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..protocol import Subscription, TopicPartition
from ._by_weight import Item, Scales
from .base import GroupAssignment, Member, RebalanceProtocol, TopicInfo, in_member_order
from .user_data import NO_GENERATION, Claim, cooperative_claim, decode_sticky, encode_sticky
from .weights import Measure, MeasuringAssignor, Weights, WeightSource, whole_weights


class BalancedByWeightAssignor(MeasuringAssignor):
    """Members keep what they have, as far as their sums of weights stay within the tolerance.

    ``weights``: by partition, by topic, a function of the partitions, "lag" or "throughput" (measured by the
    leader, see :class:`~.weights.Measure`), or None: all the same. ``moves``: most partitions that a
    rebalance takes from their owners for the sake of balance; None is no limit. ``tolerance``: how far apart
    two members may be, as a part of the mean load. ``window_ms``: the time that throughput is taken over.

    No optimum is promised: it is NP-hard. The answer is the same for the same weights, owners and names. A
    partition that another member still claims is withheld for one round, and then goes where it was meant to.
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
        #: What was withheld for whom by the last assignment of this leader, and in which group.
        self._meant: dict[TopicPartition, str] = {}
        self._meant_in: object = None

    def measured(self, weights: Mapping[TopicPartition, float]) -> None:
        self._weights = dict(weights)

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        ordered = in_member_order(members.values())
        wanted = [frozenset(topic for topic in member.topics if topic in topics) for member in ordered]
        owned = _newest([cooperative_claim(member.subscription) for member in ordered])
        before = {**_newest([_last_held(member.subscription) for member in ordered]), **owned}
        items = self._items(topics, wanted, before)
        group = (
            tuple((m.member_id, m.topics) for m in ordered),
            {t: topics[t].partition_count for t in topics},
        )
        names = [member.member_id for member in ordered]
        self._share(items, wanted, names, finishing=group == self._meant_in)
        self._meant, self._meant_in = {}, group
        assignment: GroupAssignment = {name: [] for name in names}
        for item in items:
            if owned.get(item.partition, item.holder) == item.holder:
                assignment[names[item.holder]].append(item.partition)
            else:
                self._meant[item.partition] = names[item.holder]
        return assignment

    def _items(
        self,
        topics: Mapping[str, TopicInfo],
        wanted: Sequence[frozenset[str]],
        before: Mapping[TopicPartition, int],
    ) -> list[Item]:
        names = sorted(frozenset[str]().union(*wanted))
        takers = {name: tuple(m for m, mine in enumerate(wanted) if name in mine) for name in names}
        partitions = [TopicPartition(t, n) for t in names for n in range(topics[t].partition_count)]
        source = self._weights
        weights: Weights = source(partitions) if callable(source) else source
        items = []
        for partition, weight in whole_weights(weights, partitions).items():
            owner = before.get(partition, -1)
            mine = owner >= 0 and partition.topic in wanted[owner]
            items.append(Item(partition, weight, takers[partition.topic], owner if mine else -1))
        return items

    def _share(
        self, items: list[Item], wanted: Sequence[frozenset[str]], names: Sequence[str], *, finishing: bool
    ) -> None:
        active = sum(map(bool, wanted))
        mean = sum(item.weight for item in items) // max(1, active)
        scales = Scales(wanted, max(1, int(mean * self._tolerance)))
        meant = {name: m for m, name in enumerate(names)} if finishing else {}
        came_free = 0
        for item in items:
            holder = item.owner
            if holder < 0 and item.partition in self._meant:
                holder = meant.get(self._meant[item.partition], -1)
                came_free += holder >= 0
            if holder >= 0:
                scales.put(item, holder)
        scales.place(item for item in items if item.holder < 0)
        if not came_free:  # else this round only brings to its end what the last one began
            scales.level(self._moves)

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        del topics
        return None if self._partitions is None else encode_sticky(self._partitions, self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        self._partitions, self._generation = tuple(partitions), generation


def _last_held(subscription: Subscription) -> Claim:
    """What the member had, given up or not: in an eager round that is all there is to go by."""
    return decode_sticky(subscription.user_data)


def _newest(claims: Sequence[Claim]) -> dict[TopicPartition, int]:
    """Who owned what: index of the newest claimant; -2 where several claim it in that generation."""
    newest: dict[TopicPartition, tuple[int, int]] = {}
    for m, claim in enumerate(claims):
        for partition in claim.partitions:
            generation, holder = newest.get(partition, (NO_GENERATION - 1, m))
            if claim.generation > generation:
                newest[partition] = claim.generation, m
            elif claim.generation == generation and holder != m:
                newest[partition] = generation, -2
    return {partition: holder for partition, (_, holder) in newest.items()}
