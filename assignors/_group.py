"""The group as the sticky assignors count it: topics and members by index, and who owns what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..protocol import Subscription
from .base import Member, TopicInfo, in_member_order
from .user_data import NO_GENERATION, Claim

#: Stand for a member's index where a partition has no newest claimant.
UNCLAIMED, CONTESTED = -1, -2

#: Newest claimant of each partition, by topic index and partition number.
Claimants = list[list[int]]


@dataclass(slots=True)
class Group:
    """Topics that exist and are subscribed to, sorted; all members, in order."""

    member_ids: list[str]
    topics: list[str]
    partition_counts: list[int]
    subscribers: list[list[int]]  # members of each topic, ascending
    wanted: list[list[int]]  # topics of each member, ascending

    @classmethod
    def of(cls, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> Group:
        ordered = in_member_order(members.values())
        subscribed: set[str] = set().union(*(member.topics for member in ordered))
        names = sorted(topic for topic in subscribed & topics.keys() if topics[topic].partition_count)
        index = {topic: t for t, topic in enumerate(names)}
        wanted = [sorted({index[topic] for topic in member.topics if topic in index}) for member in ordered]
        subscribers: list[list[int]] = [[] for _ in names]
        for m, mine in enumerate(wanted):
            for t in mine:
                subscribers[t].append(m)
        counts = [topics[topic].partition_count for topic in names]
        return cls([member.member_id for member in ordered], names, counts, subscribers, wanted)

    @property
    def active(self) -> list[int]:
        """Members that can be given anything at all, in order."""
        return [m for m, mine in enumerate(self.wanted) if mine]


def newest_claimants(
    group: Group, members: Mapping[str, Member], claim_of: Callable[[Subscription], Claim]
) -> Claimants:
    """Settle who owned what: the newest generation wins, and two claimants in that generation both lose.

    Claims to partitions that do not exist, or of topics nobody subscribes to, are passed over. A winner may
    have dropped the topic from its subscription: it still reads the partition, though it cannot keep it.
    """
    claims = [claim_of(members[member_id].subscription) for member_id in group.member_ids]
    generations = [max(claim.generation, NO_GENERATION) for claim in claims]
    newest = [[UNCLAIMED] * count for count in group.partition_counts]
    rows = dict(zip(group.topics, newest, strict=True))
    contested: dict[tuple[str, int], int] = {}  # partition -> generation of its rivals
    for m, claim in enumerate(claims):
        for topic, number in claim.partitions:
            row = rows.get(topic)
            if row is None or not 0 <= number < len(row) or row[number] == m:
                continue
            if row[number] == UNCLAIMED:
                row[number] = m
                continue
            key = topic, number
            holder = row[number]
            best = contested[key] if holder == CONTESTED else generations[holder]
            if generations[m] > best:
                row[number] = m
            elif generations[m] == best:
                row[number] = CONTESTED
                contested[key] = best
    return newest


def owned_counts(group: Group, newest: Claimants) -> list[list[int]]:
    """own[topic][member]: how many partitions the member owns and may keep."""
    own = [[0] * len(group.member_ids) for _ in group.topics]
    for row, owners, subscribers in zip(own, newest, group.subscribers, strict=True):
        for owner in owners:
            if owner >= 0:
                row[owner] += 1
        dropped = set(range(len(row))).difference(subscribers) if len(subscribers) < len(row) else ()
        for m in dropped:
            row[m] = 0
    return own


def share_out(total: int, takers: Iterable[int]) -> list[tuple[int, int]]:
    """Cut ``total`` into shares that differ by one at most, the larger ones first."""
    members = list(takers)
    quota, extras = divmod(total, len(members))
    return [(m, quota + (i < extras)) for i, m in enumerate(members)]
