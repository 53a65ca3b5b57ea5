"""What the written readers and writers of messages share."""

from __future__ import annotations

from struct import pack, unpack_from
from typing import Any, Final
from uuid import UUID

from .._errors import MalformedMessageError

__all__ = [
    "BYTES",
    "NO_UUID",
    "_new",
    "long_varint",
    "malformed",
    "null_in",
    "pack",
    "read_tags",
    "read_uuid",
    "skip_tags",
    "too_many",
    "unpack_from",
    "varint",
    "write_tags",
]

#: Makes a named tuple in half the time of calling its class.
_new: Final[Any] = tuple.__new__
NO_UUID: Final = bytes(16)
#: Small varints.
BYTES: Final = tuple(bytes([number]) for number in range(128))

malformed = MalformedMessageError
#: A varint of Kafka's has five bytes at most.
_MAX_SHIFT: Final = 28


def long_varint(data: Any, at: int) -> tuple[int, int]:
    """The unsigned varint at ``at``, and the position behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > _MAX_SHIFT:
            raise MalformedMessageError("a varint of more than five bytes")


def varint(value: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uuid(data: Any) -> UUID | None:
    """A UUID; None for the one of zeros, which stands for none."""
    raw = bytes(data)
    return None if raw == NO_UUID else UUID(bytes=raw)


def read_tags(data: Any, at: int) -> tuple[list[tuple[int, int, int]], int]:
    """Tag, start and end of each tagged field, and the position behind them."""
    count, at = long_varint(data, at)
    if count > len(data) - at:
        raise MalformedMessageError(f"{count} tagged fields where {len(data) - at} bytes are left")
    tags = []
    for _ in range(count):
        tag, at = long_varint(data, at)
        size, at = long_varint(data, at)
        if size > len(data) - at:
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
