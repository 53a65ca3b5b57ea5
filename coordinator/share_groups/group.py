"""A share group and its members in memory. Everything that matters is in the log, record by record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias
from uuid import UUID

from ...offsets_topic import (
    Partitions,
    Record,
    ShareAssignment,
    ShareEpoch,
    ShareGroupRecord,
    ShareMemberMetadata,
    ShareRecordType,
    ShareRecordValue,
    ShareTopic,
    ShareTopics,
    TargetAssignment,
    TargetEpoch,
)
from ...protocol import CauseKind, ErrorCode
from ...statemachine import ShareGroupState
from ..engine.effects import Command
from ..engine.timers import Timers
from ..groups.events import Cause, OpenRebalance, Owned, quote_text
from ..groups.group_type import GroupType
from ..groups.groups import CommittedTopic, GroupShard, TopicDirectory
from ..groups.subscribed_topics import SubscribedTopics, Topic

#: The newest records of a share group, by record type and the member in the key.
ShareGroupRecords: TypeAlias = dict[tuple[ShareRecordType, str], ShareRecordValue]

SHARE_TYPE: Final[GroupType[ShareGroupRecords]] = GroupType("share", ShareGroupState)

# keys of timers: one of these, the group and, for a session, the member id
SESSION: Final = "share session"
RESUME: Final = "share resume"
TOPICS: Final = "share topics"
MISSING: Final = "share missing"

#: The epoch in a heartbeat by which a member leaves.
LEAVING: Final = -1

#: The epoch of a group before its first member joins.
FIRST_EPOCH: Final = 1

_TYPES = ShareRecordType
_NEW_MEMBER: Final = ShareAssignment(0, 0, {})
_NO_TOPICS: Final = ShareTopics({}, {}, {})
_NO_TOPIC: Final = ShareTopic("")
#: Most partitions in the targets of all members for which an event tells who has what.
_MOST_TOLD: Final = 10_000


@dataclass(slots=True, eq=False)
class ShareMember:
    """A member; ``current`` is what it has."""

    member_id: str
    metadata: ShareMemberMetadata
    current: ShareAssignment = _NEW_MEMBER

    @property
    def name(self) -> str:
        """The member's name in causes."""
        return f"member {quote_text(self.member_id)}"

    def cause(self, kind: CauseKind, text: str) -> Cause:
        """Make a cause about this member."""
        metadata = self.metadata
        return Cause(text, kind, self.member_id, None, metadata.client_id, metadata.client_host)


@dataclass(slots=True, eq=False)
class ShareGroup:
    """A group whose members read the same partitions, record by record.

    ``subscribed`` counts the members that subscribe to each topic, ``metadata_bytes`` is the size of all
    subscriptions. ``kept`` are the topics with state at the share coordinators; ``under_way`` has, by topic,
    the newest command about that state whose result is not known. ``topics_seen`` is the version of the
    topics that ``metadata_hash`` was last compared with, ``kept_seen`` the ``kept`` that targets were last
    compared with. ``waiting`` counts heartbeats since it was last looked which partitions have no state, and
    ``found_before`` the topics that had been found then.
    """

    type: ClassVar[GroupType[object]] = SHARE_TYPE

    group_id: str
    topics: TopicDirectory
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    target_epoch: int = FIRST_EPOCH
    target_ms: int = 0
    members: dict[str, ShareMember] = field(default_factory=dict)
    targets: dict[str, Partitions] = field(default_factory=dict)
    kept: ShareTopics = _NO_TOPICS
    under_way: dict[UUID, Command] = field(default_factory=dict)
    subscribed: SubscribedTopics = field(init=False)
    metadata_bytes: int = 0
    topics_seen: object = None
    kept_seen: object = None
    #: The hash of the subscribed topics, and ``kept``, for which nothing is to be initialized: that is asked
    #: with each heartbeat.
    complete: tuple[int, object] = (0, None)
    waiting: int = 0
    found_before: int = 0
    rebalance: OpenRebalance | None = None
    settled_members: int = 0
    settled_targets: dict[str, Owned] | None = None

    def __post_init__(self) -> None:
        self.subscribed = SubscribedTopics(self.topics)

    def subscribed_topics(self) -> Mapping[str, Topic]:
        """The topics that members subscribe to and that exist, by name in no order."""
        self.subscribed.look_up()
        return self.subscribed.found

    def hash_topics(self) -> int:
        """Hash the subscribed topics as they are now; 0 for none."""
        self.subscribed.look_up()
        return self.subscribed.hash

    def assignable(self) -> dict[UUID, tuple[int, ...]]:
        """The partitions that may be assigned: of subscribed topics, with state."""
        found = {}
        for _, topic in sorted(self.subscribed_topics().items()):
            numbers = self.kept.initialized.get(topic.id, _NO_TOPIC).partitions
            if there := tuple(number for number in numbers if number < topic.partition_count):
                found[topic.id] = there
        return found

    def has_unassigned(self) -> bool:
        """Return whether a partition that may be assigned is in no target."""
        assigned: dict[UUID, set[int]] = {}
        for topics in self.targets.values():
            for topic_id, numbers in topics.items():
                assigned.setdefault(topic_id, set()).update(numbers)
        return any(
            not assigned.get(topic_id, set()).issuperset(numbers)
            for topic_id, numbers in self.assignable().items()
        )

    def assignments(self) -> dict[str, Owned] | None:
        """Targets by member; None if there are more partitions in them than an event tells."""
        if sum(len(numbers) for one in self.targets.values() for numbers in one.values()) > _MOST_TOLD:
            return None
        return {
            member_id: {
                name: numbers
                for topic_id, numbers in target.items()
                if (name := self.topics.topic_of_id(topic_id)) is not None
            }
            for member_id, target in self.targets.items()
        }

    def subscribed_ids(self, member: ShareMember) -> set[UUID]:
        """The existing topics that a member subscribes to."""
        found = self.subscribed_topics()
        return {found[name].id for name in member.metadata.topics if name in found}

    # --- what is asked of groups of every type ------------------------------------------------------------

    @property
    def generation(self) -> int:
        return self.epoch

    @property
    def protocol_type(self) -> str | None:
        return "share"

    @property
    def state_name(self) -> str:
        state = ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY
        return str(state.value)

    @property
    def member_count(self) -> int:
        return len(self.members)

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def is_idle(self) -> bool:
        """Never: offsets are kept elsewhere, and the group stays until it is deleted."""
        return False

    def check_commit(
        self,
        _member_id: str,
        _instance_id: str | None,
        _generation: int,
        _version: int,
        _topics: Sequence[CommittedTopic],
    ) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def is_no_generation(self, _generation: int) -> bool:
        return False

    def check_offset_delete(self) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def check_fetch(self, _member_id: str | None, _epoch: int) -> ErrorCode:
        return ErrorCode.NONE

    def why_refused(self, member_id: str, _instance_id: str | None, _generation: int, _error: int) -> str:
        who = f"member {quote_text(member_id)}" if member_id else "a sender without a member id"
        return f"{who} speaks to a share group as if it were of another type"

    def heard_from(self, member_id: str, timers: Timers, now_ms: int) -> None:
        """Do nothing: only heartbeats show that a member is alive."""

    def subscribes_to(self, topic: str) -> bool:
        return topic in self.subscribed.names

    def offset_age_counts_from(self, _topic: str, _commit_ms: int) -> int | None:
        return None

    def tombstones(self) -> tuple[Record, ...]:
        types = (_TYPES.TARGET_EPOCH, _TYPES.TOPICS, _TYPES.EPOCH)
        return tuple(ShareGroupRecord(each, self.group_id) for each in types)

    def stop_timers(self, timers: Timers) -> None:
        for member_id in self.members:
            timers.cancel((SESSION, self.group_id, member_id))
        timers.cancel((RESUME, self.group_id))
        timers.cancel((TOPICS, self.group_id))
        timers.cancel((MISSING, self.group_id))

    # --- records ------------------------------------------------------------------------------------------

    def apply(self, kind: ShareRecordType, member_id: str, value: ShareRecordValue | None) -> None:
        """Apply a record. One of a member that does not exist, because a write failed, changes nothing."""
        if isinstance(value, ShareMemberMetadata):
            self._set_member(member_id, value)
        elif isinstance(value, ShareAssignment):
            if member_id in self.members:
                self.members[member_id].current = value
        elif isinstance(value, TargetAssignment):
            self.targets[member_id] = value.partitions
        elif isinstance(value, ShareEpoch):
            self.epoch, self.metadata_hash = value
        elif isinstance(value, TargetEpoch):
            self.target_epoch, self.target_ms = value
        elif isinstance(value, ShareTopics):
            self.kept = value
        elif kind is _TYPES.MEMBER and (gone := self.members.pop(member_id, None)) is not None:
            self._count_metadata(gone.metadata, -1)
        elif kind is _TYPES.TARGET:
            self.targets.pop(member_id, None)

    def _set_member(self, member_id: str, metadata: ShareMemberMetadata) -> None:
        member = self.members.get(member_id)
        if member is None:
            self.members[member_id] = ShareMember(member_id, metadata)
            self._count_metadata(metadata, 1)
        else:
            # in this order a topic that stays is not looked up again
            self._count_metadata(metadata, 1)
            self._count_metadata(member.metadata, -1)
            member.metadata = metadata

    def _count_metadata(self, metadata: ShareMemberMetadata, step: int) -> None:
        self.metadata_bytes += step * text_bytes(metadata.topics)
        self.subscribed.count(metadata.topics, step)


def restore_group(group_id: str, records: ShareGroupRecords, topics: TopicDirectory) -> ShareGroup:
    """Restore a group from the log."""
    group = ShareGroup(group_id, topics)
    # members first: other records of unknown members are dropped
    for (kind, member_id), value in sorted(records.items(), key=lambda item: item[0][0] is not _TYPES.MEMBER):
        group.apply(kind, member_id, value)
    group.settled_members = len(group.members)
    return group


def find_share_group(shard: GroupShard, group_id: str) -> ShareGroup | None:
    """Find the share group with this id, even if it is only in the log."""
    group = shard.state.find(group_id)
    return group if isinstance(group, ShareGroup) else None


def live_share_group(shard: GroupShard, group_id: str) -> ShareGroup | None:
    """The share group with this id if it is in memory."""
    group = shard.state.groups.get(group_id)
    return group if isinstance(group, ShareGroup) else None


def text_bytes(texts: Iterable[str]) -> int:
    """Return the size of texts in bytes."""
    return sum(len(each.encode(errors="replace")) for each in texts)
