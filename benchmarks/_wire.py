"""Kafka frames by hand: the requests that the load of a broker is made of, and their answers.

No client library stands between the clock and the broker. Versions are the newest that name topics, as
modern clients send them: Heartbeat 4, OffsetCommit 9, OffsetFetch 8, JoinGroup 9, SyncGroup 5, LeaveGroup 5,
FindCoordinator 4, CreateTopics 7.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

CLIENT_ID = b"kohort-benchmark"
PROTOCOL_TYPE = b"consumer"
PROTOCOL = b"range"
#: Where a request frame holds its correlation id, and an answer frame its own.
REQUEST_ID_AT, ANSWER_ID_AT = 8, 4

_NULL = b"\x00"
_TAGS = b"\x00"
_INT = struct.Struct(">i")


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact(data: bytes) -> bytes:
    """A compact string or compact bytes."""
    return uvarint(len(data) + 1) + data


def array(items: Iterable[bytes]) -> bytes:
    """A compact array of encoded items."""
    encoded = list(items)
    return uvarint(len(encoded) + 1) + b"".join(encoded)


def frame(api_key: int, version: int, body: bytes, correlation_id: int = 0) -> bytes:
    """A request with header version 2, length in front."""
    header = struct.pack(">hhih", api_key, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID + _TAGS
    return _INT.pack(len(header) + len(body)) + header + body


def heartbeat(group: bytes, generation: int, member_id: bytes, correlation_id: int = 0) -> bytes:
    body = compact(group) + _INT.pack(generation) + compact(member_id) + _NULL + _TAGS
    return frame(12, 4, body, correlation_id)


def offset_commit(
    group: bytes,
    generation: int,
    member_id: bytes,
    topic: bytes,
    partitions: int,
    *,
    offset: int,
    correlation_id: int = 0,
) -> bytes:
    """Commits ``offset`` for the topic's first ``partitions``; for a simple group generation -1 and no id."""
    each = (
        struct.pack(">iqi", partition, offset, -1) + compact(b"") + _TAGS for partition in range(partitions)
    )
    topics = array([compact(topic) + array(each) + _TAGS])
    body = compact(group) + _INT.pack(generation) + compact(member_id) + _NULL + topics + _TAGS
    return frame(8, 9, body, correlation_id)


def offset_fetch(groups: Iterable[bytes]) -> bytes:
    """Asks for every committed offset of these groups."""
    return frame(9, 8, array(compact(group) + _NULL + _TAGS for group in groups) + b"\x00" + _TAGS)


def join_group(
    group: bytes,
    member_id: bytes,
    metadata: bytes,
    *,
    session_timeout_ms: int,
    rebalance_timeout_ms: int,
    correlation_id: int = 0,
) -> bytes:
    body = (
        compact(group)
        + struct.pack(">ii", session_timeout_ms, rebalance_timeout_ms)
        + compact(member_id)
        + _NULL
        + compact(PROTOCOL_TYPE)
        + array([compact(PROTOCOL) + compact(metadata) + _TAGS])
        + _NULL
        + _TAGS
    )
    return frame(11, 9, body, correlation_id)


def sync_group(
    group: bytes,
    generation: int,
    member_id: bytes,
    assignments: Iterable[tuple[bytes, bytes]],
    correlation_id: int = 0,
) -> bytes:
    """``assignments`` are member ids and their bytes; a follower sends none."""
    body = (
        compact(group)
        + _INT.pack(generation)
        + compact(member_id)
        + _NULL
        + compact(PROTOCOL_TYPE)
        + compact(PROTOCOL)
        + array(compact(member) + compact(assignment) + _TAGS for member, assignment in assignments)
        + _TAGS
    )
    return frame(14, 5, body, correlation_id)


def leave_group(group: bytes, member_ids: Iterable[bytes], correlation_id: int = 0) -> bytes:
    body = compact(group) + array(compact(member) + _NULL + _NULL + _TAGS for member in member_ids) + _TAGS
    return frame(13, 5, body, correlation_id)


def find_coordinator(group: bytes) -> bytes:
    return frame(10, 4, b"\x00" + array([compact(group)]) + _TAGS)


def create_topic(topic: bytes, partitions: int) -> bytes:
    wanted = compact(topic) + struct.pack(">ih", partitions, 1) + array([]) + array([]) + _TAGS
    return frame(19, 7, array([wanted]) + struct.pack(">ib", 30_000, 0) + _TAGS)


def subscription(topic: bytes) -> bytes:
    """What a consumer of one topic says of itself when it joins (consumer protocol, version 3)."""
    return (
        struct.pack(">hih", 3, 1, len(topic)) + topic + struct.pack(">ii", -1, 0) + struct.pack(">ih", -1, -1)
    )


def assignment(topic: bytes, partition: int) -> bytes:
    """One partition, as a leader of the consumer protocol gives it (version 3)."""
    return struct.pack(">hih", 3, 1, len(topic)) + topic + struct.pack(">iii", 1, partition, -1)


class Answer:
    """Reads an answer frame's fields in turn; begins behind the length and the header (version 1)."""

    __slots__ = ("_at", "_data", "correlation_id")

    def __init__(self, data: bytes) -> None:
        self._data = data
        (self.correlation_id,) = _INT.unpack_from(data, ANSWER_ID_AT)
        self._at = 9

    def int8(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def int16(self) -> int:
        self._at += 2
        return int.from_bytes(self._data[self._at - 2 : self._at], "big", signed=True)

    def int32(self) -> int:
        self._at += 4
        return int.from_bytes(self._data[self._at - 4 : self._at], "big", signed=True)

    def int64(self) -> int:
        self._at += 8
        return int.from_bytes(self._data[self._at - 8 : self._at], "big", signed=True)

    def skip(self, size: int) -> None:
        self._at += size

    def length(self) -> int:
        """Of a compact array, string or bytes; -1 for null."""
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value - 1
            shift += 7

    def compact(self) -> bytes:
        """Compact string or bytes; null reads as empty."""
        size = max(self.length(), 0)
        self._at += size
        return self._data[self._at - size : self._at]

    def tags(self) -> None:
        for _ in range(self.length() + 1):
            self.length()
            self.skip(self.length() + 1)


@dataclass(frozen=True, slots=True)
class Joined:
    error: int
    generation: int
    leader: bytes
    member_id: bytes
    members: list[bytes]


def joined(data: bytes) -> Joined:
    """The answer to a JoinGroup; ``members`` only for the leader."""
    answer = Answer(data)
    answer.int32()
    error, generation = answer.int16(), answer.int32()
    answer.compact(), answer.compact()
    leader = answer.compact()
    answer.int8()
    member_id = answer.compact()
    members = []
    for _ in range(answer.length()):
        members.append(answer.compact())
        answer.compact(), answer.compact()
        answer.tags()
    return Joined(error, generation, leader, member_id, members)


def error_after_throttle(data: bytes) -> int:
    """The error code of a Heartbeat, SyncGroup or LeaveGroup answer."""
    return int.from_bytes(data[13:15], "big", signed=True)


def left(data: bytes) -> list[int]:
    """Every error code of a LeaveGroup answer: of the request, then of each member."""
    answer = Answer(data)
    answer.int32()
    errors = [answer.int16()]
    for _ in range(answer.length()):
        answer.compact(), answer.compact()
        errors.append(answer.int16())
        answer.tags()
    return errors


def committed(data: bytes) -> dict[tuple[bytes, int], int]:
    """The error code of each partition of an OffsetCommit answer."""
    answer = Answer(data)
    answer.int32()
    errors = {}
    for _ in range(answer.length()):
        topic = answer.compact()
        for _ in range(answer.length()):
            partition = answer.int32()
            errors[topic, partition] = answer.int16()
            answer.tags()
        answer.tags()
    return errors


def fetched(data: bytes) -> dict[bytes, tuple[int, list[int]]]:
    """Of each group of an OffsetFetch answer the error code and the committed offsets."""
    answer = Answer(data)
    answer.int32()
    groups = {}
    for _ in range(answer.length()):
        name, offsets = answer.compact(), []
        for _ in range(answer.length()):
            answer.compact()
            for _ in range(answer.length()):
                answer.int32()
                offsets.append(answer.int64())
                answer.int32(), answer.compact(), answer.int16()
                answer.tags()
            answer.tags()
        groups[name] = (answer.int16(), offsets)
        answer.tags()
    return groups


def coordinator_error(data: bytes) -> int:
    """The error code of a FindCoordinator answer for one key."""
    return coordinator_found(data)[0]


def coordinator_found(data: bytes) -> tuple[int, str]:
    """As ``coordinator_error``, and where the coordinator is: HOST:PORT."""
    answer = Answer(data)
    answer.int32(), answer.length(), answer.compact(), answer.int32()
    host, port = answer.compact().decode(), answer.int32()
    return answer.int16(), f"{host}:{port}"


def created_error(data: bytes) -> int:
    """The error code of a CreateTopics answer for one topic."""
    answer = Answer(data)
    answer.int32(), answer.length(), answer.compact()
    answer.skip(16)
    return answer.int16()
