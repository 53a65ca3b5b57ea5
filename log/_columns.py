"""Records whose fields are of the same lengths, compared column by column, with slices."""

from __future__ import annotations

from functools import cache
from typing import Final

#: Bits of a varint's byte that others follow.
_MORE: Final = 0x80
#: Bits in front of the last byte of a varint of three.
_MOST_SHIFT: Final = 7

#: Offset deltas of one byte and of two end before these.
_LOW, _BOTH = 1 << 6, 1 << 13


class Columns:
    """The numbers of a record that was read, each with what lies in its place in the records behind."""

    __slots__ = ("_alike", "_data", "_delta", "_time", "end", "until")

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        _, behind = _number(data, at)
        #: Where bytes are, from a record's begin, that are the same in all: lengths, and how many headers.
        self._alike = [*range(behind - at)]
        begin, at = at, behind + 1
        _, behind = _number(data, at)
        self._time = range(at - begin, behind - begin)
        at = behind
        delta, behind = _number(data, at)
        self._delta = range(at - begin, behind - begin)
        #: How many records may follow until their offset deltas take a byte more, or the last one rises.
        self.until = (
            (_LOW if 0 <= delta < _LOW else _BOTH) - 1 - delta % (_LOW if 0 <= delta < _LOW else _BOTH)
        )
        at = behind
        for _ in ("key", "value"):
            size, behind = _number(data, at)
            self._alike += range(at - begin, behind - begin)
            at = behind + max(size, 0)
        self._alike.append(at - begin)
        #: Where the record ends if it has no headers.
        self.end = at + 1

    def repeat(self, at: int, stride: int, count: int, due: int | None) -> bool:
        """Whether the ``count`` records from ``at`` on have fields of the same lengths, and offset deltas
        that count from ``due``, if that is asked for.
        """
        data, first, span = self._data, at - stride, stride * count
        for place in self._alike:
            if data[at + place : at + place + span : stride].count(data[first + place]) != count:
                return False
        if not self._are_numbers(self._time, at, stride, span):
            return False
        if due is None:
            return self._are_numbers(self._delta, at, stride, span)
        columns = [data[at + place : at + place + span : stride] for place in self._delta]
        return columns == _deltas(due, count)

    def _are_numbers(self, places: range, at: int, stride: int, span: int) -> bool:
        columns = [self._data[at + place : at + place + span : stride] for place in places]
        return columns.pop().isascii() and all(min(column) >= _MORE for column in columns)

    def times(self, at: int, stride: int, count: int) -> set[int]:
        """The times of those records."""
        span = stride * count
        columns = [self._data[at + place : at + place + span : stride] for place in self._time]
        return {_number(bytes(number), 0)[0] for number in set(zip(*columns, strict=True))}


@cache
def _bytes_of_deltas() -> tuple[bytes, bytes]:
    """The first two bytes of all numbers below _BOTH, as varints of two bytes have them."""
    numbers = range(_BOTH)
    return bytes([2 * number & 0x7F | _MORE for number in numbers]), bytes(
        [number >> 6 for number in numbers]
    )


def _deltas(first: int, count: int) -> list[bytes]:
    """The bytes of ``count`` varints that count from ``first`` on, the first ones, the second ones, and so
    on. They do not go beyond ``until``.
    """
    if first < _LOW:
        return [bytes(range(2 * first, 2 * (first + count), 2))]
    low, high = _bytes_of_deltas()
    at = first % _BOTH
    columns = [low[at : at + count], high[at : at + count]]
    rest = first // _BOTH
    if rest:
        columns[1] = bytes([byte | _MORE for byte in columns[1]])
        while rest >= _MORE:
            columns.append(bytes([rest & 0x7F | _MORE]) * count)
            rest >>= 7
        columns.append(bytes([rest]) * count)
    return columns


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A varint of up to three bytes, and the position behind it. Raises ValueError for a longer one."""
    value = shift = 0
    while data[at] >= _MORE:
        if shift > _MOST_SHIFT:
            raise ValueError("a number of many bytes")
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    value |= data[at] << shift
    return (value >> 1) ^ -(value & 1), at + 1
