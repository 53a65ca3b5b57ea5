"""Kafka's roundrobin assignor: all partitions in order, dealt to a ring of members."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from ..protocol import TopicPartition
from .base import Assignor, GroupAssignment, Member, TopicInfo, in_member_order


class RoundRobinAssignor(Assignor):
    """``roundrobin``: partitions by topic and number, members in a ring; the same answer as Apache Kafka's.

    The ring's position is carried from topic to topic and moves on behind the member that took a partition;
    members that do not subscribe to the topic are passed over. Racks play no part.
    """

    name = "roundrobin"

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        ring = in_member_order(members.values())
        assignment: GroupAssignment = {member.member_id: [] for member in ring}
        seats: dict[str, list[int]] = {}
        for seat, member in enumerate(ring):
            for topic in set(member.topics):
                seats.setdefault(topic, []).append(seat)
        position = 0
        for topic in sorted(seats.keys() & topics.keys()):
            takers = seats[topic]
            turn = bisect_left(takers, position)
            for number in range(topics[topic].partition_count):
                seat = takers[(turn + number) % len(takers)]
                assignment[ring[seat].member_id].append(TopicPartition(topic, number))
                position = (seat + 1) % len(ring)
        return assignment
