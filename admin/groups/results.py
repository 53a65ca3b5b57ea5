"""Results of :class:`~kohort.admin.GroupAdmin`; the command line's JSON has the same names.

Offsets are the next offset to read; None stands for "there is none" or "cannot be known". Times are in
milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from ...protocol import JsonObject, TopicPartition

#: Default for the most offsets that one history reads.
MAX_OFFSETS: Final = 500_000

#: The type of share groups (KIP-932), which is their protocol type, too.
SHARE: Final = "share"

#: Called with the number of offsets read so far, and the most that will be read.
Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A row of ListGroups. ``state`` is None before Kafka 2.6, ``group_type`` before 3.8 (KIP-518, KIP-848).

    ``protocol_type`` is "consumer" for consumers, "" for a group that only ever had offsets committed.
    """

    group: str
    protocol_type: str
    state: str | None
    group_type: str | None
    coordinator: int


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The broker that coordinates a group."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member as the coordinator knows it.

    ``assignment`` is None if it cannot be read: the protocol type is another, or the bytes are not a
    consumer's assignment. In a consumer group (KIP-848) ``epoch`` is the member's epoch, ``target`` its
    target assignment, and ``protocol`` the one it speaks; elsewhere they are None. A share group's member
    (KIP-932) has no target: nothing waits for it to give partitions up.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...] | None
    epoch: int | None = None
    target: tuple[TopicPartition, ...] | None = None
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    rack: str | None = None
    protocol: str | None = None

    @property
    def owner(self) -> str:
        """The most lasting name: the instance id, which survives restarts, else the member id."""
        return self.instance_id or self.member_id


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """A partition that the group has an offset for, or that a member holds.

    ``lag`` is ``end_offset - committed_offset``, None unless both are known; ``member_id`` is None for a
    partition that no member holds. ``end_offset`` is None for a topic that is gone or may not be seen.
    """

    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    lag: int | None
    member_id: str | None
    metadata: str = ""


class HeldRecords(NamedTuple):
    """The number of records that a member of a share group has now."""

    member: str
    records: int


class DeliveredRecords(NamedTuple):
    """The number of records that were given to a member so often."""

    delivery_count: int
    records: int


@dataclass(frozen=True, slots=True)
class RecordsInFlight:
    """Records of a share partition between its start offset and ``end_offset``, the first that was never
    given to a member, as a kohort broker knows them.

    Members have those in ``held``; ``available`` are to be given again, ``done`` are done, and
    ``deliveries`` count all but these by the number of their deliveries. ``rejected``, ``exhausted`` (their
    last delivery failed) and ``lost_locks`` count what happened since the leader has the share partition in
    memory. The start offset stands still since ``stalled_since_ms``; None if it does not stall.
    """

    end_offset: int
    held: tuple[HeldRecords, ...]
    available: int
    done: int
    deliveries: tuple[DeliveredRecords, ...]
    rejected: int
    exhausted: int
    lost_locks: int
    stalled_since_ms: int | None


@dataclass(frozen=True, slots=True)
class ShareOffsets:
    """A partition that a share group (KIP-932) has state for, or that a member reads.

    All records below ``start_offset`` are done; None if nothing was stored yet. ``lag`` is the number of
    records that are not done, those that members have now among them; None if the broker does not say.
    ``end_offset`` is None for a topic that is gone or may not be seen. ``members`` are ids. ``in_flight`` is
    None where the broker does not tell, or nobody reads.
    """

    topic: str
    partition: int
    start_offset: int | None
    end_offset: int | None
    lag: int | None
    members: tuple[str, ...]
    in_flight: RecordsInFlight | None = None


@dataclass(frozen=True, slots=True)
class HoldUp:
    """A member waits for partitions that another one has not given up yet, for ``since_ms`` at least (None if
    the broker keeps no events). Members are ids.
    """

    member: str
    waits_for: str
    partitions: tuple[TopicPartition, ...]
    since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group now. A group that does not exist has the state "Dead". ``notes`` say what is unknown.

    A consumer group (KIP-848) has an ``epoch`` and the epoch of its target; ``hold_ups`` list members that
    wait for others. A share group (KIP-932) has epochs too, and ``shared`` in place of ``partitions``.
    """

    group: str
    state: str
    protocol_type: str
    protocol: str
    group_type: str | None
    coordinator: Coordinator
    members: tuple[MemberDescription, ...]
    partitions: tuple[PartitionOffsets, ...] = ()
    notes: tuple[str, ...] = ()
    epoch: int | None = None
    target_epoch: int | None = None
    hold_ups: tuple[HoldUp, ...] = ()
    shared: tuple[ShareOffsets, ...] = ()

    @property
    def exists(self) -> bool:
        """Whether the group exists: Kafka describes one that does not as "Dead"."""
        return self.state != "Dead"

    @property
    def members_known(self) -> bool:
        """Return whether ``members`` is complete: of groups of unknown types no members are read."""
        return self.group_type in (None, "classic") or self.epoch is not None

    @property
    def total_lag(self) -> int | None:
        """The sum of the lags that are known; None if none is."""
        lags = [*(row.lag for row in self.partitions), *(row.lag for row in self.shared)]
        known = [lag for lag in lags if lag is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A partition in which a group waits for the end of an open transaction.

    ``read_committed`` consumers stop at ``stable_offset``, ``records`` offsets before the end; both are None
    if the group's own committed offset is in the transaction. ``transactional_ids`` have a transaction open
    there, for at most ``open_ms``; if there are none, no coordinator will end the transaction.
    """

    topic: str
    partition: int
    stable_offset: int | None
    records: int | None
    transactional_ids: tuple[str, ...]
    open_ms: int | None


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """One partition of a reset; ``note`` says why ``new_offset`` is None or differs from the request."""

    topic: str
    partition: int
    current_offset: int | None
    new_offset: int | None
    earliest_offset: int | None
    end_offset: int | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """Effect of a reset, planned or done (``executed``). ``refusal`` says why it cannot be done now.

    ``group_type`` is "share" where start offsets of a share group are reset, else None.
    """

    group: str
    state: str
    executed: bool
    refusal: str | None
    changes: tuple[OffsetChange, ...]
    group_type: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One event of the coordinator. ``kind`` is its class; ``details`` holds its other fields."""

    sequence: int
    timestamp_ms: int
    kind: str
    generation: int
    cause: str
    member: str
    client_id: str
    client_host: str
    details: JsonObject = field(default_factory=dict)


class PartitionMove(NamedTuple):
    """A partition whose owner changed. Owners are instance ids or member ids, None for no owner."""

    topic: str
    partition: int
    from_owner: str | None
    to_owner: str | None


@dataclass(frozen=True, slots=True)
class Generation:
    """A completed rebalance. None stands for what the source does not say.

    ``duration_ms`` runs from the first cause to ``timestamp_ms``; the first ``join_ms`` of it, until all had
    joined. ``state`` is Stable, Empty, or Dead if the group was removed. ``moves`` is None if assignments
    cannot be read: another protocol type, or no earlier record to compare with. ``slowest`` is the owner that
    took longest to give up its partitions, ``slowest_ms``: in consumer groups only. In a share group
    (``shared``) partitions have many owners: a move names one that got a partition, or one that lost it.
    """

    generation: int
    timestamp_ms: int
    state: str
    cause: str | None = None
    member: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    duration_ms: int | None = None
    join_ms: int | None = None
    protocol: str | None = None
    leader: str | None = None
    members: int = 0
    members_before: int | None = None
    joined: tuple[str, ...] | None = None
    left: tuple[str, ...] | None = None
    moves: tuple[PartitionMove, ...] | None = None
    partitions_moved: int | None = None
    slowest: str | None = None
    slowest_ms: int | None = None
    shared: bool = False

    @property
    def every_move(self) -> bool:
        """Return whether ``moves`` is complete: a broker's events list only the first of many."""
        if self.moves is None:
            return self.state == "Empty" and self.members_before == 0
        return (self.partitions_moved or 0) <= sum(move.to_owner is not None for move in self.moves)


class TimeStretch(NamedTuple):
    """A stretch of time; ``until_ms`` -1: until now."""

    from_ms: int = 0
    until_ms: int = -1

    def has(self, timestamp_ms: int) -> bool:
        """Return whether a time is in it."""
        return self.from_ms <= timestamp_ms and (self.until_ms < 0 or timestamp_ms <= self.until_ms)


class LagPoint(NamedTuple):
    """The lag of a group at a time: unread ``records``, and since when the oldest waits. None: unknown."""

    timestamp_ms: int
    records: int | None = None
    age_ms: int | None = None
    members: int | None = None


@dataclass(frozen=True, slots=True)
class GroupHistory:
    """History of a group. ``source`` is "coordinator" (events with causes), "offsets topic" (records), or
    "recording" (a folder).

    ``unknown`` says in words what this source lacks. ``entries`` and ``generations`` are oldest first.
    ``gaps`` are stretches in which nobody recorded, ``lag`` the lags that were recorded, oldest first.
    """

    group: str
    source: str
    entries: tuple[HistoryEntry, ...]
    generations: tuple[Generation, ...]
    unknown: tuple[str, ...] = ()
    gaps: tuple[TimeStretch, ...] = ()
    lag: tuple[LagPoint, ...] = ()
