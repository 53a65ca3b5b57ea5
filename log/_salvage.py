"""What is left of a damaged log: every whole batch, and where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..protocol import BATCH_OVERHEAD, CorruptBatchError, parse_batch_header, verify_batch
from ._scan import Damage, batch_follows, follows, read_batch
from ._segment import Segment


class Salvaged(NamedTuple):
    """A whole batch with its checksum right; or no records, and ``damage`` says what is wrong there.

    ``offset`` is the batch's base offset, or the one that was due.
    """

    records: bytes
    offset: int
    file: str
    position: int
    damage: str = ""


def salvage(segments: Sequence[Segment], offset: int) -> Iterator[Salvaged]:
    """Everything from ``offset`` on, in order. Behind damage the walk goes on at the next whole batch of the
    segment, or else in the next segment. Raises OSError.
    """
    due = segments[0].base_offset
    for segment in segments:
        position = 0
        while position < segment.size:
            try:
                header = parse_batch_header(segment.file.read(position, BATCH_OVERHEAD))
                records = read_batch(segment, position, header)
                verify_batch(records, header)
                if not follows(header, due, segment.base_offset):
                    raise CorruptBatchError(f"offset {header.base_offset} where {due} is due", 0)
            except CorruptBatchError as error:
                yield Salvaged(b"", due, segment.file.path, position, str(error))
                found = batch_follows(segment, Damage(position, str(error)), due)
                position = segment.size if found is None else found
                continue
            if header.last_offset >= offset:
                yield Salvaged(records, header.base_offset, segment.file.path, position)
            due = header.next_offset
            position += header.size
