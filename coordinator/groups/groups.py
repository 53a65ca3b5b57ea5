"""The groups of one shard, of every type, and the interface that they share.

Offsets are committed, read and expired in the same way for all types of groups; where the type matters, the
code asks the group.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias

from ...offsets_topic import Record
from ...protocol import ErrorCode, RequestContext, TopicPartition
from ..engine.effects import Request
from ..engine.shard import Shard
from ..engine.timers import Timers
from ..settings import GroupSettings
from .durable import Durable, OffsetEntry
from .events import quoted

#: The protocol type of consumers, the only one whose metadata is ever parsed.
CONSUMER: str = "consumer"


class GroupType(Enum):
    """Types of groups, by Kafka's names (KIP-848)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class TopicDirectory:
    """Looks up topics; each function returns None for a topic that does not exist.

    ``names`` returns the names of all topics, ``version`` another object whenever topics have changed,
    ``shows`` whether the sender of a request may know of a topic.
    """

    partition_count_of: Callable[[str], int | None]
    topic_of_id: Callable[[uuid.UUID], str | None]
    id_of_topic: Callable[[str], uuid.UUID | None]
    names: Callable[[], Iterable[str]] = tuple
    version: Callable[[], object] = object
    shows: Callable[[RequestContext, str], bool] = lambda _context, _name: True


#: Directory without topics.
NO_TOPICS: Final = TopicDirectory(lambda _name: None, lambda _id: None, lambda _name: None)


class CommittedTopic(Protocol):
    """A topic of a commit, as a group sees it when it checks the commit."""

    @property
    def name(self) -> str: ...
    @property
    def partitions(self) -> Sequence[CommittedPartition]: ...


class CommittedPartition(Protocol):
    """A partition of a commit."""

    @property
    def partition_index(self) -> int: ...


class ConsumerGroupConfig(NamedTuple):
    """Configs that may be set for a single consumer group, in ms."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class Group(Protocol):
    """A group, whatever its type."""

    type: ClassVar[GroupType]
    group_id: str

    @property
    def generation(self) -> int:
        """Its generation or epoch."""

    @property
    def protocol_type(self) -> str | None:
        """The type of its protocol; None for none."""

    @property
    def state_name(self) -> str:
        """Kafka's name of its state."""

    @property
    def member_count(self) -> int:
        """Number of its members."""

    @property
    def is_empty(self) -> bool:
        """True without members."""

    @property
    def is_idle(self) -> bool:
        """True without members, present or expected: the group may be removed if it has no offsets."""

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        version: int,
        topics: Sequence[CommittedTopic],
    ) -> ErrorCode:
        """Return the error of a commit by this member in this generation (or member epoch); NONE if it
        may.
        """

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Return the error of an OffsetFetch by this member at this epoch; NONE if it may."""

    def why_refused(self, member_id: str, instance_id: str | None, generation: int, error: int) -> str:
        """The reason, in words, why a request's sender is not accepted as a member."""

    def heard_from(self, member_id: str, timers: Timers, now_ms: int) -> None:
        """Called when a member has shown that it is alive."""

    def subscribes_to(self, topic: str) -> bool:
        """Return whether members subscribe to a topic; True if that is uncertain."""

    def offset_age_counts_from(self, topic: str, commit_ms: int) -> int | None:
        """The time in ms from which an offset's age counts; None while it must stay."""

    def tombstones(self) -> tuple[Record, ...]:
        """Records that remove the group from the log, without those of its offsets."""

    def stop_timers(self, timers: Timers) -> None:
        """Stop the group's timers, before it is removed."""


@dataclass(slots=True, eq=False)
class Groups:
    """State of a shard of ``__consumer_offsets``. ``groups`` are those in memory; ``wake`` restores one from
    its records, or from its offsets alone. ``new_id`` returns a new unique string for each member.
    """

    settings: GroupSettings
    new_id: Callable[[], str]
    wake: Callable[[Groups, str], Group]
    topics: TopicDirectory = NO_TOPICS
    #: Assignors of consumer groups: the spec that loads each, by name; the first is the default.
    assignors: Mapping[str, str] = field(default_factory=dict)
    #: Configs that are set for a single group, by Kafka's names.
    configs: Callable[[str], Mapping[str, int]] = lambda _group_id: {}
    durable: Durable = field(default_factory=Durable)
    groups: dict[str, Group] = field(default_factory=dict)
    #: Groups that the retention pass in progress has not visited yet.
    retention_queue: list[str] = field(default_factory=list)
    #: Offsets of deleted topics whose tombstones could not be written, with their values then.
    orphans: dict[tuple[str, TopicPartition], OffsetEntry | bytes] = field(default_factory=dict)
    #: Held heartbeats by group and member, each with its response if nothing changes.
    held: dict[str, dict[str, tuple[Request, Any]]] = field(default_factory=dict)
    #: Ticket of the last write of committed offsets.
    last_commit: int = 0

    def knows(self, group_id: str) -> bool:
        """Return whether the group exists."""
        return group_id in self.groups or self.durable.knows(group_id)

    def find(self, group_id: str) -> Group | None:
        """Find a group in memory, or restore it from the log."""
        group = self.groups.get(group_id)
        if group is None and self.durable.knows(group_id):
            group = self.groups[group_id] = self.wake(self, group_id)
        return group

    def config_of(self, group_id: str) -> ConsumerGroupConfig:
        """Timeouts and intervals of a consumer group: its own, or the broker's."""
        own, settings = self.configs(group_id), self.settings
        return ConsumerGroupConfig(
            own.get("consumer.session.timeout.ms", settings.group_consumer_session_timeout_ms),
            own.get("consumer.heartbeat.interval.ms", settings.group_consumer_heartbeat_interval_ms),
            own.get("consumer.assignment.interval.ms", settings.group_consumer_assignment_interval_ms),
        )

    def group_ids(self) -> list[str]:
        """Every group, those of the log first."""
        return list({**self.durable.group_ids(), **dict.fromkeys(self.groups)})


#: A shard of ``__consumer_offsets``.
GroupShard: TypeAlias = Shard[Groups]


def forget(shard: GroupShard, group_id: str) -> None:
    """Remove a group and its timers from memory; its parked requests must have been answered."""
    group = shard.state.groups.pop(group_id, None)
    if group is not None:
        group.stop_timers(shard.timers)


def why_refused(
    group: Group | None, member_id: str, instance_id: str | None, generation: int, error: int
) -> str:
    """The reason, in words, why a request's sender is not accepted as a member of a group."""
    if group is not None:
        return group.why_refused(member_id, instance_id, generation, error)
    who = f"member {quoted(member_id)}" if member_id else "a sender without a member id"
    return f"{who} speaks of a group that does not exist"
