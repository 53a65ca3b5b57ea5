"""The target of a consumer group: the partitions that each member is to have. Pure; assignors do the work."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from ...offsets_topic import Partitions
from ...protocol import Subscription, TopicPartition

if TYPE_CHECKING:
    from ...assignors import Assignor


class TargetMember(NamedTuple):
    """A member as assignors see it: topics that it reads, and what the last target gave to it."""

    instance_id: str | None
    topics: Collection[str]
    target: Partitions


class Topic(NamedTuple):
    """A topic that exists."""

    id: UUID
    partition_count: int


@cache
def server_assignor(name: str) -> Assignor:
    """An assignor of the coordinator; none is imported before the first group needs one."""
    from ...assignors import RangeAssignor, UniformAssignor

    found: dict[str, type[Assignor]] = {"uniform": UniformAssignor, "range": RangeAssignor}
    return found[name]()


def compute_target(
    assignor: Assignor, members: Mapping[str, TargetMember], topics: Mapping[str, Topic]
) -> dict[str, Partitions]:
    """The partitions of each member, numbers ascending; ``topics`` are those that exist, by name."""
    from ...assignors import Member, TopicInfo

    names = {topic.id: name for name, topic in topics.items()}
    known = {
        member_id: Member(
            member_id,
            Subscription(
                tuple(sorted(member.topics)),
                owned=tuple(
                    TopicPartition(names[topic_id], number)
                    for topic_id, numbers in member.target.items()
                    if topic_id in names
                    for number in numbers
                ),
                generation=0,
            ),
            member.instance_id,
        )
        for member_id, member in members.items()
    }
    infos = {name: TopicInfo(topic.partition_count) for name, topic in topics.items()}
    assigned = assignor.assign(infos, known)
    return {member_id: _by_topic(assigned[member_id], topics) for member_id in members}


def _by_topic(partitions: Collection[TopicPartition], topics: Mapping[str, Topic]) -> Partitions:
    return {
        topics[name].id: tuple(number for _, number in numbers)
        for name, numbers in groupby(sorted(partitions), key=lambda partition: partition.topic)
    }
