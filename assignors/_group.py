"""The group as the sticky assignors count it: topics and members by index, partitions numbered through.

All partitions stand in one row, by topic and number: partition 3 of topic 2 is at ``starts[2] + 3``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ..protocol import Subscription
from .base import Member, TopicInfo, in_member_order
from .user_data import NO_GENERATION, Claim

#: Stand for a member's index where a partition has no newest claimant.
UNCLAIMED, CONTESTED = -1, -2

#: Newest claimant of each partition, by topic index and partition number.
Claimants = list[list[int]]


@dataclass(slots=True)
class Group:
    """Topics that exist and are subscribed to, sorted; all members, in order.

    What wants the same shares one list in ``subscribers`` and ``wanted``: neither is to be changed.
    """

    member_ids: list[str]
    topics: list[str]
    partition_counts: list[int]
    subscribers: list[list[int]]  # members of each topic, ascending
    wanted: list[list[int]]  # topics of each member, ascending

    @classmethod
    def of(cls, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> Group:
        ordered = in_member_order(members.values())
        alike: dict[tuple[str, ...], list[int]] = {}  # members, by the topics as they sent them
        for m, member in enumerate(ordered):
            alike.setdefault(tuple(member.topics), []).append(m)
        subscribed = set[str]().union(*alike)
        names = sorted(topic for topic in subscribed & topics.keys() if topics[topic].partition_count)
        index = {topic: t for t, topic in enumerate(names)}
        wanted: list[list[int]] = [[]] * len(ordered)
        sharing: list[list[int]] = [[] for _ in names]  # of each topic: numbers of the sorts of members
        for sort, (as_sent, of_sort) in enumerate(alike.items()):
            mine = sorted({index[topic] for topic in as_sent if topic in index})
            for m in of_sort:
                wanted[m] = mine
            for t in mine:
                sharing[t].append(sort)
        sorts = list(alike.values())
        subscribers = {
            key: sorted(m for sort in key for m in sorts[sort]) for key in set(map(tuple, sharing))
        }
        counts = [topics[topic].partition_count for topic in names]
        ids = [member.member_id for member in ordered]
        return cls(ids, names, counts, [subscribers[tuple(key)] for key in sharing], wanted)

    @property
    def active(self) -> list[int]:
        """Members that can be given anything at all, in order."""
        return [m for m, mine in enumerate(self.wanted) if mine]

    @property
    def starts(self) -> list[int]:
        """Where each topic's partitions start when all are numbered through; last, how many there are."""
        return list(accumulate(self.partition_counts, initial=0))


def newest_claimants(
    group: Group, members: Mapping[str, Member], claim_of: Callable[[Subscription], Claim]
) -> Claimants:
    """Settle who owned what: the newest generation wins, and two claimants in that generation both lose.

    Claims to partitions that do not exist, or of topics nobody subscribes to, are passed over. A winner may
    have dropped the topic from its subscription: it still reads the partition, though it cannot keep it.
    """
    claims = [claim_of(members[member_id].subscription) for member_id in group.member_ids]
    places = {topic: t for t, topic in enumerate(group.topics)}
    starts, counts = group.starts, group.partition_counts
    claimed = (
        (m, starts[t] + number)
        for m, claim in enumerate(claims)
        for topic, number in claim.partitions
        if (t := places.get(topic, -1)) >= 0 and 0 <= number < counts[t]
    )
    newest = [UNCLAIMED] * starts[-1]
    settle(newest, claimed, [claim.generation for claim in claims])
    return [newest[start:end] for start, end in pairwise(starts)]


def settle(
    newest: list[int] | dict[int, int], claimed: Iterable[tuple[int, int]], generations: list[int]
) -> None:
    """Enter the newest claimant of each partition into ``newest``; ``claimed`` are members and partitions."""
    contested: dict[int, int] = {}  # partition -> generation of its rivals
    for m, partition in claimed:
        holder = newest[partition]
        if holder == UNCLAIMED:
            newest[partition] = m
        elif holder != m:
            best = contested[partition] if holder == CONTESTED else generations[holder]
            best, mine = max(best, NO_GENERATION), max(generations[m], NO_GENERATION)
            if mine > best:
                newest[partition] = m
            elif mine == best:
                newest[partition] = CONTESTED
                contested[partition] = best


def share_out(total: int, takers: Iterable[int]) -> list[tuple[int, int]]:
    """Cut ``total`` into shares that differ by one at most, the larger ones first."""
    members = list(takers)
    quota, extras = divmod(total, len(members))
    return [(m, quota + (i < extras)) for i, m in enumerate(members)]
