"""Compacted logs for tests: batches of keys, compactions, and what a reader finds afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kohort.log import DEDUPE_BUFFER_BYTES, CleanReport, LogConfig, PartitionLog, decode_records
from kohort.protocol import BATCH_OVERHEAD, build_batch, compress, iter_batches
from kohort.protocol._batch import with_payload
from tests.log.batches import NOW_MS, committed

COMPACT = LogConfig(cleanup_policy="compact", segment_bytes=400)


class Found(NamedTuple):
    """A record as a reader gets it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def keyed(
    *records: tuple[str, str | None],
    codec: int = 0,
    timestamp_ms: int = NOW_MS,
    producer_id: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """A batch of records; a value of None is a tombstone. Timestamps rise by one from record to record."""
    plain = build_batch(
        [(key.encode(), None if value is None else value.encode(), ()) for key, value in records],
        timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        base_sequence=sequence,
        transactional=transactional,
    )
    return packed(bytes(plain), codec) if codec else bytes(plain)


def packed(plain: bytes, codec: int) -> bytes:
    """The batch with its records compressed."""
    return bytes(with_payload(plain, codec, compress(codec, plain[BATCH_OVERHEAD:])))


def write(log: PartitionLog, *batches: bytes) -> None:
    """Append batches, each in a segment of its own if the segments are that small."""
    for one in batches:
        log.append(one, now_ms=NOW_MS, from_client=False)
    committed(log)


def compact(
    log: PartitionLog, now_ms: int = NOW_MS, *, memory_bytes: int = DEDUPE_BUFFER_BYTES
) -> CleanReport:
    """A whole compaction, here and now."""
    cleaning = log.begin_cleaning(now_ms, memory_bytes=memory_bytes)
    for stage in cleaning.stages():
        stage.run()
    assert log.end_cleaning(cleaning)
    return cleaning.report


def found(log: PartitionLog, *, committed: bool = False) -> list[Found]:
    """Every record that a reader gets; with ``committed`` as a client of read_committed takes them."""
    records: list[Found] = []
    offset = log.log_start_offset
    while (run := log.read(offset, 1 << 20, committed=committed)).records:
        data = bytes(run.records)
        waiting = sorted(run.aborted, key=lambda entry: entry[1])
        aborting: set[int] = set()
        for position, header in iter_batches(data):
            offset = header.next_offset
            while waiting and waiting[0][1] <= header.last_offset:
                aborting.add(waiting.pop(0)[0])
            batch = [Found(*record) for record in decode_records(data, header, position)]
            if header.control:
                if batch and batch[0].key == b"\0\0\0\0":
                    aborting.discard(header.producer_id)
            elif not (header.transactional and header.producer_id in aborting):
                records += batch
    return records


def values(log: PartitionLog) -> list[tuple[int, str, str | None]]:
    """Offset, key and value of every record."""
    return [
        (record.offset, (record.key or b"").decode(), None if record.value is None else record.value.decode())
        for record in found(log)
    ]


def newest(records: Iterable[Found]) -> dict[bytes | None, tuple[int, bytes | None]]:
    """What a reader from the start ends with: the newest value of each key, tombstones taken out."""
    table: dict[bytes | None, tuple[int, bytes | None]] = {}
    for record in records:
        table[record.key] = (record.offset, record.value)
    return {key: entry for key, entry in table.items() if entry[1] is not None}


def headers(log: PartitionLog) -> list[tuple[int, int, int]]:
    """Base offset, last offset and record count of each batch."""
    out = []
    offset = log.log_start_offset
    while (run := log.read(offset, 1 << 20)).records:
        for _, header in iter_batches(run.records):
            out.append((header.base_offset, header.last_offset, header.record_count))
            offset = header.next_offset
    return out
