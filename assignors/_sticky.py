"""The sticky assignors: best possible balance first, fewest moves second, and nothing else decides.

Both depend on who owns what and on names alone, so each round of a cooperative rebalance aims at the target
of the one before, and two rounds are enough: what the first withholds is unowned in the second, and the
target that keeps everything in place is still of best balance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..protocol import Subscription, TopicPartition
from ._group import UNCLAIMED, Claimants, Group, newest_claimants
from ._mixed import assign_mixed
from ._uniform import assign_uniform
from .base import Assignor, GroupAssignment, Member, RebalanceProtocol, TopicInfo
from .user_data import (
    NO_GENERATION,
    Claim,
    cooperative_claim,
    decode_sticky,
    encode_cooperative,
    encode_sticky,
)


class StickyAssignor(Assignor):
    """``sticky`` (KIP-54): everyone stops at a rebalance, and gets back as much as balance allows.

    Balance is the best that the subscriptions allow (the sorted loads are lexicographically smallest), and
    among those assignments one with the fewest moves is taken. Members remember what they had and send it to
    the leader as user data.
    """

    name = "sticky"

    def __init__(self) -> None:
        self._partitions: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        group = Group.of(topics, members)
        return _target(group, newest_claimants(group, members, _sticky_claim))

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        del topics
        return None if self._partitions is None else encode_sticky(self._partitions, self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        self._partitions, self._generation = tuple(partitions), generation


class CooperativeStickyAssignor(Assignor):
    """``cooperative-sticky`` (KIP-429): the same target, but only what moves is stopped.

    A partition that another member still claims is withheld for one round; once it has been given up, the
    members rejoin and it goes where it belongs. That takes two rounds at most.
    """

    name = "cooperative-sticky"
    rebalance_protocols = frozenset({RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER})

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        group = Group.of(topics, members)
        newest = newest_claimants(group, members, cooperative_claim)
        return _withhold_claimed(_target(group, newest), group, newest)

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        del topics
        return encode_cooperative(self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        del partitions
        self._generation = generation


def _sticky_claim(subscription: Subscription) -> Claim:
    return decode_sticky(subscription.user_data)


def _target(group: Group, newest: Claimants) -> GroupAssignment:
    active = group.active
    if all(group.wanted[m] == group.wanted[active[0]] for m in active):
        return assign_uniform(group, newest)
    return assign_mixed(group, newest)


def _withhold_claimed(target: GroupAssignment, group: Group, newest: Claimants) -> GroupAssignment:
    """Leave out what someone else than its new owner may still be reading (of two rivals: either)."""
    claimants = dict(zip(group.topics, newest, strict=True))
    assignment: GroupAssignment = {}
    for m, member_id in enumerate(group.member_ids):
        free_or_mine = (UNCLAIMED, m)
        assignment[member_id] = [
            partition
            for partition in target[member_id]
            if claimants[partition.topic][partition.partition] in free_or_mine
        ]
    return assignment
