"""A batch's records as columns of Python objects, found by numpy for all of them at once. Needs numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..protocol import BatchHeader, CorruptBatchError
from ._columns import Fields, Ints, Spans, fields, walk
from .record import Rows

#: Bytes of a record's length at most.
_LONGEST_LENGTH = 5
#: Neighbours with the same time, on average, from which on a number for all of them is quicker.
_FEW = 8


def plain_rows(batches: Sequence[tuple[BatchHeader, bytes | memoryview]]) -> Rows | None:
    """The records of these batches, not compressed; None when one of them is not quite ordinary.

    Ordinary is one without headers of records and without a flaw: everything else is for a reader that goes
    from field to field.
    """
    data = b"".join([records for _, records in batches])
    raw = np.frombuffer(data, np.uint8)
    try:
        bodies = _bodies(batches, data)
        found = fields(raw, bodies)
        if raw[found.headers_at].any() or not _filled(bodies, found, len(data)):
            return None
    except (CorruptBatchError, IndexError):
        return None
    counts = [header.record_count for header, _ in batches]
    offsets = _offsets([header.base_offset for header, _ in batches], counts, found.offset_deltas)
    if offsets is None:
        return None
    times = np.repeat([header.base_timestamp_ms for header, _ in batches], counts) + found.timestamp_deltas
    if any(header.log_append_time for header, _ in batches):
        by_broker = np.repeat([header.log_append_time for header, _ in batches], counts)
        times = np.where(
            by_broker, np.repeat([header.max_timestamp_ms for header, _ in batches], counts), times
        )
    return Rows(offsets, _times(times), _pieces(data, found.keys), _pieces(data, found.values), None)


def _bodies(batches: Sequence[tuple[BatchHeader, bytes | memoryview]], data: bytes) -> Ints:
    bodies, position = [], 0
    for header, records in batches:
        bodies.append(walk(data, position, position + len(records), header.record_count))
        position += len(records)
    return np.concatenate(bodies)


def _filled(bodies: Ints, found: Fields, size: int) -> bool:
    """Whether each record ends where its fields do: behind a count of headers of one byte."""
    behind = found.headers_at + 1
    gaps = bodies[1:] - behind[:-1]  # the length of the next one lies there
    return bool(behind[-1] == size and (gaps > 0).all() and (gaps <= _LONGEST_LENGTH).all())


def _offsets(bases: list[int], counts: list[int], deltas: Ints) -> Sequence[int] | None:
    """None unless they rise."""
    offsets = np.repeat(bases, counts) + deltas
    if not (offsets[1:] > offsets[:-1]).all():
        return None
    first, last = int(offsets[0]), int(offsets[-1])
    if last - first + 1 == len(offsets):
        return range(first, last + 1)
    some: list[int] = offsets.tolist()
    return some


def _times(times: Ints) -> list[int]:
    """One number for neighbours of one millisecond, where there are many of them."""
    begins = np.flatnonzero(times[1:] != times[:-1]) + 1
    if len(begins) * _FEW > len(times):
        all_of_them: list[int] = times.tolist()
        return all_of_them
    begins = np.concatenate(([0], begins))
    counts = np.diff(begins, append=len(times))
    found: list[int] = []
    for time, count in zip(times[begins].tolist(), counts.tolist(), strict=True):
        found += [time] * count
    return found


def _pieces(data: bytes, spans: Spans) -> list[bytes | None]:
    starts, ends, null = spans.starts, spans.ends, spans.null
    if null.all():
        return [None] * len(starts)
    if spans.length > 0:
        # pieces of one length are elements of an array that has one at every byte
        shape, kind = len(data) - spans.length + 1, f"V{spans.length}"
        every: npt.NDArray[np.void] = np.ndarray(shape, kind, data, strides=(1,))
        alike: list[bytes | None] = every[starts].tolist()
        return alike
    bounds = zip(starts.tolist(), ends.tolist(), null.tolist(), strict=True)
    return [None if is_null else data[start:end] for start, end, is_null in bounds]
