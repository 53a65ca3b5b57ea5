"""Finding offsets by time (ListOffsets)."""

from __future__ import annotations

from collections.abc import Sequence

from ..protocol import BatchHeader, CorruptBatchError, verify_batch
from ._errors import CorruptLogError
from ._records import Record, decode_records
from ._segment import Segment
from ._timeindex import NO_TIMESTAMP


def find_timestamp(
    segments: Sequence[Segment], timestamp_ms: int, start_offset: int
) -> tuple[int, int, int] | None:
    """Offset, timestamp and leader epoch of the first record at or behind ``start_offset`` that is not older.

    None if every record is older. Raises CorruptLogError and OSError.
    """
    for segment in segments:
        if segment.max_timestamp[0] < timestamp_ms:
            continue
        position = segment.start_for(segment.time_index.offset_before(timestamp_ms))
        for at, header in segment.headers(position):
            if header.max_timestamp_ms < timestamp_ms or header.last_offset < start_offset:
                continue
            for offset, timestamp, _, _ in _records(segment, at, header):
                if timestamp >= timestamp_ms and offset >= start_offset:
                    return offset, timestamp, header.leader_epoch
    return None


def find_newest(segments: Sequence[Segment]) -> tuple[int, int] | None:
    """Offset and timestamp of the first record with the largest timestamp; None if none has one."""
    newest = max(segments, key=lambda segment: segment.max_timestamp[0])
    timestamp_ms, last_offset = newest.max_timestamp
    if timestamp_ms == NO_TIMESTAMP:
        return None
    for at, header in newest.headers(newest.start_for(last_offset)):
        if header.max_timestamp_ms == timestamp_ms:
            for offset, timestamp, _, _ in _records(newest, at, header):
                if timestamp == timestamp_ms:
                    return offset, timestamp
            # a producer's header may claim a time that none of its records has
            return header.last_offset, timestamp_ms
    return None


def _records(segment: Segment, position: int, header: BatchHeader) -> list[Record]:
    """The records of a batch. What a producer sent that cannot be read, though its checksum is right, counts
    as one record at the batch's base offset with its newest time.
    """
    data = segment.read(position, position + header.size)
    try:
        return decode_records(data, header)
    except CorruptBatchError:
        try:
            verify_batch(data, header)
        except CorruptBatchError as error:
            raise CorruptLogError(segment.file.path, position, str(error)) from error
        return [(header.base_offset, header.max_timestamp_ms, None, None)]
