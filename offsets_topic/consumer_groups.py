"""Records of consumer groups (KIP-848) in ``__consumer_offsets``: key types 3 to 8 and 16.

A group is stored in many records. Keys have the group and, where the table says so, a name: a member's id or
a regular expression. Values have version 0, which is flexible (KIP-482): strings and arrays are compact, and
tags end each struct. The schemas are Kafka's ConsumerGroup..., each with a Key and a Value.

=============================  =======  ===================================================================
type, schema                   name     value
=============================  =======  ===================================================================
3 ...Metadata                           int32 group epoch; tag 0: int64 hash of the topics' metadata
4 ...PartitionMetadata                  of early versions of Apache Kafka; only tombstones count
5 ...MemberMetadata            member   nullable strings instance id, rack; strings client id, host; array
                                        of topics; string regular expression; int32 rebalance timeout;
                                        nullable string assignor; tag 0, of members with the classic
                                        protocol: int8 1, int32 session timeout, array of (string protocol,
                                        bytes metadata)
6 ...TargetAssignmentMetadata           int32 epoch of the target; tag 0: int64 time of computation
7 ...TargetAssignmentMember    member   array of (uuid topic, array of int32 partitions)
8 ...CurrentMemberAssignment   member   int32 epoch; int32 previous epoch; int8 state; arrays of assigned
                                        and of revoked: (uuid topic, array of int32 partitions, tag 0:
                                        array of their int32 epochs)
16 ...RegularExpression        pattern  array of topics; int64 version of the metadata; int64 time
=============================  =======  ===================================================================

Times are in milliseconds since 1970.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Final, TypeAlias
from uuid import UUID

from ..protocol import JsonObject, MalformedMessageError, WireReader
from ..protocol.messages.wire import varint
from ..protocol.named_tuples import NamedTuple
from .group_records import RecordFormats
from .group_values import (
    NO_TAGS,
    TargetAssignment,
    TargetEpoch,
    key_string,
    read_target,
    read_target_epoch,
    read_version,
    write_array,
    write_bytes,
    write_nullable_string,
    write_numbers,
    write_string,
    write_tag,
    write_target,
    write_target_epoch,
)

#: Partitions by topic id, each with the epoch at which the member got it.
PartitionEpochs: TypeAlias = Mapping[UUID, Mapping[int, int]]

_VERSION: Final = b"\x00\x00"
_INT32, _INT64, _TWO_INT64 = struct.Struct(">i"), struct.Struct(">q"), struct.Struct(">qq")
_EPOCHS = struct.Struct(">iib")


class GroupRecordType(IntEnum):
    """Types of records: the versions of their keys."""

    EPOCH = 3
    PARTITION_METADATA = 4
    MEMBER = 5
    TARGET_EPOCH = 6
    TARGET = 7
    CURRENT = 8
    REGEX = 16


class GroupEpoch(NamedTuple):
    """Epoch of a group, and a hash of the metadata of the subscribed topics at that epoch; 0 for none."""

    epoch: int
    metadata_hash: int = 0


class ClassicMetadata(NamedTuple):
    """Session timeout and protocols (name, metadata) of a member that uses the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class MemberMetadata(NamedTuple):
    """What a member's heartbeats say about it; ``classic`` is None for members with the consumer protocol."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str
    rebalance_timeout_ms: int
    assignor: str | None = None
    classic: ClassicMetadata | None = None


class CurrentAssignment(NamedTuple):
    """The partitions that a member owns, and those that it has to revoke.

    ``state`` is the number of an :class:`~kohort.statemachine.AssignmentState`.
    """

    epoch: int
    previous_epoch: int
    state: int
    assigned: PartitionEpochs
    revoking: PartitionEpochs


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched at ``timestamp_ms``, by a version of the metadata."""

    topics: tuple[str, ...]
    metadata_version: int
    timestamp_ms: int


GroupRecordValue: TypeAlias = (
    GroupEpoch | MemberMetadata | TargetEpoch | TargetAssignment | CurrentAssignment | ResolvedRegex
)


class ConsumerGroupRecord(NamedTuple):
    """A record of a consumer group. ``name`` is the member's id or the regular expression, "" in records
    about the group as a whole. Without a value the record is a tombstone.
    """

    type: GroupRecordType
    group: str
    name: str = ""
    value: GroupRecordValue | None = None

    def encode(self) -> tuple[bytes, bytes | None]:
        """Return key and value. Raises ValueError for a too long string, struct.error for a number."""
        kind, group, name, value = self
        make = _known_key if len(group) + len(name) <= _KNOWN_CHARACTERS else _key
        return make(kind, group, name), None if value is None else _VERSION + _WRITERS[type(value)](value)

    def readable(self) -> tuple[str, JsonObject]:
        """Return the kind of the record, and its fields by name."""
        kind = f"consumer group {self.type.name.lower().replace('_', ' ')}"
        fields: dict[str, object] = {"group": self.group}
        if self.name:
            fields["regex" if self.type is GroupRecordType.REGEX else "member"] = self.name
        if self.value is None:
            return f"{kind} tombstone", fields
        told = self.value._asdict()
        for name in ("partitions", "assigned", "revoking"):
            if name in told:
                told[name] = {str(topic): list(numbers) for topic, numbers in told[name].items()}
        if told.get("classic") is not None:
            told["classic"] = told["classic"]._asdict()
        return kind, fields | told


def _key(kind: GroupRecordType, group: str, name: str) -> bytes:
    key = kind.to_bytes(2, "big") + key_string(group)
    return key + key_string(name) if kind in _NAMED else key


#: Longer names are not cached: clients choose them, and the cache outlives the groups.
_KNOWN_CHARACTERS: Final = 200

_known_key = lru_cache(maxsize=16_384)(_key)


_NAMED: Final = frozenset(
    {GroupRecordType.MEMBER, GroupRecordType.TARGET, GroupRecordType.CURRENT, GroupRecordType.REGEX}
)


def decode_consumer_group(key_type: int, key: WireReader, value: bytes | None) -> ConsumerGroupRecord | None:
    """Decode a record; ``key`` is positioned after its type. None for one of an unused type.

    Raises MalformedMessageError.
    """
    kind = GroupRecordType(key_type)
    group, name = key.string(), key.string() if kind in _NAMED else ""
    if value is None:
        return ConsumerGroupRecord(kind, group, name)
    read = _READERS.get(kind)
    if read is None:
        return None
    reader = WireReader(value)
    read_version(reader, 0)
    return ConsumerGroupRecord(kind, group, name, read(reader))


#: What ``records`` needs to know of them.
CONSUMER_GROUP_RECORDS: Final = RecordFormats(tuple(GroupRecordType), decode_consumer_group)


# --- values -------------------------------------------------------------------------------------------------


def _write_epoch(value: GroupEpoch) -> bytes:
    tags = write_tag(_INT64.pack(value.metadata_hash)) if value.metadata_hash else NO_TAGS
    return _INT32.pack(value.epoch) + tags


def _read_epoch(reader: WireReader) -> GroupEpoch:
    epoch = reader.int32()
    return GroupEpoch(epoch, reader.tags({0: reader.int64}).get(0, 0))


def _write_member(value: MemberMetadata) -> bytes:
    return b"".join(
        (
            write_nullable_string(value.instance_id),
            write_nullable_string(value.rack_id),
            write_string(value.client_id),
            write_string(value.client_host),
            write_array(map(write_string, value.topics)),
            write_string(value.regex),
            _INT32.pack(value.rebalance_timeout_ms),
            write_nullable_string(value.assignor),
            # this tagged field is present for null, too
            write_tag(NO_TAGS if value.classic is None else b"\x01" + _write_classic(value.classic)),
        )
    )


def _read_member(reader: WireReader) -> MemberMetadata:
    return MemberMetadata(
        reader.nullable_string(),
        reader.nullable_string(),
        reader.string(),
        reader.string(),
        tuple(reader.string() for _ in range(reader.array_size(1))),
        reader.nullable_string() or "",
        reader.int32(),
        reader.nullable_string(),
        reader.tags({0: lambda: _read_classic(reader)}).get(0),
    )


def _write_classic(value: ClassicMetadata) -> bytes:
    protocols = write_array(
        write_string(name) + write_bytes(data) + NO_TAGS for name, data in value.protocols
    )
    return _INT32.pack(value.session_timeout_ms) + protocols + NO_TAGS


def _read_classic(reader: WireReader) -> ClassicMetadata | None:
    if not reader.uvarint():
        return None
    session_timeout_ms, protocols = reader.int32(), []
    for _ in range(reader.array_size(1)):
        protocols.append((reader.string(), reader.nullable_bytes() or b""))
        reader.tags()
    reader.tags()
    return ClassicMetadata(session_timeout_ms, tuple(protocols))


def _write_current(value: CurrentAssignment) -> bytes:
    head = _EPOCHS.pack(value.epoch, value.previous_epoch, value.state)
    return head + _write_epochs(value.assigned) + _write_epochs(value.revoking) + NO_TAGS


def _read_current(reader: WireReader) -> CurrentAssignment:
    epoch, previous_epoch, state = reader.int32(), reader.int32(), reader.int8()
    # older brokers wrote no epochs of partitions
    current = CurrentAssignment(
        epoch, previous_epoch, state, _read_epochs(reader, epoch), _read_epochs(reader, epoch)
    )
    reader.tags()
    return current


def _write_epochs(topics: PartitionEpochs) -> bytes:
    if not topics:
        return b"\x01"
    parts = [varint(len(topics) + 1)]
    for topic_id, partitions in topics.items():
        parts += (topic_id.bytes, write_numbers(partitions), write_tag(write_numbers(partitions.values())))
    return b"".join(parts)


def _read_epochs(reader: WireReader, default: int) -> PartitionEpochs:
    found: dict[UUID, dict[int, int]] = {}
    for _ in range(reader.array_size(1)):
        topic_id, partitions = reader.uuid(), reader.int32s()
        epochs = reader.tags({0: reader.int32s}).get(0) or (default,) * len(partitions)
        if len(epochs) != len(partitions):
            raise MalformedMessageError(f"{len(partitions)} partitions of a topic with {len(epochs)} epochs")
        found[topic_id] = dict(zip(partitions, epochs, strict=True))
    return found


def _write_regex(value: ResolvedRegex) -> bytes:
    times = _TWO_INT64.pack(value.metadata_version, value.timestamp_ms)
    return write_array(map(write_string, value.topics)) + times + NO_TAGS


def _read_regex(reader: WireReader) -> ResolvedRegex:
    topics = tuple(reader.string() for _ in range(reader.array_size(1)))
    value = ResolvedRegex(topics, reader.int64(), reader.int64())
    reader.tags()
    return value


_WRITERS: Final[dict[type, Callable[..., bytes]]] = {
    GroupEpoch: _write_epoch,
    MemberMetadata: _write_member,
    TargetEpoch: write_target_epoch,
    TargetAssignment: write_target,
    CurrentAssignment: _write_current,
    ResolvedRegex: _write_regex,
}
_READERS: Final[dict[GroupRecordType, Callable[[WireReader], GroupRecordValue]]] = {
    GroupRecordType.EPOCH: _read_epoch,
    GroupRecordType.MEMBER: _read_member,
    GroupRecordType.TARGET_EPOCH: read_target_epoch,
    GroupRecordType.TARGET: read_target,
    GroupRecordType.CURRENT: _read_current,
    GroupRecordType.REGEX: _read_regex,
}
