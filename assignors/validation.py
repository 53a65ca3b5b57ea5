"""Is an assignment fit to be sent? What the leader asks before it hands out an assignor's answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from ..protocol import TopicPartition
from ._group import CONTESTED, UNCLAIMED, Claimants, Group, newest_claimants
from .base import Member, RebalanceProtocol, TopicInfo
from .user_data import cooperative_claim


class ProblemKind(Enum):
    """What may be wrong with an assignment."""

    UNKNOWN_MEMBER = "unknown member"
    UNKNOWN_PARTITION = "unknown partition"
    NOT_SUBSCRIBED = "not subscribed"
    ASSIGNED_TWICE = "assigned twice"
    STILL_CLAIMED = "still claimed"
    MISSING = "missing"

    @property
    def unsafe(self) -> bool:
        """Whether sending the assignment could let two members read a partition, or send one into nowhere.

        A partition that is merely missing stays unread, which is to be reported but harms nobody else.
        """
        return self is not ProblemKind.MISSING


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong; ``str()`` tells it in a sentence."""

    kind: ProblemKind
    text: str
    member_id: str | None = None
    partition: TopicPartition | None = None

    def __str__(self) -> str:
        return self.text


def validate_assignment(
    topics: Mapping[str, TopicInfo],
    members: Mapping[str, Member],
    assignment: Mapping[str, Iterable[TopicPartition]],
    protocol: RebalanceProtocol = RebalanceProtocol.EAGER,
) -> list[Problem]:
    """Everything wrong with ``assignment``, each partition by itself; empty when it can be sent.

    Under COOPERATIVE nothing may be given to a member while another claims it, and what is claimed may be
    left out. The newest generation's claim counts, so that a member that was away too long cannot stop the
    group.
    """
    problems: list[Problem] = []
    owners: dict[TopicPartition, str] = {}
    for member_id, given in assignment.items():
        member = members.get(member_id)
        if member is None:
            text = f"{member_id!r} is assigned partitions and is no member of the group"
            problems.append(Problem(ProblemKind.UNKNOWN_MEMBER, text, member_id))
            continue
        subscribed = frozenset(member.topics)
        for topic, number in given:
            partition = TopicPartition(topic, number)
            problem = _problem_of(partition, member_id, subscribed, topics, owners)
            if problem is not None:
                problems.append(problem)
            owners.setdefault(partition, member_id)
    group = Group.of(topics, members)
    claimants = _claimants(group, members, protocol)
    for partition, claimant in _with_claimants(group, claimants):
        problem = _problem_of_claim(partition, claimant, owners.get(partition), members)
        if problem is not None:
            problems.append(problem)
    return problems


def _problem_of(
    partition: TopicPartition,
    member_id: str,
    subscribed: frozenset[str],
    topics: Mapping[str, TopicInfo],
    owners: Mapping[TopicPartition, str],
) -> Problem | None:
    topic, number = partition
    name = f"{topic}-{number}"
    if topic not in subscribed:
        kind, text = (
            ProblemKind.NOT_SUBSCRIBED,
            f"{name} is given to {member_id}, which does not want it",
        )
    elif topic not in topics or not 0 <= number < topics[topic].partition_count:
        kind, text = (
            ProblemKind.UNKNOWN_PARTITION,
            f"{name} is given to {member_id}, but does not exist",
        )
    elif partition in owners:
        kind, text = ProblemKind.ASSIGNED_TWICE, f"{name} is given to {owners[partition]} and to {member_id}"
    else:
        return None
    return Problem(kind, text, member_id, partition)


def _claimants(group: Group, members: Mapping[str, Member], protocol: RebalanceProtocol) -> Claimants:
    if protocol is RebalanceProtocol.EAGER:
        return [[UNCLAIMED] * count for count in group.partition_counts]
    return newest_claimants(group, members, cooperative_claim)


def _with_claimants(group: Group, claimants: Claimants) -> Iterator[tuple[TopicPartition, str | int]]:
    """Every partition with the id of its newest claimant, or UNCLAIMED or CONTESTED."""
    for topic, newest in zip(group.topics, claimants, strict=True):
        for number, m in enumerate(newest):
            yield TopicPartition(topic, number), group.member_ids[m] if m >= 0 else m


def _problem_of_claim(
    partition: TopicPartition, claimant: str | int, owner: str | None, members: Mapping[str, Member]
) -> Problem | None:
    topic, number = partition
    if owner is None:
        if claimant != UNCLAIMED:
            return None
        return Problem(ProblemKind.MISSING, f"{topic}-{number} is given to nobody", None, partition)
    if claimant in (UNCLAIMED, owner):
        return None
    if claimant == CONTESTED and partition in members[owner].subscription.owned:
        return None  # it goes on reading, its rival stops
    who = "others" if claimant == CONTESTED else claimant
    text = f"{topic}-{number} is given to {owner} while still claimed by {who}"
    return Problem(ProblemKind.STILL_CLAIMED, text, owner, partition)
