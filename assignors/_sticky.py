"""The sticky assignors: best possible balance first; fewest moves, and the members' racks, second.

Both depend on who owns what and on names alone, so each round of a cooperative rebalance aims at the target
of the one before, and two rounds are enough: what the first withholds is unowned in the second, and the
target that keeps everything in place is still of best balance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from ..protocol import Subscription, TopicPartition
from ._balanced_loads import balanced_loads
from ._group import EquivalenceClasses, Group
from ._min_cost_flow import Preferences, fewest_moves
from ._owned_partitions import OwnedPartitions, OwnedPartitionsReader, owned_partitions
from ._ownership import collector_paused, ownership_of
from .base import Assignor, GroupAssignment, Member, RebalanceProtocol, TopicInfo
from .user_data import NO_GENERATION, Claim, cooperative_claim, encode_cooperative, encode_sticky


class RackPreference(Enum):
    """Weight of members' racks where balance allows more than one assignment (KIP-881).

    BEFORE_MOVES: as few partitions as possible are read from another rack, then as few as possible move.
    AFTER_MOVES: the other way round. IGNORED: racks play no part. Members without a rack are at home
    everywhere.
    """

    BEFORE_MOVES = "before moves"
    AFTER_MOVES = "after moves"
    IGNORED = "ignored"


#: Numbers of partitions by class and member.
Counts = list[list[int]]


class _Balanced:
    """Settings and the steps that both sticky assignors share.

    ``racks``: what the members' racks count for. ``slack``: a member may have this many partitions more or
    fewer than best balance would give it where that saves moves. Only the leader's settings count; give all
    members the same.
    """

    def __init__(self, *, racks: RackPreference | str = RackPreference.BEFORE_MOVES, slack: int = 0) -> None:
        if slack < 0:
            raise ValueError(f"slack is {slack}: give the partitions that balance may be off by, 0 or more")
        self.racks = RackPreference(racks)  # of its value, where it comes from a configuration
        self.slack = slack
        self._generation = NO_GENERATION

    def _assign(
        self,
        topics: Mapping[str, TopicInfo],
        members: Mapping[str, Member],
        read_claim: Callable[[Subscription], OwnedPartitions],
        withhold: bool,
    ) -> GroupAssignment:
        with collector_paused(topics):
            group = Group.of(topics, members)
            claims = [read_claim(members[member_id].subscription) for member_id in group.member_ids]
            ownership = ownership_of(group, claims)
            if self.racks is RackPreference.IGNORED:
                classes = EquivalenceClasses.of(group)
            else:
                classes = EquivalenceClasses.in_racks(group, topics, members)
            owned = [ownership.owned(slices) for slices in classes.slices]
            given = target_assignment(classes, owned, self.racks is RackPreference.BEFORE_MOVES, self.slack)
            for slices, subscribers, own, row in zip(
                classes.slices, classes.group.subscribers, owned, given, strict=True
            ):
                ownership.distribute(slices, own, {m: row[m] for m in subscribers})
            if withhold:
                ownership.withhold()
            return ownership.assignment()


class StickyAssignor(_Balanced, Assignor):
    """``sticky`` (KIP-54): everyone stops at a rebalance, and gets back as much as balance allows.

    Balance is the best that the subscriptions allow (the sorted loads are lexicographically smallest), and
    among those assignments one with the fewest moves is taken; ``racks`` and ``slack`` change that order.
    Members remember what they had and send it to the leader as user data.
    """

    name = "sticky"

    def __init__(self, *, racks: RackPreference = RackPreference.BEFORE_MOVES, slack: int = 0) -> None:
        super().__init__(racks=racks, slack=slack)
        self._partitions: tuple[TopicPartition, ...] | None = None

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        reader = OwnedPartitionsReader()
        return self._assign(topics, members, lambda one: reader.sticky(one.user_data), withhold=False)

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        del topics
        return None if self._partitions is None else encode_sticky(self._partitions, self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        self._partitions, self._generation = tuple(partitions), generation


class CooperativeStickyAssignor(_Balanced, Assignor):
    """``cooperative-sticky`` (KIP-429): the same target, but only what moves is stopped.

    A partition that another member still claims is withheld for one round; once it has been given up, the
    members rejoin and it goes where it belongs. That takes two rounds at most.
    """

    name = "cooperative-sticky"
    rebalance_protocols = frozenset({RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER})

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        return self._assign(
            topics, members, lambda one: owned_partitions(cooperative_claim(one)), withhold=True
        )

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        del topics
        return encode_cooperative(self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        del partitions
        self._generation = generation


class UniformAssignor(_Balanced, Assignor):
    """``uniform`` (KIP-848): the same target, computed by the coordinator.

    What members own are their parts of the target before: ``Subscription.owned``. Racks play no part.
    """

    name = "uniform"

    def __init__(self) -> None:
        super().__init__(racks=RackPreference.IGNORED)

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        return self._assign(topics, members, _owned, withhold=False)


def _owned(subscription: Subscription) -> OwnedPartitions:
    return owned_partitions(Claim(subscription.owned, subscription.generation))


def target_assignment(
    classes: EquivalenceClasses, owned: Counts, racks_first: bool = True, slack: int = 0
) -> Counts:
    """given[class][member]: best balance first, then racks and moves.

    ``owned`` has the same shape, and counts what members cannot keep too.
    """
    group = classes.group
    own = [[0] * len(group.member_ids) for _ in group.topics]
    for row, all_owned, members in zip(own, owned, group.subscribers, strict=True):
        for m in members:
            row[m] = all_owned[m]
    in_racks = any(classes.elsewhere)
    if len(own) == 1 and not in_racks and not slack:
        return [_even(own[0], group.subscribers[0], group.partition_counts[0])]
    best = balanced_loads(group)
    if not in_racks and not any(map(any, own)):
        return best.given
    return fewest_moves(group, own, best.blocks, Preferences(classes.elsewhere, racks_first, slack))


def _even(own: list[int], members: list[int], total: int) -> list[int]:
    """One class: each load is q or q + 1, the larger ones first for members that own more than q."""
    quota, extras = divmod(total, len(members))
    larger_first = sorted(members, key=lambda m: own[m] <= quota)  # sorted() is stable: then in member order
    given = [0] * len(own)
    for place, m in enumerate(larger_first):
        given[m] = quota + (place < extras)
    return given
