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
from ..assignors.user_data import cooperative_claim
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
#: ... and at other times, under COOPERATIVE: this leader understands members that are about to leave.
LISTENING = b"leaving members are heard"

#: Ends the user data of a member that is about to leave, after a byte that says whether there was any else.
_LEAVING = b"about to leave"

#: Problems of an assignment that its error names.
_SHOWN_PROBLEMS = 5


@dataclass(slots=True)
class Led:
    """The members of a generation as their leader was told of them, by id."""

    members: dict[str, Member] = field(default_factory=dict)
    #: Members whose subscription could not be read; they get nothing.
    unreadable: dict[str, str] = field(default_factory=dict)
    #: Of the members, those that are about to leave; they get nothing, and what they still read nobody else.
    leaving: set[str] = field(default_factory=set)

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
            if (data := subscription.user_data) is not None and data.endswith(_LEAVING):
                led.leaving.add(row.member_id)
                subscription = replace(subscription, user_data=without_leaving(data))
            led.members[row.member_id] = Member(row.member_id, subscription, row.group_instance_id)
        return led

    @property
    def topics(self) -> frozenset[str]:
        """Every topic that some member wants."""
        return frozenset(topic for member in self.members.values() for topic in member.topics)

    @property
    def staying(self) -> dict[str, Member]:
        """Those that an assignor is told of."""
        return {name: member for name, member in self.members.items() if name not in self.leaving}

    def still_read(self) -> dict[TopicPartition, int]:
        """What those who are about to leave own, and of which generation they have it."""
        claims = [cooperative_claim(self.members[name].subscription) for name in self.leaving]
        owned: dict[TopicPartition, int] = {}
        for claim in claims:
            for partition in claim.partitions:
                owned[partition] = max(claim.generation, owned.get(partition, claim.generation))
        return owned


def with_leaving(user_data: bytes | None) -> bytes:
    """The user data of a member that is about to leave. Other leaders than ours do not read that far."""
    return (user_data or b"") + bytes([user_data is not None]) + _LEAVING


def without_leaving(user_data: bytes) -> bytes | None:
    """What it would be otherwise."""
    rest = user_data.removesuffix(_LEAVING)
    return rest[:-1] if rest[-1:] == b"\1" else None


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
    staying = led.staying if led.leaving else led.members
    given: Mapping[str, Sequence[TopicPartition]] = {}
    if staying:
        given = assignor.assign(MappingProxyType(dict(topics)), MappingProxyType(staying))
        if problems := validate_assignment(topics, staying, given, protocol):
            raise WrongAssignmentError(assignor.name, problems)
        if led.leaving:
            given = _withheld(given, led)
    note = None
    if protocol is RebalanceProtocol.COOPERATIVE:
        wanted = {topic for member in staying.values() for topic in member.topics}
        there = sum(topics[topic].partition_count for topic in wanted if topic in topics)
        note = ANOTHER_ROUND if sum(map(len, given.values())) < there else LISTENING
    shares = {member: encode_assignment(given.get(member, ()), note) for member in led.members}
    return Assigned(shares, assignor.name)


def _withheld(given: Mapping[str, Sequence[TopicPartition]], led: Led) -> dict[str, list[TopicPartition]]:
    """Without what members read that are about to leave: it is given when they are gone (KIP-429).

    Whoever has it from a later generation keeps it.
    """
    still_read = led.still_read()
    shares = {}
    for name, partitions in given.items():
        claim = cooperative_claim(led.members[name].subscription)
        mine = frozenset(claim.partitions)
        shares[name] = [
            p for p in partitions if p not in still_read or (p in mine and claim.generation > still_read[p])
        ]
    return shares


def rebalance_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """The highest protocol that all of a consumer's assignors have (KIP-429). ValueError if there is none."""
    common = frozenset.intersection(*(assignor.rebalance_protocols for assignor in assignors))
    if not common:
        names = ", ".join(assignor.name for assignor in assignors)
        raise ValueError(f"assignors {names} have no rebalance protocol in common: use those that have")
    return max(common)
