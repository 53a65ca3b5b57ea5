"""What a shard knows from its log alone: groups as last stored, committed offsets, open transactions.

:meth:`Durable.apply` is the only thing that changes it, one record at a time, whether the record was just
appended or is read back at the start. So a shard that was loaded knows what the one that wrote knew.

Order does not matter more than it must: after compaction an offset may stand before its group's record, or
the group's tombstone may be gone. Offsets and groups are therefore kept apart; a group with offsets and no
record is a *simple* one, used for storage only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..offsets_topic import NONE, GroupDeleted, GroupStored, OffsetCommitted, OffsetDeleted, Record
from ..protocol import TopicPartition

# makes a named tuple in half the time of calling its class
_new: Final = tuple.__new__


class OffsetEntry(NamedTuple):
    """A committed offset; ``record_offset`` is where its record lies in the log."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    record_offset: int


@dataclass(slots=True)
class Durable:
    """``stored`` by group; ``offsets`` by group and partition; ``pending`` by producer id, group and
    partition (offsets of open transactions); ``open_producers`` by group, which outlives its pending
    offsets, with the time in ms of the first one.
    """

    stored: dict[str, GroupStored] = field(default_factory=dict)
    offsets: dict[str, dict[TopicPartition, OffsetEntry]] = field(default_factory=dict)
    pending: dict[int, dict[str, dict[TopicPartition, OffsetEntry]]] = field(default_factory=dict)
    open_producers: dict[str, dict[int, int]] = field(default_factory=dict)
    # one object for a partition, however many groups commit it
    _keys: dict[tuple[str, int], TopicPartition] = field(default_factory=dict, compare=False, repr=False)

    def knows(self, group_id: str) -> bool:
        """Whether the log has anything of this group."""
        return group_id in self.stored or group_id in self.offsets or group_id in self.open_producers

    def group_ids(self) -> dict[str, None]:
        """All groups of the log, in a stable order."""
        return dict.fromkeys((*self.stored, *self.offsets, *self.open_producers))

    def offset(self, group_id: str, partition: TopicPartition) -> OffsetEntry | None:
        """The committed offset of a partition."""
        offsets = self.offsets.get(group_id)
        return None if offsets is None else offsets.get(partition)

    def is_pending(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether an open transaction holds an offset for this partition."""
        return any(
            partition in self.pending[producer_id].get(group_id, ())
            for producer_id in self.open_producers.get(group_id, ())
        )

    def partitions_of(self, group_id: str) -> dict[TopicPartition, None]:
        """Partitions with an offset of the group, committed or in an open transaction."""
        partitions = dict.fromkeys(self.offsets.get(group_id, ()))
        for producer_id in self.open_producers.get(group_id, ()):
            partitions.update(dict.fromkeys(self.pending[producer_id].get(group_id, ())))
        return partitions

    def apply_all(self, records: Iterable[Record], record_offset: int) -> None:
        """Take in the records of a write, the first of them at ``record_offset``: ``apply`` of each."""
        for record in records:
            if type(record) is OffsetCommitted:
                self._commit(self.offsets, record, record_offset)
            else:
                self.apply(record, record_offset)
            record_offset += 1

    def apply(self, record: Record, record_offset: int, producer_id: int = NONE) -> None:
        """Take in one record. ``producer_id`` is that of a transactional batch, NONE for a plain one."""
        if type(record) is OffsetCommitted:
            if producer_id == NONE:
                self._commit(self.offsets, record, record_offset)
            else:
                since = self.open_producers.setdefault(record.group, {})
                since.setdefault(producer_id, record.commit_timestamp_ms)
                self._commit(self.pending.setdefault(producer_id, {}), record, record_offset)
        elif type(record) is OffsetDeleted:
            self._delete_offset(record.group, TopicPartition(record.topic, record.partition))
        elif type(record) is GroupStored:
            self.stored[record.group] = record
        elif type(record) is GroupDeleted:
            self.stored.pop(record.group, None)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Take in a marker. A plain commit that lies later in the log than a pending one stays."""
        for group_id, entries in self.pending.pop(producer_id, {}).items():
            producers = self.open_producers[group_id]
            del producers[producer_id]
            if not producers:
                del self.open_producers[group_id]
            if committed and entries:
                offsets = self.offsets.setdefault(group_id, {})
                for partition, entry in entries.items():
                    stored = offsets.get(partition)
                    if stored is None or entry.record_offset > stored.record_offset:
                        offsets[partition] = entry

    def _commit(
        self,
        by_group: dict[str, dict[TopicPartition, OffsetEntry]],
        record: OffsetCommitted,
        record_offset: int,
    ) -> None:
        group, topic, partition, offset, leader_epoch, metadata, commit_ms, expire_ms = record
        offsets = by_group.get(group)
        if offsets is None:
            offsets = by_group[group] = {}
        # a plain tuple finds the same entry as the named one
        key = self._keys.get((topic, partition))
        if key is None:
            key = TopicPartition(topic, partition)
            self._keys[key] = key
        fields = (offset, leader_epoch, metadata, commit_ms, expire_ms, record_offset)
        offsets[key] = _new(OffsetEntry, fields)

    def _delete_offset(self, group_id: str, partition: TopicPartition) -> None:
        offsets = self.offsets.get(group_id)
        if offsets is not None and offsets.pop(partition, None) is not None and not offsets:
            del self.offsets[group_id]
        for producer_id in self.open_producers.get(group_id, ()):
            # the empty entry stays: it is the link from the group to its open transaction (KAFKA-19164)
            self.pending[producer_id].get(group_id, {}).pop(partition, None)
