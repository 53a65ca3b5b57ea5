"""Records of share groups (KIP-932) in ``__consumer_offsets``: key types 10 to 15.

A group is stored in many records, laid out as those of consumer groups (``consumer_groups``). The keys of 10,
13 and 14 have the member id behind the group.

==============================  ========================================================================
type, schema                    value
==============================  ========================================================================
10 ShareGroupMemberMetadata     nullable string rack; strings client id and host; array of topics
11 ShareGroupMetadata           int32 group epoch; int64 hash of the topics' metadata
12 ...TargetAssignmentMetadata  int32 epoch of the target; tag 0: int64 time of its computation
13 ...TargetAssignmentMember    array of (uuid topic, array of int32 partitions)
14 ...CurrentMemberAssignment   int32 epoch; int32 previous epoch; int8 state; partitions as in 13
15 ...StatePartitionMetadata    topics whose state at the share coordinator is being initialized, those
                                whose is: (uuid, string name, array of int32 partitions); those whose is
                                being deleted: (uuid, string name)
==============================  ========================================================================
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final, TypeAlias
from uuid import UUID

from ..protocol import WireReader
from ..protocol.named_tuples import NamedTuple
from .group_records import RecordFormats
from .group_values import (
    NO_TAGS,
    Partitions,
    TargetAssignment,
    TargetEpoch,
    key_string,
    read_partitions,
    read_target,
    read_target_epoch,
    read_version,
    write_array,
    write_nullable_string,
    write_numbers,
    write_partitions,
    write_string,
    write_target,
    write_target_epoch,
)

_VERSION: Final = b"\x00\x00"
_EPOCH, _EPOCHS = struct.Struct(">iq"), struct.Struct(">iib")


class ShareRecordType(IntEnum):
    """Types of records: the versions of their keys."""

    MEMBER = 10
    EPOCH = 11
    TARGET_EPOCH = 12
    TARGET = 13
    CURRENT = 14
    TOPICS = 15


class ShareEpoch(NamedTuple):
    """Epoch of a group, and a hash of the metadata of the subscribed topics at that epoch."""

    epoch: int
    metadata_hash: int = 0


class ShareMemberMetadata(NamedTuple):
    """What a member's heartbeats say about it."""

    rack_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]


class ShareAssignment(NamedTuple):
    """What a member has, and its epochs. ``state`` is always 0: nobody waits for others."""

    epoch: int
    previous_epoch: int
    partitions: Partitions
    state: int = 0


class ShareTopic(NamedTuple):
    """The name of a topic, and its partitions; none for a topic whose state is being deleted."""

    name: str
    partitions: tuple[int, ...] = ()


class ShareTopics(NamedTuple):
    """Topics by id: whose partitions are being initialized at the share coordinator, are initialized there,
    and whose state is being deleted.
    """

    initializing: Mapping[UUID, ShareTopic]
    initialized: Mapping[UUID, ShareTopic]
    deleting: Mapping[UUID, ShareTopic]


ShareRecordValue: TypeAlias = (
    ShareEpoch | ShareMemberMetadata | TargetEpoch | TargetAssignment | ShareAssignment | ShareTopics
)


class ShareGroupRecord(NamedTuple):
    """A record of a share group. ``member_id`` is "" in records about the group as a whole. Without a value
    the record is a tombstone.
    """

    type: ShareRecordType
    group: str
    member_id: str = ""
    value: ShareRecordValue | None = None

    def encode(self) -> tuple[bytes, bytes | None]:
        """Return key and value. Raises ValueError for a too long string, struct.error for a number."""
        kind, group, member_id, value = self
        key = kind.to_bytes(2, "big") + key_string(group)
        if kind in _OF_MEMBERS:
            key += key_string(member_id)
        return key, None if value is None else _VERSION + _WRITERS[type(value)](value)

    def readable(self) -> tuple[str, dict[str, object]]:
        """Return the kind of the record, and its fields by name."""
        kind = f"share group {self.type.name.lower().replace('_', ' ')}"
        fields: dict[str, object] = {"group": self.group}
        if self.member_id:
            fields["member"] = self.member_id
        if self.value is None:
            return f"{kind} tombstone", fields
        return kind, fields | {name: _readable_value(told) for name, told in self.value._asdict().items()}


_OF_MEMBERS: Final = frozenset({ShareRecordType.MEMBER, ShareRecordType.TARGET, ShareRecordType.CURRENT})


def _readable_value(told: object) -> object:
    """Return a field's value as ``kohort log dump`` prints it."""
    if not isinstance(told, Mapping):
        return told
    return {
        str(topic_id): topic._asdict() if isinstance(topic, ShareTopic) else list(topic)
        for topic_id, topic in told.items()
    }


def decode_share_group(key_type: int, key: WireReader, value: bytes | None) -> ShareGroupRecord:
    """Decode a record; ``key`` is positioned after its type. Raises MalformedMessageError."""
    kind = ShareRecordType(key_type)
    group, member_id = key.string(), key.string() if kind in _OF_MEMBERS else ""
    if value is None:
        return ShareGroupRecord(kind, group, member_id)
    reader = WireReader(value)
    read_version(reader, 0)
    return ShareGroupRecord(kind, group, member_id, _READERS[kind](reader))


#: What ``records`` needs to know of them.
SHARE_GROUP_RECORDS: Final = RecordFormats(tuple(ShareRecordType), decode_share_group)


# --- values -------------------------------------------------------------------------------------------------


def _write_epoch(value: ShareEpoch) -> bytes:
    return _EPOCH.pack(*value) + NO_TAGS


def _read_epoch(reader: WireReader) -> ShareEpoch:
    value = ShareEpoch(reader.int32(), reader.int64())
    reader.tags()
    return value


def _write_member(value: ShareMemberMetadata) -> bytes:
    texts = write_nullable_string(value.rack_id) + write_string(value.client_id)
    topics = write_array(map(write_string, value.topics))
    return texts + write_string(value.client_host) + topics + NO_TAGS


def _read_member(reader: WireReader) -> ShareMemberMetadata:
    value = ShareMemberMetadata(
        reader.nullable_string(),
        reader.string(),
        reader.string(),
        tuple(reader.string() for _ in range(reader.array_size(1))),
    )
    reader.tags()
    return value


def _write_assignment(value: ShareAssignment) -> bytes:
    head = _EPOCHS.pack(value.epoch, value.previous_epoch, value.state)
    return head + write_partitions(value.partitions) + NO_TAGS


def _read_assignment(reader: WireReader) -> ShareAssignment:
    epoch, previous_epoch, state = reader.int32(), reader.int32(), reader.int8()
    value = ShareAssignment(epoch, previous_epoch, read_partitions(reader), state)
    reader.tags()
    return value


def _write_topics(value: ShareTopics) -> bytes:
    parts = [
        write_array(
            topic_id.bytes + write_string(name) + write_numbers(numbers) + NO_TAGS
            for topic_id, (name, numbers) in topics.items()
        )
        for topics in (value.initializing, value.initialized)
    ]
    deleting = write_array(
        topic_id.bytes + write_string(topic.name) + NO_TAGS for topic_id, topic in value.deleting.items()
    )
    return b"".join((*parts, deleting, NO_TAGS))


def _read_topics(reader: WireReader) -> ShareTopics:
    value = ShareTopics(
        _read_named(reader, reader.int32s), _read_named(reader, reader.int32s), _read_named(reader, tuple)
    )
    reader.tags()
    return value


def _read_named(reader: WireReader, read_numbers: Callable[[], tuple[int, ...]]) -> dict[UUID, ShareTopic]:
    topics: dict[UUID, ShareTopic] = {}
    for _ in range(reader.array_size(1)):
        topic_id = reader.uuid()
        topics[topic_id] = ShareTopic(reader.string(), read_numbers())
        reader.tags()
    return topics


_WRITERS: Final[dict[type, Callable[..., bytes]]] = {
    ShareEpoch: _write_epoch,
    ShareMemberMetadata: _write_member,
    TargetEpoch: write_target_epoch,
    TargetAssignment: write_target,
    ShareAssignment: _write_assignment,
    ShareTopics: _write_topics,
}
_READERS: Final[dict[ShareRecordType, Callable[[WireReader], ShareRecordValue]]] = {
    ShareRecordType.MEMBER: _read_member,
    ShareRecordType.EPOCH: _read_epoch,
    ShareRecordType.TARGET_EPOCH: read_target_epoch,
    ShareRecordType.TARGET: read_target,
    ShareRecordType.CURRENT: _read_assignment,
    ShareRecordType.TOPICS: _read_topics,
}
