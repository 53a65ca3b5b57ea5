"""Check of an assignor's result, before the leader sends it or the coordinator uses it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ..protocol import TopicPartition
from .base import Member, RebalanceProtocol, TopicInfo
from .user_data import cooperative_claim

#: Member id for each partition, by topic and number; None if it is not assigned.
_Owners = dict[str, list[str | None]]

_SHOWN_CHARS = 80


class ProblemKind(Enum):
    """Kinds of problems in an assignment."""

    MALFORMED = "malformed"
    UNKNOWN_MEMBER = "unknown member"
    UNKNOWN_PARTITION = "unknown partition"
    NOT_SUBSCRIBED = "not subscribed"
    ASSIGNED_TWICE = "assigned twice"
    STILL_CLAIMED = "still claimed"
    MISSING = "missing"

    @property
    def unsafe(self) -> bool:
        """Return whether two members could read one partition, or a member one that it must not or cannot
        read.

        A partition that is only missing stays unread: that is reported, but the assignment can be used.
        """
        return self is not ProblemKind.MISSING


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in an assignment; ``str()`` describes it in a sentence."""

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
    """Return the problems of ``assignment``, at most one for each partition; an empty list if it is valid.

    Under COOPERATIVE a partition must not be given to one member while another claims it, and a claimed
    partition may be left out. Only claims of the newest generation count, so that a member that was away for
    long cannot block the group. ``assignment`` may be of any type; a wrong one is a problem too, and nothing
    is raised.
    """
    answer: object = assignment
    if not isinstance(answer, Mapping):
        text = f"the answer is of type {type(assignment).__name__}: give a dict of member id to partitions"
        return [Problem(ProblemKind.MALFORMED, text)]
    wanted = frozenset[str]().union(*(member.topics for member in members.values()))
    owners: _Owners = {t: [None] * topics[t].partition_count for t in sorted(wanted) if t in topics}
    problems: list[Problem] = []
    for member_id, given in assignment.items():
        member = members.get(member_id)
        if member is None:
            text = f"{member_id!r} is assigned partitions and is no member of the group"
            problems.append(Problem(ProblemKind.UNKNOWN_MEMBER, text, str(member_id)))
            continue
        try:
            _enter_given(member, given, owners, topics, problems)
        except (TypeError, ValueError):
            text = f"{member_id} is given {_brief_text(given)}: give a list of TopicPartition"
            problems.append(Problem(ProblemKind.MALFORMED, text, member_id))
    cooperative = protocol is RebalanceProtocol.COOPERATIVE
    claims = [_Claims.of_member(*each) for each in members.items()] if cooperative else []
    told = {problem.partition for problem in problems}
    problems += (found for found in _problems_of_claims(owners, claims) if found.partition not in told)
    return problems


def _enter_given(
    member: Member,
    given: Iterable[TopicPartition],
    owners: _Owners,
    topics: Mapping[str, TopicInfo],
    problems: list[Problem],
) -> None:
    """Enter the partitions given to one member into ``owners``, and what is wrong into ``problems``.

    This loop is all that a valid assignment costs, so it is kept short.
    """
    if isinstance(given, Iterator):
        raise TypeError("can be read once only, and is read here")
    member_id, subscribed = member.member_id, frozenset(member.topics)
    for topic, number in given:
        row = owners.get(topic) if topic in subscribed else None
        if row is None or not 0 <= number < len(row) or row[number] is not None:
            problems.append(_problem_of(TopicPartition(topic, number), member_id, subscribed, topics, owners))
        else:
            row[number] = member_id


def _problem_of(
    partition: TopicPartition,
    member_id: str,
    subscribed: frozenset[str],
    topics: Mapping[str, TopicInfo],
    owners: _Owners,
) -> Problem:
    topic, number = partition
    name = f"{topic}-{number}"
    if topic not in subscribed:
        kind, text = ProblemKind.NOT_SUBSCRIBED, f"{name} is given to {member_id}, which does not want it"
    elif topic not in topics or not 0 <= number < topics[topic].partition_count:
        kind, text = ProblemKind.UNKNOWN_PARTITION, f"{name} is given to {member_id}, but does not exist"
    else:
        first = owners[topic][number]
        kind, text = ProblemKind.ASSIGNED_TWICE, f"{name} is given to {first} and to {member_id}"
    return Problem(kind, text, member_id, partition)


class _Claims(NamedTuple):
    """Partitions that one member of a cooperative group says it owns."""

    member_id: str
    generation: int
    partitions: frozenset[TopicPartition]

    @classmethod
    def of_member(cls, member_id: str, member: Member) -> _Claims:
        claim = cooperative_claim(member.subscription)
        return cls(member_id, claim.generation, frozenset(claim.partitions))


def _problems_of_claims(owners: _Owners, claims: list[_Claims]) -> list[Problem]:
    """Find partitions neither given nor claimed, and those given to one member and claimed by another."""
    claimed = frozenset[TopicPartition]().union(*(claim.partitions for claim in claims))
    rivals: set[TopicPartition] = set()
    if sum(len(claim.partitions) for claim in claims) > len(claimed):
        counts = Counter(partition for claim in claims for partition in claim.partitions)
        rivals.update(partition for partition, count in counts.items() if count > 1)
    problems = []
    for topic, row in owners.items():
        for number, owner in enumerate(row) if None in row else ():
            partition = TopicPartition(topic, number)
            if owner is None and partition not in claimed:
                text = f"{topic}-{number} is given to nobody"
                problems.append(Problem(ProblemKind.MISSING, text, None, partition))
    for partition in sorted(rivals.union(*(_given_away(claim, owners) for claim in claims))):
        rows = owners.get(partition.topic, ())
        owner = rows[partition.partition] if 0 <= partition.partition < len(rows) else None
        if owner is not None and (problem := _problem_of_claim(partition, owner, claims)):
            problems.append(problem)
    return problems


def _given_away(claim: _Claims, owners: _Owners) -> list[TopicPartition]:
    """Partitions of ``claim`` that its member was not given."""
    me, away = claim.member_id, []
    for partition in claim.partitions:
        topic, number = partition
        row = owners.get(topic, ())
        if not 0 <= number < len(row) or row[number] != me:
            away.append(partition)
    return away


def _problem_of_claim(partition: TopicPartition, owner: str, claims: list[_Claims]) -> Problem | None:
    asking = [claim for claim in claims if partition in claim.partitions]
    newest = max(claim.generation for claim in asking)
    last = [claim.member_id for claim in asking if claim.generation == newest]
    if owner in last:
        return None  # it may keep the partition; the other claimants, if any, stop reading it
    who = last[0] if len(last) == 1 else "others"
    text = f"{partition.topic}-{partition.partition} is given to {owner} while still claimed by {who}"
    return Problem(ProblemKind.STILL_CLAIMED, text, owner, partition)


def _brief_text(given: object) -> str:
    text = repr(given)
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "..."
