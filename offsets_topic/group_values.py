"""What the records of several types of groups have in common: fields of flexible values (KIP-482), and the
values about a target assignment.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias
from uuid import UUID

from ..protocol import MalformedMessageError, WireReader
from ..protocol.messages.wire import varint
from ..protocol.named_tuples import NamedTuple

#: Partitions by topic id.
Partitions: TypeAlias = Mapping[UUID, tuple[int, ...]]

#: The end of a struct without tagged fields.
NO_TAGS: Final = b"\x00"

_INT32, _INT64 = struct.Struct(">i"), struct.Struct(">q")
_MAX_STRING_BYTES: Final = 0x7FFF


class TargetEpoch(NamedTuple):
    """The group epoch for which the target assignment was computed, and the time of that."""

    epoch: int
    timestamp_ms: int = 0


class TargetAssignment(NamedTuple):
    """The partitions of a member's target assignment."""

    partitions: Partitions


def write_target_epoch(value: TargetEpoch) -> bytes:
    """Encode the epoch of a target."""
    tags = write_tag(_INT64.pack(value.timestamp_ms)) if value.timestamp_ms else NO_TAGS
    return _INT32.pack(value.epoch) + tags


def read_target_epoch(reader: WireReader) -> TargetEpoch:
    """Read the epoch of a target."""
    epoch = reader.int32()
    return TargetEpoch(epoch, reader.tags({0: reader.int64}).get(0, 0))


def write_target(value: TargetAssignment) -> bytes:
    """Encode a member's target."""
    return write_partitions(value.partitions) + NO_TAGS


def read_target(reader: WireReader) -> TargetAssignment:
    """Read a member's target."""
    partitions = read_partitions(reader)
    reader.tags()
    return TargetAssignment(partitions)


def write_partitions(partitions: Partitions) -> bytes:
    """Encode partitions by topic id."""
    return write_array(
        topic_id.bytes + write_numbers(numbers) + NO_TAGS for topic_id, numbers in partitions.items()
    )


def read_partitions(reader: WireReader) -> Partitions:
    """Read partitions by topic id."""
    partitions: dict[UUID, tuple[int, ...]] = {}
    for _ in range(reader.array_size(1)):
        topic_id = reader.uuid()
        partitions[topic_id] = reader.int32s()
        reader.tags()
    return partitions


def read_version(reader: WireReader, last: int) -> int:
    """Read the version of a value. ``last``, the newest known version, is flexible.

    Raises MalformedMessageError for a newer one.
    """
    version = reader.int16()
    if not 0 <= version <= last:
        raise MalformedMessageError(f"version {version} is not known here")
    reader.flexible = version == last
    return version


# --- fields -------------------------------------------------------------------------------------------------


def key_string(text: str) -> bytes:
    """Encode a string of a key, or of a value that is not flexible."""
    data = _utf8(text)
    return len(data).to_bytes(2, "big") + data


def write_string(text: str) -> bytes:
    """Encode a string. Raises ValueError for one of more than 32,767 bytes."""
    return write_bytes(_utf8(text))


def write_nullable_string(text: str | None) -> bytes:
    """Encode a string or null."""
    return b"\x00" if text is None else write_string(text)


def write_bytes(data: bytes) -> bytes:
    """Encode bytes."""
    return varint(len(data) + 1) + data


def write_array(elements: Iterable[bytes]) -> bytes:
    """Encode an array of encoded elements."""
    encoded = list(elements)
    return varint(len(encoded) + 1) + b"".join(encoded)


def write_numbers(numbers: Collection[int]) -> bytes:
    """Encode an array of int32."""
    count = len(numbers)
    return varint(count + 1) + struct.pack(f">{count}i", *numbers)


def write_tag(data: bytes) -> bytes:
    """Encode tagged fields with one field, tag 0."""
    return b"\x01\x00" + varint(len(data)) + data


def _utf8(text: str) -> bytes:
    data = text.encode()
    if len(data) > _MAX_STRING_BYTES:
        raise ValueError(f"a string of {len(data)} bytes: shorten it below {_MAX_STRING_BYTES}")
    return data
