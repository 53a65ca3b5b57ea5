"""Durable state of a shard, derived from its log alone: groups, committed offsets, open transactions.

Only records change it, whether they were just appended or are loaded at the start (``Shard.apply``). So a
loaded shard has the same state as the shard that wrote the records. Plain commits that are loaded stay
encoded until they are read, which most never are: :meth:`Durable.load_batch`.

It depends on the order of records as little as possible: after compaction an offset may come before its
group's record, or the group's tombstone may be gone. Offsets and groups are therefore kept apart; a group
with offsets and no record is a *simple* one, used only to store offsets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, Protocol, TypeAlias, TypeVar, cast

from ...offsets_topic import (
    NONE,
    Commits,
    Known,
    OffsetCommitted,
    OffsetDeleted,
    OtherRecord,
    decode_commit_value,
    enter_commits,
)
from ...protocol import TopicPartition
from ...protocol.named_tuples import NamedTuple
from ..engine.loader import LoadedBatch
from ..engine.shard import LoadedRecord
from .group_type import GroupType


class OffsetEntry(NamedTuple):
    """A committed offset; ``record_offset`` is the offset of its record in the log. ``topic_id`` has 16
    bytes; none if the record does not say it.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    record_offset: int
    topic_id: bytes = b""

    def is_of(self, topic_id: bytes) -> bool:
        """Return whether it may be of the topic with this id: a topic that was made again has another."""
        return not self.topic_id or not topic_id or self.topic_id == topic_id


#: By partition. A loaded entry that has not been read yet is still the encoded value of its record.
Entries: TypeAlias = dict[TopicPartition, OffsetEntry | bytes]

# record offset of an entry that was loaded encoded: it is before every transaction that is open now
_UNPLACED: Final = -1
_NO_OFFSETS: Final[Entries] = {}

#: Number of remembered partitions at which those that are no longer committed are dropped.
_KEYS: Final = 10_000

V = TypeVar("V")


class OffsetsBatch(LoadedBatch, Protocol):
    """A batch of the offsets topic; ``load_commits`` enters plain commits encoded, each to be decoded when it
    is asked for, and raises CorruptBatchError.
    """

    def load_commits(self, by_group: Commits, known: Known, /) -> Iterator[OtherRecord]:
        """Apply the plain commits of the batch; return what is left of it."""


class OpenTransaction(NamedTuple):
    """One producer's transaction in one group: its age in ms since its first offset, and its partitions.

    While it is open, an OffsetFetch that requires stable offsets gets UNSTABLE_OFFSET_COMMIT for these
    partitions, and the group is not removed. The log sets it no time limit, so its age is reported.
    """

    group_id: str
    producer_id: int
    age_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(slots=True)
class Durable:
    """``by_type`` has what each type keeps of its groups' records, by the type's name and by group (see
    ``of_type``); ``offsets`` by group and partition; ``pending`` by producer id, group and partition (offsets
    of open transactions); ``open_producers`` by group, which outlives its pending offsets, with the time in
    ms of the first one.
    """

    by_type: dict[str, dict[str, object]] = field(default_factory=dict)
    offsets: dict[str, Entries] = field(default_factory=dict)
    pending: dict[int, dict[str, Entries]] = field(default_factory=dict)
    open_producers: dict[str, dict[int, int]] = field(default_factory=dict)
    #: Groups that had offsets in a transaction, committed or not: as in Apache Kafka they exist until they
    #: are removed, or compaction leaves none of their records.
    from_transactions: set[str] = field(default_factory=set, compare=False)
    # one object for each partition with an offset, however many groups commit it
    _keys: dict[tuple[str, int], TopicPartition] = field(default_factory=dict, compare=False, repr=False)
    _most_keys: int = field(default=_KEYS, compare=False, repr=False)
    #: The same objects, by their bytes in a record's key, while a log is loaded.
    encoded_keys: Known = field(default_factory=dict, compare=False, repr=False)

    def knows(self, group_id: str) -> bool:
        """Return whether the log has records of this group."""
        # a loop takes a third of the time of any()
        for records in self.by_type.values():
            if group_id in records:
                return True
        return (
            group_id in self.offsets or group_id in self.from_transactions or any(self._pending_of(group_id))
        )

    def of_type(self, group_type: GroupType[V]) -> dict[str, V]:
        """What the log says of the groups of a type, by group. Only the type's kind changes it."""
        return cast("dict[str, V]", self.by_type.setdefault(group_type.name, {}))

    def group_ids(self) -> dict[str, None]:
        """All groups of the log, in a stable order."""
        pending = (group_id for group_id in self.open_producers if any(self._pending_of(group_id)))
        known = chain(*self.by_type.values(), self.offsets, self.from_transactions, pending)
        return dict.fromkeys(known)

    def offset(self, group_id: str, partition: TopicPartition) -> OffsetEntry | None:
        """The committed offset of a partition."""
        entry = self.offsets.get(group_id, _NO_OFFSETS).get(partition)
        return _decode_offset(entry) if isinstance(entry, bytes) else entry

    def committed_offsets(self, group_id: str) -> Iterator[tuple[TopicPartition, OffsetEntry]]:
        """Every committed offset of a group."""
        for partition, entry in self.offsets.get(group_id, _NO_OFFSETS).items():
            yield partition, _decode_offset(entry) if isinstance(entry, bytes) else entry

    def is_pending(self, group_id: str, partition: TopicPartition) -> bool:
        """Return whether an open transaction holds an offset for this partition."""
        return any(partition in entries for entries in self._pending_of(group_id))

    def partitions_of(self, group_id: str) -> dict[TopicPartition, None]:
        """Partitions for which the group has an offset, committed or in an open transaction."""
        partitions = dict.fromkeys(self.offsets.get(group_id, ()))
        for entries in self._pending_of(group_id):
            partitions.update(dict.fromkeys(entries))
        return partitions

    def partitions_with(self, topics: Collection[str]) -> dict[str, dict[TopicPartition, None]]:
        """By group, the partitions of these topics with an offset, committed or in an open transaction.

        Also drops these partitions from its cache: the topics are gone.
        """
        keys = _pop_topics(self._keys, topics)
        found: dict[str, dict[TopicPartition, None]] = {}
        for by_group in (self.offsets, *self.pending.values()):
            for group_id, entries in by_group.items():
                # isdisjoint iterates over the smaller one: most groups have read none of the topics
                if not entries.keys().isdisjoint(keys):
                    found.setdefault(group_id, {}).update(dict.fromkeys(k for k in entries if k in keys))
        return found

    # --- how records are taken in, those of one type that lie one behind the other --------------------------

    def commit(self, records: Sequence[OffsetCommitted], record_offset: int, producer_id: int) -> None:
        """Apply committed offsets; those of a transaction are pending."""
        by_group = self.offsets
        if producer_id != NONE:
            by_group = self.pending.setdefault(producer_id, {})
            for record in records:
                since = self.open_producers.setdefault(record.group, {})
                since.setdefault(producer_id, record.commit_timestamp_ms)
                self.from_transactions.add(record.group)
        enter_commits(records, record_offset, by_group, self._keys, self._partition_key, OffsetEntry)

    def remove_offsets(self, records: Sequence[OffsetDeleted]) -> None:
        """Apply tombstones of offsets."""
        for group_id, topic, number in records:
            partition = TopicPartition(topic, number)
            offsets = self.offsets.get(group_id)
            if offsets is not None and offsets.pop(partition, None) is not None and not offsets:
                del self.offsets[group_id]
            for entries in self._pending_of(group_id):
                # the empty entry stays: it is the link from the group to its open transaction (KAFKA-19164)
                entries.pop(partition, None)

    def load_batch(self, batch: OffsetsBatch) -> Iterator[LoadedRecord]:
        """Apply the plain commits of a loaded batch, and return its other records.

        While a transaction is open every record is returned, since the effect of its marker depends on their
        offsets.
        """
        if self.pending:
            for offset, _, record_key, value in batch.records:
                yield LoadedRecord(offset, record_key, value)
            return
        for other in batch.load_commits(self.offsets, self.encoded_keys):
            yield LoadedRecord(batch.base_offset + other.delta, other.key, other.value)

    def on_loaded(self) -> None:
        """Called when a load is over: from here on partitions are not looked up by their bytes."""
        self._keys.update((key, key) for key in self.encoded_keys.values())
        self.encoded_keys.clear()

    def open_transactions(self, now_ms: int) -> list[OpenTransaction]:
        """Every open transaction, in the order in which its groups were first seen."""
        return [
            OpenTransaction(
                group_id, producer_id, max(now_ms - since_ms, 0), tuple(self.pending[producer_id][group_id])
            )
            for group_id, producers in self.open_producers.items()
            for producer_id, since_ms in producers.items()
        ]

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply a marker. A plain commit that comes later in the log than a pending one stays."""
        for group_id, entries in self.pending.pop(producer_id, {}).items():
            producers = self.open_producers[group_id]
            del producers[producer_id]
            if not producers:
                del self.open_producers[group_id]
            if committed and entries:
                offsets = self.offsets.setdefault(group_id, {})
                for partition, entry in entries.items():
                    stored = offsets.get(partition)
                    # an entry that is still encoded is older than every open transaction
                    assert type(entry) is OffsetEntry, "pending ones are decoded"
                    if type(stored) is not OffsetEntry or entry.record_offset > stored.record_offset:
                        offsets[partition] = entry

    def _pending_of(self, group_id: str) -> Iterator[Entries]:
        """The offsets of a group in each open transaction."""
        for producer_id in self.open_producers.get(group_id, ()):
            yield self.pending[producer_id][group_id]

    def _partition_key(self, topic: str, partition: int) -> TopicPartition:
        if len(self._keys) >= self._most_keys:
            # topics come and go
            held = (self.offsets, *self.pending.values())
            self._keys = {key: key for groups in held for entries in groups.values() for key in entries}
            self._most_keys = max(_KEYS, 2 * len(self._keys))
        key = TopicPartition(topic, partition)
        return self._keys.setdefault(key, key)


def _pop_topics(known: dict[tuple[str, int], TopicPartition], topics: Collection[str]) -> set[TopicPartition]:
    gone = [name for name, key in known.items() if key.topic in topics]
    return {known.pop(name) for name in gone}


def _decode_offset(value: bytes) -> OffsetEntry:
    offset, leader_epoch, commit_ms, topic_id = decode_commit_value(value)
    return OffsetEntry(offset, leader_epoch, "", commit_ms, NONE, _UNPLACED, topic_id)
