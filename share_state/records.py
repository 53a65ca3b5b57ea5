"""Records of ``__share_group_state``, in Apache Kafka's format.

The schemas are Kafka's ShareSnapshotKey/Value.json and ShareUpdateKey/Value.json. Numbers are big-endian.

=====  =====================================================================================
Key    int16 type (0: snapshot, 1: update), group (int16 length, text), topic id (16 bytes),
       int32 partition
Value  int16 version 0, then flexible (KIP-482):
       snapshot: int32 snapshot epoch, int32 state epoch, int32 leader epoch, int64 start
       offset, int64 time of creation, int64 time of writing, batches, tag 0
       update: int32 snapshot epoch, int32 leader epoch, int64 start offset (-1: as it was),
       batches, tag 0
Batch  int64 first, int64 last, int8 state (0 available, 2 acknowledged, 4 archived),
       int16 delivery count, no tags
Tag 0  int32 number of offsets at or above the start offset that are done; left out if -1
=====  =====================================================================================

A record without a value, with the key of a snapshot, deletes the state.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias
from uuid import UUID

from ..protocol import KohortError, ProtocolError, SharePartitionKey
from ..protocol.messages.read_share_group_state import StateBatch
from ..protocol.messages.wire import (
    read_compact_count,
    read_string,
    read_tags,
    skip_tags,
    write_compact_count,
    write_string,
    write_tags,
)
from ..protocol.named_tuples import NamedTuple

#: Stands for "none" in numbers: no start offset, no count.
NONE: Final = -1

_SNAPSHOT, _UPDATE = range(2)
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_PLACE: Final = struct.Struct(">16si")
_SNAPSHOT_HEAD: Final = struct.Struct(">hiiiqqq")
_UPDATE_HEAD: Final = struct.Struct(">hiiq")
# with the number of its tags
_BATCH: Final = struct.Struct(">qqbhB")
_COMPLETE_COUNT: Final = 0

#: Bytes of a batch in a record, with its empty tags; and a bound for what is beside them and the group.
BATCH_BYTES: Final = _BATCH.size
REST_BYTES: Final = 192

_MAX_STRING_BYTES: Final = 0x7FFF
#: Most batches in a record that is read.
_ELEMENTS: Final = 1 << 31


class CorruptStateError(KohortError):
    """A record of the topic cannot be read. The text says why."""


class ShareSnapshot(NamedTuple):
    """The whole state of a share partition. Times are in milliseconds since 1970.

    ``snapshot_epoch`` counts its snapshots. ``batches`` are in order, without overlaps, at or above
    ``start_offset`` (NONE: it is not known yet). ``delivery_complete_count``: see the module.
    """

    key: SharePartitionKey
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    create_ms: int
    write_ms: int
    batches: Sequence[StateBatch] = ()
    delivery_complete_count: int = NONE


class ShareUpdate(NamedTuple):
    """What has changed since the last record: ``start_offset`` NONE leaves it, ``batches`` go on top."""

    key: SharePartitionKey
    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    batches: Sequence[StateBatch] = ()
    delivery_complete_count: int = NONE


class ShareStateDeleted(NamedTuple):
    """Tombstone of a share partition's state."""

    key: SharePartitionKey


ShareRecord: TypeAlias = ShareSnapshot | ShareUpdate | ShareStateDeleted


def encode_all(records: Iterable[ShareRecord]) -> tuple[list[tuple[bytes, bytes | None]], int]:
    """Return keys and values, and their size in bytes. Raises ValueError for a group over 32,767 bytes, and
    struct.error for a number that does not fit.
    """
    pairs = [encode(record) for record in records]
    return pairs, sum(len(key) + len(value or b"") for key, value in pairs)


def encode(record: ShareRecord) -> tuple[bytes, bytes | None]:
    """Return key and value of a record. Raises as ``encode_all``."""
    group_id, topic_id, partition = record.key
    if len(group_id.encode()) > _MAX_STRING_BYTES:
        raise ValueError(f"a group id of more than {_MAX_STRING_BYTES} bytes")
    key = bytearray(_INT16.pack(_UPDATE if isinstance(record, ShareUpdate) else _SNAPSHOT))
    write_string(key, group_id)
    key += _PLACE.pack(topic_id.bytes, partition)
    return bytes(key), None if isinstance(record, ShareStateDeleted) else _encode_value(record)


def _encode_value(record: ShareSnapshot | ShareUpdate) -> bytes:
    if isinstance(record, ShareSnapshot):
        out = bytearray(_SNAPSHOT_HEAD.pack(0, *record[1:7]))
    else:
        out = bytearray(_UPDATE_HEAD.pack(0, *record[1:4]))
    write_compact_count(out, record.batches)
    out += b"".join([_BATCH.pack(*batch, 0) for batch in record.batches])
    count = record.delivery_complete_count
    write_tags(out, [] if count == NONE else [(_COMPLETE_COUNT, bytearray(_INT32.pack(count)))])
    return bytes(out)


def decode(key: bytes | None, value: bytes | None) -> ShareRecord | None:
    """Return a record; None for an unknown key type. Raises CorruptStateError."""
    try:
        if key is None:
            raise CorruptStateError("a record without a key")
        kind = _INT16.unpack_from(key)[0]
        if kind not in (_SNAPSHOT, _UPDATE):
            return None
        group_id, at = read_string(key, _INT16.size)
        if group_id is None or at + _PLACE.size != len(key):
            raise CorruptStateError("a key that is no share partition")
        raw, partition = _PLACE.unpack_from(key, at)
        place = SharePartitionKey(group_id, UUID(bytes=raw), partition)
        if value is None:
            # the last word on an update says nothing: what it was about is in later snapshots, or deleted
            return ShareStateDeleted(place) if kind == _SNAPSHOT else None
        return _decode_value(place, kind, value)
    except (ProtocolError, struct.error, IndexError, ValueError) as error:
        raise CorruptStateError(f"a record of a share partition: {error}") from error


def _decode_value(key: SharePartitionKey, kind: int, data: bytes) -> ShareRecord:
    head = _SNAPSHOT_HEAD if kind == _SNAPSHOT else _UPDATE_HEAD
    version, *numbers = head.unpack_from(data)
    if version != 0:
        raise CorruptStateError(f"a value of version {version}: 0 is known")
    count, at, _ = read_compact_count(data, head.size, _ELEMENTS, BATCH_BYTES, "batches")
    batches = []
    for _ in range(count):
        *batch, _ = _BATCH.unpack_from(data, at)
        batches.append(StateBatch(*batch))
        at = skip_tags(data, at + _BATCH.size - 1)
    tagged = {tag: data[start:end] for tag, start, end in read_tags(data, at)[0]}
    found = tagged.get(_COMPLETE_COUNT)
    complete = NONE if found is None else _INT32.unpack(found)[0]
    fields = (key, *numbers, tuple(batches), complete)
    return ShareSnapshot._make(fields) if kind == _SNAPSHOT else ShareUpdate._make(fields)
