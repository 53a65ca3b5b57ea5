"""A reader of single fields, for formats without a generated reader: subscriptions, assignments, records.

Numbers are big-endian. Most fields have two forms (KIP-482):

=============  =========================  ==================================================================
field          plain                      flexible
=============  =========================  ==================================================================
string         int16 length, -1 for null  varint of the length and 1, 0 for null; then UTF-8 in either form
bytes          int32 length, -1 for null  varint of the length and 1, 0 for null
array          int32 count, -1 for null   varint of the count and 1, 0 for null
tagged fields  none                       varint count; for each, in rising order, a varint number, a varint
                                          size and the field; behind every struct
=============  =========================  ==================================================================

A varint here is unsigned, 7 bits a byte, the lowest first; bit 7 says that another byte follows.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from typing import Any, Final
from uuid import UUID

from ._errors import MalformedMessageError
from .messages.wire import long_varint
from .named_tuples import NamedTuple

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
#: Creates a TopicPartition without the Python code that a call of its class runs.
_TUPLE = tuple.__new__
_MIN_TOPIC_PARTITIONS = 6
_NO_TAGS: Final[Mapping[int, Callable[[], object]]] = {}


class TopicPartition(NamedTuple):
    """A partition of a topic. Sorts by topic, then by number."""

    topic: str
    partition: int


class WireReader:
    """Reads one field after another. Each length is checked against the bytes left before it is used.

    With ``flexible``, lengths are varints and structs end with tagged fields (KIP-482). All methods raise
    MalformedMessageError for bytes that are not such a field.
    """

    __slots__ = ("_data", "_position", "flexible")

    def __init__(self, data: bytes) -> None:
        self._data = bytes(data)  # a memoryview has no decode(); bytes() does not copy bytes
        self._position = 0
        self.flexible = False

    @property
    def remaining(self) -> int:
        """Number of bytes not read yet."""
        return len(self._data) - self._position

    def int8(self) -> int:
        """Read 1 byte, signed."""
        return int.from_bytes(self._take_bytes(1), "big", signed=True)

    def int16(self) -> int:
        """Read 2 bytes, signed."""
        value: int = _INT16.unpack(self._take_bytes(2))[0]
        return value

    def int32(self) -> int:
        """Read 4 bytes, signed."""
        value: int = _INT32.unpack(self._take_bytes(4))[0]
        return value

    def int64(self) -> int:
        """Read 8 bytes, signed."""
        value: int = _INT64.unpack(self._take_bytes(8))[0]
        return value

    def uvarint(self) -> int:
        """Read an unsigned varint: 7 bits in each byte, the lowest first; bit 7: another byte follows."""
        try:
            value, self._position = long_varint(self._data, self._position)
        except IndexError:
            raise MalformedMessageError(f"a varint is cut short at byte {self._position}") from None
        return value

    def uuid(self) -> UUID:
        """Read 16 bytes."""
        return UUID(bytes=self._take_bytes(16))

    def string(self) -> str:
        """Read a string that must not be null."""
        value = self.nullable_string()
        if value is None:
            raise MalformedMessageError(f"null string before byte {self._position}")
        return value

    def nullable_string(self) -> str | None:
        """Read a length (2 bytes, -1 is null; flexible: a varint of length + 1) and UTF-8."""
        size = self.uvarint() - 1 if self.flexible else self.int16()
        if size < 0:
            return None
        start = self._position
        try:
            return self._take_bytes(size).decode()
        except UnicodeDecodeError as error:
            raise MalformedMessageError(f"string at byte {start} is not UTF-8") from error

    def nullable_bytes(self) -> bytes | None:
        """Read a length (4 bytes, -1 is null; flexible: a varint of length + 1) and bytes."""
        size = self.uvarint() - 1 if self.flexible else self.int32()
        return None if size < 0 else self._take_bytes(size)

    def skip(self, size: int) -> None:
        """Skip ``size`` bytes."""
        self._take_bytes(size)

    def rest(self) -> bytes:
        """Read all remaining bytes."""
        return self._take_bytes(self.remaining)

    def array_size(self, item_size: int, *, nullable: bool = False) -> int:
        """Read the length of an array whose items have at least ``item_size`` bytes. 0 for a null array."""
        count = self.uvarint() - 1 if self.flexible else self.int32()
        if count * item_size > self.remaining or (count < 0 and not nullable):
            raise MalformedMessageError(
                f"array of {count} items before byte {self._position}, but {self.remaining} bytes are left"
            )
        return max(count, 0)

    def int32s(self, *, nullable: bool = False) -> tuple[int, ...]:
        """Read an array of 4-byte numbers; () for null, if it may be ``nullable``."""
        count = self.array_size(_INT32.size, nullable=nullable)
        return struct.unpack(f">{count}i", self._take_bytes(count * _INT32.size))

    def tags(self, known: Mapping[int, Callable[[], Any]] = _NO_TAGS) -> dict[int, Any]:
        """Read the tagged fields of a flexible struct; skips those that are not ``known``.

        ``known`` has the function that reads a field by its tag. Returns the values by tag.
        """
        found: dict[int, object] = {}
        for _ in range(self.uvarint() if self.flexible else 0):
            tag, size = self.uvarint(), self.uvarint()
            end = self._position + size
            if tag not in known:
                self._take_bytes(size)
                continue
            found[tag] = known[tag]()
            if self._position != end:
                raise MalformedMessageError(f"field {tag} does not end at byte {end}")
        return found

    def topic_partitions(self) -> list[TopicPartition]:
        """Read an array of (topic, array of int32), flattened. Not for ``flexible`` readers."""
        found: list[TopicPartition] = []
        data, int16, int32 = self._data, _INT16.unpack_from, _INT32.unpack_from
        for _ in range(self.array_size(_MIN_TOPIC_PARTITIONS, nullable=True)):
            start = self._position + _INT16.size
            try:
                end = start + int16(data, self._position)[0]
                one = end >= start and int32(data, end)[0] == 1
                if one:  # fast path: in large groups, members mostly have one partition of a topic
                    pair = data[start:end].decode(), int32(data, end + _INT32.size)[0]
            except (struct.error, UnicodeDecodeError):
                one = False  # _one_topic raises the right error
            if one:
                found.append(_TUPLE(TopicPartition, pair))
                self._position = end + 2 * _INT32.size
            else:
                found += self._one_topic()
        return found

    def _one_topic(self) -> Iterator[TopicPartition]:
        topic = self.string()
        return map(
            _TUPLE, repeat(TopicPartition), zip(repeat(topic), self.int32s(nullable=True), strict=False)
        )

    def _take_bytes(self, size: int) -> bytes:
        start, end = self._position, self._position + size
        if not start <= end <= len(self._data):
            raise MalformedMessageError(
                f"{size} bytes wanted at byte {start}, but only {self.remaining} are left"
            )
        self._position = end
        return self._data[start:end]
