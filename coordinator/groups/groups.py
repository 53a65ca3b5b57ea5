"""The groups of one shard, of every type, and the interface that they share.

Offsets are committed, read and expired in the same way for all types of groups; where the type matters, the
code asks the group.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar

from ...offsets_topic import Record
from ...protocol import ErrorCode, RequestContext, TopicPartition
from ...protocol.named_tuples import NamedTuple
from ..engine.effects import NO_PRODUCER, Command, Request
from ..engine.runner import ShardRunner
from ..engine.shard import Kind, Shard
from ..engine.timers import Timers
from ..settings import GroupSettings
from .durable import Durable, OffsetEntry
from .events import quote_text
from .group_config import ConfigValue, GroupConfigTable
from .group_type import EMPTY, GroupType

#: The protocol type of consumers, the only one whose metadata is ever parsed.
CONSUMER: str = "consumer"

T = TypeVar("T")


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


@dataclass(slots=True)
class GroupRequest:
    """A request to describe or delete one group; if ``error`` is not 0 the group is not looked up."""

    group_id: str
    with_operations: bool = False
    error: int = 0


class CommittedTopic(Protocol):
    """A topic of a commit, as a group sees it when it checks the commit."""

    @property
    def name(self) -> str:
        """Name of the topic."""

    @property
    def partitions(self) -> Sequence[CommittedPartition]:
        """Its partitions with their offsets."""


class CommittedPartition(Protocol):
    """A partition of a commit."""

    @property
    def partition_index(self) -> int:
        """Number of the partition."""


class Group(Protocol):
    """A group, whatever its type."""

    type: ClassVar[GroupType[object]]
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

    def is_no_generation(self, generation: int) -> bool:
        """Return whether a negative number stands for no generation in a commit that names no member: as in
        Apache Kafka that depends on the type.
        """

    def check_offset_delete(self) -> ErrorCode:
        """Return the error of an OffsetDelete, NONE if it may: offsets of topics that members subscribe to
        stay in any case.
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


class CommittedGroup(NamedTuple):
    """A group with its committed offsets. ``type`` and ``state`` are Kafka's words."""

    group_id: str
    type: str
    state: str
    member_count: int
    offsets: list[tuple[TopicPartition, OffsetEntry]]


@dataclass(slots=True, eq=False)
class Groups:
    """State of a shard of ``__consumer_offsets``. ``groups`` are those in memory. ``new_id`` returns a new
    unique string for each member.
    """

    settings: GroupSettings
    new_id: Callable[[], str]
    #: All types of groups. Groups with offsets and without a record are of the first.
    kinds: Sequence[GroupKind]
    topics: TopicDirectory = NO_TOPICS
    #: Configs that are set for a single group, by Kafka's names.
    configs: Callable[[str], Mapping[str, ConfigValue]] = lambda _group_id: {}
    durable: Durable = field(init=False)
    groups: dict[str, Group] = field(default_factory=dict)
    #: Groups that the retention pass in progress has not visited yet.
    retention_queue: list[str] = field(default_factory=list)
    #: Offsets of deleted topics whose tombstones could not be written, with their values then.
    orphans: dict[tuple[str, TopicPartition], OffsetEntry | bytes] = field(default_factory=dict)
    #: Ticket of the last write of committed offsets.
    last_commit: int = 0
    _own: dict[type[object], Any] = field(init=False)

    def __post_init__(self) -> None:
        self.durable = Durable({kind.group_type.name: {} for kind in self.kinds})
        states = [kind.new_state(self.settings) for kind in self.kinds if kind.new_state is not None]
        self._own = {type(state): state for state in states}

    def knows(self, group_id: str) -> bool:
        """Return whether the group exists."""
        return group_id in self.groups or self.durable.knows(group_id)

    def find(self, group_id: str) -> Group | None:
        """Find a group in memory, or restore it from the log."""
        group = self.groups.get(group_id)
        if group is None and self.durable.knows(group_id):
            group = self.groups[group_id] = self._restore_group(group_id)
        return group

    def state_of(self, own: type[T]) -> T:
        """The state of the kind that makes such states (``GroupKind.new_state``)."""
        state: T = self._own[own]
        return state

    @contextmanager
    def ahead(self, group_id: str, records: Iterable[Record]) -> Iterator[None]:
        """In the block, what records of one group say counts as stored: they are on their way to the log."""
        durable = self.durable
        known = [(stored, stored.get(group_id)) for stored in durable.by_type.values()]
        from_transactions = group_id in durable.from_transactions
        for stored, value in known:
            if value is not None:
                stored[group_id] = copy(value)
        for record in records:
            for kind in self.kinds:
                if (apply := kind.applies.get(type(record))) is not None:
                    apply(self, (record,), -1, NO_PRODUCER)
        try:
            yield
        finally:
            for stored, value in known:
                if value is None:
                    stored.pop(group_id, None)
                else:
                    stored[group_id] = value
            if from_transactions:
                durable.from_transactions.add(group_id)

    def count_sleeping(self) -> dict[GroupType[object], int]:
        """Number of groups that are only in the log, by type: they have no members."""
        sleeping = self.durable.group_ids().keys() - self.groups.keys()
        counts = {}
        for kind in reversed(self.kinds[1:]):
            own = sleeping & self.durable.of_type(kind.group_type).keys()
            counts[kind.group_type] = len(own)
            sleeping -= own
        counts[self.kinds[0].group_type] = len(sleeping)
        return counts

    def positions_of(self, group_id: str) -> CommittedGroup:
        """How far a group is, as its committed offsets say; it is not brought into memory for that."""
        group = self.groups.get(group_id)
        offsets = list(self.durable.committed_offsets(group_id))
        if group is not None:
            return CommittedGroup(group_id, group.type.name, group.state_name, group.member_count, offsets)
        kinds = (kind for kind in reversed(self.kinds) if group_id in self.durable.of_type(kind.group_type))
        return CommittedGroup(group_id, next(kinds, self.kinds[0]).group_type.name, EMPTY, 0, offsets)

    def _restore_group(self, group_id: str) -> Group:
        """Restore a group from its records. If there are some of a type that it had before, because
        compaction has dropped their tombstones, the later kind in the list counts.
        """
        for kind in reversed(self.kinds):
            stored = self.durable.of_type(kind.group_type).get(group_id)
            if stored is not None:
                return kind.restore(self, group_id, stored)
        return self.kinds[0].restore(self, group_id, None)

    def group_ids(self) -> list[str]:
        """Every group, those of the log first."""
        return list({**self.durable.group_ids(), **dict.fromkeys(self.groups)})


#: A shard of ``__consumer_offsets``.
GroupShard: TypeAlias = Shard[Groups]

#: Handles a request about a group, of the type that the kind is for.
GroupHandler: TypeAlias = Callable[[GroupShard, Any, Request, int], None]


class Feature(NamedTuple):
    """A feature of the cluster (KIP-584) with its highest level."""

    name: str
    highest: int


class CommandWorker(Protocol):
    """Carries out commands of shards, outside of them, and reports each result in steps of the runner."""

    def carry_out(self, runner: ShardRunner[Groups], command: Any, /) -> None:
        """Begin a command; what comes of it is a later step of the shard."""

    async def stop(self) -> None:
        """Give up what is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKind(Kind[Groups]):
    """The table of one type of groups: all that the coordinator and the broker need to know of it.

    ``restore`` makes a group from what durable state keeps of its records (``Durable.of_type``), or, for the
    first kind, from None: a group with offsets only. The kind's ``applies`` keep them, and are for no other
    records. ``new_state`` makes what the kind keeps in each shard (``Groups.state_of``); it raises an error
    of its own for settings that it cannot use. ``commands`` are those that its shards give, with functions
    that make a worker when the first one comes. ``overrides`` are APIs of other kinds, or of all
    types, that groups of this type answer themselves. ``configs`` may be set for a single group of the type.
    With a ``feature`` clients may use the type while the feature's level is not 0: its APIs in the broker
    name it. ``topics_deleted`` is called with the names of deleted topics, and the time in ms.
    """

    group_type: GroupType[object]
    restore: Callable[[Groups, str, Any], Group]
    new_state: Callable[[GroupSettings], object] | None = None
    commands: Mapping[type[Command], Callable[[GroupSettings], CommandWorker]] = field(default_factory=dict)
    overrides: Mapping[int, GroupHandler] = field(default_factory=dict)
    configs: GroupConfigTable | None = None
    feature: Feature | None = None
    topics_deleted: Callable[[GroupShard, Collection[str], int], None] | None = None


def forget_group(shard: GroupShard, group_id: str) -> None:
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
    who = f"member {quote_text(member_id)}" if member_id else "a sender without a member id"
    return f"{who} speaks of a group that does not exist"
