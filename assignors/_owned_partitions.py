"""Fast reader of the owned partitions that members send.

Most members of a group own equal numbers of partitions of the same topics, so their bytes have one layout:
topic names and counts are equal, only partition numbers differ. Compiled, bytes of a known layout are only
compared with it. The bytes are those of ``user_data``: an array of topics (int32 count), each a string (int16
length) and an array of int32.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import repeat
from operator import itemgetter
from typing import Final, NamedTuple

from ..protocol import TopicPartition, has_native
from .user_data import NO_GENERATION, Claim, decode_sticky

NATIVE = has_native("assignors")
if NATIVE:
    from ._native import ClaimLayout, parsed_claims

_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_INT32_MAX = 0x7FFFFFFF
#: Known layouts of one length to try before the bytes are read field by field.
_TRIED = 8

#: Topics and number of partitions of each, in the order of the partition numbers.
Layout = tuple[tuple[str, int], ...]
#: What an OwnedPartitions is made of.
Claimed = tuple[Layout, bytes, int]

# makes a named tuple without the Python code of calling its class
_new: Final = tuple.__new__


class OwnedPartitions(NamedTuple):
    """Claim of a member. ``numbers``: partition numbers as big-endian int32, in the order of ``layout``."""

    layout: Layout
    numbers: bytes
    generation: int


class OwnedPartitionsReader:
    """Reads user data; compiled, it remembers layouts during one call of an assignor."""

    def __init__(self, native: bool = NATIVE) -> None:
        self._native = native
        self._known: dict[int, list[ClaimLayout]] = {}  # by length

    def sticky(self, data: bytes | None) -> OwnedPartitions:
        """Read user data of ``sticky``: faster than :func:`decode_sticky`, with the same result."""
        if not data:
            return OwnedPartitions((), b"", NO_GENERATION)
        claimed = self._read_alike(data) if self._native else _parse_claim(data)
        return owned_partitions(decode_sticky(data)) if claimed is None else _new(OwnedPartitions, claimed)

    def _read_alike(self, data: bytes) -> Claimed | None:
        """Read by the layout of earlier data, if it is the same."""
        known = self._known.setdefault(len(data), [])
        for layout in known:
            if claimed := layout.read(data):
                return claimed
        claimed = parsed_claims(data)
        if claimed is not None:
            known.insert(0, ClaimLayout(data, claimed[0]))
            del known[_TRIED:]
        return claimed


def owned_partitions(claim: Claim) -> OwnedPartitions:
    """Convert ``claim``."""
    topics = map(itemgetter(0), claim.partitions)
    return OwnedPartitions(
        tuple(zip(topics, repeat(1))), _pack_partitions(claim.partitions), claim.generation
    )


def _pack_partitions(partitions: Sequence[TopicPartition]) -> bytes:
    numbers = list(map(itemgetter(1), partitions))
    try:
        return struct.pack(f">{len(numbers)}i", *numbers)
    except struct.error:  # a number beyond int32: no such partition exists, as for -1
        numbers = [number if 0 <= number <= _INT32_MAX else -1 for number in numbers]
        return struct.pack(f">{len(numbers)}i", *numbers)


def _parse_claim(data: bytes) -> Claimed | None:
    """Read user data of exactly v0 or v1; None for anything else, such as kafka-python's format."""
    layout: list[tuple[str, int]] = []
    numbers: list[bytes] = []
    int16, int32 = _INT16.unpack_from, _INT32.unpack_from
    try:
        (topics,) = int32(data)
        position = 4
        for _ in range(topics):
            (size,) = int16(data, position)
            name_end = position + 2 + size
            (count,) = int32(data, name_end)
            if size < 0 or count < 0:
                return None
            layout.append((data[position + 2 : name_end].decode(), count))
            position = name_end + 4 + 4 * count
            numbers.append(data[name_end + 4 : position])
    except (struct.error, UnicodeDecodeError):
        return None
    rest = data[position:]
    if not layout or position > len(data) or len(rest) not in (0, 4):
        return None
    return tuple(layout), b"".join(numbers), _read_generation(rest)


def _read_generation(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True) if data else NO_GENERATION
