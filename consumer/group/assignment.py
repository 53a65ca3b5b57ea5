"""A member's assignors: the protocols that it offers in JoinGroup, and the assignment that it makes as
leader.

An assignor that raises or breaks the rules does not stop the group: a built-in one replaces it for this
generation, chosen so that no member is assigned a partition that another one still reads. For the next
generation the leader withdraws the faulty one, and the group takes another that all its members offer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ...assignors import (
    Assignor,
    CooperativeStickyAssignor,
    MeasuringAssignor,
    Member,
    Problem,
    RangeAssignor,
    RebalanceProtocol,
    TopicInfo,
    validate_assignment,
)
from ...assignors.user_data import cooperative_claim
from ...client.errors import ConfigError
from ...protocol import (
    KohortError,
    MalformedMessageError,
    Subscription,
    TopicPartition,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from ...protocol.messages.join_group import JoinGroupResponseMember
from ..events import AssignmentRefused, AssignorFailed, Event

#: Start of the note that the leader appends to all assignments while partitions wait for their owners to
#: revoke them (KIP-429): another rebalance follows as soon as they have, and members that know send
#: heartbeats more often. Other clients ignore it.
ANOTHER_ROUND = b"another round follows"
#: Start of the note of all other assignments under COOPERATIVE: this leader understands members that announce
#: their leave.
LISTENING = b"leaving members are heard"
#: End of either note: the size of the group. There is no note under EAGER, since clients (sarama) may refuse
#: unknown bytes.
_SIZE = re.compile(rb", (\d{1,9}) members\Z")

#: Suffix of the user data of a member that is about to leave, after a byte: 1 if there is other user data.
_LEAVING = b"about to leave"

#: Most problems of an assignment that its error names.
_SHOWN_PROBLEMS = 5


@dataclass(slots=True)
class LedGroup:
    """The members of a generation by id, as the leader got them with JoinGroup."""

    members: dict[str, Member] = field(default_factory=dict)
    #: Members whose subscription could not be decoded, and why; they are assigned nothing.
    unreadable: dict[str, str] = field(default_factory=dict)
    #: Members that are about to leave. They are assigned nothing; the partitions they still read stay
    #: unassigned.
    leaving: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, rows: Iterable[JoinGroupResponseMember]) -> LedGroup:
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
        """All topics that members subscribe to."""
        return frozenset(topic for member in self.members.values() for topic in member.topics)

    @property
    def staying(self) -> dict[str, Member]:
        """The members that assignors see: all but those about to leave."""
        return {name: member for name, member in self.members.items() if name not in self.leaving}

    def still_read(self) -> dict[TopicPartition, int]:
        """The partitions that leaving members own, and the generation in which they got them."""
        claims = [cooperative_claim(self.members[name].subscription) for name in self.leaving]
        owned: dict[TopicPartition, int] = {}
        for claim in claims:
            for partition in claim.partitions:
                owned[partition] = max(claim.generation, owned.get(partition, claim.generation))
        return owned


def with_leaving(user_data: bytes | None) -> bytes:
    """User data that announces a leave. Leaders of other clients ignore the suffix."""
    return (user_data or b"") + bytes([user_data is not None]) + _LEAVING


def without_leaving(user_data: bytes) -> bytes | None:
    """The user data without the announcement."""
    rest = user_data.removesuffix(_LEAVING)
    return rest[:-1] if rest[-1:] == b"\1" else None


def note_of(text: bytes, members: int) -> bytes:
    """The leader's note to all members of a group of this size."""
    return b"%b, %d members" % (text, members)


def size_in(note: bytes) -> int | None:
    """The size of the group by its leader's note; None if the note does not say it."""
    found = _SIZE.search(note)
    return None if found is None else int(found[1])


class WrongAssignmentError(KohortError):
    """An assignment that breaks the rules; ``problems`` lists how."""

    def __init__(self, assignor: str, problems: Sequence[Problem]) -> None:
        shown = "; ".join(str(problem) for problem in problems[:_SHOWN_PROBLEMS])
        more = len(problems) - _SHOWN_PROBLEMS
        super().__init__(f"{assignor}: {shown}" + (f"; and {more} more" if more > 0 else ""))
        self.problems = tuple(problems)

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions concerned, sorted."""
        return tuple(sorted({problem.partition for problem in self.problems if problem.partition}))


def assign_group(
    assignor: Assignor, protocol: RebalanceProtocol, led: LedGroup, topics: Mapping[str, TopicInfo]
) -> dict[str, bytes]:
    """The assignment of each member, encoded. Raises what the assignor raises, and WrongAssignmentError."""
    staying = led.staying if led.leaving else led.members
    given: Mapping[str, Sequence[TopicPartition]] = {}
    if staying:
        given = assignor.assign(MappingProxyType(dict(topics)), MappingProxyType(staying))
        if problems := validate_assignment(topics, staying, given, protocol):
            raise WrongAssignmentError(assignor.name, problems)
        if led.leaving:
            given = _without_moving(given, led)
    note = b""
    if protocol is RebalanceProtocol.COOPERATIVE:
        wanted = {topic for member in staying.values() for topic in member.topics}
        there = sum(topics[topic].partition_count for topic in wanted if topic in topics)
        text = ANOTHER_ROUND if sum(map(len, given.values())) < there else LISTENING
        note = note_of(text, len(led.members))
    return {member: encode_assignment(given.get(member, ()), note=note) for member in led.members}


def _without_moving(
    given: Mapping[str, Sequence[TopicPartition]], led: LedGroup
) -> dict[str, list[TopicPartition]]:
    """The assignment without the partitions that leaving members still read, until they are gone (KIP-429).

    A member that owns such a partition from a later generation keeps it.
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
    """The highest rebalance protocol that all assignors support (KIP-429). ValueError if there is none."""
    common = frozenset.intersection(*(assignor.rebalance_protocols for assignor in assignors))
    if not common:
        names = ", ".join(assignor.name for assignor in assignors)
        raise ValueError(f"assignors {names} have no rebalance protocol in common: use those that have")
    return max(common)


class MemberAssignors:
    """Assignors in the order of preference. They are user code: errors are reported and worked around."""

    def __init__(self, assignors: Sequence[Assignor], report: Callable[[Event], None]) -> None:
        self._assignors = {assignor.name: assignor for assignor in assignors}
        if len(self._assignors) < len(assignors):
            raise ConfigError("two assignors have the same name: a group tells them apart by it")
        try:
            self.protocol = rebalance_protocol(assignors)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        self._broken: set[str] = set()
        #: Whether the broken ones are offered nevertheless, after the others.
        self._needed = False
        self._report = report

    def __contains__(self, name: str) -> bool:
        return name in self._assignors

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the order of preference."""
        return tuple(self._assignors)

    def offer(
        self,
        topics: Sequence[str],
        owned: Iterable[TopicPartition],
        generation: int,
        rack: str | None,
        *,
        leaving: bool = False,
    ) -> list[tuple[str, bytes]]:
        """Names and subscriptions for JoinGroup, without the assignors that failed if others are left."""
        names = sorted(self._assignors, key=lambda name: name in self._broken)
        whole = [name for name in names if name not in self._broken]
        claims = tuple(sorted(owned))
        offered = []
        for name in names if self._needed else whole or names:
            data = self._user_data(name, topics)
            data = with_leaving(data) if leaving else data
            offered.append(
                (name, encode_subscription(Subscription(tuple(topics), data, claims, generation, rack)))
            )
        return offered

    def take_back(self) -> bool:
        """Offer the failed assignors again: the other members have no other one in common with this one.

        Returns False if that was tried already, or none was withdrawn: then the member cannot go on.
        """
        was_needed, self._needed = self._needed, bool(self._broken)
        return self._needed and not was_needed

    def worth_another_round(self, name: str) -> bool:
        """Return whether the group's assignor failed here and there is another one to agree on."""
        return name in self._broken and not self._needed and len(self._broken) < len(self._assignors)

    def measuring(self, name: str) -> MeasuringAssignor | None:
        """The assignor of this name, if it asks for measured weights."""
        assignor = self._assignors[name]
        return assignor if isinstance(assignor, MeasuringAssignor) else None

    def assign(self, name: str, led: LedGroup, topics: Mapping[str, TopicInfo]) -> dict[str, bytes]:
        """Make the assignment, as the leader; encoded, by member id."""
        try:
            assignments = assign_group(self._assignors[name], self.protocol, led, topics)
        except Exception as error:  # an assignor is anyone's code
            cooperative = self.protocol is RebalanceProtocol.COOPERATIVE
            stand_in = CooperativeStickyAssignor() if cooperative else RangeAssignor()
            assignments = assign_group(stand_in, self.protocol, led, topics)
            self._on_failure(name, error, stand_in.name)
        for member, why in led.unreadable.items():
            self._report(AssignmentRefused(f"the subscription of {member} cannot be read: {why}"))
        return assignments

    def on_assigned(self, name: str, partitions: Iterable[TopicPartition], generation: int) -> None:
        """Tell the group's assignor what this member was assigned."""
        try:
            self._assignors[name].on_assignment(sorted(partitions), generation)
        except Exception as error:
            self._on_failure(name, error, name)

    def _user_data(self, name: str, topics: Sequence[str]) -> bytes | None:
        try:
            return self._assignors[name].user_data(topics)
        except Exception as error:
            self._on_failure(name, error, name)
            return None

    def _on_failure(self, name: str, error: Exception, used: str) -> None:
        self._broken.add(name)
        partitions = error.partitions if isinstance(error, WrongAssignmentError) else ()
        self._report(AssignorFailed(name, error, used, partitions))
