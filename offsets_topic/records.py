"""Records of ``__consumer_offsets``: typed values and their bytes, as Apache Kafka writes and reads them.

A key begins with an int16, the type of the record: 0 or 1 is a committed offset, 2 a classic group, 3 to 8
and 16 belong to consumer groups (KIP-848, see ``consumer_groups``), 10 to 15 to share groups (KIP-932, see
``share_groups``). Other types, such as those of streams groups, are kept and ignored. A type of groups with
records of its own has a file, and a row in ``_FORMATS``.
A value begins with its int16 version; a record without a value is a tombstone.
Numbers are big-endian; strings are UTF-8 with an int16 length in front. Values of version 4 are flexible
(KIP-482): compact strings and arrays, tags behind each struct.

==================  ======  ==========================================================
                    type    field, and the versions that have it
==================  ======  ==========================================================
OffsetCommitKey     string  group
                    string  topic
                    int32   partition
OffsetCommitValue   int64   offset
                    int32   leader epoch: 3, 4
                    string  metadata
                    int64   time of the commit, in milliseconds since 1970
                    int64   time at which it expires: 1
                    tag 0   id of the topic, 16 bytes: 4
GroupMetadataKey    string  group
GroupMetadataValue  string  protocol type
                    int32   generation
                    string  protocol; null for none
                    string  member id of the leader; null for none
                    int64   time of the last change of state: 2 to 4
                    array   members:
a member            string  member id
                    string  instance id; null for none: 3, 4
                    string  client id, then client host
                    int32   rebalance timeout in milliseconds: 1 to 4
                    int32   session timeout in milliseconds
                    bytes   subscription, then assignment, with int32 lengths in front
==================  ======  ==========================================================

Read: all versions. Written: OffsetCommitValue 4, 3 for a topic whose id is not known, or 1 for a commit with
an expiry of its own; GroupMetadataValue 3, as Apache Kafka does not write its 4 yet.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from ..protocol import KohortError, MalformedMessageError, WireReader, has_native
from ..protocol.messages.wire import varint
from ..protocol.named_tuples import NamedTuple
from .consumer_groups import CONSUMER_GROUP_RECORDS
from .group_records import GroupRecord, RecordFormats
from .group_values import key_string, read_version
from .share_groups import SHARE_GROUP_RECORDS

NATIVE = has_native("offsets_topic", "encode_commits")
if NATIVE:
    from ._native import encode_commits

#: The records of each type of groups that has its own.
_FORMATS: Final[tuple[RecordFormats, ...]] = (CONSUMER_GROUP_RECORDS, SHARE_GROUP_RECORDS)
_DECODERS: Final = {key_type: formats.decode for formats in _FORMATS for key_type in formats.types}

#: No leader epoch, no expiry, no state timestamp.
NONE = -1

_OFFSET_KEY_TYPES = (0, 1)
_GROUP_KEY_TYPE = 2
_LAST_VERSION = 4
_PLAIN_VERSIONS = (b"\x00\x03", b"\x00\x04")
_TOPIC_ID_TAG = 0
_NO_ID = bytes(16)
_MAX_STRING_BYTES = 0x7FFF

_INT32 = struct.Struct(">i")
_THREE_INT32 = struct.Struct(">iii")
_INT64 = struct.Struct(">q")
_OFFSET_HEAD = struct.Struct(">hqih")  # version 3, offset, leader epoch, length of metadata
_BARE_OFFSET = struct.Struct(">hqihq")  # the same with empty metadata, and the commit's timestamp
_OFFSET_HEAD_V4 = struct.Struct(">hqi")  # version 4, offset, leader epoch
#: The same with empty metadata (a compact length of 0), timestamp, and one tagged field: the topic's id.
BARE_OFFSET_V4 = struct.Struct(">hqibqbbb16s")
_OFFSET_HEAD_V1 = struct.Struct(">hqh")
_TWO_INT64 = struct.Struct(">qq")


class CorruptRecordError(KohortError):
    """A record of ``__consumer_offsets`` cannot be decoded; the message says which part."""


class OffsetCommitted(NamedTuple):
    """A group's committed offset of a partition. Leader epoch and expiry (milliseconds) may be NONE.

    ``topic_id`` has 16 bytes; none if it is not known, as in records of older versions.
    """

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NONE
    topic_id: bytes = b""


class OffsetDeleted(NamedTuple):
    """Tombstone of a committed offset."""

    group: str
    topic: str
    partition: int


class StoredMember(NamedTuple):
    """A member in a group's record. ``subscription`` is its metadata for the group's chosen protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupStored(NamedTuple):
    """A completed generation of a classic group: Stable with members, Empty without.

    ``protocol_type`` is "" for none.
    """

    group: str
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[StoredMember, ...] = ()


class GroupDeleted(NamedTuple):
    """Tombstone of a group."""

    group: str


class UnknownRecord(NamedTuple):
    """A record of an unknown type, with its bytes."""

    type: int
    key: bytes
    value: bytes | None


Record: TypeAlias = OffsetCommitted | OffsetDeleted | GroupStored | GroupDeleted | GroupRecord | UnknownRecord


def encode(record: Record) -> tuple[bytes, bytes | None]:
    """Encode a record into key and value. Raises ValueError for a string of more than 32,767 bytes."""
    if isinstance(record, OffsetCommitted):
        return offset_key(record.group, record.topic, record.partition), _offset_value(record)
    if isinstance(record, GroupStored):
        return group_key(record.group), _group_value(record)
    if isinstance(record, OffsetDeleted):
        return offset_key(*record), None
    if isinstance(record, GroupDeleted):
        return group_key(record.group), None
    if isinstance(record, UnknownRecord):
        return record.key, record.value
    return record.encode()


def encode_all(records: Iterable[Record]) -> tuple[list[tuple[bytes, bytes | None]], int]:
    """Encode records; returns keys and values, and their total size in bytes. Raises as ``encode`` does.

    This Python is the specification; compiled, ``_native.pyx`` does the same with plain commits.
    """
    if NATIVE:
        return encode_commits(records, OffsetCommitted, _encode_quickly)
    pairs = [_encode_quickly(record) for record in records]
    return pairs, sum(len(key) + len(value or b"") for key, value in pairs)


def _encode_quickly(record: Record) -> tuple[bytes, bytes | None]:
    """As ``encode``; nearly every record is a commit without metadata."""
    if type(record) is not OffsetCommitted or record.metadata or record.expire_timestamp_ms != NONE:
        return encode(record)
    group, topic, partition, offset, leader_epoch, _, commit_timestamp_ms, _, topic_id = record
    key = offset_key(group, topic, partition)
    if topic_id:
        return key, BARE_OFFSET_V4.pack(4, offset, leader_epoch, 1, commit_timestamp_ms, 1, 0, 16, topic_id)
    return key, _BARE_OFFSET.pack(3, offset, leader_epoch, 0, commit_timestamp_ms)


@lru_cache(maxsize=16_384)
def offset_key(group: str, topic: str, partition: int) -> bytes:
    """Key of a committed offset: version 1 (2 bytes), group, topic (each 2 bytes of length, UTF-8), partition
    (4).
    """
    return b"\x00\x01" + key_string(group) + key_string(topic) + _INT32.pack(partition)


def group_key(group: str) -> bytes:
    """Key of a classic group: version 2 (2 bytes), group (2 bytes of length, UTF-8)."""
    return b"\x00\x02" + key_string(group)


def group_keys(group: str) -> tuple[bytes, ...]:
    """How the keys of a group's records begin, but for those of its offsets."""
    return group_key(group), *(key_type.to_bytes(2, "big") + key_string(group) for key_type in _DECODERS)


def _offset_value(record: OffsetCommitted) -> bytes:
    metadata = record.metadata.encode()
    if len(metadata) > _MAX_STRING_BYTES:
        raise ValueError(f"offset metadata of {len(metadata)} bytes: shorten it below {_MAX_STRING_BYTES}")
    if record.expire_timestamp_ms == NONE and record.topic_id:
        head = _OFFSET_HEAD_V4.pack(4, record.offset, record.leader_epoch)
        text = varint(len(metadata) + 1) + metadata
        return head + text + _INT64.pack(record.commit_timestamp_ms) + b"\x01\x00\x10" + record.topic_id
    if record.expire_timestamp_ms == NONE:
        head = _OFFSET_HEAD.pack(3, record.offset, record.leader_epoch, len(metadata))
        return head + metadata + _INT64.pack(record.commit_timestamp_ms)
    # only version 1 has an expiry; it has neither leader epoch nor topic id
    head = _OFFSET_HEAD_V1.pack(1, record.offset, len(metadata))
    return head + metadata + _TWO_INT64.pack(record.commit_timestamp_ms, record.expire_timestamp_ms)


def _group_value(record: GroupStored) -> bytes:
    parts = [
        b"\x00\x03",
        key_string(record.protocol_type),
        _INT32.pack(record.generation),
        _nullable_string(record.protocol),
        _nullable_string(record.leader),
        _INT64.pack(record.state_timestamp_ms),
        _INT32.pack(len(record.members)),
    ]
    # client id and host are mostly the same for many members: encode them once
    clients: dict[tuple[str, str], bytes] = {}
    for (
        member_id,
        instance_id,
        client_id,
        host,
        rebalance_ms,
        session_ms,
        subscription,
        owned,
    ) in record.members:
        client = clients.get((client_id, host))
        if client is None:
            client = clients[client_id, host] = key_string(client_id) + key_string(host)
        parts += (
            key_string(member_id),
            _nullable_string(instance_id),
            client,
            _THREE_INT32.pack(rebalance_ms, session_ms, len(subscription)),
            subscription,
            _INT32.pack(len(owned)),
            owned,
        )
    return b"".join(parts)


def _nullable_string(text: str | None) -> bytes:
    return b"\xff\xff" if text is None else key_string(text)


def decode(key: bytes | None, value: bytes | None) -> Record:
    """Decode a record from key and value; one of an unknown type becomes an UnknownRecord.

    Raises CorruptRecordError if the bytes do not match their type and version.
    """
    if key is None:
        raise CorruptRecordError("a record without key in the offsets topic")
    if value is not None and key[:2] == b"\x00\x01" and value[:2] in _PLAIN_VERSIONS:
        record = _read_plain_offset(key, value)
        if record is not None:
            return record
    try:
        return _read(key, value)
    except MalformedMessageError as error:
        raise CorruptRecordError(f"a record of type {int.from_bytes(key[:2], 'big')}: {error}") from error


def _read_plain_offset(key: bytes, value: bytes) -> OffsetCommitted | None:
    """Decode a commit in the most frequent versions, in a third of the time; None for all other records."""
    try:
        topic_at = 6 + int.from_bytes(key[2:4], "big", signed=True)
        topic_size = int.from_bytes(key[topic_at - 2 : topic_at], "big", signed=True)
        partition_at = topic_at + topic_size
        if topic_at < 6 or topic_size < 0:
            return None
        if value[1] == _LAST_VERSION:
            return _read_plain_v4(key, topic_at, partition_at, value)
        _, offset, leader_epoch, metadata_size = _OFFSET_HEAD.unpack_from(value)
        metadata_end = _OFFSET_HEAD.size + metadata_size
        if metadata_size < 0:
            return None
        return OffsetCommitted(
            key[4 : topic_at - 2].decode(),
            key[topic_at:partition_at].decode(),
            _INT32.unpack_from(key, partition_at)[0],
            offset,
            leader_epoch,
            value[_OFFSET_HEAD.size : metadata_end].decode(),
            _INT64.unpack_from(value, metadata_end)[0],
        )
    except (struct.error, UnicodeDecodeError):
        return None


def _read_plain_v4(key: bytes, topic_at: int, partition_at: int, value: bytes) -> OffsetCommitted | None:
    """As ``_read_plain_offset``, of a value of version 4 without metadata and with a topic id."""
    if len(value) != BARE_OFFSET_V4.size or value[14] != 1 or value[23:26] != b"\x01\x00\x10":
        return None
    _, offset, leader_epoch, _, commit_timestamp_ms, _, _, _, topic_id = BARE_OFFSET_V4.unpack(value)
    return OffsetCommitted(
        key[4 : topic_at - 2].decode(),
        key[topic_at:partition_at].decode(),
        _INT32.unpack_from(key, partition_at)[0],
        offset,
        leader_epoch,
        "",
        commit_timestamp_ms,
        NONE,
        known_id(topic_id),
    )


def _read(key: bytes, value: bytes | None) -> Record:
    reader = WireReader(key)
    record_type = reader.int16()
    if record_type in _OFFSET_KEY_TYPES:
        group, topic, partition = reader.string(), reader.string(), reader.int32()
        if value is None:
            return OffsetDeleted(group, topic, partition)
        return _read_offset(group, topic, partition, WireReader(value))
    if record_type == _GROUP_KEY_TYPE:
        group = reader.string()
        return GroupDeleted(group) if value is None else _read_group(group, WireReader(value))
    if (decode_group_record := _DECODERS.get(record_type)) is not None:
        record = decode_group_record(record_type, reader, value)
        return UnknownRecord(record_type, key, value) if record is None else record
    if record_type < 0:
        raise MalformedMessageError("there are none such in the offsets topic")
    return UnknownRecord(record_type, key, value)


def _read_offset(group: str, topic: str, partition: int, reader: WireReader) -> OffsetCommitted:
    version = read_version(reader, _LAST_VERSION)
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else NONE
    metadata = reader.string()
    commit_timestamp_ms = reader.int64()
    expire_timestamp_ms = reader.int64() if version == 1 else NONE
    tags = reader.tags({_TOPIC_ID_TAG: lambda: reader.uuid().bytes})
    return OffsetCommitted(
        group,
        topic,
        partition,
        offset,
        leader_epoch,
        metadata,
        commit_timestamp_ms,
        expire_timestamp_ms,
        known_id(tags.get(_TOPIC_ID_TAG, b"")),
    )


def known_id(topic_id: bytes) -> bytes:
    """Return a topic id, but none for the one of zeros, which stands for an unknown one."""
    return b"" if topic_id == _NO_ID else topic_id


def _read_group(group: str, reader: WireReader) -> GroupStored:
    version = read_version(reader, _LAST_VERSION)
    protocol_type = reader.string()
    generation = reader.int32()
    protocol = reader.nullable_string()
    leader = reader.nullable_string()
    state_timestamp_ms = reader.int64() if version >= 2 else NONE
    members = tuple(_read_member(version, reader) for _ in range(reader.array_size(1)))
    reader.tags()
    return GroupStored(group, protocol_type, generation, protocol, leader, state_timestamp_ms, members)


def _read_member(version: int, reader: WireReader) -> StoredMember:
    member_id = reader.string()
    instance_id = reader.nullable_string() if version >= 3 else None
    client_id, client_host = reader.string(), reader.string()
    rebalance_timeout_ms = reader.int32() if version >= 1 else NONE
    session_timeout_ms = reader.int32()
    if rebalance_timeout_ms == NONE:
        rebalance_timeout_ms = session_timeout_ms
    subscription, assignment = reader.nullable_bytes() or b"", reader.nullable_bytes() or b""
    reader.tags()
    return StoredMember(
        member_id,
        instance_id,
        client_id,
        client_host,
        rebalance_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    )
