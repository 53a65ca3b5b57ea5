"""Fast reading of committed offsets: finds them in a batch and splits them, but does not decode them.

A shard that is loaded reads millions of records. Nearly all are *plain commits*: key version 1, no metadata,
and value version 4 with a topic id, or 3. The partition of a plain commit is looked up by its bytes, and its
value is kept as bytes, all checked to be well formed. Values are decoded when they are needed, which for most
is never. Compiled (``_native.pyx``), all plain commits that lie behind each other are entered at once.

All other records are returned whole.

======  ========  ===========================================
offset  type      field of a plain commit's value
======  ========  ===========================================
0       int16     version 3 or 4
2       int64     offset
10      int32     leader epoch
14      int16     version 3: length of the metadata, 0
16      int64     version 3: time of the commit; that is all
14      int8      version 4: length of the metadata plus 1: 1
15      int64     version 4: time of the commit
23      3 * int8  version 4: one tag, number 0, 16 bytes
26      16 bytes  version 4: id of the topic
======  ========  ===========================================
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from ..protocol import CorruptBatchError, TopicPartition, has_native
from ..protocol.named_tuples import NamedTuple
from ..protocol.records import cut_field, locate_record
from .records import BARE_OFFSET_V4, CorruptRecordError, known_id

NATIVE = has_native("offsets_topic")
if NATIVE:
    from ._native import take_commits

#: Committed offsets by group and partition; those of plain commits are the bytes of their values.
Commits: TypeAlias = dict[str, dict[TopicPartition, Any]]

#: Well-formed partitions by their bytes in a plain commit: the topic in UTF-8 with an int16 length in front,
#: then an int32 partition number.
Known: TypeAlias = dict[bytes, TopicPartition]

#: A value of version 3 with empty metadata: version, offset, leader epoch, length of the metadata, timestamp.
_VALUE = struct.Struct(">hqihq")
_BARE_VALUE: Final = _VALUE.size
_VALUE_WITH_ID: Final = BARE_OFFSET_V4.size
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class OtherRecord(NamedTuple):
    """A record that is not a plain commit; ``delta`` is its offset minus the batch's base offset."""

    delta: int
    key: bytes | None
    value: bytes | None


class CommitValue(NamedTuple):
    """Fields of a plain commit's value, whose metadata is empty. ``topic_id`` has 16 bytes, or none."""

    offset: int
    leader_epoch: int
    commit_timestamp_ms: int
    topic_id: bytes = b""


def decode_commit_value(value: bytes) -> CommitValue:
    """Decode the value of a plain commit."""
    if len(value) == _VALUE_WITH_ID:
        _, offset, leader_epoch, _, commit_timestamp_ms, _, _, _, topic_id = BARE_OFFSET_V4.unpack(value)
        return CommitValue(offset, leader_epoch, commit_timestamp_ms, known_id(topic_id))
    _, offset, leader_epoch, _, commit_timestamp_ms = _VALUE.unpack(value)
    return CommitValue(offset, leader_epoch, commit_timestamp_ms)


def decode_partition(encoded: bytes) -> TopicPartition:
    """Decode the partition of a plain commit. Raises CorruptRecordError."""
    try:
        (size,) = _INT16.unpack_from(encoded)
        if size < 0 or size != len(encoded) - 6:
            raise CorruptRecordError(f"key: a topic of {size} bytes in {len(encoded)}")
        return TopicPartition(encoded[2:-4].decode(), _INT32.unpack_from(encoded, 2 + size)[0])
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptRecordError(f"key: {error}") from error


def load_commits(data: bytes, count: int, by_group: Commits, known: Known) -> Iterator[OtherRecord]:
    """Enter the plain commits of an uncompressed batch, without its header, into ``by_group``, and yield its
    other records in order.

    ``count`` is the number of records in the batch's header. ``known`` caches well-formed partitions. Raises
    CorruptBatchError if the bytes are not records, or not ``count`` of them.
    """
    position, found, size = 0, 0, len(data)
    while position < size:
        position, taken = (take_commits if NATIVE else _take_plain_commits)(
            data, position, by_group, known, _learn_partition
        )
        found += taken
        if position < size:
            try:
                located = locate_record(data, position)
            except CorruptBatchError as error:
                raise CorruptBatchError(f"record {found} cannot be read: {error}") from error
            _, delta, key_at, key_size, value_at, value_size, _, position = located
            found += 1
            yield OtherRecord(delta, cut_field(data, key_at, key_size), cut_field(data, value_at, value_size))
    if found != count:
        raise CorruptBatchError(f"{found} records, the header says {count}")


def _take_plain_commits(
    data: bytes, position: int, by_group: Commits, known: Known, learn: Callable[[bytes, Known], bool]
) -> tuple[int, int]:
    """Enter plain commits from ``position`` on into ``by_group``. Return the position of the first record
    that is none, and how many there were.

    Everything is in one loop because a function call would cost half as much as a turn of it.
    """
    size, taken = len(data), 0
    try:
        while position < size:
            length, at = data[position], position + 1
            if length >= 0x80:
                length, at = length & 0x7F | data[at] << 7, at + 1
            end = at + (length >> 1)
            if length & 1 or length > 0x3FFF or end > size:
                break
            at += 1  # attributes
            while data[at] >= 0x80:  # time
                at += 1
            at += 1
            while data[at] >= 0x80:  # offset
                at += 1
            key_size, at = data[at + 1], at + 2
            if key_size >= 0x80:
                key_size, at = key_size & 0x7F | data[at] << 7, at + 1
            key_end = at + (key_size >> 1)
            group_end = at + 4 + data[at + 3]
            partition = data[group_end:key_end]
            # check all fixed bytes: value length 42 and version 4, with empty metadata and one tagged field,
            # the topic id, or 24 and 3, with empty metadata; key version 1, no headers
            value_size = end - key_end - 2
            if (
                (
                    data[key_end : key_end + 3] != b"\x54\x00\x04"
                    or data[key_end + 15] != 1
                    or data[key_end + 24 : key_end + 27] != b"\x01\x00\x10"
                    if value_size == _VALUE_WITH_ID
                    else value_size != _BARE_VALUE
                    or data[key_end : key_end + 3] != b"\x30\x00\x03"
                    or data[key_end + 15 : key_end + 17] != b"\x00\x00"
                )
                or data[at : at + 3] != b"\x00\x01\x00"
                or key_size & 1
                or data[end - 1]
                or (partition not in known and not learn(partition, known))
            ):
                break
            group = data[at + 4 : group_end]
            if not group.isascii():
                break
            value = data[key_end + 1 : end - 1]
            key = known[partition]
            offsets = by_group.get(name := group.decode())
            if offsets is None:
                by_group[name] = {key: value}
            else:
                offsets[key] = value
            taken += 1
            position = end
    except IndexError:
        pass  # the careful reader finds out what is wrong
    return position, taken


def _learn_partition(partition: bytes, known: Known) -> bool:
    try:
        known[partition] = decode_partition(partition)
    except CorruptRecordError:
        return False
    return True
