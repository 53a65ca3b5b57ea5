"""Kafka's assignors that keep no state: ``range``, with racks (KIP-881), and ``roundrobin``."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..protocol import TopicPartition
from .base import Assignor, GroupAssignment, Member, TopicInfo, in_member_order


class RangeAssignor(Assignor):
    """``range``: each topic is cut into ranges of consecutive partitions, as by Apache Kafka's RangeAssignor.

    Topics with the same subscribers and the same number of partitions are cut alike, so one member gets equal
    partition numbers of them. If members and replicas have racks in common, and not every partition is in
    every rack, members first get partitions in their own rack, as many as their share allows (KIP-881).
    """

    name = "range"

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        """Give each member a run of each topic's partitions; the first members get one more."""
        ordered = in_member_order(members.values())
        assignment: GroupAssignment = {member.member_id: [] for member in ordered}
        shares = _shares_of(topics, ordered)
        by_rack = any(share.rack_aware for share in shares)
        if by_rack:
            for group in _co_partitioned(shares):
                _match_racks(group)
        for share in shares:
            share.deal_rest()
            for member_id, numbers in share.taken.items():
                assignment[member_id].extend(TopicPartition(share.topic, number) for number in numbers)
        if by_rack:
            for partitions in assignment.values():
                partitions.sort()
        return assignment


@dataclass(slots=True)
class _Share:
    """One topic while it is distributed: the partitions left, and how many each subscriber may still take."""

    topic: str
    info: TopicInfo
    subscribers: list[Member]
    left: dict[int, None] = field(init=False)  # partition numbers; a dict since it keeps their order
    taken: dict[str, list[int]] = field(init=False)
    extras: int = field(init=False)
    quota: int = field(init=False)
    rack_aware: bool = field(init=False)

    def __post_init__(self) -> None:
        count = self.info.partition_count
        self.left = dict.fromkeys(range(count))
        self.taken = {member.member_id: [] for member in self.subscribers}
        self.quota, self.extras = divmod(count, len(self.subscribers))
        self.rack_aware = _racks_matter(self.subscribers, self.info.racks)

    def room_for(self, member: Member) -> int:
        may_have = self.quota + (1 if self.extras > 0 else 0)
        return max(0, may_have - len(self.taken[member.member_id]))

    def in_rack_of(self, member: Member, number: int) -> bool:
        if member.rack is None:
            return True
        return bool(self.info.racks) and member.rack in self.info.racks[number]

    def take(self, member: Member, numbers: Sequence[int]) -> None:
        if not numbers:
            return
        taken = self.taken[member.member_id]
        taken.extend(numbers)
        if len(taken) > self.quota:
            self.extras -= 1
        for number in numbers:
            del self.left[number]

    def deal_matching(self) -> None:
        """Give each subscriber, in order, the partitions left in its rack, as many as it may take."""
        for member in self.subscribers:
            matching = (number for number in self.left if self.in_rack_of(member, number))
            self.take(member, list(islice(matching, self.room_for(member))))

    def deal_rest(self) -> None:
        """Give each subscriber, in order, the next of the partitions left, as many as it may take."""
        rest = iter(list(self.left))
        for member in self.subscribers:
            self.take(member, list(islice(rest, self.room_for(member))))


def _shares_of(topics: Mapping[str, TopicInfo], members: Sequence[Member]) -> list[_Share]:
    subscribers: dict[str, list[Member]] = {}
    for member in members:
        for topic in set(member.topics):
            subscribers.setdefault(topic, []).append(member)
    known = sorted(topic for topic in subscribers.keys() & topics.keys() if topics[topic].partition_count)
    return [_Share(topic, topics[topic], subscribers[topic]) for topic in known]


def _racks_matter(subscribers: Sequence[Member], racks: Sequence[frozenset[str]]) -> bool:
    ours = {member.rack for member in subscribers if member.rack is not None}
    replicas = frozenset().union(*racks)
    return not ours.isdisjoint(replicas) and any(of_partition != replicas for of_partition in racks)


def _co_partitioned(shares: Iterable[_Share]) -> list[list[_Share]]:
    """Topics with subscribers that gave a rack, grouped by subscribers and number of partitions."""
    groups: dict[tuple[tuple[str, ...], int], list[_Share]] = {}
    for share in shares:
        if any(member.rack is not None for member in share.subscribers):
            key = tuple(share.taken), share.info.partition_count
            groups.setdefault(key, []).append(share)
    return list(groups.values())


def _match_racks(group: Sequence[_Share]) -> None:
    if len(group) == 1:
        if group[0].rack_aware:
            group[0].deal_matching()
        return
    waiting = list(group[0].subscribers)
    for number in range(group[0].info.partition_count):
        member = next((one for one in waiting if _all_match(group, one, number)), None)
        if member is None:
            continue
        for share in group:
            share.take(member, [number])
        if not any(share.room_for(member) for share in group):
            waiting.remove(member)


def _all_match(group: Sequence[_Share], member: Member, number: int) -> bool:
    return all(share.in_rack_of(member, number) and share.room_for(member) for share in group)


class RoundRobinAssignor(Assignor):
    """``roundrobin``: partitions go to members in turn, as by Apache Kafka's RoundRobinAssignor.

    Partitions are sorted by topic and number. The turn carries on from topic to topic. Members that do not
    subscribe to a topic are skipped. Racks are ignored.
    """

    name = "roundrobin"

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        """Deal the partitions of all topics in turn to the members that subscribe to them."""
        ring = in_member_order(members.values())
        assignment: GroupAssignment = {member.member_id: [] for member in ring}
        takers_of: dict[str, list[int]] = {}  # by topic, places in the ring
        for place, member in enumerate(ring):
            for topic in set(member.topics):
                takers_of.setdefault(topic, []).append(place)
        position = 0
        for topic in sorted(takers_of.keys() & topics.keys()):
            takers = takers_of[topic]
            turn = bisect_left(takers, position)
            for number in range(topics[topic].partition_count):
                place = takers[(turn + number) % len(takers)]
                assignment[ring[place].member_id].append(TopicPartition(topic, number))
                position = (place + 1) % len(ring)
        return assignment
