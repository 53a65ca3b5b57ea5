"""What is known to be damaged in a segment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class DamagedRange(NamedTuple):
    """Bytes of a segment that are no batch, up to the next whole one or the segment's end, and the offsets
    that are missing for it.
    """

    position: int
    resume: int
    first_offset: int
    next_offset: int
    reason: str


def intact(damage: Sequence[DamagedRange], position: int, end: int) -> Iterator[tuple[int, int]]:
    """What is left from ``position`` to ``end``: begin and end of each piece. ``damage`` is in order."""
    for damaged in damage:
        if position < damaged.position:
            yield position, min(damaged.position, end)
        position = max(position, damaged.resume)
    if position < end:
        yield position, end
