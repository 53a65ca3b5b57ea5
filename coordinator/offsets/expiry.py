"""Offsets and groups that nobody needs any more (KIP-211): the retention pass, and deleted topics.

An offset expires when its group has not used it for ``offsets.retention.minutes``, counted from what the
group's state allows to count from. In a rebalance nothing expires: what members subscribe to is not known for
sure then (KAFKA-13636).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...offsets_topic import NONE, GroupDeleted, OffsetDeleted, Record
from ...protocol import ApiKey, ErrorCode, TopicPartition
from ...statemachine import GroupState
from ..classic.group import CONSUMER, Group
from ..engine.timers import RETENTION
from ..events import GroupRemoved, OffsetsRemoved, append_refused
from .commit import refuse_topics

if TYPE_CHECKING:
    from ..durable import OffsetEntry
    from ..engine.shard import Shard

# groups looked at in one go; the pass goes on a millisecond later
_SLICE: Final = 1_000


def on_retention_timer(shard: Shard, now_ms: int) -> None:
    """A pass over all groups of the shard, a slice at a time so that nobody waits for it.

    Groups with a write under way wait for the next pass.
    """
    if not shard.retention_queue:
        shard.retention_queue = shard.group_ids()
    slice_, shard.retention_queue = shard.retention_queue[:_SLICE], shard.retention_queue[_SLICE:]
    for group_id in slice_:
        group = shard.find(group_id)
        if group is not None and not shard.is_busy(group_id):
            _expire(shard, group, now_ms)
    pause_ms = 1 if shard.retention_queue else shard.settings.offsets_retention_check_interval_ms
    shard.timers.start((RETENTION,), now_ms + pause_ms)


def remove_topics(shard: Shard, names: Collection[str]) -> None:
    """Topics were deleted: so are their offsets, in every group.

    Commits that are being written count: the tombstones come behind them in the log. Those that wait for the
    end of a deletion of their group are refused.
    """
    for request in shard.deferred():
        if request.api_key == ApiKey.OFFSET_COMMIT:
            refuse_topics(request.body, request.version, names)
    doomed = shard.durable.partitions_with(names)
    for group_id, partition in shard.commits_in_flight():
        if partition.topic in names:
            doomed.setdefault(group_id, {})[partition] = None
    for group_id, partitions in doomed.items():
        records = tuple(OffsetDeleted(group_id, *key) for key in partitions)
        shard.append(records, AfterTopicDeletion(group_id, tuple(partitions)))


@dataclass(slots=True)
class AfterTopicDeletion:
    """Waits for the tombstones of a deleted topic's offsets; if they are not written, the next pass of the
    retention tries again, unless a new topic of that name has got an offset meanwhile.
    """

    group_id: str
    partitions: tuple[TopicPartition, ...]

    def done(self, shard: Shard, _now_ms: int) -> None:
        count = len(self.partitions)
        shard.note(OffsetsRemoved(self.group_id, cause="their topic was deleted", count=count))

    def failed(self, shard: Shard, error: ErrorCode, _now_ms: int) -> None:
        shard.note(append_refused(self.group_id, error))
        offsets = shard.durable.offsets.get(self.group_id, {})
        for partition in self.partitions:
            if partition in offsets:
                shard.orphans[self.group_id, partition] = offsets[partition]


@dataclass(slots=True)
class AfterExpiry:
    """Waits for tombstones nobody asked for; a failed write is made up for by the next pass."""

    group_id: str
    count: int
    reason: str
    with_group: bool = False

    def done(self, shard: Shard, _now_ms: int) -> None:
        if self.count:
            shard.note(OffsetsRemoved(self.group_id, cause=self.reason, count=self.count))
        if self.with_group:
            shard.forget(self.group_id)
            shard.note(GroupRemoved(self.group_id, cause=self.reason))

    def failed(self, shard: Shard, error: ErrorCode, _now_ms: int) -> None:
        shard.note(append_refused(self.group_id, error))
        shard.unblock(self.group_id)


def group_tombstones(shard: Shard, group_id: str) -> tuple[Record, ...]:
    """What removes a group from the log: its offsets first, then itself."""
    partitions = shard.durable.partitions_of(group_id)
    return (*(OffsetDeleted(group_id, *key) for key in partitions), GroupDeleted(group_id))


def _expire(shard: Shard, group: Group, now_ms: int) -> None:
    durable, group_id = shard.durable, group.group_id
    expired = [
        key
        for key, entry in durable.committed(group_id)
        if (_is_expired(shard, group, key, entry, now_ms) or shard.is_orphan(group_id, key))
        and not durable.is_pending(group_id, key)
    ]
    everything = len(expired) == len(durable.offsets.get(group_id, ()))
    # an id that was handed out a moment ago will come back: such a group is not abandoned
    idle = group.state is GroupState.EMPTY and not group.pending_join
    removable = everything and idle and group_id not in durable.open_producers
    if removable:
        reason = "its offsets expired" if expired else "it has no members and no offsets"
        records = group_tombstones(shard, group_id)
        shard.block(group_id)
        shard.append(records, AfterExpiry(group_id, len(expired), reason, with_group=True))
    elif expired:
        records = tuple(OffsetDeleted(group_id, *key) for key in expired)
        shard.append(records, AfterExpiry(group_id, len(expired), "they expired"))


def _is_expired(shard: Shard, group: Group, key: TopicPartition, entry: OffsetEntry, now_ms: int) -> bool:
    base_ms = entry.commit_timestamp_ms
    if group.protocol_type is None:
        pass  # a simple group: each offset by its own age
    elif group.state is GroupState.EMPTY:
        # a commit of an administrator into an empty group is younger than its state
        base_ms = max(base_ms, group.state_timestamp_ms)
    elif (
        group.state is not GroupState.STABLE
        or group.protocol_type != CONSUMER
        or group.subscribes_to(key.topic)
    ):
        return False
    if entry.expire_timestamp_ms != NONE:
        return now_ms >= entry.expire_timestamp_ms
    return now_ms - base_ms >= shard.settings.offsets_retention_ms
