"""A group's records in ``__consumer_offsets``, read as a plain topic from its end in windows that grow.

A group's records are found by their keys, so that others are not decoded. Compaction takes all but the last
record of a key with time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from ....client import EARLIEST, LATEST, Cluster
from ....consumer.reading.fetched_records import ChunkReader
from ....offsets_topic import (
    ConsumerGroupRecord,
    CorruptRecordError,
    GroupDeleted,
    GroupRecordType,
    GroupStored,
    ShareGroupRecord,
    TargetAssignment,
    decode,
    group_keys,
    partition_for,
)
from ....protocol import KafkaError, TopicPartition
from ..results import Progress
from .share_records import as_consumer_record

OFFSETS_TOPIC: Final = "__consumer_offsets"

_FIRST_WINDOW, _LARGEST_WINDOW = 2_000, 100_000
_FETCH_BYTES: Final = 4 * 1024 * 1024

#: A classic group is stored whole in one record of each generation, a consumer group in many small ones.
GroupRecord: TypeAlias = GroupStored | GroupDeleted | ConsumerGroupRecord


class StoredRecord(NamedTuple):
    """A record of a group and the time at which it was written. ``shared``: it is that of a share group."""

    timestamp_ms: int
    record: GroupRecord
    shared: bool = False

    @property
    def begins_generation(self) -> bool:
        """Return whether the group has another generation, or epoch, from here on, or is gone."""
        record = self.record
        return not isinstance(record, ConsumerGroupRecord) or record.type is GroupRecordType.EPOCH


@dataclass(frozen=True, slots=True)
class StoredPast:
    """Records of a group, oldest first, and names of topics by the ids in them, of those that exist.

    ``from_start`` says whether the log has no older ones; ``complete`` is False if reading stopped at its
    limit.
    """

    partition: TopicPartition
    records: tuple[StoredRecord, ...]
    complete: bool
    from_start: bool = True
    topics: Mapping[UUID, str] = field(default_factory=dict)


async def read_past(
    cluster: Cluster,
    group: str,
    wanted: int,
    max_offsets: int,
    progress: Progress | None = None,
) -> StoredPast:
    """The records of the last ``wanted`` generations of a group, and what else was read with them; fewer if
    the log begins, or ``max_offsets`` are read, before.

    Raises KafkaError when the topic may not be read, or does not exist (3).
    """
    known = await cluster.metadata([OFFSETS_TOPIC])
    count = len(known.partitions(OFFSETS_TOPIC))
    if not count:
        raise KafkaError(known.errors.get(OFFSETS_TOPIC, 3), f"topic {OFFSETS_TOPIC!r}")
    partition = TopicPartition(OFFSETS_TOPIC, partition_for(group, count))
    first = (await cluster.list_offsets({partition: EARLIEST}))[partition].offset
    end = (await cluster.list_offsets({partition: LATEST}))[partition].offset
    stop = max(first, end - max_offsets)
    found: list[StoredRecord] = []
    window, high, seen = _FIRST_WINDOW, end, 0
    while high > stop and seen < wanted:
        low = max(stop, high - window)
        rows = [row async for row in _read_rows(cluster, partition, group, low, high)]
        seen += sum(row.begins_generation for row in rows)
        found = rows + found
        high, window = low, min(window * 4, _LARGEST_WINDOW)
        if progress is not None:
            progress(end - high, end - stop)
    return StoredPast(
        partition,
        tuple(found),
        complete=high <= first or seen >= wanted,
        from_start=high <= first,
        topics=await _topic_names(cluster, found),
    )


async def _topic_names(cluster: Cluster, rows: Iterable[StoredRecord]) -> Mapping[UUID, str]:
    ids: set[UUID] = set()
    for row in rows:
        value = row.record.value if isinstance(row.record, ConsumerGroupRecord) else None
        if isinstance(value, TargetAssignment):
            ids.update(value.partitions)
    if not ids:
        return {}
    known = (await cluster.metadata_by_id(ids)).topics
    return {found.topic_id: name for name, found in known.items() if found.topic_id in ids}


async def _read_rows(
    cluster: Cluster, partition: TopicPartition, group: str, low: int, high: int
) -> AsyncIterator[StoredRecord]:
    keys, offset = group_keys(group), low
    while offset < high:
        reader = await _fetch_chunk(cluster, partition, offset)
        while records := reader.read():
            for record in records:
                key = record.key
                if key is not None and key.startswith(keys) and low <= record.offset < high:
                    row = _decode_record(record.timestamp_ms, key, record.value)
                    if row is not None:
                        yield row
        if reader.next_offset <= offset:
            return
        offset = reader.next_offset


async def _fetch_chunk(cluster: Cluster, partition: TopicPartition, offset: int) -> ChunkReader:
    async def attempt() -> ChunkReader:
        answer = await cluster.fetch(
            {partition: offset}, max_bytes=_FETCH_BYTES, partition_max_bytes=_FETCH_BYTES, max_wait_ms=0
        )
        if partition not in answer:
            raise KafkaError(7, f"no answer about {partition.topic}-{partition.partition}")
        row = answer[partition]
        if row.error_code:
            raise KafkaError(row.error_code, f"reading {partition.topic}-{partition.partition}")
        return ChunkReader(partition, row.records, offset)

    return await cluster.retrying(attempt)


def _decode_record(timestamp_ms: int, key: bytes, value: bytes | None) -> StoredRecord | None:
    try:
        record = decode(key, value)
    except CorruptRecordError:
        return None
    if isinstance(record, ShareGroupRecord):
        alike = as_consumer_record(record)
        return None if alike is None else StoredRecord(timestamp_ms, alike, shared=True)
    if isinstance(record, (GroupStored, GroupDeleted, ConsumerGroupRecord)):
        return StoredRecord(timestamp_ms, record)
    return None
