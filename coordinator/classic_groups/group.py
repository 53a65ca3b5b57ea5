"""A classic group and its members in memory; ``durable`` has their records in the log.

Everything in these objects may be lost with the process; what must not be lost is first written as a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias

from ...offsets_topic import GroupDeleted, GroupStored, Record, StoredMember
from ...protocol import ErrorCode, subscribed_topics
from ...statemachine import GroupState
from ..engine.effects import Request
from ..engine.timers import Timers
from ..groups.events import Cause, quote_text
from ..groups.group_type import GroupType
from ..groups.groups import CONSUMER, CommittedTopic, GroupShard

CLASSIC_TYPE: Final[GroupType[GroupStored]] = GroupType("classic", GroupState)

# keys of timers: one of these, the group and, for a session, the member id
SESSION: Final = "session"
JOIN: Final = "join"
SYNC: Final = "sync"
RETURN: Final = "return"

# plain values: reaching an enum's members costs more than a comparison
_NONE: Final = ErrorCode.NONE
_EMPTY: Final = GroupState.EMPTY
_PREPARING: Final = GroupState.PREPARING_REBALANCE
_COMPLETING: Final = GroupState.COMPLETING_REBALANCE

# makes a named tuple in half the time of calling its class
_new: Final = tuple.__new__

# a rebalance that keeps starting over keeps its first causes
_MAX_CAUSES = 5

#: Protocols that a member offers, in its order of preference: (name, metadata).
Protocols: TypeAlias = tuple[tuple[str, bytes], ...]


@dataclass(slots=True, eq=False)
class ClassicMember:
    """A member; ``parked_join`` and ``parked_sync`` are its requests that are held until a round ends."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    parked_join: Request | None = None
    parked_sync: Request | None = None
    is_new: bool = False

    @property
    def waits(self) -> bool:
        """True while its request is parked here: it need not send heartbeats, unless it is new."""
        return not self.is_new and (self.parked_join is not None or self.parked_sync is not None)

    def metadata(self, protocol: str | None) -> bytes:
        """Its metadata for a protocol; empty if it does not offer that one."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        return b""


@dataclass(slots=True, eq=False)
class RebalanceTrace:
    """A rebalance in progress. ``assignments`` are the previous ones, by owner (instance id, or
    member id).
    """

    causes: list[Cause]
    started_ms: int
    members_before: int
    assignments: dict[str, bytes]
    joined_ms: int | None = None

    def add(self, cause: Cause) -> None:
        """Keep a cause, if there are not too many already."""
        if len(self.causes) < _MAX_CAUSES:
            self.causes.append(cause)

    def cause(self) -> Cause:
        """The first cause, with the texts of all."""
        if len(self.causes) == 1:
            return self.causes[0]
        return self.causes[0]._replace(text="; ".join(dict.fromkeys(cause.text for cause in self.causes)))


@dataclass(frozen=True, slots=True)
class Replacement:
    """A static member that has returned, until a record says so; ``former`` is what it was before,
    ``former_leader`` the id of who led.
    """

    generation: int
    member_id: str
    request: Request
    former: ClassicMember
    former_leader: str

    def waits_in(self, group: ClassicGroup) -> bool:
        """Return whether the request still waits for the record. If a rebalance has begun, it is parked in
        its round.
        """
        member = group.members.get(self.member_id)
        return (
            member is not None
            and member.parked_join is self.request
            and group.state is GroupState.STABLE
            and group.generation == self.generation
        )


@dataclass(slots=True, eq=False)
class ClassicGroup:
    """A group that rebalances by JoinGroup and SyncGroup.

    ``members`` is in the order of joining; ``pending_join`` has the member ids that were handed out and not
    used yet, ``pending_sync`` the members whose JoinGroup was answered and that have not sent SyncGroup.
    ``subscribed_topics`` is None if unknown; ``settled_members`` is the number of members when the last
    rebalance ended, ``leaving`` the assignments, by owner, of members removed since. ``returned`` are
    the static members whose return is to be written, and ``return_ms`` is when that was done last.
    """

    type: ClassVar[GroupType[object]] = CLASSIC_TYPE

    group_id: str
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.DEAD
    state_timestamp_ms: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    members: dict[str, ClassicMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    pending_join: dict[str, None] = field(default_factory=dict)
    pending_sync: dict[str, None] = field(default_factory=dict)
    awaiting_join_count: int = 0
    protocol_support: dict[str, int] = field(default_factory=dict)
    subscribed_topics: frozenset[str] | None = None
    new_member_added: bool = False
    initial_delay_ms: int = 0
    initial_remaining_ms: int = 0
    staged_generation: int = -1
    metadata_bytes: int = 0
    settled_members: int = 0
    leaving: dict[str, bytes] = field(default_factory=dict)
    trace: RebalanceTrace | None = None
    returned: list[Replacement] = field(default_factory=list)
    return_ms: int = 0

    @property
    def all_joined(self) -> bool:
        """True when every member's JoinGroup is parked and no handed-out id is still expected."""
        return self.awaiting_join_count == len(self.members) and not self.pending_join

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may begin in this state."""
        return self.state in _CAN_REBALANCE

    @property
    def is_initial(self) -> bool:
        """True while it collects its first members after having had none."""
        return self.state is _PREPARING and self.previous_state is _EMPTY

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of a member; 0 without members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # --- what is asked of groups of every type ------------------------------------------------------------

    @property
    def state_name(self) -> str:
        """Kafka's name of the state."""
        return self.state.value

    @property
    def member_count(self) -> int:
        """Number of members."""
        return len(self.members)

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return self.state is GroupState.EMPTY

    @property
    def is_idle(self) -> bool:
        """Whether it has no members, and none that was told to come back with its id."""
        # an id that was just handed out will be used soon
        return self.state is GroupState.EMPTY and not self.pending_join

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        _version: int,
        _topics: Sequence[CommittedTopic],
    ) -> ErrorCode:
        """Make Kafka's checks in their order. While members have to rejoin, the generation that is ending
        may still commit; otherwise its records would be processed twice.
        """
        if generation < 0 and self.state is GroupState.EMPTY:
            return ErrorCode.NONE
        if generation < 0 and not member_id and instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = self.check_member(member_id, instance_id)
        if error:
            return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is _COMPLETING else _NONE

    def is_no_generation(self, generation: int) -> bool:
        """Return whether a number stands for "in no generation" in a commit."""
        return generation < 0

    def check_offset_delete(self) -> ErrorCode:
        """Only the topics of consumers are known: of another protocol type any may be in use."""
        if self.is_empty or self.protocol_type == CONSUMER:
            return ErrorCode.NONE
        return ErrorCode.NON_EMPTY_GROUP

    def check_fetch(self, _member_id: str | None, _epoch: int) -> ErrorCode:
        """Return NONE: whoever may read offsets may read these."""
        return ErrorCode.NONE

    def why_refused(self, member_id: str, instance_id: str | None, generation: int, error: int) -> str:
        """Return why a sender was not accepted, in words for an event."""
        who = f"member {quote_text(member_id)}" if member_id else "a sender without a member id"
        if error == ErrorCode.FENCED_INSTANCE_ID and instance_id is not None:
            now = quote_text(self.static_members.get(instance_id, ""))
            return f"{who} is fenced: static {quote_text(instance_id)} is member {now} now"
        if error == ErrorCode.ILLEGAL_GENERATION:
            return f"{who} is in generation {generation}, the group is in {self.generation}"
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            return f"{who} has not synced in generation {self.generation}"
        if instance_id is not None and instance_id not in self.static_members:
            return f"{who} says to be static {quote_text(instance_id)}, of whom the group knows nothing"
        return f"{who} is not in the group"

    def heard_from(self, member_id: str, timers: Timers, now_ms: int) -> None:
        """Restart the session of a member."""
        member = self.members.get(member_id)
        if member is not None:
            timers.start((SESSION, self.group_id, member_id), now_ms + member.session_timeout_ms)

    def subscribes_to(self, topic: str) -> bool:
        """Return whether a member reads the topic, as far as subscriptions can be read."""
        if self.protocol_type != CONSUMER or not self.members:
            return False
        return self.subscribed_topics is None or topic in self.subscribed_topics

    def offset_age_counts_from(self, topic: str, commit_ms: int) -> int | None:
        """Nothing expires during a rebalance, when subscriptions are uncertain (KAFKA-13636)."""
        if self.protocol_type is None:
            return commit_ms  # a simple group: each offset by its own age
        if self.state is GroupState.EMPTY:
            # an administrator's commit into an empty group is younger than its state
            return max(commit_ms, self.state_timestamp_ms)
        unread = self.protocol_type == CONSUMER and not self.subscribes_to(topic)
        return commit_ms if self.state is GroupState.STABLE and unread else None

    def tombstones(self) -> tuple[Record, ...]:
        """Return the record that removes the group from the log."""
        return (GroupDeleted(self.group_id),)

    def stop_timers(self, timers: Timers) -> None:
        """Cancel the timers of the group and its members."""
        for member_id in (*self.members, *self.pending_join):
            timers.cancel((SESSION, self.group_id, member_id))
        timers.cancel((JOIN, self.group_id))
        timers.cancel((SYNC, self.group_id))
        timers.cancel((RETURN, self.group_id))

    # --- its own ------------------------------------------------------------------------------------------

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Check that these ids are a member's: NONE, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
        if instance_id is not None:
            known_as = self.static_members.get(instance_id)
            if known_as is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known_as != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return _NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether a member with these protocols may join: all share its type and a protocol."""
        if self.state is _EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        if protocol_type != self.protocol_type:
            return False
        # a round that is still held open may have lost all its members: then any protocol will do
        everyone, support = len(self.members), self.protocol_support
        return any(support.get(name, 0) == everyone for name in names)

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """Add a member; the first one determines the protocol type and leads."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.pending_join.pop(member.member_id, None)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self._count_protocols(member.protocols, 1)

    def remove(self, member: ClassicMember) -> None:
        """Remove a member from everything but its parked requests; the earliest one left becomes
        the leader.
        """
        member_id = member.member_id
        del self.members[member_id]
        self.pending_sync.pop(member_id, None)
        if member.instance_id is not None:
            del self.static_members[member.instance_id]
        self._count_protocols(member.protocols, -1)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)

    def set_protocols(self, member: ClassicMember, protocols: Protocols) -> None:
        """Replace a member's protocols."""
        self._count_protocols(member.protocols, -1)
        member.protocols = protocols
        self._count_protocols(protocols, 1)

    def rename_member(self, member: ClassicMember, member_id: str) -> None:
        """Give a static member a new id; it comes last in the order."""
        old_id = member.member_id
        self.members[member_id] = self.members.pop(old_id)
        member.member_id = member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id
        if old_id in self.pending_sync:
            del self.pending_sync[old_id]
            self.pending_sync[member_id] = None
        if self.leader_id == old_id:
            self.leader_id = member_id

    def choose_protocol(self) -> str | None:
        """The protocol that most members prefer among those that all support; None without members.

        Each member votes for the first such name in its own list. Kafka leaves ties to hash order; here the
        leader's preference decides, then the name, so that equal joins lead to the same protocol.
        """
        everyone = len(self.members)
        candidates = {name for name, count in self.protocol_support.items() if count == everyone}
        if len(candidates) == 1:
            return candidates.pop()
        votes = dict.fromkeys(candidates, 0)
        for member in self.members.values():
            choice = next((name for name, _ in member.protocols if name in candidates), None)
            if choice is not None:
                votes[choice] += 1
        leader = self.members.get(self.leader_id or "")
        order = [name for name, _ in leader.protocols] if leader is not None else []
        return min(votes, key=lambda name: (-votes[name], _index_of(order, name), name), default=None)

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """All topics the members subscribe to; None for another type, no protocol, or unreadable metadata."""
        if self.protocol_type != CONSUMER:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        # most members have the same metadata
        for metadata in {member.metadata(self.protocol_name) for member in self.members.values()}:
            subscribed = subscribed_topics(metadata)
            if subscribed is None:
                return None
            topics |= subscribed
        return frozenset(topics)

    def to_record(self, assignments: dict[str, bytes] | None = None) -> GroupStored:
        """Return the group's log record, with the members' assignments or the given ones."""
        protocol = self.protocol_name
        return GroupStored(
            self.group_id,
            self.protocol_type or "",
            self.generation,
            protocol,
            self.leader_id,
            self.state_timestamp_ms,
            tuple(
                [
                    _new(
                        StoredMember,
                        (
                            member.member_id,
                            member.instance_id,
                            member.client_id,
                            member.client_host,
                            member.rebalance_timeout_ms,
                            member.session_timeout_ms,
                            member.metadata(protocol),
                            member.assignment if assignments is None else assignments[member.member_id],
                        ),
                    )
                    for member in self.members.values()
                ]
            ),
        )

    def _count_protocols(self, protocols: Protocols, step: int) -> None:
        support = self.protocol_support
        for name in dict(protocols):
            count = support.get(name, 0) + step
            if count:
                support[name] = count
            else:
                del support[name]
        self.metadata_bytes += step * sum(len(metadata) for _, metadata in protocols)


_CAN_REBALANCE = frozenset({GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE})


def _index_of(order: list[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def restore_group(group_id: str, record: GroupStored | None) -> ClassicGroup:
    """Restore a group from the log: Stable with members, Empty without, or with nothing but offsets."""
    if record is None:
        return ClassicGroup(group_id)
    group = ClassicGroup(
        group_id,
        state=GroupState.STABLE if record.members else GroupState.EMPTY,
        state_timestamp_ms=record.state_timestamp_ms,
        generation=record.generation,
    )
    for stored in record.members:
        protocols: Protocols = ((record.protocol, stored.subscription),) if record.protocol else ()
        member = ClassicMember(
            stored.member_id,
            stored.instance_id,
            stored.client_id,
            stored.client_host,
            stored.session_timeout_ms,
            stored.rebalance_timeout_ms,
            protocols,
            stored.assignment,
        )
        group.add(member, record.protocol_type)
    group.protocol_type = record.protocol_type or None
    group.protocol_name = record.protocol
    group.leader_id = record.leader if record.leader in group.members else next(iter(group.members), None)
    group.subscribed_topics = group.compute_subscribed_topics()
    group.settled_members = len(group.members)
    return group


def find_classic(shard: GroupShard, group_id: str) -> ClassicGroup | None:
    """Find the classic group with this id, even if it is only in the log."""
    # a group in memory is found by one lookup
    group = shard.state.groups.get(group_id) or shard.state.find(group_id)
    return group if isinstance(group, ClassicGroup) else None


def live_classic(shard: GroupShard, group_id: str) -> ClassicGroup | None:
    """The classic group with this id if it is in memory."""
    group = shard.state.groups.get(group_id)
    return group if isinstance(group, ClassicGroup) else None
