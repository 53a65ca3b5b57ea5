"""The sticky assignors: best possible balance first; then fewest moves, and the members' racks.

The result depends only on names and on which member owns what. So a cooperative rebalance takes two rounds at
most: partitions that the first round withholds are unowned in the second, which aims at the same target,
since keeping all other partitions in place is still of best balance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from ..protocol import Subscription, TopicPartition
from ._balanced_loads import balanced_loads
from ._group import EquivalenceClasses, IndexedGroup
from ._min_cost_flow import Preferences, fewest_moves
from ._owned_partitions import OwnedPartitions, OwnedPartitionsReader, owned_partitions
from ._ownership import collector_paused, ownership_of
from .base import Assignor, GroupAssignment, Member, RebalanceProtocol, TopicInfo
from .user_data import NO_GENERATION, Claim, cooperative_claim, encode_cooperative, encode_sticky


class RackPreference(Enum):
    """How racks decide between assignments of best balance (KIP-881).

    BEFORE_MOVES: as few partitions as possible are read from another rack; among those, as few as possible
    move. AFTER_MOVES: the other way round. IGNORED: racks are ignored. A member without a rack matches every
    rack.
    """

    BEFORE_MOVES = "before moves"
    AFTER_MOVES = "after moves"
    IGNORED = "ignored"


#: Numbers of partitions by class and member.
Counts = list[list[int]]


class _Balanced:
    """Settings and steps of all sticky assignors.

    ``racks``: a :class:`RackPreference` or its value. ``slack``: a member may have this many partitions more
    or fewer than best balance would give it, if that saves moves. Only the leader's settings count; give all
    members the same. Raises ValueError for a negative slack or an unknown preference.
    """

    def __init__(self, *, racks: RackPreference | str = RackPreference.BEFORE_MOVES, slack: int = 0) -> None:
        if slack < 0:
            raise ValueError(f"slack is {slack}: give the partitions that balance may be off by, 0 or more")
        self.racks = RackPreference(racks)  # a configuration has its value
        self.slack = slack
        self._generation = NO_GENERATION

    def _assign_balanced(
        self,
        topics: Mapping[str, TopicInfo],
        members: Mapping[str, Member],
        read_claim: Callable[[Subscription], OwnedPartitions],
        withhold: bool,
    ) -> GroupAssignment:
        with collector_paused(topics):
            group = IndexedGroup.of(topics, members)
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
    """``sticky`` (KIP-54): members stop at a rebalance, then get as much back as balance allows.

    Balance is the best that the subscriptions allow (the list of loads, sorted from the highest, is
    lexicographically smallest). Among those assignments it takes one with the fewest moves; ``racks`` and
    ``slack`` change these priorities. Members remember their last assignment and send it to the leader as
    user data.
    """

    name = "sticky"

    def __init__(self, *, racks: RackPreference = RackPreference.BEFORE_MOVES, slack: int = 0) -> None:
        super().__init__(racks=racks, slack=slack)
        self._partitions: tuple[TopicPartition, ...] | None = None

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        """Balance the members' numbers of partitions with as few moves as that takes."""
        reader = OwnedPartitionsReader()
        return self._assign_balanced(
            topics, members, lambda one: reader.sticky(one.user_data), withhold=False
        )

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """The partitions of the last assignment and its generation, as Java's assignor encodes them."""
        del topics
        return None if self._partitions is None else encode_sticky(self._partitions, self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Keep the assignment for the next ``user_data``."""
        self._partitions, self._generation = tuple(partitions), generation


class CooperativeStickyAssignor(_Balanced, Assignor):
    """``cooperative-sticky`` (KIP-429): the target of ``sticky``, but only partitions that move are stopped.

    A partition that another member still claims is withheld for one round. After that member has given it up,
    the members rejoin and it goes to its new owner. That takes two rounds at most.
    """

    name = "cooperative-sticky"
    rebalance_protocols = frozenset({RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER})

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        """As StickyAssignor, but what moves stays without an owner until the next rebalance."""
        return self._assign_balanced(
            topics, members, lambda one: owned_partitions(cooperative_claim(one)), withhold=True
        )

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """The generation of the last assignment, as Java's assignor encodes it."""
        del topics
        return encode_cooperative(self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Keep the generation for the next ``user_data``."""
        del partitions
        self._generation = generation


class UniformAssignor(_Balanced, Assignor):
    """``uniform`` (KIP-848): the target of ``sticky``, computed by the coordinator.

    ``Subscription.owned`` is each member's part of the previous target. Racks are ignored.
    """

    name = "uniform"

    def __init__(self) -> None:
        super().__init__(racks=RackPreference.IGNORED)

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        """Balance as StickyAssignor does; the coordinator says who owns what (KIP-848)."""
        return self._assign_balanced(topics, members, _owned_by, withhold=False)


def _owned_by(subscription: Subscription) -> OwnedPartitions:
    return owned_partitions(Claim(subscription.owned, subscription.generation))


def target_assignment(
    classes: EquivalenceClasses, owned: Counts, racks_first: bool = True, slack: int = 0
) -> Counts:
    """Return given[class][member]: best balance first, then racks and moves.

    ``owned`` has the same shape, and also counts what members cannot keep.
    """
    group = classes.group
    own = [[0] * len(group.member_ids) for _ in group.topics]
    for row, all_owned, members in zip(own, owned, group.subscribers, strict=True):
        for m in members:
            row[m] = all_owned[m]
    in_racks = any(classes.elsewhere)
    if len(own) == 1 and not in_racks and not slack:
        return [_even_loads(own[0], group.subscribers[0], group.partition_counts[0])]
    best = balanced_loads(group)
    if not in_racks and not any(map(any, own)):
        return best.given
    return fewest_moves(group, own, best.blocks, Preferences(classes.elsewhere, racks_first, slack))


def _even_loads(own: list[int], members: list[int], total: int) -> list[int]:
    """For one class: each load is q or q + 1; members that own more than q come first in getting q + 1."""
    quota, extras = divmod(total, len(members))
    larger_first = sorted(members, key=lambda m: own[m] <= quota)  # sorted() is stable: then in member order
    given = [0] * len(own)
    for place, m in enumerate(larger_first):
        given[m] = quota + (place < extras)
    return given
