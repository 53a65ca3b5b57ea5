"""What members say they own, read so that thousands who own alike cost little more than one.

Members of a group mostly own equal numbers of the same topics, so their bytes have one layout: the names and
counts of one are those of the next, and only partition numbers differ. A layout that was seen once is checked
and read by a single ``struct``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class ClaimReader:
    """Remembers layouts; one for each call of an assignor."""

    _known: dict[int, list[_Shape]] = field(default_factory=dict)  # by length

    def sticky(self, data: bytes | None) -> Claimed:
        """User data of ``sticky``: as :func:`decode_sticky` reads it, only quicker."""
        if not data:
            return Claimed((), b"", NO_GENERATION)
        known = self._known.setdefault(len(data), [])
        for shape in known:
            if claimed := shape.read(data):
                return claimed
        found = _Shape.of(data)
        claimed = found.read(data) if found else None
        if found is None or claimed is None:
            return owned(decode_sticky(data))
        known.insert(0, found)
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


@dataclass(slots=True)
class _Shape:
    """Where names, counts and numbers stand in user data v0 or v1."""

    fields: struct.Struct  # by turns: a head (name and count), its numbers; last, the generation or nothing
    heads: tuple[bytes, ...]
    layout: Layout

    @classmethod
    def of(cls, data: bytes) -> _Shape | None:
        """None for what is not exactly one of the two, kafka-python's version in front included."""
        try:
            heads, layout = _heads_and_layout(data)
        except (struct.error, UnicodeDecodeError):
            return None
        each = (f"{len(head)}s{4 * count}s" for head, (_, count) in zip(heads, layout, strict=True))
        fields = f">{''.join(each)}"
        spare = len(data) - struct.calcsize(fields)
        if not layout or spare not in (0, _INT32.size):
            return None
        return cls(struct.Struct(f"{fields}{spare}s"), tuple(heads), layout)

    def read(self, data: bytes) -> Claimed | None:
        """None when the bytes are laid out in another way."""
        values = self.fields.unpack(data)
        if values[:-1:2] != self.heads:
            return None
        generation = _INT32.unpack(values[-1])[0] if values[-1] else NO_GENERATION
        return Claimed(self.layout, b"".join(values[1::2]), generation)


def _heads_and_layout(data: bytes) -> tuple[list[bytes], Layout]:
    heads: list[bytes] = []
    layout: list[tuple[str, int]] = []
    (topics,) = _INT32.unpack_from(data)
    begin, position = 0, _INT32.size  # the first head has the number of topics in front
    for _ in range(topics):
        (size,) = _INT16.unpack_from(data, position)
        name_end = position + _INT16.size + size
        (count,) = _INT32.unpack_from(data, name_end)
        if size < 0 or count < 0:
            raise struct.error("a null string or array")
        name = data[position + _INT16.size : name_end].decode()
        heads.append(data[begin : name_end + _INT32.size])
        layout.append((name, count))
        begin = position = name_end + _INT32.size + _INT32.size * count
    return heads, tuple(layout)
