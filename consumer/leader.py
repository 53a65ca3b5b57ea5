"""What a group's leader does between JoinGroup and SyncGroup: run the assignor, check what it says.

An assignor that raises or breaks the rules does not stop the group: one of ours takes its place for this
generation, chosen so that nobody is given what another still reads. For the next one the leader withdraws it,
and the group takes another that all its members offer (see :mod:`.strategies`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from ..assignors import (
    Assignor,
    CooperativeStickyAssignor,
    Member,
    Problem,
    RangeAssignor,
    RebalanceProtocol,
    TopicInfo,
    validate_assignment,
)
from ..protocol import (
    KohortError,
    MalformedMessageError,
    Subscription,
    TopicPartition,
    decode_subscription,
    encode_assignment,
)

#: User data of every member's share while partitions wait for their owners to give them up (KIP-429): another
#: round begins as soon as they have, and those who know of it ask more often. Others do not read it.
ANOTHER_ROUND = b"another round follows"

#: Problems of an assignment that its error names.
_SHOWN_PROBLEMS = 5


@dataclass(slots=True)
class Led:
    """The members of a generation as their leader was told of them, by id."""

    members: dict[str, Member] = field(default_factory=dict)
    #: Members whose subscription could not be read; they get nothing.
    unreadable: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[Any]) -> Led:
        """From the member list of a JoinGroup answer."""
        led = cls()
        for row in rows:
            try:
                subscription = decode_subscription(bytes(row.metadata))
            except MalformedMessageError as error:
                led.unreadable[row.member_id] = str(error)
                subscription = Subscription(topics=())
            led.members[row.member_id] = Member(row.member_id, subscription, row.group_instance_id)
        return led

    @property
    def topics(self) -> frozenset[str]:
        """Every topic that some member wants."""
        return frozenset(topic for member in self.members.values() for topic in member.topics)


class WrongAssignmentError(KohortError):
    """An assignor's answer that breaks the rules; ``problems`` has all that is wrong with it."""

    def __init__(self, assignor: str, problems: Sequence[Problem]) -> None:
        shown = "; ".join(str(problem) for problem in problems[:_SHOWN_PROBLEMS])
        more = len(problems) - _SHOWN_PROBLEMS
        super().__init__(f"{assignor}: {shown}" + (f"; and {more} more" if more > 0 else ""))
        self.problems = tuple(problems)

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that it is about, sorted."""
        return tuple(sorted({problem.partition for problem in self.problems if problem.partition}))


@dataclass(frozen=True, slots=True)
class Assigned:
    """``failure`` is set when the assignor's own answer could not be used; ``used`` names whose was."""

    assignments: dict[str, bytes]
    used: str
    failure: Exception | None = None


def assign(
    assignor: Assignor, protocol: RebalanceProtocol, led: Led, topics: Mapping[str, TopicInfo]
) -> Assigned:
    """Every member's share as bytes. ``protocol`` is the one the group runs under."""
    try:
        return _assigned(assignor, protocol, led, topics)
    except Exception as error:  # an assignor is anyone's code
        cooperative = protocol is RebalanceProtocol.COOPERATIVE
        stand_in = CooperativeStickyAssignor() if cooperative else RangeAssignor()
        return replace(_assigned(stand_in, protocol, led, topics), failure=error)


def _assigned(
    assignor: Assignor, protocol: RebalanceProtocol, led: Led, topics: Mapping[str, TopicInfo]
) -> Assigned:
    given = assignor.assign(MappingProxyType(dict(topics)), MappingProxyType(led.members))
    if problems := validate_assignment(topics, led.members, given, protocol):
        raise WrongAssignmentError(assignor.name, problems)
    there = sum(topics[topic].partition_count for topic in led.topics if topic in topics)
    withheld = protocol is RebalanceProtocol.COOPERATIVE and sum(map(len, given.values())) < there
    note = ANOTHER_ROUND if withheld else None
    shares = {member: encode_assignment(given.get(member, ()), note) for member in led.members}
    return Assigned(shares, assignor.name)


def rebalance_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """The highest protocol that all of a consumer's assignors have (KIP-429). ValueError if there is none."""
    common = frozenset.intersection(*(assignor.rebalance_protocols for assignor in assignors))
    if not common:
        names = ", ".join(assignor.name for assignor in assignors)
        raise ValueError(f"assignors {names} have no rebalance protocol in common: use those that have")
    return max(common)
