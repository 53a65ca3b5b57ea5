"""The fields of hot messages: functions that read one at a position and give it with the position behind it,
functions that write one. Each set comes in two kinds: classic, and compact for flexible versions (KIP-482).

A slice never raises, so a frame that ends early shows itself only at its end: readers of a classic message
compare the last position with the length, a flexible message ends with a count of tagged fields that is not
there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

INT32 = struct.Struct(">i")
INT64 = struct.Struct(">q")
_INT16 = struct.Struct(">h")

#: What reading raises on bytes that the reference shall judge.
UNREADABLE: Final = (struct.error, IndexError, UnicodeDecodeError)

#: Most elements of an array; the reference has its own limit.
MAX_ELEMENTS: Final = 10_000

_MAX_STRING_BYTES: Final = 0x7FFF
_NULL: Final = 0xFFFF
_NO_TAGS: Final = b"\x00"

_ReadText: TypeAlias = Callable[[bytes, int], tuple[str, int]]
_ReadNullable: TypeAlias = Callable[[bytes, int], tuple[str | None, int]]
_ReadCount: TypeAlias = Callable[[bytes, int], tuple[int, int]]
_ReadBytes: TypeAlias = Callable[[bytes, int], tuple[bytes, int]]


class Readers(NamedTuple):
    """Readers of one kind. ``tags`` steps over a struct's tagged fields, which must be none."""

    text: _ReadText
    nullable: _ReadNullable
    elements: _ReadCount
    data: _ReadBytes
    tags: Callable[[bytes, int], int]


class Writers(NamedTuple):
    """Writers of one kind; ``tags`` ends a struct."""

    text: Callable[[str], bytes]
    nullable: Callable[[str | None], bytes]
    elements: Callable[[int], bytes]
    data: Callable[[bytes], bytes]
    tags: bytes


# --- classic -----------------------------------------------------------------------------------------------


def _text(frame: bytes, at: int) -> tuple[str, int]:
    size = frame[at] << 8 | frame[at + 1]
    if size > _MAX_STRING_BYTES:
        raise IndexError("a null, or a negative length")
    end = at + 2 + size
    return str(frame[at + 2 : end], "utf-8"), end


def _nullable(frame: bytes, at: int) -> tuple[str | None, int]:
    if frame[at] << 8 | frame[at + 1] == _NULL:
        return None, at + 2
    return _text(frame, at)


def _count(frame: bytes, at: int) -> tuple[int, int]:
    (count,) = INT32.unpack_from(frame, at)
    if not 0 <= count <= MAX_ELEMENTS:
        raise IndexError("a null, or too many")
    return count, at + 4


def _data(frame: bytes, at: int) -> tuple[bytes, int]:
    (size,) = INT32.unpack_from(frame, at)
    if size < 0:
        raise IndexError("a null")
    end = at + 4 + size
    return frame[at + 4 : end], end


def _no_tags(_frame: bytes, at: int) -> int:
    return at


def _write_text(text: str) -> bytes:
    data = text.encode()
    return _INT16.pack(len(data)) + data


CLASSIC_READERS: Final = Readers(_text, _nullable, _count, _data, _no_tags)
CLASSIC_WRITERS: Final = Writers(
    _write_text,
    lambda text: b"\xff\xff" if text is None else _write_text(text),
    INT32.pack,
    lambda data: INT32.pack(len(data)) + data,
    b"",
)


# --- compact: a varint of length + 1, 0 for null -----------------------------------------------------------


def compact_text(frame: bytes, at: int) -> tuple[str, int]:
    """A string that may not be null."""
    size = frame[at]
    if not 0 < size < 0x80:
        size, at = _length(frame, at)
    end = at + size
    return str(frame[at + 1 : end], "utf-8"), end


def compact_nullable(frame: bytes, at: int) -> tuple[str | None, int]:
    """A string or null."""
    return compact_text(frame, at) if frame[at] else (None, at + 1)


def _compact_count(frame: bytes, at: int) -> tuple[int, int]:
    count, at = _uvarint(frame, at)
    if not 0 < count <= MAX_ELEMENTS:
        raise IndexError("a null, or too many")
    return count - 1, at


def _compact_data(frame: bytes, at: int) -> tuple[bytes, int]:
    size, at = _uvarint(frame, at)
    if not size:
        raise IndexError("a null")
    end = at + size - 1
    return frame[at:end], end


def _tags(frame: bytes, at: int) -> int:
    if frame[at]:
        raise IndexError("tagged fields")
    return at + 1


def _length(frame: bytes, at: int) -> tuple[int, int]:
    """A string's length + 1, and the position of its last byte: where a length of one byte would be."""
    size, at = _uvarint(frame, at)
    if not 0 < size <= _MAX_STRING_BYTES:
        raise IndexError("a null, or too long")
    return size, at - 1


def _uvarint(frame: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := frame[at]) > 0x7F:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if shift > 28:
            raise IndexError("a number of more than five bytes")
    return value | byte << shift, at + 1


def uvarint_bytes(value: int) -> bytes:
    if value <= 0x7F:
        return _SMALL[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL: Final = [bytes([value]) for value in range(0x80)]


def _write_compact_data(data: bytes) -> bytes:
    return uvarint_bytes(len(data) + 1) + data


COMPACT_READERS: Final = Readers(compact_text, compact_nullable, _compact_count, _compact_data, _tags)
COMPACT_WRITERS: Final = Writers(
    lambda text: _write_compact_data(text.encode()),
    lambda text: _NO_TAGS if text is None else _write_compact_data(text.encode()),
    lambda count: uvarint_bytes(count + 1),
    _write_compact_data,
    _NO_TAGS,
)
