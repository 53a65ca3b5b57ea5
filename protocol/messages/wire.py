"""What the written readers and writers of messages share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from struct import Struct
from struct import pack as pack
from struct import unpack_from as unpack_from
from typing import Any, Final, Protocol
from uuid import UUID

from .._errors import MalformedMessageError
from ..named_tuples import NamedTuple as NamedTuple

#: Makes a named tuple in half the time of calling its class.
_new: Final[Any] = tuple.__new__
NO_UUID: Final = bytes(16)
#: Small varints.
BYTES: Final = tuple(bytes([number]) for number in range(128))

malformed = MalformedMessageError
_INT16 = Struct(">h")
_INT32 = Struct(">i")
MAX_STRING: Final = 32_767
#: Most tagged fields of a header or struct; KIPs define five of one so far.
_MAX_TAGS: Final = 1_000
#: A varint of Kafka's has five bytes at most.
_MAX_SHIFT: Final = 28


#: Records shorter than this are copied into their message: it costs less than a piece.
_COPIED_BYTES: Final = 4_096


class Sendable(Protocol):
    """Bytes that lie somewhere else, such as a range of a file; ``len`` is how many."""

    def __len__(self) -> int: ...


class Pieces(bytearray):
    """A message that leaves records where they are. ``apart`` are these, each with the position in the message
    that it belongs to.
    """

    __slots__ = ("apart",)

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.apart: list[tuple[int, bytes | Sendable]] = []


class PreparedArray:
    """Elements of an array that are written once for each version, and copied then.

    Iterating gives only those with an error, one by one: nobody looks for anything else in them.
    """

    __slots__ = ("_items", "_written")

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items
        self._written: dict[int, bytes] = {}

    def __repr__(self) -> str:
        return f"PreparedArray({len(self._items)})"

    def __iter__(self) -> Iterator[Any]:
        return (item for item in self._items if item.error_code)

    def written(self, version: int, write: Callable[[bytearray, Any, int], None]) -> bytes:
        """The array as ``write`` writes it for this version."""
        found = self._written.get(version)
        if found is None:
            out = bytearray()
            write(out, self._items, version)
            found = self._written[version] = bytes(out)
        return found


def long_varint(data: Any, at: int) -> tuple[int, int]:
    """The unsigned varint at ``at``, and the position behind it. From 2**31 + 1 on it is negative, as in Java's
    int: a length there is below 0, which is null.
    """
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFFFFFF
            return (value - (1 << 32) if value > 1 << 31 else value), at
        shift += 7
        if shift > _MAX_SHIFT:
            raise MalformedMessageError("a varint of more than five bytes")


def varint(value: int) -> bytes:
    """An unsigned varint."""
    if 0 <= value <= 0x7F:
        return BYTES[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uuid(data: Any) -> UUID | None:
    """A UUID; None for the one of zeros, which stands for none."""
    raw = bytes(data)
    if len(raw) < len(NO_UUID):
        raise MalformedMessageError("a UUID that is cut short")
    return None if raw == NO_UUID else _uuid(raw)


@lru_cache(maxsize=4_096)
def _uuid(raw: bytes) -> UUID:
    # members name the same topics again and again
    return UUID(bytes=raw)


def _text(data: Any, at: int, size: int) -> tuple[Any, int]:
    if size < 0:
        return None, at
    if size > MAX_STRING:
        raise MalformedMessageError(f"a string of {size} bytes, {MAX_STRING} is the most")
    return str(data[at : at + size], "utf-8"), at + size


def _bytes(data: Any, at: int, size: int) -> tuple[Any, int]:
    if size < 0:
        return None, at
    return bytes(data[at : at + size]), at + size


def read_string(data: Any, at: int) -> tuple[Any, int]:
    """A string or null, and the position behind it. One that is cut short is noticed at the end of its message."""
    return _text(data, at + 2, _INT16.unpack_from(data, at)[0])


def read_compact_string(data: Any, at: int) -> tuple[Any, int]:
    """As read_string, of a flexible version."""
    size = data[at]
    if 0 < size < 0x80:
        # nearly every one
        return str(data[at + 1 : at + size], "utf-8"), at + size
    size, at = long_varint(data, at)
    return _text(data, at, size - 1)


def read_bytes(data: Any, at: int) -> tuple[Any, int]:
    """Bytes or null."""
    return _bytes(data, at + 4, _INT32.unpack_from(data, at)[0])


def read_compact_bytes(data: Any, at: int) -> tuple[Any, int]:
    """As read_bytes, of a flexible version."""
    size, at = long_varint(data, at)
    return _bytes(data, at, size - 1)


def _room(data: Any, at: int, left: int, least: int, path: str, size: int) -> tuple[int, int, int]:
    if size < 0:
        return -1, at, left
    left -= size
    if size > (len(data) - at) // least or left < 0:
        raise too_many(path, size, left)
    return size, at, left


def read_count(data: Any, at: int, left: int, least: int, path: str) -> tuple[int, int, int]:
    """An array's length, -1 for null, the position behind it, and how many elements may still come.

    An element has ``least`` bytes or more: an array that its message cannot hold is refused before it is built.
    """
    return _room(data, at + 4, left, least, path, _INT32.unpack_from(data, at)[0])


def read_compact_count(data: Any, at: int, left: int, least: int, path: str) -> tuple[int, int, int]:
    """As read_count, of a flexible version."""
    size, at = long_varint(data, at)
    return _room(data, at, left, least, path, size - 1)


def write_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _INT16.pack(len(data))
        out += data


def write_compact_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out.append(0)
    else:
        data = value.encode()
        out += varint(len(data) + 1)
        out += data


def write_bytes(out: bytearray, value: Any) -> None:
    if value is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _INT32.pack(len(value))
        out += value


def write_compact_bytes(out: bytearray, value: Any) -> None:
    if value is None:
        out.append(0)
    else:
        out += varint(len(value) + 1)
        out += value


def add_records(out: bytearray, data: Any) -> None:
    """Records behind their length."""
    if isinstance(out, Pieces) and not (isinstance(data, bytes) and len(data) < _COPIED_BYTES):
        out.apart.append((len(out), data))
    else:
        out += data


def write_array(
    out: bytearray, items: Any, version: int, write: Callable[[bytearray, Any, int], None]
) -> None:
    """An array that may be prepared."""
    if isinstance(items, PreparedArray):
        out += items.written(version, write)
    else:
        write(out, items, version)


def all_steps(
    write: Callable[[bytearray, Any, int], Iterator[None]],
) -> Callable[[bytearray, Any, int], None]:
    """A function that writes at once what ``write`` writes in steps."""

    def at_once(out: bytearray, body: Any, version: int) -> None:
        for _ in write(out, body, version):
            pass

    return at_once


def write_count(out: bytearray, items: Any) -> None:
    """An array's length, or null."""
    out += _INT32.pack(-1 if items is None else len(items))


def write_compact_count(out: bytearray, items: Any) -> None:
    """As write_count, of a flexible version."""
    out += varint(0 if items is None else len(items) + 1)


def read_tags(data: Any, at: int) -> tuple[list[tuple[int, int, int]], int]:
    """Tag, start and end of each tagged field, and the position behind them."""
    count, at = long_varint(data, at)
    if not 0 <= count <= min(len(data) - at, _MAX_TAGS):
        raise MalformedMessageError(f"{count} tagged fields, {len(data) - at} bytes are left")
    tags = []
    for _ in range(count):
        tag, at = long_varint(data, at)
        size, at = long_varint(data, at)
        if not 0 <= size <= len(data) - at:
            raise MalformedMessageError(f"a tagged field of {size} bytes where {len(data) - at} are left")
        tags.append((tag, at, at + size))
        at += size
    return tags, at


def skip_tags(data: Any, at: int) -> int:
    """The position behind the tagged fields, none of which is known."""
    return read_tags(data, at)[1]


def write_tags(out: bytearray, tags: list[tuple[int, bytearray]]) -> None:
    """Tagged fields, by rising tags."""
    out += varint(len(tags))
    for tag, content in tags:
        out += varint(tag)
        out += varint(len(content))
        out += content


def null_in(path: str) -> MalformedMessageError:
    """A field that is null, or has a negative length, and may not."""
    return MalformedMessageError(f"{path} is null and may not be")


def too_many(path: str, count: int, left: int) -> MalformedMessageError:
    """An array that cannot be as long as it says, or is longer than a request may have elements."""
    if left < 0:
        return MalformedMessageError(f"{path} has {count} elements: more in all than a request may have")
    return MalformedMessageError(f"{path} says that it has {count} elements, which the message cannot hold")
