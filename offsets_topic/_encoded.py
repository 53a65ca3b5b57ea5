"""Fast reading of committed offsets: finds them in a batch and splits them, but does not decode them.

A shard that is loaded reads millions of records. Nearly all are *plain commits*: key version 1, no metadata,
and value version 4 with a topic id, or 3. A plain commit is split into the bytes of its group, its partition
and its value, all checked to be well formed. They are decoded when they are needed, which for most is never.
All other records are returned whole.

There are two methods. If many records in a row have fields of the same lengths, the bytes with these lengths
are compared for all records at once, and then one struct splits the records. Otherwise records are read one
by one. Records that neither method knows are read by ``record_at`` and decoded by the caller.

Compiled (``_native.pyx``), one method is enough: records are read one by one, and plain commits entered at
once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from ..log import record_at
from ..protocol import CorruptBatchError, TopicPartition, has_native
from .records import BARE_OFFSET_V4, CorruptRecordError, known_id

NATIVE = has_native("offsets_topic")
if NATIVE:
    from ._native import take_commits

#: A plain commit: the group in UTF-8; the partition (the topic in UTF-8 with an int16 length in front, then
#: an int32 partition number); the value.
EncodedCommit: TypeAlias = tuple[bytes, bytes, bytes]

#: Committed offsets by group and partition; those of plain commits are the bytes of their values.
Commits: TypeAlias = dict[str, dict[TopicPartition, Any]]

#: Well-formed partitions by their bytes in a plain commit.
Known: TypeAlias = dict[bytes, TopicPartition]

#: A value of version 3 with empty metadata: version, offset, leader epoch, length of the metadata, timestamp.
_VALUE = struct.Struct(">hqihq")
_BARE_VALUE: Final = _VALUE.size
_VALUE_WITH_ID: Final = BARE_OFFSET_V4.size
#: By the size of a plain commit's value, positions from its first byte on of bytes that are the same in all:
#: its length, its version, the length of the metadata, and the head of the field with the topic id.
_FIXED: Final = {_BARE_VALUE: (-1, 0, 1, 14, 15), _VALUE_WITH_ID: (-1, 0, 1, 14, 23, 24, 25)}
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")

_NOT_ASCII: Final = bytes(range(0x80, 0x100))

# shorter runs are read one by one
_SHORTEST_RUN: Final = 32
#: Most commits returned together.
_MOST: Final = 2_000


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
    """Decode the value of an :data:`EncodedCommit`."""
    if len(value) == _VALUE_WITH_ID:
        _, offset, leader_epoch, _, commit_timestamp_ms, _, _, _, topic_id = BARE_OFFSET_V4.unpack(value)
        return CommitValue(offset, leader_epoch, commit_timestamp_ms, known_id(topic_id))
    _, offset, leader_epoch, _, commit_timestamp_ms = _VALUE.unpack(value)
    return CommitValue(offset, leader_epoch, commit_timestamp_ms)


def decode_partition(encoded: bytes) -> TopicPartition:
    """Decode the partition of an :data:`EncodedCommit`. Raises CorruptRecordError."""
    try:
        (size,) = _INT16.unpack_from(encoded)
        if size < 0 or size != len(encoded) - 6:
            raise CorruptRecordError(f"key: a topic of {size} bytes in {len(encoded)}")
        return TopicPartition(encoded[2:-4].decode(), _INT32.unpack_from(encoded, 2 + size)[0])
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptRecordError(f"key: {error}") from error


def load_commits(data: bytes, count: int, by_group: Commits, known: Known) -> Iterator[OtherRecord]:
    """Enter the plain commits of a batch into ``by_group``, and yield its other records in order.

    The other arguments and errors are those of ``split_records``.
    """
    if NATIVE:
        return _entered_by_c(data, count, by_group, known)
    return _enter_records(split_records(data, count, known), by_group, known)


def _entered_by_c(data: bytes, count: int, by_group: Commits, known: Known) -> Iterator[OtherRecord]:
    position, found, size = 0, 0, len(data)
    while position < size:
        position, taken = take_commits(data, position, by_group, known, _learn)
        found += taken
        if position < size:
            try:
                delta, _, key, value, position = record_at(data, position)
            except (IndexError, ValueError) as error:
                raise _unreadable(found, error) from error
            found += 1
            yield OtherRecord(delta, key, value)
    _check(found, count)


def _enter_records(
    pieces: Iterable[Iterable[EncodedCommit] | OtherRecord], by_group: Commits, known: Known
) -> Iterator[OtherRecord]:
    for piece in pieces:
        if isinstance(piece, OtherRecord):
            yield piece
            continue
        for encoded_group, partition, value in piece:
            group = encoded_group.decode()
            key = known.get(partition)
            if key is None:
                key = known[partition] = decode_partition(partition)
            offsets = by_group.get(group)
            if offsets is None:
                by_group[group] = {key: value}
            else:
                offsets[key] = value


def split_records(data: bytes, count: int, known: Known) -> Iterator[Iterable[EncodedCommit] | OtherRecord]:
    """Split the records of an uncompressed batch, without its header; yields them in order.

    ``count`` is the number of records in the batch's header. ``known`` caches partitions that are well
    formed. Raises CorruptBatchError if the bytes are not records, or not ``count`` of them.
    """
    position, found, size = 0, 0, len(data)
    # after a search that found no run, the next search begins later
    search_at, distance = 0, _SHORTEST_RUN
    try:
        while position < size:
            if found >= search_at and count - found >= _SHORTEST_RUN:
                commits, behind, number = _run(data, position, min(count - found, _MOST), known)
                if number:
                    yield commits
                    position, found, distance = behind, found + number, _SHORTEST_RUN
                    continue
                search_at, distance = found + distance, distance * 2
            rows, position = _one_by_one(data, position, max(search_at - found, _SHORTEST_RUN), known)
            if rows:
                found += len(rows)
                yield rows
            else:
                delta, _, key, value, position = record_at(data, position)
                found += 1
                yield OtherRecord(delta, key, value)
    except (IndexError, ValueError) as error:
        raise _unreadable(found, error) from error
    _check(found, count)


def _unreadable(found: int, error: Exception) -> CorruptBatchError:
    return CorruptBatchError(f"record {found} cannot be read: {error}", 0)


def _check(found: int, count: int) -> None:
    if found != count:
        raise CorruptBatchError(f"{found} records, the header says {count}", 0)


def _one_by_one(data: bytes, position: int, most: int, known: Known) -> tuple[list[EncodedCommit], int]:
    """Return at most ``most`` plain commits from ``position`` on, and the position of the first other record.

    Everything is in one loop because a function call would cost half as much as a turn of it.
    """
    rows: list[EncodedCommit] = []
    size = len(data)
    while position < size and len(rows) < most:
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
        # check all fixed bytes: value length 42 and version 4, with empty metadata and one tagged field, the
        # topic id, or 24 and 3, with empty metadata; key version 1, no headers
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
            or (partition not in known and not _learn(partition, known))
        ):
            break
        group = data[at + 4 : group_end]
        if not group.isascii():
            break
        rows.append((group, partition, data[key_end + 1 : end - 1]))
        position = end
    return rows, position


def _learn(partition: bytes, known: Known) -> bool:
    try:
        known[partition] = decode_partition(partition)
    except CorruptRecordError:
        return False
    return True


def _run(data: bytes, position: int, most: int, known: Known) -> tuple[Iterable[EncodedCommit], int, int]:
    """Find a run of plain commits whose fields have the same lengths as those of the record at ``position``.

    Returns the commits, the position after them, and their number; 0 if they are fewer than _SHORTEST_RUN.
    """
    first, behind = _one_by_one(data, position, 1, known)
    size = behind - position
    if not first or (number := min(most, (len(data) - position) // size)) < _SHORTEST_RUN:
        return (), position, 0
    group, partition, value = first[0]
    delta_at = _delta_at(data, position)
    key_at = size - 2 - len(value) - len(group) - len(partition) - 4
    lengths_at = key_at - (1 if len(group) + len(partition) + 4 < 64 else 2)
    group_at, value_at = key_at + 4, size - 1 - len(value)
    # positions, within a record, of the bytes that determine where its fields are: they must equal the first
    # record's
    alike = (
        *range(delta_at),
        *range(lengths_at, group_at),
        *(group_at + len(group) + i for i in (0, 1)),
        *(value_at + i for i in _FIXED[len(value)]),
        size - 1,
    )
    record = data[position:behind]
    for at in alike:
        column = data[position + at : position + number * size : size]
        number -= len(column.lstrip(record[at : at + 1]))
        if number < _SHORTEST_RUN:
            return (), position, 0
    # names must be ASCII, and the offset delta must have as many bytes as in the first record
    text = (*range(group_at, group_at + len(group)), *range(group_at + len(group) + 2, value_at - 5))
    for at in (lengths_at - 1, *text):
        if number and not data[position + at : position + number * size : size].isascii():
            number = 0
    for at in range(delta_at, lengths_at - 1):
        number -= len(data[position + at : position + number * size : size].lstrip(_NOT_ASCII))
    if number < _SHORTEST_RUN:
        return (), position, 0
    end = position + number * size
    cut = _cutter(group_at, len(group), len(partition), len(value))
    return cut.iter_unpack(memoryview(data)[position:end]), end, number


@lru_cache(maxsize=1024)
def _cutter(group_at: int, group_size: int, partition_size: int, value_size: int) -> struct.Struct:
    """Return a struct that splits a record, up to its number of headers, into group, partition and value."""
    return struct.Struct(f"{group_at}x{group_size}s{partition_size}sx{value_size}sx")


def _delta_at(data: bytes, position: int) -> int:
    """Return the position of a record's offset delta, relative to the record's start."""
    at = position
    while data[at] >= 0x80:  # length
        at += 1
    at += 2  # and attributes
    while data[at] >= 0x80:  # time
        at += 1
    return at + 1 - position
