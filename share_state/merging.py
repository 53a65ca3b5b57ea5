"""The state of a share partition's records: the ranges of a write, put into those that are there."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final

from ..protocol.messages.read_share_group_state import StateBatch

_FIRST: Final = attrgetter("first_offset")
_LAST: Final = attrgetter("last_offset")


def merge_batches(
    batches: Sequence[StateBatch], written: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Return ``batches``, which are in order and do not overlap, with the written ones put in. Takes time
    for what is written and what it touches, as members acknowledge record by record.

    Where two overlap the higher delivery count wins, then the higher state, as in Apache Kafka: so a write
    that arrives late, after a later one, takes nothing back. Others are cut at the edges. What lies below
    ``start_offset`` is left out. Neighbours with equal state and count become one.
    """
    found = list(batches[bisect_left(batches, start_offset, key=_LAST) :])
    if found:
        found[0] = _cut_below(found[0], start_offset)
    for batch in written:
        if batch.last_offset < start_offset:
            continue
        batch = _cut_below(batch, start_offset)
        # those that the new one touches lie together, between two that it may continue
        begin = bisect_left(found, batch.first_offset, key=_LAST)
        end = bisect_right(found, batch.last_offset, key=_FIRST)
        pieces = [*found[max(begin - 1, 0) : begin], *_cut_pieces(found[begin:end], batch)]
        found[max(begin - 1, 0) : end + 1] = _join([*pieces, *found[end : end + 1]])
    return tuple(found)


def _cut_below(batch: StateBatch, start_offset: int) -> StateBatch:
    if batch.first_offset >= start_offset:
        return batch
    return batch._replace(first_offset=start_offset)


def _join(batches: Iterable[StateBatch]) -> list[StateBatch]:
    """Join neighbours with equal state and count."""
    joined: list[StateBatch] = []
    for batch in batches:
        if joined and _is_continued_by(joined[-1], batch):
            joined[-1] = joined[-1]._replace(last_offset=batch.last_offset)
        else:
            joined.append(batch)
    return joined


def _cut_pieces(touched: Sequence[StateBatch], written: StateBatch) -> Iterator[StateBatch]:
    """The pieces, in order, that a batch and those that it touches make together."""
    at = written.first_offset
    for batch in touched:
        if batch.first_offset < at:
            yield batch._replace(last_offset=at - 1)
        elif at < batch.first_offset:
            yield written._replace(first_offset=at, last_offset=batch.first_offset - 1)
        first = max(batch.first_offset, at)
        last = min(batch.last_offset, written.last_offset)
        yield max(batch, written, key=_rank)._replace(first_offset=first, last_offset=last)
        at = last + 1
        if batch.last_offset > last:
            yield batch._replace(first_offset=at)
    if at <= written.last_offset:
        yield written._replace(first_offset=at)


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.delivery_state


def _is_continued_by(before: StateBatch, after: StateBatch) -> bool:
    return before.last_offset + 1 == after.first_offset and before[2:] == after[2:]
