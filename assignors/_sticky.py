"""The sticky assignors: best possible balance first; fewest moves, and the members' racks, second.

Both depend on who owns what and on names alone, so each round of a cooperative rebalance aims at the target
of the one before, and two rounds are enough: what the first withholds is unowned in the second, and the
target that keeps everything in place is still of best balance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from ..protocol import Subscription, TopicPartition
from ._ownership import collector_paused, open_book
from ._owned_partitions import Claimed, ClaimReader, owned
from ._group import Group
from ._pools import Pools
from ._target import target
from .base import Assignor, GroupAssignment, Member, RebalanceProtocol, TopicInfo
from .user_data import NO_GENERATION, cooperative_claim, encode_cooperative, encode_sticky


class RackPreference(Enum):
    """What a member's rack counts for where balance allows more than one assignment (KIP-881).

    BEFORE_MOVES: as few partitions as possible are read from another rack, then as few as possible move.
    AFTER_MOVES: the other way round. IGNORED: racks play no part. Members without a rack are at home
    everywhere.
    """

    BEFORE_MOVES = "before moves"
    AFTER_MOVES = "after moves"
    IGNORED = "ignored"


class _Balanced:
    """What both do, and how it is set.

    ``racks``: what they count for. ``slack``: a member may have so many partitions more or fewer than best
    balance would give it where that saves moves. Only the leader's settings count; give all members the same.
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
        read_claim: Callable[[Subscription], Claimed],
        withhold: bool,
    ) -> GroupAssignment:
        with collector_paused():
            group = Group.of(topics, members)
            claims = [read_claim(members[member_id].subscription) for member_id in group.member_ids]
            book = open_book(group, claims)
            by_rack = self.racks is not RackPreference.IGNORED
            pools = Pools.in_racks(group, topics, members) if by_rack else Pools.of(group)
            counts = [book.owned(pieces) for pieces in pools.pieces]
            given = target(pools, counts, self.racks is RackPreference.BEFORE_MOVES, self.slack)
            for pieces, subscribers, own, row in zip(
                pools.pieces, pools.group.subscribers, counts, given, strict=True
            ):
                book.deal(pieces, own, {m: row[m] for m in subscribers})
            if withhold:
                book.withhold()
            return book.assignment()


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
        reader = ClaimReader()
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
        return self._assign(topics, members, lambda one: owned(cooperative_claim(one)), withhold=True)

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        del topics
        return encode_cooperative(self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        del partitions
        self._generation = generation
