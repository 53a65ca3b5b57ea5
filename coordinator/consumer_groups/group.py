"""A consumer group and its members in memory. Everything that matters is in the log, record by record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias
from uuid import UUID

from ...offsets_topic import (
    NONE,
    ConsumerGroupRecord,
    CurrentAssignment,
    GroupEpoch,
    GroupRecordType,
    GroupRecordValue,
    MemberMetadata,
    Partitions,
    Record,
    ResolvedRegex,
    TargetAssignment,
    TargetEpoch,
)
from ...protocol import (
    CauseKind,
    ErrorCode,
    MalformedMessageError,
    RequestContext,
    TopicPartition,
    decode_subscription,
    encode_assignment,
)
from ...protocol.named_tuples import NamedTuple
from ...statemachine import AssignmentState, ConsumerGroupState, consumer_group_state
from ..engine.timers import Timers
from ..groups.events import Cause, OpenRebalance, Owned, quote_text
from ..groups.group_type import GroupType
from ..groups.groups import CommittedTopic, GroupShard, TopicDirectory
from ..groups.subscribed_topics import SubscribedTopics, Topic
from .reconciliation import NEW_MEMBER, is_settled
from .target import ComputeTarget

#: The newest records of a consumer group, by record type and the name in the key.
ConsumerGroupRecords: TypeAlias = dict[tuple[GroupRecordType, str], GroupRecordValue]

CONSUMER_TYPE: Final[GroupType[ConsumerGroupRecords]] = GroupType("consumer", ConsumerGroupState)

# keys of timers: one of these, the group and, except for the last two, the member id
SESSION: Final = "consumer session"
REVOCATION: Final = "consumer revocation"
HOLD: Final = "consumer hold"
REGEX: Final = "consumer regex"
RESUME: Final = "consumer resume"

#: Epochs in heartbeats by which a member leaves for good, and a static member for a while.
LEAVING, AWAY = -1, -2

_TYPES = GroupRecordType
_UNRELEASED: Final = AssignmentState.UNRELEASED_PARTITIONS.value
# older clients cannot say the epoch of a member that the coordinator assigns
_OFFSET_COMMIT_WITH_EPOCHS: Final = 9
_NOTHING: Final[Partitions] = {}
# most partitions of a target for which an event lists moves
_MOST_TOLD: Final = 50_000
# most distinct subscriptions of a group whose topics are cached
_MOST_SUBSCRIPTIONS: Final = 16


class Subscribed(NamedTuple):
    """The existing topics of a subscription: their names in order, and their ids."""

    topics: tuple[str, ...]
    ids: Set[UUID]


@dataclass(slots=True, eq=False)
class ConsumerGroupMember:
    """A member; ``current`` is its current assignment. ``subscribed`` is what it subscribes to, as of the
    token ``subscribed_seen``.
    """

    member_id: str
    metadata: MemberMetadata
    current: CurrentAssignment = NEW_MEMBER
    subscribed: Subscribed | None = None
    subscribed_seen: object = None

    @property
    def is_classic(self) -> bool:
        """True for a member that speaks the classic protocol."""
        return self.metadata.classic is not None

    @property
    def name(self) -> str:
        """The member's name in causes."""
        instance_id = self.metadata.instance_id
        return (
            f"member {quote_text(self.member_id)}"
            if instance_id is None
            else f"static member {quote_text(instance_id)}"
        )

    def cause(self, kind: CauseKind, text: str) -> Cause:
        """Make a cause about this member."""
        metadata = self.metadata
        return Cause(
            text, kind, self.member_id, metadata.instance_id, metadata.client_id, metadata.client_host
        )


@dataclass(slots=True, eq=False)
class Rebalance(OpenRebalance):
    """A rebalance in progress; assignments are by owner, as in classic groups.

    ``revoking`` has the members that are revoking partitions, with the time they were asked; ``slowest`` is
    the owner that took longest, with the time it took.
    """

    assigned_ms: int | None = None
    revoking: dict[str, int] = field(default_factory=dict)
    slowest: tuple[str, int] = ("", 0)


class Failure(NamedTuple):
    """An assignor gave no result for an epoch."""

    epoch: int
    assignor: str
    at_ms: int
    text: str


@dataclass(slots=True, eq=False)
class Resolution:
    """A resolution of regular expressions in progress: those ``left`` are to be matched, from the last one
    on, with which ``at`` of the ``names`` are done.
    """

    names: list[str]
    left: list[str]
    found: dict[str, list[str]]
    at: int = 0


@dataclass(slots=True, eq=False)
class ConsumerGroup:
    """A group whose members are assigned by the coordinator.

    ``owners`` has the member of each partition that is assigned or still to be revoked. ``patterns`` counts
    the members that subscribe to a regular expression, ``subscribed`` for each topic the members that name it
    and the expressions in use that match it, ``votes`` for each assignor the members that name it;
    ``metadata_bytes`` is the size of all subscriptions. ``unsettled`` are members that are not at their
    target. ``topics_seen`` is the version of the topics that
    ``metadata_hash`` was last compared with, ``topics_resolved`` that of the last resolution, at
    ``resolved_ms`` with the rights of ``resolver``; ``resolving`` is the one under way. ``too_broad`` are
    expressions that match more topics than a record has room for, with the error text. ``alike`` has the
    topics of some subscriptions, as of the token ``alike_seen``. ``computing`` is the target that is being
    computed. ``readers`` has the member of each partition in the targets, None until it is looked up.
    ``told_epoch`` is the target epoch that members who hold heartbeats have heard of.
    """

    type: ClassVar[GroupType[object]] = CONSUMER_TYPE

    group_id: str
    topics: TopicDirectory
    epoch: int = 0
    metadata_hash: int = 0
    target_epoch: int = 0
    target_ms: int = 0
    members: dict[str, ConsumerGroupMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    targets: dict[str, Partitions] = field(default_factory=dict)
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    owners: dict[UUID, dict[int, str]] = field(default_factory=dict)
    subscribed: SubscribedTopics = field(init=False)
    patterns: Counter[str] = field(default_factory=Counter)
    votes: Counter[str] = field(default_factory=Counter)
    unsettled: set[str] = field(default_factory=set)
    topics_seen: object = None
    topics_resolved: object = None
    resolved_ms: int | None = None
    resolver: RequestContext = field(default_factory=RequestContext)
    resolving: Resolution | None = None
    too_broad: dict[str, str] = field(default_factory=dict)
    metadata_bytes: int = 0
    alike: dict[tuple[tuple[str, ...], str], Subscribed] = field(default_factory=dict)
    alike_seen: object = None
    readers: dict[UUID, dict[int, str]] | None = None
    told_epoch: int = NONE
    settled_members: int = 0
    settled_owners: dict[str, Owned] | None = None
    rebalance: Rebalance | None = None
    computing: ComputeTarget | None = None
    failure: Failure | None = None

    def __post_init__(self) -> None:
        self.subscribed = SubscribedTopics(self.topics)

    @property
    def state(self) -> ConsumerGroupState:
        """The state, which follows from the group's epochs and members."""
        return consumer_group_state(
            members=len(self.members),
            epoch=self.epoch,
            target_epoch=self.target_epoch,
            settled=not self.unsettled,
        )

    def topics_of(self, member: ConsumerGroupMember) -> set[str]:
        """The topics that a member subscribes to, by name, whether they exist or not."""
        found = self.regexes.get(member.metadata.regex)
        return {*member.metadata.topics, *(found.topics if found is not None else ())}

    def subscribed_by(self, member: ConsumerGroupMember) -> Subscribed:
        """The existing topics that a member subscribes to. Put together when it joins, and when topics or the
        matches of expressions have changed; once for members with the same subscription.
        """
        found, _ = self.subscribed_topics()
        if self.alike_seen is None:
            self.alike_seen, self.alike = object(), {}
        if member.subscribed is None or member.subscribed_seen is not self.alike_seen:
            said = member.metadata
            known = self.alike.get((said.topics, said.regex))
            if known is None:
                names = tuple(sorted(name for name in self.topics_of(member) if name in found))
                known = Subscribed(names, {found[name].id for name in names})
                if len(self.alike) >= _MOST_SUBSCRIPTIONS:
                    self.alike = {}
                self.alike[said.topics, said.regex] = known
            member.subscribed, member.subscribed_seen = known, self.alike_seen
        return member.subscribed

    def subscribed_topics(self) -> tuple[Mapping[str, Topic], int]:
        """The topics that members subscribe to and that exist, by name in no order, and their hash."""
        if self.subscribed.look_up():
            self.alike_seen = None
        return self.subscribed.found, self.subscribed.hash

    def assignor(self, default: str) -> str:
        """The assignor that most members name; the default if none does."""
        votes = self.votes
        return max(votes, key=lambda name: (votes[name], name == default, name), default=default)

    def taken_numbers(self, member_id: str, topic_id: UUID, numbers: Collection[int]) -> set[int]:
        """The partitions that are assigned to other members, or that these still have to revoke."""
        owners = self.owners.get(topic_id)
        if owners is None:
            return set()
        return {number for number in numbers if owners.get(number, member_id) != member_id}

    def members_waiting(self, topic_id: UUID, numbers: Iterable[int]) -> Iterator[str]:
        """The members that wait for those of these partitions of a topic that are free."""
        if self.readers is None:
            self.readers = {}
            for member_id, topics in self.targets.items():
                for each, wanted in topics.items():
                    self.readers.setdefault(each, {}).update(dict.fromkeys(wanted, member_id))
        owners, readers = self.owners.get(topic_id, {}), self.readers.get(topic_id, {})
        for number in numbers:
            member = None if number in owners else self.members.get(readers.get(number, ""))
            if member is not None and member.current.state == _UNRELEASED:
                yield member.member_id

    def assignments(self) -> dict[str, Owned] | None:
        """Targets by owner; None if there are more than an event reports."""
        if sum(len(numbers) for one in self.targets.values() for numbers in one.values()) > _MOST_TOLD:
            return None
        names = {
            topic_id: self.topics.topic_of_id(topic_id)
            for topic_id in set[UUID]().union(*self.targets.values())
        }
        return {
            member.metadata.instance_id or member.member_id: {
                name: numbers
                for topic_id, numbers in self.targets.get(member.member_id, _NOTHING).items()
                if (name := names[topic_id]) is not None
            }
            for member in self.members.values()
        }

    # --- what is asked of groups of every type ------------------------------------------------------------

    @property
    def generation(self) -> int:
        """The epoch: clients call it a generation."""
        return self.epoch

    @property
    def protocol_type(self) -> str | None:
        """Always "consumer"."""
        return "consumer"

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
        return not self.members

    @property
    def is_idle(self) -> bool:
        """Whether it has no members."""
        return not self.members

    def check_commit(
        self,
        member_id: str,
        _instance_id: str | None,
        generation: int,
        version: int,
        topics: Sequence[CommittedTopic],
    ) -> ErrorCode:
        """Accept a commit of an older epoch for partitions that the member has had since that epoch
        (KIP-1251).
        """
        if generation < 0 and not self.members:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not member.is_classic and version < _OFFSET_COMMIT_WITH_EPOCHS:
            return ErrorCode.UNSUPPORTED_VERSION
        current = member.current
        if generation == current.epoch or (
            0 <= generation < current.epoch and self._had_partitions(current, generation, topics)
        ):
            return ErrorCode.NONE
        return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH

    def is_no_generation(self, generation: int) -> bool:
        """Return whether a number stands for "in no epoch" in a commit."""
        return generation == NONE

    def check_offset_delete(self) -> ErrorCode:
        """Return NONE: only topics that members subscribe to are refused."""
        return ErrorCode.NONE

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Return the error of an OffsetFetch that names a member or epoch that is not the current one."""
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == member.current.epoch else ErrorCode.STALE_MEMBER_EPOCH

    def why_refused(self, member_id: str, instance_id: str | None, generation: int, error: int) -> str:
        """Return why a sender was not accepted, in words for an event."""
        who = f"member {quote_text(member_id)}" if member_id else "a sender without a member id"
        if error == ErrorCode.FENCED_INSTANCE_ID and instance_id is not None:
            now = quote_text(self.static_members.get(instance_id, ""))
            return f"{who} is fenced: static {quote_text(instance_id)} is member {now} now"
        member = self.members.get(member_id)
        if member is None:
            return f"{who} is not in the group"
        if error == ErrorCode.UNSUPPORTED_VERSION:
            return f"{who} commits with a version that knows no member epochs"
        return f"{who} is at epoch {generation}, the group knows it at {member.current.epoch}"

    def heard_from(self, member_id: str, timers: Timers, now_ms: int) -> None:
        """Do nothing: only heartbeats show that a member is alive."""

    def subscribes_to(self, topic: str) -> bool:
        """Return whether a member reads the topic."""
        return topic in self.subscribed.names

    def offset_age_counts_from(self, topic: str, commit_ms: int) -> int | None:
        """Return when a topic's offset begins to age; None while members may read it."""
        if not self.patterns.keys() <= self.regexes.keys():
            # the topics of a member that has just joined are not known yet
            return None
        return None if self.subscribes_to(topic) else commit_ms

    def tombstones(self) -> tuple[Record, ...]:
        """Tombstones of an empty group. As in Apache Kafka, one is for a type of record that only older
        versions write.
        """
        types = (_TYPES.TARGET_EPOCH, _TYPES.PARTITION_METADATA, _TYPES.EPOCH)
        return tuple(ConsumerGroupRecord(each, self.group_id) for each in types)

    def stop_timers(self, timers: Timers) -> None:
        """Cancel the timers of the group and its members."""
        for member_id in self.members:
            stop_member_timers(timers, self.group_id, member_id)
        timers.cancel((REGEX, self.group_id))

    # --- records ------------------------------------------------------------------------------------------

    def apply(self, kind: GroupRecordType, name: str, value: GroupRecordValue | None) -> None:
        """Apply a record. One of a member that does not exist, because a write failed, changes nothing."""
        if isinstance(value, MemberMetadata):
            self._set_member(name, value)
        elif isinstance(value, CurrentAssignment):
            self._set_current(name, value)
        elif isinstance(value, GroupEpoch):
            self.epoch, self.metadata_hash = value
        elif isinstance(value, TargetEpoch):
            self.target_epoch, self.target_ms = value
            self.unsettled = {
                member.member_id
                for member in self.members.values()
                if not is_settled(member.current, value.epoch)
            }
        elif isinstance(value, TargetAssignment):
            self._set_target(name, value.partitions)
        elif isinstance(value, ResolvedRegex):
            self._set_regex(name, value)
        elif kind is _TYPES.MEMBER:
            self._remove_member(name)
        elif kind is _TYPES.TARGET:
            self._set_target(name, None)
        elif kind is _TYPES.REGEX:
            self._set_regex(name, None)
        elif kind is _TYPES.CURRENT and name in self.members:
            self._set_current(name, NEW_MEMBER)

    def _set_target(self, member_id: str, target: Partitions | None) -> None:
        before = self.targets.get(member_id, _NOTHING)
        if target is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target
        if self.readers is None:
            return
        for topic_id, numbers in before.items():
            readers = self.readers.get(topic_id, {})
            for number in numbers:
                if readers.get(number) == member_id:
                    del readers[number]
        for topic_id, numbers in (target or _NOTHING).items():
            self.readers.setdefault(topic_id, {}).update(dict.fromkeys(numbers, member_id))

    def _set_member(self, member_id: str, metadata: MemberMetadata) -> None:
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = ConsumerGroupMember(member_id, metadata)
            self.unsettled.add(member_id)
        else:
            self._forget_metadata(member)
            member.metadata, member.subscribed = metadata, None
        self._count_metadata(metadata, 1)
        if metadata.instance_id is not None:
            self.static_members[metadata.instance_id] = member_id

    def _remove_member(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is None:
            return
        self._set_current(member_id, NEW_MEMBER)
        del self.members[member_id]
        self.unsettled.discard(member_id)
        self._forget_metadata(member)

    def _forget_metadata(self, member: ConsumerGroupMember) -> None:
        """Remove a member's metadata."""
        self._count_metadata(member.metadata, -1)
        instance_id = member.metadata.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]

    def _set_current(self, member_id: str, current: CurrentAssignment) -> None:
        member = self.members.get(member_id)
        if member is None:
            return
        before = member.current
        if current.assigned is not before.assigned or current.revoking or before.revoking:
            self._set_owners(member_id, before, current)
        member.current = current
        if is_settled(current, self.target_epoch):
            self.unsettled.discard(member_id)
        else:
            self.unsettled.add(member_id)

    def _set_owners(self, member_id: str, before: CurrentAssignment, current: CurrentAssignment) -> None:
        for topics in (before.assigned, before.revoking):
            for topic_id, numbers in topics.items():
                owned = self.owners.get(topic_id, {})
                for number in numbers:
                    if owned.get(number) == member_id:
                        del owned[number]
                if not owned:
                    self.owners.pop(topic_id, None)
        for topics in (current.assigned, current.revoking):
            for topic_id, numbers in topics.items():
                self.owners.setdefault(topic_id, {}).update(dict.fromkeys(numbers, member_id))

    def _set_regex(self, regex: str, value: ResolvedRegex | None) -> None:
        before = self.regexes.pop(regex, None)
        if value is not None:
            self.regexes[regex] = value
        old = () if before is None else before.topics
        new = () if value is None else value.topics
        if old == new:
            return
        self.alike_seen = None
        if regex in self.patterns:
            self.subscribed.count(new, 1)
            self.subscribed.count(old, -1)

    def _count_metadata(self, metadata: MemberMetadata, step: int) -> None:
        self.metadata_bytes += step * subscription_bytes(metadata)
        self.subscribed.count(metadata.topics, step)
        if metadata.assignor:
            self.votes[metadata.assignor] += step
            self.votes = +self.votes
        regex = metadata.regex
        if not regex:
            return
        was_used = regex in self.patterns
        self.patterns[regex] += step
        if not self.patterns[regex]:
            del self.patterns[regex]
        if was_used is not (regex in self.patterns) and regex in self.regexes:
            self.subscribed.count(self.regexes[regex].topics, step)

    def _had_partitions(
        self, current: CurrentAssignment, epoch: int, topics: Sequence[CommittedTopic]
    ) -> bool:
        for topic in topics:
            topic_id = self.topics.id_of_topic(topic.name)
            if topic_id is None:
                return False
            for partition in topic.partitions:
                number = partition.partition_index
                since = current.assigned.get(topic_id, {}).get(number)
                if since is None:
                    since = current.revoking.get(topic_id, {}).get(number)
                if since is None or since > epoch:
                    return False
        return True


def restore_group(group_id: str, records: ConsumerGroupRecords, topics: TopicDirectory) -> ConsumerGroup:
    """Restore a group from the log."""
    group = ConsumerGroup(group_id, topics)
    # members first: other records of unknown members are dropped
    for (kind, name), value in sorted(records.items(), key=lambda item: item[0][0] is not _TYPES.MEMBER):
        group.apply(kind, name, value)
    group.settled_members = len(group.members)
    return group


def find_consumer_group(shard: GroupShard, group_id: str) -> ConsumerGroup | None:
    """Find the consumer group with this id, even if it is only in the log."""
    group = shard.state.find(group_id)
    return group if isinstance(group, ConsumerGroup) else None


def live_consumer_group(shard: GroupShard, group_id: str) -> ConsumerGroup | None:
    """The consumer group with this id if it is in memory."""
    group = shard.state.groups.get(group_id)
    return group if isinstance(group, ConsumerGroup) else None


def stop_member_timers(timers: Timers, group_id: str, member_id: str) -> None:
    """Stop the timers of a member that is gone."""
    timers.cancel((SESSION, group_id, member_id))
    timers.cancel((REVOCATION, group_id, member_id))


def subscription_bytes(metadata: MemberMetadata) -> int:
    """Return the size in bytes of a subscription: names, expression, and a classic member's metadata."""
    classic = () if metadata.classic is None else metadata.classic.protocols
    return text_bytes((*metadata.topics, metadata.regex)) + sum(len(data) for _, data in classic)


def text_bytes(texts: Iterable[str]) -> int:
    """Return the size of texts in bytes."""
    return sum(len(each.encode(errors="replace")) for each in texts)


def protocol_of(member: ConsumerGroupMember) -> str:
    """Return the protocol name that a classic member gets: its first."""
    classic = member.metadata.classic
    return "" if classic is None or not classic.protocols else classic.protocols[0][0]


def assignment_bytes(group: ConsumerGroup, member: ConsumerGroupMember, protocol: str) -> bytes:
    """Encode a classic member's current assignment as it reads it."""
    classic = member.metadata.classic
    data = b"" if classic is None else dict(classic.protocols).get(protocol, b"")
    try:
        version = decode_subscription(data).version
    except MalformedMessageError:
        version = 0
    partitions = [
        TopicPartition(name, number)
        for topic_id, numbers in member.current.assigned.items()
        if (name := group.topics.topic_of_id(topic_id)) is not None
        for number in numbers
    ]
    return encode_assignment(partitions, version=version)


def common_protocol(names: Sequence[str], group: ConsumerGroup, but: ConsumerGroupMember | None) -> bool:
    """Return whether all classic members, except ``but``, support one of these protocols."""
    others = [
        {name for name, _ in member.metadata.classic.protocols}
        for member in group.members.values()
        if member.metadata.classic is not None and member is not but
    ]
    return any(all(name in each for each in others) for name in names)
