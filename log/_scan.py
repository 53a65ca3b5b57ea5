"""Reading a segment's bytes for damage: where does the last whole batch end, and does anything follow it?"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ..protocol import BATCH_OVERHEAD, BatchHeader, CorruptBatchError, parse_batch_header, verify_batch
from ._segment import MAX_RELATIVE_OFFSET, Segment

#: Bytes read at a time; a batch larger than that is read whole.
SCAN_BYTES = 1 << 20

_BASE_OFFSET_BYTES = 8
_SEARCHED_BYTES = 17  # base offset up to magic


class Damage(NamedTuple):
    """The first bytes of a segment that are no batch, or not the one that is due."""

    position: int
    reason: str


def verify_segment(
    segment: Segment, next_offset: int, take: Callable[[BatchHeader, int], None]
) -> tuple[int, Damage | None]:
    """Check each batch of a segment: whole, its checksum, offsets that rise from ``next_offset`` on.

    Each good one is given to ``take`` with its position. Returns the offset behind the last good one, and the
    damage that ended the walk, if any.
    """
    position = 0
    while position < segment.size:
        data = segment.file.read(position, min(SCAN_BYTES, segment.size - position))
        at = 0
        try:
            while at + BATCH_OVERHEAD <= len(data):
                header = parse_batch_header(data, at)
                if at + header.size > len(data) and at:
                    break  # read on from here
                if at + header.size > len(data):
                    data = read_batch(segment, position, header)
                verify_batch(data, header, at)
                if not follows(header, next_offset, segment.base_offset):
                    raise CorruptBatchError(f"offset {header.base_offset} where {next_offset} is due", at)
                take(header, position + at)
                next_offset = header.next_offset
                at += header.size
            if not at:
                raise CorruptBatchError(f"{len(data)} bytes are too few for a batch", 0)
        except CorruptBatchError as error:
            return next_offset, Damage(position + at, str(error))
        position += at
    return next_offset, None


def batch_follows(segment: Segment, damage: Damage, next_offset: int) -> int | None:
    """The position of a whole batch behind the damage, if there is one.

    Its base offset is at least ``next_offset``, so its upper bytes are known, and they and the magic are
    searched for; a batch counts once its checksum is right.
    """
    upper = next_offset.to_bytes(_BASE_OFFSET_BYTES, "big")[:4]
    pattern = re.compile(b"(?=" + re.escape(upper) + rb"[\s\S]{12}\x02)")
    window = damage.position + 1
    while window < segment.size:
        data = segment.file.read(window, SCAN_BYTES + BATCH_OVERHEAD)
        for match in pattern.finditer(data, 0, SCAN_BYTES + _SEARCHED_BYTES):
            if _is_batch(segment, window + match.start(), next_offset):
                return window + match.start()
        window += SCAN_BYTES
    return None


def follows(header: BatchHeader, next_offset: int, segment_base: int) -> bool:
    """Whether a batch may stand where ``next_offset`` is due.

    Base offsets are outside of the checksum: they must rise and lie within the reach of the indexes.
    """
    return (
        header.base_offset >= next_offset
        and header.last_offset_delta >= 0
        and header.last_offset - segment_base <= MAX_RELATIVE_OFFSET
    )


def _is_batch(segment: Segment, position: int, next_offset: int) -> bool:
    try:
        header = parse_batch_header(segment.file.read(position, BATCH_OVERHEAD))
        verify_batch(read_batch(segment, position, header), header)
    except CorruptBatchError:
        return False
    return header.base_offset >= next_offset


def read_batch(segment: Segment, position: int, header: BatchHeader) -> bytes:
    """The bytes of a batch. Raises CorruptBatchError if the segment ends before it does."""
    if header.size > segment.size - position:
        missing = header.size - (segment.size - position)
        raise CorruptBatchError(f"batch of {header.size} bytes cut short by {missing}", 0)
    return segment.file.read(position, header.size)
