"""Expiry of offsets and groups (KIP-211): the retention pass, and deleted topics.

An offset expires when its group has not used it for ``offsets.retention.minutes``, counted from a time that
depends on the group's type and state (``Group.offset_age_counts_from``).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ...offsets_topic import NONE, OffsetCommitted, OffsetDeleted, Record
from ...protocol import ApiKey, ErrorCode, TopicPartition
from ..engine.timers import TimerKey
from ..groups.durable import OffsetEntry
from ..groups.events import GroupRemoved, OffsetsRemoved
from ..groups.groups import Group, GroupShard, forget_group
from .commit import refuse_topics

#: The timer of the retention pass.
RETENTION: Final = "retention"

# groups checked at a time; the pass continues a millisecond later
_SLICE: Final = 1_000
# groups removed at a time: a few ms
_WRITES: Final = 50


def start(shard: GroupShard, now_ms: int) -> None:
    """Called when the shard is loaded: the first pass comes after one interval."""
    interval_ms = shard.state.settings.offsets_retention_check_interval_ms
    shard.timers.start((RETENTION,), now_ms + interval_ms)


def on_retention_timer(shard: GroupShard, key: TimerKey, now_ms: int) -> None:
    """Check all groups of the shard, some at a time so that requests need not wait.

    Groups with a pending write are left to the next pass.
    """
    groups = shard.state
    if not groups.retention_queue:
        groups.retention_queue = groups.group_ids()[::-1]
    queue, last_ticket = groups.retention_queue, shard.last_ticket + _WRITES
    for _ in range(min(_SLICE, len(queue))):
        group_id = queue.pop()
        group = groups.find(group_id)
        if group is not None and not shard.is_busy(group_id):
            _expire_offsets(shard, group, now_ms)
            if shard.last_ticket >= last_ticket:
                break
    pause_ms = 1 if groups.retention_queue else groups.settings.offsets_retention_check_interval_ms
    shard.timers.start(key, now_ms + pause_ms)


def remove_topics(shard: GroupShard, names: Collection[str]) -> None:
    """Remove the offsets of deleted topics, in every group.

    Commits that are being written are included: the tombstones come after them in the log. Commits that wait
    for the deletion of their group are refused.
    """
    for request in shard.deferred():
        if request.api_key == ApiKey.OFFSET_COMMIT:
            refuse_topics(request.body, request.version, names)
    of_topics = shard.state.durable.partitions_with(names)
    for record in shard.records_in_flight():
        if type(record) is OffsetCommitted and record.topic in names:
            of_topics.setdefault(record.group, {})[TopicPartition(record.topic, record.partition)] = None
    for group_id, partitions in of_topics.items():
        _remove_offsets(shard, group_id, tuple(partitions))


def _remove_offsets(shard: GroupShard, group_id: str, partitions: tuple[TopicPartition, ...]) -> None:
    """Write tombstones of deleted topics' offsets. If they cannot be written, the next retention pass
    retries, unless a new topic of that name has an offset by then.
    """

    def settled(error: ErrorCode, _now_ms: int) -> None:
        if not error:
            shard.tell(OffsetsRemoved(group_id, cause="their topic was deleted", count=len(partitions)))
            return
        offsets = shard.state.durable.offsets.get(group_id, {})
        for partition in partitions:
            if partition in offsets:
                shard.state.orphans[group_id, partition] = offsets[partition]

    shard.append(group_id, tuple(OffsetDeleted(group_id, *key) for key in partitions), settled)


def group_tombstones(shard: GroupShard, group: Group) -> tuple[Record, ...]:
    """Records that remove a group from the log: its offsets first, then itself."""
    group_id = group.group_id
    partitions = shard.state.durable.partitions_of(group_id)
    return (*(OffsetDeleted(group_id, *key) for key in partitions), *group.tombstones())


def _expire_offsets(shard: GroupShard, group: Group, now_ms: int) -> None:
    durable, group_id = shard.state.durable, group.group_id
    expired = [
        key
        for key, entry in durable.committed_offsets(group_id)
        if (_is_expired(shard, group, key, entry, now_ms) or _is_orphan(shard, group_id, key))
        and not durable.is_pending(group_id, key)
    ]
    everything = len(expired) == len(durable.offsets.get(group_id, ()))
    removable = everything and group.is_idle and group_id not in durable.open_producers
    if removable:
        reason = "its offsets expired" if expired else "it has no members and no offsets"
        records = group_tombstones(shard, group)
        shard.block(group_id)
    elif expired:
        reason = "they expired"
        records = tuple(OffsetDeleted(group_id, *key) for key in expired)
    else:
        return

    def settled(error: ErrorCode, _now_ms: int) -> None:
        if removable:
            shard.unblock(group_id)
        if error:
            # the next pass tries again
            return
        if expired:
            shard.tell(OffsetsRemoved(group_id, cause=reason, count=len(expired)))
        if removable:
            forget_group(shard, group_id)
            shard.tell(GroupRemoved(group_id, cause=reason))

    shard.append(group_id, records, settled)


def _is_expired(
    shard: GroupShard, group: Group, key: TopicPartition, entry: OffsetEntry, now_ms: int
) -> bool:
    since_ms = group.offset_age_counts_from(key.topic, entry.commit_timestamp_ms)
    if since_ms is None:
        return False
    if entry.expire_timestamp_ms != NONE:
        return now_ms >= entry.expire_timestamp_ms
    return now_ms - since_ms >= shard.state.settings.offsets_retention_ms


def _is_orphan(shard: GroupShard, group_id: str, partition: TopicPartition) -> bool:
    """Return whether an offset should have been removed with its topic; each is checked once."""
    entry = shard.state.orphans.pop((group_id, partition), None)
    return entry is not None and shard.state.durable.offsets[group_id].get(partition) is entry
