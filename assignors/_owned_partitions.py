"""What members say they own, read so that thousands who own alike cost little more than one.

Members of a group mostly own equal numbers of the same topics, so their bytes have one layout: the names and
counts of one are those of the next, and only partition numbers differ. A layout that was seen once is checked
and read by a single ``struct``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import repeat
from operator import itemgetter
from typing import NamedTuple

from ..protocol import TopicPartition
from .user_data import NO_GENERATION, Claim, decode_sticky

_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_INT32_MAX = 0x7FFFFFFF
#: Layouts of one length that are tried before the bytes are read field by field.
_TRIED = 8

#: Topics with how many partitions of each, in the order of the numbers.
Layout = tuple[tuple[str, int], ...]


class Claimed(NamedTuple):
    """A member's claims. ``numbers`` are big-endian int32; members who own alike share one ``layout``."""

    layout: Layout
    numbers: bytes
    generation: int


class ClaimReader:
    """Remembers layouts; one for each call of an assignor."""

    def __init__(self) -> None:
        self._known: dict[int, list[_Shape]] = {}  # by length

    def sticky(self, data: bytes | None) -> Claimed:
        """User data of ``sticky``: as :func:`decode_sticky` reads it, only quicker."""
        if not data:
            return Claimed((), b"", NO_GENERATION)
        known = self._known.setdefault(len(data), [])
        for shape in known:
            if claimed := shape.read(data):
                return claimed
        found = _parsed(data)
        if found is None:
            return owned(decode_sticky(data))
        heads, claimed = found
        known.insert(0, _Shape(heads, claimed.layout))
        del known[_TRIED:]
        return claimed


def owned(claim: Claim) -> Claimed:
    """The same claim in the form that is counted."""
    topics = map(itemgetter(0), claim.partitions)
    return Claimed(tuple(zip(topics, repeat(1))), _packed(claim.partitions), claim.generation)


def _packed(partitions: Sequence[TopicPartition]) -> bytes:
    numbers = list(map(itemgetter(1), partitions))
    try:
        return struct.pack(f">{len(numbers)}i", *numbers)
    except struct.error:  # there are no such partitions
        numbers = [number if 0 <= number <= _INT32_MAX else -1 for number in numbers]
        return struct.pack(f">{len(numbers)}i", *numbers)


class _Shape:
    """Where names, counts and numbers stand in user data v0 or v1."""

    def __init__(self, heads: tuple[bytes, ...], layout: Layout) -> None:
        self.heads = heads
        self.layout = layout
        self._fields: struct.Struct | None = None  # made when a second one has this length

    def read(self, data: bytes) -> Claimed | None:
        """None when the bytes are laid out in another way."""
        if not data.startswith(self.heads[0]):
            return None
        if self._fields is None:
            self._fields = self._struct(len(data))
        values = self._fields.unpack(data)
        if values[:-1:2] != self.heads:
            return None
        return Claimed(self.layout, b"".join(values[1::2]), _generation(values[-1]))

    def _struct(self, size: int) -> struct.Struct:
        """By turns a head (name and count) and its numbers; last, the generation or nothing."""
        each = (f"{len(head)}s{4 * count}s" for head, (_, count) in zip(self.heads, self.layout, strict=True))
        fields = f">{''.join(each)}"
        return struct.Struct(f"{fields}{size - struct.calcsize(fields)}s")


def _parsed(data: bytes) -> tuple[tuple[bytes, ...], Claimed] | None:
    """Heads and claims of exactly v0 or v1; None for anything else, such as kafka-python's form."""
    heads: list[bytes] = []
    layout: list[tuple[str, int]] = []
    numbers: list[bytes] = []
    int16, int32 = _INT16.unpack_from, _INT32.unpack_from
    try:
        (topics,) = int32(data)
        begin, position = 0, 4  # the first head has the number of topics in front
        for _ in range(topics):
            (size,) = int16(data, position)
            name_end = position + 2 + size
            (count,) = int32(data, name_end)
            if size < 0 or count < 0:
                return None
            layout.append((data[position + 2 : name_end].decode(), count))
            heads.append(data[begin : name_end + 4])
            begin = position = name_end + 4 + 4 * count
            numbers.append(data[name_end + 4 : position])
    except (struct.error, UnicodeDecodeError):
        return None
    rest = data[position:]
    if not layout or position > len(data) or len(rest) not in (0, 4):
        return None
    return tuple(heads), Claimed(tuple(layout), b"".join(numbers), _generation(rest))


def _generation(data: bytes) -> int:
    return int(_INT32.unpack(data)[0]) if data else NO_GENERATION
