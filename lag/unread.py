"""What is unread in a partition: offsets, and the first record in fetched batches."""

from __future__ import annotations

from typing import Final

from ..protocol import BATCH_OVERHEAD, BatchHeader, CorruptBatchError, decompress, parse_batch_header
from ..protocol.named_tuples import NamedTuple
from ..protocol.records import locate_record

NO_OFFSET: Final = "no offset is committed"
NO_END: Final = "the end of the log is not known: the topic is gone, has no leader, or may not be seen"
BEYOND_END: Final = (
    "the offset lies beyond the end of the log: records were lost, or the topic was made again"
)

#: What a batch may have that is read in less than a millisecond.
_LARGE_BYTES, _LARGE_RECORDS = 64 << 10, 500

#: Timestamp of a record that has none.
_NO_TIME: Final = -1


class Unread(NamedTuple):
    """Offsets that a group has not read: ``records`` of them, from ``first`` on; None if that is not known,
    ``note`` says why. ``deleted`` more were deleted unread.
    """

    records: int | None
    first: int | None
    deleted: int = 0
    note: str = ""


def measure_unread(position: int | None, start: int | None, end: int | None) -> Unread:
    """Return what is unread from the offset ``position`` on, in a log with records from ``start`` (None: not
    known) up to ``end``.
    """
    if position is None:
        return Unread(None, None, note=NO_OFFSET)
    if end is None:
        return Unread(None, None, note=NO_END)
    if position > end:
        return Unread(None, None, note=BEYOND_END)
    first = position if start is None else min(max(position, start), end)
    return Unread(end - first, first, first - position)


class Looked(NamedTuple):
    """The result of a look for a record. ``is_found``: it is at ``offset`` and was written at
    ``timestamp_ms``, None if it does not say. Otherwise go on at ``offset``; if that is where the look began,
    more bytes are needed.
    """

    offset: int
    is_found: bool = False
    timestamp_ms: int | None = None


def find_oldest(batches: bytes | bytearray | memoryview, offset: int, *, quick: bool = False) -> Looked:
    """Find the first record at ``offset`` or behind it; gaps and markers of transactions are passed.

    ``batches`` may begin before it, and break off. Where it has to be ``quick``, of a large batch that begins
    before the offset only the header is read, and the time of its first record taken. Batches of Kafka 0.10
    and before are not read: a record without a timestamp is found where one begins.
    """
    position = 0
    while len(batches) - position >= BATCH_OVERHEAD:
        try:
            header = parse_batch_header(batches, position)
        except CorruptBatchError:
            return Looked(offset, is_found=True)
        if header.last_offset < offset or header.control or not header.record_count:
            offset = max(offset, header.next_offset)
            position += header.size
            continue
        is_large = header.size > _LARGE_BYTES or header.record_count > _LARGE_RECORDS
        time_ms = _known_time(header, offset, about=quick and is_large)
        if time_ms is not None:
            return Looked(max(offset, header.base_offset), is_found=True, timestamp_ms=_timestamp(time_ms))
        if len(batches) - position < header.size:
            break
        found = _find_in_batch(batches, position, header, offset)
        if found is not None:
            return found
        # compaction took the last records of the batch
        offset = header.next_offset
        position += header.size
    return Looked(offset)


def _known_time(header: BatchHeader, offset: int, *, about: bool) -> int | None:
    """The time of the first record from ``offset`` on, or ``about`` that time, if the header tells it."""
    if header.log_append_time:
        return header.max_timestamp_ms
    is_first = header.base_offset >= offset and header.record_count == header.last_offset_delta + 1
    return header.base_timestamp_ms if (is_first or about) and not header.has_delete_horizon else None


def _find_in_batch(
    batches: bytes | bytearray | memoryview, position: int, header: BatchHeader, offset: int
) -> Looked | None:
    """The first record of a whole batch from ``offset`` on; None if there is none."""
    payload = memoryview(batches)[position + BATCH_OVERHEAD : position + header.size]
    try:
        data = decompress(header.codec, payload)
        at = 0
        for _ in range(header.record_count):
            later_ms, delta, *_, at = locate_record(data, at)
            if header.base_offset + delta >= offset:
                time_ms = _timestamp(header.base_timestamp_ms + later_ms)
                return Looked(header.base_offset + delta, is_found=True, timestamp_ms=time_ms)
    except Exception:  # codecs raise errors of their own: it is a record, of an unknown time
        return Looked(offset, is_found=True)
    return None


def _timestamp(time_ms: int) -> int | None:
    return None if time_ms <= _NO_TIME else time_ms
