"""Answers to hot requests, written by hand: each function gives the writer of one version's frames.

A writer takes a correlation id and a body, any object with the schema's field names, and gives the whole
frame, length included.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final, TypeAlias

from ._hot_fields import CLASSIC_WRITERS, COMPACT_WRITERS, INT32

#: Writes a response frame.
Writer: TypeAlias = Callable[[int, Any], bytes]

_NO_TOPIC: Final = uuid.UUID(int=0)
_INT16 = struct.Struct(">h")
_ERROR_GENERATION = struct.Struct(">hi")


def heartbeat_writer(version: int, flexible: bool) -> Writer:
    """Heartbeat: v1 throttle time."""
    if version == 0:
        bare = struct.Struct(">iih")
        return lambda correlation_id, body: bare.pack(6, correlation_id, body.error_code)
    layout = struct.Struct(">iixihx" if flexible else ">iiih")
    size = layout.size - 4
    return lambda correlation_id, body: layout.pack(
        size, correlation_id, body.throttle_time_ms, body.error_code
    )


def commit_writer(version: int, flexible: bool) -> Writer:
    """OffsetCommit: v3 throttle time, v10 topic ids for names."""
    text, _, count, _, tags = COMPACT_WRITERS if flexible else CLASSIC_WRITERS
    outcomes = _outcomes(">ihx" if flexible else ">ih")
    frame = _framer(flexible, throttled=version >= 3)
    has_ids = version >= 10

    def write(correlation_id: int, body: Any) -> bytes:
        parts = [count(len(body.topics))]
        for topic in body.topics:
            partitions = topic.partitions
            parts.append((topic.topic_id or _NO_TOPIC).bytes if has_ids else text(topic.name))
            parts.append(count(len(partitions)))
            parts.append(outcomes(partitions))
            parts.append(tags)
        parts.append(tags)
        return frame(correlation_id, body, b"".join(parts))

    return write


def _outcomes(layout: str) -> Callable[[Sequence[Any]], bytes]:
    """Writes the number and the error of each partition."""
    one = struct.Struct(layout).pack

    @lru_cache(maxsize=64)
    def many(count: int) -> Callable[..., bytes]:
        return struct.Struct(">" + layout[1:] * count).pack

    def write(partitions: Sequence[Any]) -> bytes:
        if len(partitions) > 1 and isinstance(partitions[0], tuple):
            return many(len(partitions))(*chain.from_iterable(partitions))
        return b"".join([one(part.partition_index, part.error_code) for part in partitions])

    return write


def join_writer(version: int, flexible: bool) -> Writer:
    """JoinGroup: v2 throttle time, v5 instance ids, v7 protocol type, v9 whether to skip the assignment."""
    text, nullable, count, data, tags = COMPACT_WRITERS if flexible else CLASSIC_WRITERS
    frame = _framer(flexible, throttled=version >= 2)
    protocol = nullable if version >= 7 else text

    def write(correlation_id: int, body: Any) -> bytes:
        parts = [_ERROR_GENERATION.pack(body.error_code, body.generation_id)]
        if version >= 7:
            parts.append(nullable(body.protocol_type))
        parts.append(protocol(body.protocol_name))
        parts.append(text(body.leader))
        if version >= 9:
            parts.append(b"\x01" if body.skip_assignment else b"\x00")
        parts.append(text(body.member_id))
        parts.append(count(len(body.members)))
        for member in body.members:
            parts.append(text(member.member_id))
            if version >= 5:
                parts.append(nullable(member.group_instance_id))
            parts.append(data(member.metadata))
            parts.append(tags)
        parts.append(tags)
        return frame(correlation_id, body, b"".join(parts))

    return write


def sync_writer(version: int, flexible: bool) -> Writer:
    """SyncGroup: v1 throttle time, v5 protocol type and name."""
    _, nullable, _, data, tags = COMPACT_WRITERS if flexible else CLASSIC_WRITERS
    frame = _framer(flexible, throttled=version >= 1)

    def write(correlation_id: int, body: Any) -> bytes:
        parts = [_INT16.pack(body.error_code)]
        if version >= 5:
            parts.append(nullable(body.protocol_type))
            parts.append(nullable(body.protocol_name))
        parts.append(data(body.assignment))
        parts.append(tags)
        return frame(correlation_id, body, b"".join(parts))

    return write


def _framer(flexible: bool, *, throttled: bool) -> Callable[[int, Any, bytes], bytes]:
    """Length and header in front of a body that begins with a throttle time or, in old versions, has none."""
    if not throttled:
        bare = struct.Struct(">ii")
        return lambda correlation_id, _, rest: bare.pack(len(rest) + 4, correlation_id) + rest
    head = struct.Struct(">iixi" if flexible else ">iii")
    extra = head.size - INT32.size
    return lambda correlation_id, body, rest: (
        head.pack(len(rest) + extra, correlation_id, body.throttle_time_ms) + rest
    )
