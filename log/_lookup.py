"""Finding offsets by timestamp (ListOffsets), in steps, because a batch may have millions of records."""

from __future__ import annotations

from ..protocol import BATCH_OVERHEAD, BatchHeader, Codec, CorruptBatchError, verify_batch
from ..protocol.records import locate_record
from ._errors import CorruptLogError
from ._indexes import NO_TIMESTAMP
from ._record_checks import RecordWalk, UnreadableRecordError
from ._records import unpack_records
from ._segment import Segment
from ._segments import Segments
from ._steps import Steps

#: Batches and records that are read before other work runs.
STEP_BATCHES = 256
STEP_RECORDS = 256


def find_timestamp(
    segments: Segments, timestamp_ms: int, start_offset: int, end_offset: int
) -> Steps[tuple[int, int, int] | None]:
    """Offset, timestamp and leader epoch of the first record at or after ``start_offset`` whose timestamp is
    ``timestamp_ms`` or later.

    None if every record is older. Between two steps the log may grow and lose segments. Known damage is
    skipped; raises CorruptLogError for a batch whose checksum is wrong, and OSError.
    """
    due = start_offset
    while True:
        try:
            found = _batch_from(segments, due, timestamp_ms)
        except CorruptLogError as error:
            if not segments.learn(error, end_offset):
                raise
            continue
        if found is None:
            return None
        segment, at, header = found
        if header.max_timestamp_ms >= timestamp_ms:
            record = yield from _first_record(segment, at, header, timestamp_ms, start_offset)
            if record is not None:
                return *record, header.leader_epoch
        due = header.next_offset
        yield None


def find_newest(segments: Segments) -> Steps[tuple[int, int] | None]:
    """Offset and timestamp of the first record with the largest timestamp; None if none has one."""
    newest = max(segments.all, key=lambda segment: segment.max_timestamp[0])
    timestamp_ms, last_offset = newest.max_timestamp
    if timestamp_ms == NO_TIMESTAMP:
        return None
    for at, header in newest.headers(newest.start_for(last_offset)):
        if header.max_timestamp_ms == timestamp_ms:
            found = yield from _first_record(newest, at, header, timestamp_ms, header.base_offset)
            # a producer's header may claim a time that none of its records has
            return (header.last_offset, timestamp_ms) if found is None else found
    return None


def _batch_from(segments: Segments, due: int, timestamp_ms: int) -> tuple[Segment, int, BatchHeader] | None:
    """Find the first batch from ``due`` on that may have such a record, or the last of STEP_BATCHES."""
    looked = 0
    for segment in segments.since(due):
        if segment.max_timestamp[0] < timestamp_ms:
            continue
        first = max(segment.time_index.offset_before(timestamp_ms), due)
        for at, header in segment.headers(segment.start_for(first)):
            if header.last_offset < due:
                continue
            looked += 1
            if header.max_timestamp_ms >= timestamp_ms or looked == STEP_BATCHES:
                return segment, at, header
    return None


def _first_record(
    segment: Segment, position: int, header: BatchHeader, timestamp_ms: int, start_offset: int
) -> Steps[tuple[int, int] | None]:
    """Offset and timestamp of the batch's first record at or after ``start_offset`` that is not older.

    A batch that cannot be decoded although its checksum is right counts as one record at its base offset with
    its largest timestamp.
    """
    data = segment.read(position, position + header.size)
    try:
        plain = yield from unpack_records(header, memoryview(data)[BATCH_OVERHEAD:])
        return (yield from _first_of(plain, header, timestamp_ms, start_offset))
    except (CorruptBatchError, UnreadableRecordError):
        try:
            verify_batch(data, header)
        except CorruptBatchError as error:
            raise CorruptLogError(segment.file.path, position, str(error)) from error
        return (header.base_offset, header.max_timestamp_ms) if header.base_offset >= start_offset else None


def _first_of(
    plain: bytes, header: BatchHeader, timestamp_ms: int, start_offset: int
) -> Steps[tuple[int, int] | None]:
    walk = RecordWalk(plain, header.record_count, packed=header.codec != Codec.NONE)
    done = False
    while not done:
        at = walk.at
        done = walk.advance(STEP_RECORDS)
        newest_ms = header.base_timestamp_ms + walk.newest
        while (header.log_append_time or newest_ms >= timestamp_ms) and at < walk.at:
            later_ms, delta, _, _, _, _, _, at = locate_record(plain, at)
            time_ms = (
                header.max_timestamp_ms if header.log_append_time else header.base_timestamp_ms + later_ms
            )
            if time_ms >= timestamp_ms and header.base_offset + delta >= start_offset:
                return header.base_offset + delta, time_ms
        walk.forget_times()
        yield None
    return None
