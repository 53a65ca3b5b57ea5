"""A check of a batch's records that creates no objects: whether they are whole, whether each has a key, and
their oldest and newest timestamps.

It refuses what Apache Kafka 4.3 refuses. That reads compressed records differently from uncompressed ones: it
skips their keys and values, does not compare a record's length with its fields, and requires offset deltas
that count from 0.

Adjacent records mostly have fields of the same lengths. Then their length bytes are compared with slices, one
slice for the same byte of many records: a hundred records take as long as one otherwise.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from ..protocol import ErrorCode, KafkaError, read_varint

#: Bit of a varint's byte that says that another byte follows.
_MORE: Final = 0x80
#: Bytes of the longest varint that is compared with slices.
_SHORT_BYTES: Final = 3

#: The length of null, as it is written.
_NULL: Final = 1

#: Offset deltas of one byte and of two end before these.
_LOW, _BOTH = 1 << 6, 1 << 13


class Columns:
    """The layout of a record, with which the records after it are compared."""

    __slots__ = ("_alike", "_data", "_delta", "_time", "end", "until")

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        _, behind = _short_varint(data, at)
        #: Places, from the start of a record, of the bytes that are equal in all: lengths and the header
        #: count.
        self._alike = [*range(behind - at)]
        begin, at = at, behind + 1
        _, behind = _short_varint(data, at)
        self._time = range(at - begin, behind - begin)
        at = behind
        delta, behind = _short_varint(data, at)
        self._delta = range(at - begin, behind - begin)
        #: Number of records that may follow before their offset deltas take one more byte, or the last one
        #: rises.
        round_ = _LOW if 0 <= delta < _LOW else _BOTH
        self.until = round_ - 1 - delta % round_
        at = behind
        for _ in ("key", "value"):
            size, behind = _short_varint(data, at)
            self._alike += range(at - begin, behind - begin)
            at = behind + max(size, 0)
        self._alike.append(at - begin)
        #: The end of the record if it has no headers.
        self.end = at + 1

    def repeat(self, at: int, stride: int, count: int, due: int | None) -> bool:
        """Return whether the ``count`` records from ``at`` on have fields of the same lengths, and offset
        deltas that count from ``due``, if that is asked for.
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
        """Return the timestamp deltas of these records, in milliseconds."""
        span = stride * count
        columns = [self._data[at + place : at + place + span : stride] for place in self._time]
        return {read_varint(bytes(number), 0)[0] for number in set(zip(*columns, strict=True))}


@cache
def _bytes_of_deltas() -> tuple[bytes, bytes]:
    """The two bytes of every number below _BOTH as a two-byte varint: all first bytes, all second bytes."""
    numbers = range(_BOTH)
    return bytes([2 * number & 0x7F | _MORE for number in numbers]), bytes(
        [number >> 6 for number in numbers]
    )


def _delta(number: int) -> bytes:
    """An offset delta as a varint."""
    if number < _LOW:
        return bytes([2 * number])
    return b"".join(_deltas(number, 1))


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


def _short_varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint of up to three bytes, and the position after it. Raises ValueError for a longer one."""
    number, behind = read_varint(data, at)
    if behind - at > _SHORT_BYTES:
        raise ValueError(f"a number of {behind - at} bytes")
    return number, behind


_INT_BYTES, _LONG_BYTES = 5, 10
_INT, _LONG = 1 << 32, 1 << 64

#: Records that are compared at once: at first, and at most.
_FEWEST, _MOST = 16, 4_096
#: Records that are read one by one after neighbours were found to differ: at most.
_SINGLE = 1_024


class UnreadableRecordError(KafkaError):
    """Records that cannot be read, with Apache Kafka's error code for them."""


class RecordsEndError(UnreadableRecordError):
    """Records that end where more is due."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, "the records of the batch end before they should")


class RecordWalk:
    """A walk over ``count`` records in ``data``; ``packed`` says that they were compressed, ``rewritten``
    that they are going to be compressed anew: then Apache Kafka reads keys and values, too. Call ``advance``
    until it returns True. ``oldest`` and ``newest`` are the extremes of the timestamp deltas so far, in ms.
    """

    __slots__ = (
        "_at",
        "_count",
        "_counts",
        "_data",
        "_packed",
        "_single",
        "_strict",
        "_window",
        "keyless",
        "left",
        "newest",
        "oldest",
        "unordered",
    )

    def __init__(self, data: bytes, count: int, *, packed: bool, rewritten: bool = False) -> None:
        self._data = data
        self._at = 0
        self._packed = packed
        self._strict = rewritten or not packed
        self._counts = rewritten or packed
        self._window = _FEWEST
        self._single = 0
        self._count = self.left = count
        self.oldest = _LONG
        self.newest = -_LONG
        #: Whether the walk met a record without a key and, among packed or rewritten ones, a record whose
        #: offset delta is not its place in the batch.
        self.keyless = False
        self.unordered = False

    def __repr__(self) -> str:
        return f"RecordWalk({self.left} records from byte {self._at} of {len(self._data)})"

    @property
    def at(self) -> int:
        """The position of the next record."""
        return self._at

    def forget_times(self) -> None:
        """Reset ``oldest`` and ``newest``: they then cover only the records that follow."""
        self.oldest, self.newest = _LONG, -_LONG

    def advance(self, most: int) -> bool:
        """Walk over ``most`` records or a few more; return True at the end. Raises UnreadableRecordError."""
        if self.left < 0:
            raise _invalid(f"the header counts {self.left} records")
        end = max(self.left - most, 0)
        while self.left > end:
            begin = self._at
            self._walk(1 if self.left >= _FEWEST else self.left)
            if self.left >= _FEWEST and not self._take_like(begin):
                self._walk(min(self._single, self.left))
        if not self.left and self._at != len(self._data):
            raise _invalid("bytes follow the last of the records that the header counts")
        return not self.left

    def next(self) -> tuple[int, bool]:
        """Walk over one record; return its timestamp delta in ms, and whether it has a key. Raises
        UnreadableRecordError.
        """
        self.forget_times()
        self.keyless = False
        self._walk(1)
        return self.newest, not self.keyless

    def _walk(self, count: int) -> None:
        """Walk over records one by one. Those whose numbers have few bytes, as most do, are read in place."""
        end = self.left - count
        while self.left > end:
            self._walk_short(self.left - end)
            if self.left > end:
                time, delta, has_key = self._read()
                self.newest = max(self.newest, time)
                self.oldest = min(self.oldest, time)
                self.keyless = self.keyless or not has_key
                self.unordered = self.unordered or delta != self._count - self.left
                self.left -= 1

    def _walk_short(self, count: int) -> None:
        """Walk over up to ``count`` whole records whose times and lengths have one byte or two, whose offset
        deltas count on, and whose headers are small.
        """
        data, size = self._data, len(self._data)
        oldest, newest, keyless = self.oldest, self.newest, self.keyless
        start, number = self._at, self._count - self.left
        until = number + count
        same = -1  # the last time, if it has one byte
        try:
            while number < until:
                # up to the next number that 64 divides, deltas differ in their first byte alone
                delta = _delta(number)
                width, tail = len(delta), delta[1:]
                last = min(delta[0] | 0x7E, delta[0] + 2 * (until - number - 1))
                for first in range(delta[0], last + 1, 2):
                    length = data[start]
                    at = start + 2
                    if length >= _MORE:
                        if data[start + 1] >= _MORE:
                            break
                        length += (data[start + 1] - 1) << 7
                        at += 1
                    end = at - 1 + (length >> 1)
                    if data[at] != same:
                        time = same = data[at]
                        if time >= _MORE:
                            at += 1
                            if data[at] >= _MORE:
                                break
                            time += (data[at] - 1) << 7
                            same = -1
                        time = (time >> 1) ^ -(time & 1)
                        if time > newest:
                            newest = time
                        if time < oldest:
                            oldest = time
                    at += 1
                    if data[at] != first or (tail and data[at + 1 : at + width] != tail):
                        break
                    at += width
                    field = data[at]
                    if field < _MORE:
                        at += 1 + (field >> 1)
                        if field & 1:
                            if field != _NULL:
                                break
                            keyless = True
                    elif data[at + 1] >= _MORE or field & 1:
                        break
                    else:
                        at += 2 + (field + ((data[at + 1] - 1) << 7) >> 1)
                    field = data[at]
                    if field < _MORE:
                        at += 1 + (field >> 1)
                        if field & 1 and field != _NULL:
                            break
                    elif data[at + 1] >= _MORE or field & 1:
                        break
                    else:
                        at += 2 + (field + ((data[at + 1] - 1) << 7) >> 1)
                    headers = data[at]
                    at += 1
                    if headers:
                        at = _behind_headers(data, at, headers)
                    if at != end or end > size or length & 1:
                        break
                    start = end
                    number += 1
                else:
                    continue
                break
        except IndexError:
            pass  # ``_read`` finds out what is wrong
        self._at = start
        self.left = self._count - number
        self.oldest, self.newest, self.keyless = oldest, newest, keyless

    def _take_like(self, begin: int) -> bool:
        """Walk over the records that follow the one at ``begin`` and have fields of the same lengths; return
        whether there were some.
        """
        data, stride = self._data, self._at - begin
        room = 0
        if data[begin : begin + 1] == data[self._at : self._at + 1]:
            try:
                columns = Columns(data, begin)
                room = min(columns.until, _MOST) if columns.end == self._at else 0
            except (IndexError, ValueError):  # a record that was read in another way
                return False
        taken = 0
        while taken < room:
            count = min(self._window, self.left, (len(data) - self._at) // stride, room - taken)
            if count < _FEWEST // 2:
                break
            due = self._count - self.left if self._counts else None
            if columns.repeat(self._at, stride, count, due):
                times = columns.times(self._at, stride, count)
                self.newest = max(self.newest, *times)
                self.oldest = min(self.oldest, *times)
                self._at += count * stride
                self.left -= count
                self._window = min(2 * self._window, _MOST)
                taken += count
            else:
                self._window = count // 4
        if taken:
            self._single = 0
            return True
        self._window = _FEWEST
        self._single = min(max(2 * self._single, _FEWEST), _SINGLE)
        return False

    # -- as Apache Kafka reads -------------------------------------------------------------------------------

    def _read(self) -> tuple[int, int, bool]:
        """Timestamp delta, offset delta, and whether there is a key. The length of a packed record is not
        checked, unless it is rewritten.
        """
        strict, size = self._strict, len(self._data)
        length, begin = self._number(self._at, outside=not self._packed)
        if strict and length > size - begin:
            raise _invalid(f"a record of {length} bytes where {size - begin} are left")
        time, at = self._number(begin + 1, _LONG_BYTES)
        delta, at = self._number(at)
        has_key, at = self._skip(at)
        _, at = self._skip(at)
        headers, at = self._number(at)
        if headers < 0 or (strict and headers > size - at):
            raise _invalid(f"{headers} headers where {size - at} bytes are left")
        for _ in range(headers):
            named, at = self._skip(at)
            if not named:
                raise _invalid("a header without a name")
            _, at = self._skip(at)
        if strict and at != begin + length:
            raise _invalid(f"a record of {length} bytes whose fields take {at - begin}")
        self._at = at
        return time, delta, has_key

    def _skip(self, at: int) -> tuple[bool, int]:
        """Skip bytes with their length in front; return whether they are not null, and the position after."""
        size, at = self._number(at)
        if size > len(self._data) - at:
            raise RecordsEndError
        return size >= 0, at + max(size, 0)

    def _number(self, at: int, most_bytes: int = _INT_BYTES, *, outside: bool = False) -> tuple[int, int]:
        """A varint and the position after it. ``outside``: it is the length of an uncompressed record, which
        Apache Kafka reads outside of its error handling.
        """
        data, value, shift = self._data, 0, 0
        for end in range(at + 1, at + 1 + most_bytes):
            if end > len(data):
                raise RecordsEndError
            byte = data[end - 1]
            value |= (byte & 0x7F) << shift
            if byte < _MORE:
                value &= (_INT if most_bytes == _INT_BYTES else _LONG) - 1
                return (value >> 1) ^ -(value & 1), end
            shift += 7
        code = ErrorCode.UNKNOWN_SERVER_ERROR if outside else ErrorCode.INVALID_RECORD
        raise UnreadableRecordError(code, _UNREADABLE + "a number is too long")


def _behind_headers(data: bytes, at: int, count: int) -> int:
    """The position after small headers, -1 if some are not small; ``count`` is the varint as written."""
    if count >= _MORE or count & 1:
        return -1
    for part in range(count):  # each is a name and what it says
        size = data[at]
        if size >= _MORE or (size & 1 and not part & 1):
            return -1
        at += 1
        if not size & 1:
            at += size >> 1
    return at


_UNREADABLE: Final = "the batch's records cannot be read: "


def _invalid(reason: str) -> UnreadableRecordError:
    return UnreadableRecordError(ErrorCode.INVALID_RECORD, _UNREADABLE + reason)
