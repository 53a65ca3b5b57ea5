"""A check of a batch's records: whether they are whole, whether each has a key, and their oldest and newest
timestamps.

It refuses what Apache Kafka 4.3 refuses. That reads compressed records differently from uncompressed ones: it
skips their keys and values, does not compare a record's length with its fields, and requires offset deltas
that count from 0. The difference shows only in records that are not whole: these alone are read as it does.
"""

from __future__ import annotations

from typing import Final

from ..protocol import ErrorCode, KafkaError, read_varint
from ..protocol.records import check_records

_INT_BITS: Final = 32
_LONG_BITS: Final = 64
#: Beyond all timestamp deltas.
_LONG: Final = 1 << _LONG_BITS


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
        "_data",
        "_packed",
        "_strict",
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
        self._count = self.left = count
        self.forget_times()
        #: Whether the walk met a record without a key, and one whose offset delta is not its place in the
        #: batch.
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
        """Walk over up to ``most`` records; return True at the end. Raises UnreadableRecordError."""
        if self.left < 0:
            raise _invalid_record(f"the header counts {self.left} records")
        end = max(self.left - most, 0)
        while self.left > end:
            self._at, taken, oldest, newest, keyless, unordered = check_records(
                self._data, self._at, self._count - self.left, self.left - end
            )
            if taken:
                self._note_records(taken, oldest, newest, keyless=keyless, unordered=unordered)
            if self.left > end:
                self._read_one()
        if not self.left and self._at != len(self._data):
            raise _invalid_record("bytes follow the last of the records that the header counts")
        return not self.left

    def next(self) -> tuple[int, bool]:
        """Walk over one record; return its timestamp delta in ms, and whether it has a key. Raises
        UnreadableRecordError.
        """
        self.forget_times()
        self.keyless = False
        self._read_one()
        return self.newest, not self.keyless

    def _read_one(self) -> None:
        time, delta, has_key = self._read_record()
        unordered = delta != self._count - self.left
        self._note_records(1, time, time, keyless=not has_key, unordered=unordered)

    def _note_records(self, count: int, oldest: int, newest: int, *, keyless: bool, unordered: bool) -> None:
        self.left -= count
        self.oldest = min(self.oldest, oldest)
        self.newest = max(self.newest, newest)
        self.keyless = self.keyless or keyless
        self.unordered = self.unordered or unordered

    # -- as Apache Kafka reads -------------------------------------------------------------------------------

    def _read_record(self) -> tuple[int, int, bool]:
        """Timestamp delta, offset delta, and whether there is a key. The length of a packed record is not
        checked, unless it is rewritten.
        """
        strict, size = self._strict, len(self._data)
        length, begin = self._read_varint(self._at, outside=not self._packed)
        if strict and length > size - begin:
            raise _invalid_record(f"a record of {length} bytes where {size - begin} are left")
        time, at = self._read_varint(begin + 1, _LONG_BITS)
        delta, at = self._read_varint(at)
        has_key, at = self._skip_bytes(at)
        _, at = self._skip_bytes(at)
        headers, at = self._read_varint(at)
        if headers < 0 or (strict and headers > size - at):
            raise _invalid_record(f"{headers} headers where {size - at} bytes are left")
        for _ in range(headers):
            named, at = self._skip_bytes(at)
            if not named:
                raise _invalid_record("a header without a name")
            _, at = self._skip_bytes(at)
        if strict and at != begin + length:
            raise _invalid_record(f"a record of {length} bytes whose fields take {at - begin}")
        self._at = at
        return time, delta, has_key

    def _skip_bytes(self, at: int) -> tuple[bool, int]:
        """Skip bytes with their length in front; return whether they are not null, and the position after."""
        size, at = self._read_varint(at)
        if size > len(self._data) - at:
            raise RecordsEndError
        return size >= 0, at + max(size, 0)

    def _read_varint(self, at: int, bits: int = _INT_BITS, *, outside: bool = False) -> tuple[int, int]:
        """A varint and the position after it. ``outside``: it is the length of an uncompressed record, which
        Apache Kafka reads outside of its error handling.
        """
        try:
            return read_varint(self._data, at, bits)
        except IndexError:
            raise RecordsEndError from None
        except ValueError:
            code = ErrorCode.UNKNOWN_SERVER_ERROR if outside else ErrorCode.INVALID_RECORD
            raise UnreadableRecordError(code, _UNREADABLE + "a number is too long") from None


_UNREADABLE: Final = "the batch's records cannot be read: "


def _invalid_record(reason: str) -> UnreadableRecordError:
    return UnreadableRecordError(ErrorCode.INVALID_RECORD, _UNREADABLE + reason)
