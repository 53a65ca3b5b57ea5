"""Codecs by hand for the requests that a coordinator gets most of: Heartbeat and OffsetCommit.

kafka-python's classes are the reference: what is read here equals what they read, and what cannot be read
straight away (a tagged field, a null where none may be, bytes that end early) is left to them, so that there
is one judge of what is wrong with a message. Names of fields are the schema's.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ._apis import APIS, ApiKey

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_PREFIX = struct.Struct(">hh")
_HEADER = struct.Struct(">ih")
_BODY_AT: Final = 10


class HeartbeatBody(NamedTuple):
    """Heartbeat v0-4."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


class CommitBodyPartition(NamedTuple):
    """A partition of an OffsetCommit."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class CommitBodyTopic(NamedTuple):
    """A topic of an OffsetCommit; ``topic_id`` is None below v10, and where it is all zeros."""

    name: str
    topic_id: uuid.UUID | None
    partitions: list[CommitBodyPartition]


class CommitBody(NamedTuple):
    """OffsetCommit v2-10."""

    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    retention_time_ms: int
    topics: list[CommitBodyTopic]


class HotCodec(NamedTuple):
    """One version of an API. ``decode`` takes a frame and where its body starts, and gives None (or raises
    one of UNREADABLE) for what the reference shall read; ``encode`` gives a whole response frame.
    """

    api_key: ApiKey
    version: int
    flexible: bool
    decode: Callable[[bytes, int], Any]
    encode: Callable[[int, Any], bytes]


_new = tuple.__new__
_NO_TOPIC: Final = uuid.UUID(int=0)
_NO_TAGS: Final = b"\x00"
_SMALL: Final = [bytes([value]) for value in range(0x80)]

_MAX_STRING_BYTES: Final = 0x7FFF
_NULL: Final = 0xFFFF

#: What a ``decode`` may raise on bytes that it cannot read.
UNREADABLE: Final = (struct.error, IndexError, UnicodeDecodeError)


def hot_codec(prefix: bytes) -> HotCodec | None:
    """The codec for frames that begin with these four bytes: API number and version."""
    return _CODECS.get(prefix)


def hot_header(frame: bytes, codec: HotCodec) -> tuple[int, int]:
    """Correlation id, and where the body starts. Raises one of UNREADABLE."""
    correlation_id, size = _HEADER.unpack_from(frame, 4)
    at = _BODY_AT + (size if size > 0 else 0)
    if codec.flexible:
        if frame[at]:
            raise IndexError("tagged fields in the header")
        at += 1
    return correlation_id, at


# --- reading -----------------------------------------------------------------------------------------------
# A frame that ends early shows itself by the position behind the last field; slices never raise.


def _read_heartbeat(version: int, flexible: bool) -> Callable[[bytes, int], HeartbeatBody | None]:
    has_instance = version >= 3

    def classic(frame: bytes, at: int) -> HeartbeatBody | None:
        group, at = _string(frame, at)
        (generation,) = _INT32.unpack_from(frame, at)
        member, at = _string(frame, at + 4)
        instance = None
        if has_instance:
            instance, at = _nullable_string(frame, at)
        if group is None or member is None or at > len(frame):
            return None
        return HeartbeatBody(group, generation, member, instance)

    def compact(frame: bytes, at: int) -> HeartbeatBody | None:
        group, at = _compact_string(frame, at)
        (generation,) = _INT32.unpack_from(frame, at)
        member, at = _compact_string(frame, at + 4)
        instance, at = _compact_string(frame, at)
        # the last byte counts tagged fields: it being there tells that all before it is
        if group is None or member is None or frame[at]:
            return None
        return HeartbeatBody(group, generation, member, instance)

    return compact if flexible else classic


def _read_commit(version: int, flexible: bool) -> Callable[[bytes, int], CommitBody | None]:
    has_instance, has_retention, has_epoch, has_ids = version >= 7, version <= 4, version >= 6, version >= 10
    fixed = struct.Struct(">iqi") if has_epoch else struct.Struct(">iq")

    def classic(frame: bytes, at: int) -> CommitBody | None:
        group, at = _string(frame, at)
        (generation,) = _INT32.unpack_from(frame, at)
        member, at = _string(frame, at + 4)
        instance, retention_ms = None, -1
        if has_instance:
            instance, at = _nullable_string(frame, at)
        if has_retention:
            (retention_ms,) = _INT64.unpack_from(frame, at)
            at += 8
        (count,) = _INT32.unpack_from(frame, at)
        at += 4
        if group is None or member is None or not 0 <= count <= len(frame):
            return None
        topics = []
        for _ in range(count):
            name, at = _string(frame, at)
            (partition_count,) = _INT32.unpack_from(frame, at)
            at += 4
            if name is None or not 0 <= partition_count <= len(frame):
                return None
            partitions = []
            for _ in range(partition_count):
                values = fixed.unpack_from(frame, at)
                metadata, at = _nullable_string(frame, at + fixed.size)
                epoch = values[2] if has_epoch else -1
                partitions.append(CommitBodyPartition(values[0], values[1], epoch, metadata))
            topics.append(CommitBodyTopic(name, None, partitions))
        body = CommitBody(group, generation, member, instance, retention_ms, topics)
        return body if at <= len(frame) else None

    def compact(frame: bytes, at: int) -> CommitBody | None:
        group, at = _compact_string(frame, at)
        (generation,) = _INT32.unpack_from(frame, at)
        member, at = _compact_string(frame, at + 4)
        instance, at = _compact_string(frame, at)
        count, at = _uvarint(frame, at)
        if group is None or member is None or not 0 < count <= len(frame):
            return None
        topics = []
        for _ in range(count - 1):
            name: str | None = ""
            topic_id = None
            if has_ids:
                topic_id, at = _uuid(frame, at)
            else:
                name, at = _compact_string(frame, at)
            partition_count, at = _uvarint(frame, at)
            if name is None or not 0 < partition_count <= len(frame):
                return None
            partitions = []
            for _ in range(partition_count - 1):
                fields = fixed.unpack_from(frame, at)
                metadata, at = _compact_string(frame, at + 16)
                if frame[at]:
                    return None
                at += 1
                # as calling the class, in half the time
                partitions.append(_new(CommitBodyPartition, (*fields, metadata)))
            if frame[at]:
                return None
            at += 1
            topics.append(CommitBodyTopic(name, topic_id, partitions))
        return None if frame[at] else CommitBody(group, generation, member, instance, -1, topics)

    return compact if flexible else classic


def _string(frame: bytes, at: int) -> tuple[str | None, int]:
    """A string behind an int16; None for what is no length (null among them)."""
    size = frame[at] << 8 | frame[at + 1]
    end = at + 2 + size
    return (str(frame[at + 2 : end], "utf-8") if size <= _MAX_STRING_BYTES else None), end


def _nullable_string(frame: bytes, at: int) -> tuple[str | None, int]:
    size = frame[at] << 8 | frame[at + 1]
    if size == _NULL:
        return None, at + 2
    if size > _MAX_STRING_BYTES:
        raise IndexError(size)
    end = at + 2 + size
    return str(frame[at + 2 : end], "utf-8"), end


def _compact_string(frame: bytes, at: int) -> tuple[str | None, int]:
    """A string behind a varint of its length + 1, None for null."""
    size = frame[at]
    at += 1
    if not size:
        return None, at
    if size > 0x7F:
        size, at = _uvarint(frame, at - 1)
        if size > _MAX_STRING_BYTES:
            raise IndexError(size)
    end = at + size - 1
    return str(frame[at:end], "utf-8"), end


def _uvarint(frame: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := frame[at]) > 0x7F:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if shift > 28:
            raise IndexError(shift)
    return value | byte << shift, at + 1


def _uuid(frame: bytes, at: int) -> tuple[uuid.UUID | None, int]:
    data = frame[at : at + 16]
    return (uuid.UUID(bytes=data) if any(data) else None), at + 16


# --- writing -----------------------------------------------------------------------------------------------


def _write_heartbeat(version: int, flexible: bool) -> Callable[[int, Any], bytes]:
    if version == 0:
        bare = struct.Struct(">iih")
        return lambda correlation_id, body: bare.pack(6, correlation_id, body.error_code)
    layout = struct.Struct(">iixihx" if flexible else ">iiih")
    size = layout.size - 4
    return lambda correlation_id, body: layout.pack(
        size, correlation_id, body.throttle_time_ms, body.error_code
    )


def _write_commit(version: int, flexible: bool) -> Callable[[int, Any], bytes]:
    head = struct.Struct(">iixi" if flexible else ">iii" if version >= 3 else ">ii")
    outcome = struct.Struct(">ihx" if flexible else ">ih")
    has_ids = version >= 10
    has_throttle_time = version >= 3

    def write(correlation_id: int, body: Any) -> bytes:
        parts = [b"", _uvarint_bytes(len(body.topics) + 1) if flexible else _INT32.pack(len(body.topics))]
        for topic in body.topics:
            partitions = topic.partitions
            if flexible:
                parts.append((topic.topic_id or _NO_TOPIC).bytes if has_ids else _compact_bytes(topic.name))
                parts.append(_uvarint_bytes(len(partitions) + 1))
            else:
                name = topic.name.encode()
                parts.append(_INT16.pack(len(name)) + name + _INT32.pack(len(partitions)))
            parts += [outcome.pack(part.partition_index, part.error_code) for part in partitions]
            if flexible:
                parts.append(_NO_TAGS)
        if flexible:
            parts.append(_NO_TAGS)
        size = sum(map(len, parts)) + head.size - 4
        if has_throttle_time:
            parts[0] = head.pack(size, correlation_id, body.throttle_time_ms)
        else:
            parts[0] = head.pack(size, correlation_id)
        return b"".join(parts)

    return write


def _compact_bytes(text: str) -> bytes:
    data = text.encode()
    return _uvarint_bytes(len(data) + 1) + data


def _uvarint_bytes(value: int) -> bytes:
    if value <= 0x7F:
        return _SMALL[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _codecs() -> dict[bytes, HotCodec]:
    found = {}
    for key, reader, writer in (
        (ApiKey.HEARTBEAT, _read_heartbeat, _write_heartbeat),
        (ApiKey.OFFSET_COMMIT, _read_commit, _write_commit),
    ):
        api = APIS[key]
        for version in range(api.min_version, api.max_version + 1):
            flexible = api.flexible(version)
            found[_PREFIX.pack(key, version)] = HotCodec(
                key, version, flexible, reader(version, flexible), writer(version, flexible)
            )
    return found


_CODECS: Final = _codecs()
