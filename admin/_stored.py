"""The past of a group as ``__consumer_offsets`` has it, read as the plain topic that it is.

Every finished generation leaves one record there with its members and their assignments, until compaction
takes all but the last. The log is read from its end, in windows that grow, until enough generations have been
seen; the records of a group are told by their keys, so that others are not decoded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..client import EARLIEST, LATEST, Cluster
from ..consumer.decode import ChunkReader
from ..offsets_topic import (
    CorruptRecordError,
    GroupDeleted,
    GroupStored,
    decode,
    group_key,
    partition_for,
)
from ..protocol import KafkaError, TopicPartition

OFFSETS_TOPIC: Final = "__consumer_offsets"

#: Most offsets that are read for one answer, unless the caller says otherwise.
MAX_OFFSETS: Final = 500_000

_FIRST_WINDOW, _LARGEST_WINDOW = 2_000, 100_000
_FETCH_BYTES: Final = 4 * 1024 * 1024

#: Told how many offsets have been read, and how many there are at most.
Progress = Callable[[int, int], None]


class StoredGeneration(NamedTuple):
    """A group's record with the time at which it was written; GroupDeleted is the group's end."""

    timestamp_ms: int
    record: GroupStored | GroupDeleted


@dataclass(frozen=True, slots=True)
class StoredPast:
    """Oldest first. ``complete`` is False when reading stopped at its limit, not at the log's start."""

    partition: TopicPartition
    generations: tuple[StoredGeneration, ...]
    complete: bool


async def read_past(
    cluster: Cluster,
    group: str,
    wanted: int,
    max_offsets: int = MAX_OFFSETS,
    progress: Progress | None = None,
) -> StoredPast:
    """The last ``wanted`` records of a group, fewer if the log or ``max_offsets`` end before.

    KafkaError when the topic may not be read, or is not there (3).
    """
    known = await cluster.metadata([OFFSETS_TOPIC])
    count = len(known.partitions(OFFSETS_TOPIC))
    if not count:
        raise KafkaError(known.errors.get(OFFSETS_TOPIC, 3), f"topic {OFFSETS_TOPIC!r}")
    partition = TopicPartition(OFFSETS_TOPIC, partition_for(group, count))
    first = (await cluster.list_offsets({partition: EARLIEST}))[partition].offset
    end = (await cluster.list_offsets({partition: LATEST}))[partition].offset
    stop = max(first, end - max_offsets)
    found: list[StoredGeneration] = []
    window, high = _FIRST_WINDOW, end
    while high > stop and len(found) < wanted:
        low = max(stop, high - window)
        found = [row async for row in _rows(cluster, partition, group, low, high)] + found
        high, window = low, min(window * 4, _LARGEST_WINDOW)
        if progress is not None:
            progress(end - high, end - stop)
    return StoredPast(partition, tuple(found[-wanted:]), complete=high <= first or len(found) >= wanted)


async def _rows(
    cluster: Cluster, partition: TopicPartition, group: str, low: int, high: int
) -> AsyncIterator[StoredGeneration]:
    key, offset = group_key(group), low
    while offset < high:
        reader = await _fetched(cluster, partition, offset)
        while records := reader.read():
            for record in records:
                if record.key == key and low <= record.offset < high:
                    row = _decoded(record.key, record.value)
                    if row is not None:
                        yield StoredGeneration(record.timestamp_ms, row)
        if reader.next_offset <= offset:
            return
        offset = reader.next_offset


async def _fetched(cluster: Cluster, partition: TopicPartition, offset: int) -> ChunkReader:
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


def _decoded(key: bytes, value: bytes | None) -> GroupStored | GroupDeleted | None:
    try:
        record = decode(key, value)
    except CorruptRecordError:
        return None
    return record if isinstance(record, (GroupStored, GroupDeleted)) else None
