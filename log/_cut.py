"""Cutting off the end of a log without reading what stays: only the batches that go are looked at, and, for
producers that wrote some of them, a stretch before the cut.

    segments             0.log           5.log          9.log
    batches              [0 1] [2 3 4]   [5 6] [7 8]    [9 10] [11]
    for a cut at 7 read                        [7 8]    [9 10] [11]    who wrote what goes
                                         [5 6]                         what these had done by then
    after it             [0 1] [2 3 4]   [5 6]

A cut at 8 also ends at 7: it leaves no part of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from ..protocol import BatchHeader
from ..protocol.named_tuples import NamedTuple
from ._producers import NONE, ProducerEntry, Producers
from ._records import Marker, parse_marker
from ._segment import Segment

#: Most bytes that are looked at for one cut, of those that go and of those before it: some milliseconds of
#: the caller's thread. A log of which more goes is opened again.
GOING_BYTES, BEFORE_BYTES = 8 << 20, 1 << 20


_Batch: TypeAlias = "tuple[BatchHeader, Marker | None]"


class CutPlan(NamedTuple):
    """The segment that becomes the last one, the position and offset at which it will end, the segments that
    go, and the producers afterwards.
    """

    segment: Segment
    position: int
    end_offset: int
    going: Sequence[Segment]
    producers: Producers


def plan_cut(segments: Sequence[Segment], producers: Producers, offset: int) -> CutPlan | None:
    """Find what a cut at ``offset`` leaves of a log without damage; None if only reading it again can tell.

    Raises OSError and CorruptLogError.
    """
    count = max(sum(segment.base_offset < offset for segment in segments), 1)
    last, going = segments[count - 1], segments[count:]
    first = last.seek(offset)
    position = last.size if first is None else first.position
    if last.size - position + sum(segment.size for segment in going) > GOING_BYTES:
        return None
    end_offset = last.base_offset
    # a cut reads these headers, too: damage among them has to be met before it begins
    for at, header in last.headers(last.start_before(position)):
        if at >= position:
            break
        end_offset = header.next_offset
    gone = [each for segment in going for each in _written_batches(segment, 0)]
    gone += _written_batches(last, position)
    if not gone:
        return CutPlan(last, position, end_offset, going, producers)
    before = _written_batches(last, last.start_before(max(position - BEFORE_BYTES, 0)), position)
    changed = _producers_before(producers, gone, before)
    if changed is None:
        return None
    return CutPlan(last, position, end_offset, going, producers.replace(changed))


def _written_batches(
    segment: Segment, position: int, end: int | None = None
) -> Iterator[tuple[BatchHeader, Marker | None]]:
    """Batches of producers, with the content of markers."""
    for at, header in segment.headers(position):
        if end is not None and at >= end:
            return
        if header.producer_id >= 0:
            marker = parse_marker(segment.read(at, at + header.size), header) if header.control else None
            yield header, marker


def _producers_before(
    producers: Producers,
    gone: Sequence[_Batch],
    before: Iterable[_Batch],
) -> Mapping[int, ProducerEntry] | None:
    """The state that those producers had before the batches that are ``gone``; None if it cannot be told from
    the batches ``before`` them.
    """
    start = min(header.base_offset for header, _ in gone)
    ids = {header.producer_id for header, _ in gone}
    ended = {header.producer_id for header, marker in gone if marker is not None}
    seen = Producers()
    seen_ended: set[int] = set()
    for header, marker in before:
        if header.producer_id in ids:
            seen.note(header, marker, 0)
            if marker is not None:
                seen_ended.add(header.producer_id)
    changed = {}
    for producer_id in ids:
        known, found = producers.get(producer_id), seen.get(producer_id)
        if known is None or found is None or not found.batches or producer_id in ended - seen_ended:
            return None
        if producer_id not in seen_ended:
            # no marker lies in front of the cut, and none behind it: the transaction is the one that is known
            found.coordinator_epoch = known.coordinator_epoch
            began = known.transaction_start
            found.transaction_start = began if began < start else NONE
        found.seen_ms = known.seen_ms
        found.from_snapshot = True
        changed[producer_id] = found
    return changed
