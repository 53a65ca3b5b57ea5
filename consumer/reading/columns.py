"""Record batches as columns of numbers: the positions of each record, key, value and header in the bytes.

Python makes one pass over the lengths of the records (a step for each run of equal ones), numpy does the rest
for all records of a run at once: a loop over fields would cost ten times as much. Record layout: KIP-98,
"Record Format".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...protocol import BatchHeader, CorruptBatchError
from ..record import Rows

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_MAX_VARINT_SHIFT = 63
#: Records of one length in a row that are found at once, without a step for each.
_LEAST_ALIKE = 16
#: Most bytes of a length.
_LONGEST_LENGTH = 5
#: Average number of neighbours with the same time from which on sharing one number is quicker.
_FEW = 8


@dataclass(frozen=True, slots=True)
class Spans:
    """Pieces of a run of bytes: ``starts`` and ``ends`` are positions, ``null`` marks the absent ones.

    ``length`` is the length of each piece if all are known to have the same, absent ones included; else -1.
    """

    starts: Ints
    ends: Ints
    null: npt.NDArray[np.bool_]
    length: int = -1


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of n records; ``headers_at`` is where each record's header count stands.

    ``by_broker``: which times are the broker's.
    """

    offsets: Ints
    times_ms: Ints
    by_broker: npt.NDArray[np.bool_]
    keys: Spans
    values: Spans
    headers_at: Ints


def walk_all(
    data: bytes | bytearray, batches: Sequence[BatchHeader], payloads: Sequence[bytes | memoryview]
) -> Ints:
    """Positions of the bodies of all records, with these payloads one after another in ``data``."""
    bodies, position = [], 0
    for header, payload in zip(batches, payloads, strict=True):
        bodies.append(walk(data, position, position + len(payload), header.record_count))
        position += len(payload)
    return bodies[0] if len(bodies) == 1 else np.concatenate(bodies)


def walk(data: bytes | bytearray, start: int, end: int, count: int) -> Ints:
    """Positions of the bodies of the ``count`` records in ``data[start:end]``.

    Raises CorruptBatchError unless they fill these bytes exactly.
    """
    if count > end - start:
        raise CorruptBatchError(f"{count} records in {end - start} bytes", start)
    bodies = np.empty(count, np.int64)
    position, nth, some = start, 0, _LEAST_ALIKE
    try:
        while nth < count:
            alike, body, step = _alike(data, position, end, count - nth)
            if alike >= _LEAST_ALIKE:
                bodies[nth : nth + alike] = np.arange(body, body + alike * step, step)
                position, some = position + alike * step, _LEAST_ALIKE
            else:
                # the more neighbours differ, the less often equal ones are looked for
                alike, some = min(some, count - nth), some * 2
                found, position = _one_by_one(data, position, alike)
                bodies[nth : nth + alike] = found
            nth += alike
    except IndexError:
        position = -1
    if position != end:
        raise CorruptBatchError(f"{count} records do not fill the {end - start} bytes of their batch", start)
    return bodies


def _alike(data: bytes | bytearray, position: int, end: int, most: int) -> tuple[int, int, int]:
    """The number of records from here on with the length of the first; its body, the step to the next.

    A length counts as a record's if it is where the record before it says that the next one begins.
    """
    length, body = _long_length(data, position)
    step = body - position + length
    if step < 1:
        return 0, body, step
    alike = most
    for at in range(position, body):
        few = data[at : min(end, at + _LEAST_ALIKE * step) : step]
        if len(few) - len(few.lstrip(few[:1])) < _LEAST_ALIKE:
            return 0, body, step
        column = data[at : min(end, at + alike * step) : step]
        alike = len(column) - len(column.lstrip(column[:1]))
    # the last one may have to be longer than what is left
    return min(alike, (end - position) // step), body, step


def _one_by_one(data: bytes | bytearray, position: int, count: int) -> tuple[list[int], int]:
    bodies = [0] * count
    for nth in range(count):
        length = data[position]
        if length < 0x80:
            bodies[nth] = position = position + 1
            position += length >> 1
        elif (following := data[position + 1]) < 0x80:
            bodies[nth] = position = position + 2
            position += (following << 6) + (length >> 1) - 0x40
        else:
            length, position = _long_length(data, position)
            bodies[nth] = position
            position += length
    return bodies, position


def _long_length(data: bytes | bytearray, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1, position
    raise CorruptBatchError("a record length of more than five bytes", position)


def varints(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """The zigzag varint at each position, and the positions after them. Raises IndexError past the end."""
    first = data[at]
    behind = at + 1
    more = first > 0x7F
    if not more.any():
        return (first >> 1).astype(np.int64) ^ -(first & 1).astype(np.int64), behind
    if behind[-1] < data.size:
        second = data[behind].astype(np.uint16) * more
        if not (second > 0x7F).any():
            both = (first & np.uint8(0x7F)) | (second << 7)
            return (both >> 1).astype(np.int64) ^ -(both & 1).astype(np.int64), behind + more
    return _long_varints(data, at)


def _long_varints(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    byte = data[at]
    behind = at + 1
    raw = byte.astype(np.uint64)
    more = np.flatnonzero(byte > 0x7F)
    shift = 7
    while more.size:
        if shift > _MAX_VARINT_SHIFT:
            raise IndexError("a varint of more than ten bytes")
        byte = data[behind[more]]
        behind[more] += 1
        # minus one removes the continuation bit of the byte before, which is now at this place
        raw[more] += (byte.astype(np.uint64) - np.uint64(1)) << np.uint64(shift)
        more = more[byte > 0x7F]
        shift += 7
    return (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64), behind


def spans(data: Bytes, at: Ints) -> tuple[Spans, Ints]:
    """The length-prefixed, nullable piece at each position, and the positions after them."""
    if (alike := _spans_alike(data, at)) is not None:
        return alike, alike.ends
    lengths, starts = varints(data, at)
    null = lengths < 0
    if null.any():
        if (lengths < -1).any():
            raise IndexError("a length below -1")
        lengths = np.where(null, 0, lengths)
    ends = starts + lengths
    return Spans(starts, ends, null), ends


def _spans_alike(data: Bytes, at: Ints) -> Spans | None:
    """As ``spans``, where all pieces have the length of the first one; None where they do not."""
    value = width = 0
    more = at.size > 0
    while more:
        byte = data[at + width if width else at]
        first = int(byte[0])
        if width == _LONGEST_LENGTH or (byte != first).any():
            return None
        value |= (first & 0x7F) << 7 * width
        width += 1
        more = first > 0x7F
    length = value >> 1 ^ -(value & 1)
    if length < -1:
        return None
    starts = at + width
    if length < 0:
        return Spans(starts, starts, np.ones(at.size, np.bool_), 0)
    return Spans(starts, starts + length, np.zeros(at.size, np.bool_), length)


def fields(data: Bytes, bodies: Ints, batches: Sequence[BatchHeader]) -> Fields:
    """The fields of the records whose bodies start at these positions. Raises IndexError past the end."""
    deltas_ms, at = varints(data, bodies + 1)  # after the attributes, which are always 0
    deltas, at = varints(data, at)
    keys, at = spans(data, at)
    values, at = spans(data, at)
    counts = [header.record_count for header in batches]
    offsets = np.repeat([header.base_offset for header in batches], counts) + deltas
    times = np.repeat([header.base_timestamp_ms for header in batches], counts) + deltas_ms
    by_broker = np.repeat([header.log_append_time for header in batches], counts)
    if by_broker.any():
        times = np.where(by_broker, np.repeat([header.max_timestamp_ms for header in batches], counts), times)
    return Fields(offsets, times, by_broker, keys, values, at)


def headers(data: Bytes, at: Ints) -> tuple[Ints, Spans, Spans]:
    """Counts of headers per record, then keys and values of all headers, record by record."""
    counts, at = varints(data, at)
    if (counts < 0).any():
        raise IndexError("a negative number of headers")
    first = np.cumsum(counts) - counts
    total = int(counts.sum())
    if total > data.size:
        raise IndexError("more headers than bytes")
    keys, values = _empty_spans(total), _empty_spans(total)
    rows = np.flatnonzero(counts)
    nth = 0
    while rows.size:
        places = first[rows] + nth
        key, behind = spans(data, at[rows])
        value, at[rows] = spans(data, behind)
        _put(keys, places, key)
        _put(values, places, value)
        nth += 1
        rows = rows[counts[rows] > nth]
    return counts, keys, values


def _empty_spans(count: int) -> Spans:
    return Spans(np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.bool_))


def _put(into: Spans, places: Ints, pieces: Spans) -> None:
    into.starts[places] = pieces.starts
    into.ends[places] = pieces.ends
    into.null[places] = pieces.null


def plain_rows(batches: Sequence[BatchHeader], payloads: Sequence[bytes | memoryview]) -> Rows | None:
    """The records of these uncompressed batches; None if one of them is not ordinary.

    An ordinary batch has no record headers and no flaw: all others need a reader that goes field by field.
    """
    data = b"".join(payloads)
    raw = np.frombuffer(data, np.uint8)
    try:
        bodies = walk_all(data, batches, payloads)
        found = fields(raw, bodies, batches)
        if raw[found.headers_at].any() or not _are_filled(bodies, found, len(data)):
            return None
    except (CorruptBatchError, IndexError):
        return None
    if (offsets := _rising(found.offsets)) is None:
        return None
    keys, values = _pieces(data, found.keys), _pieces(data, found.values)
    return Rows(offsets, _times(found.times_ms), keys, values, None)


def _are_filled(bodies: Ints, found: Fields, size: int) -> bool:
    """Return whether each record ends where its fields do: after a count of headers of one byte."""
    behind = found.headers_at + 1
    gaps = bodies[1:] - behind[:-1]  # the length of the next one lies there
    return bool(behind[-1] == size and (gaps > 0).all() and (gaps <= _LONGEST_LENGTH).all())


def _rising(offsets: Ints) -> Sequence[int] | None:
    """The offsets; None unless they rise."""
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
