"""The state of a share partition's records: ranges that a write puts on top of those that are there."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

from ..protocol.messages.read_share_group_state import StateBatch

_FIRST: Final = attrgetter("first_offset")
_LAST: Final = attrgetter("last_offset")


def merge_batches(
    batches: Sequence[StateBatch], written: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Return ``batches``, which are in order and do not overlap, with the written ones on top.

    Where they overlap the later one wins, and what is left of the other is cut at its edges. What lies below
    ``start_offset`` is left out. Neighbours with equal state and count become one.
    """
    found = list(batches)
    for batch in written:
        # those that the new one touches lie together
        begin = bisect_left(found, batch.first_offset, key=_LAST)
        end = bisect_right(found, batch.last_offset, key=_FIRST)
        pieces = [batch]
        if begin < end:
            before, after = found[begin], found[end - 1]
            if before.first_offset < batch.first_offset:
                pieces.insert(0, before._replace(last_offset=batch.first_offset - 1))
            if after.last_offset > batch.last_offset:
                pieces.append(after._replace(first_offset=batch.last_offset + 1))
        found[begin:end] = pieces
    merged: list[StateBatch] = []
    for batch in found:
        if batch.last_offset < start_offset:
            continue
        batch = batch._replace(first_offset=max(batch.first_offset, start_offset))
        if merged and _is_continued_by(merged[-1], batch):
            merged[-1] = merged[-1]._replace(last_offset=batch.last_offset)
        else:
            merged.append(batch)
    return tuple(merged)


def _is_continued_by(before: StateBatch, after: StateBatch) -> bool:
    return before.last_offset + 1 == after.first_offset and before[2:] == after[2:]
