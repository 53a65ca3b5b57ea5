"""Subscriptions and assignments of classic consumer groups (protocol type "consumer").

Coordinators pass these bytes on between members. Numbers are big-endian, no version is flexible; the schemas
are Kafka's ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json:

============  ======  =====================================================================
              type    field, and the versions that have it
============  ======  =====================================================================
Subscription  int16   version
              array   strings: topics
              bytes   user data of the assignor; null for none
              array   owned partitions, (string topic, array of int32): from 1 on (KIP-429)
              int32   generation in which they were owned; -1 for none: from 2 on (KIP-792)
              string  rack; null for none: from 3 on (KIP-881)
Assignment    int16   version; all have the same fields
              array   partitions, (string topic, array of int32)
              bytes   user data of the assignor; null for none
============  ======  =====================================================================

New versions only append fields, so a newer version is read as the newest known one, without what follows.
The bytes come from other clients: counts and lengths are checked against the bytes left.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from ._errors import MalformedMessageError
from ._reader import TopicPartition, WireReader
from .messages.wire import write_bytes

#: Newest known version of Subscription and Assignment.
SUBSCRIPTION_VERSION = 3

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ONE_NUMBER = struct.Struct(">ii")
_MIN_STRING = 2


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's contribution to a rebalance. ``generation`` is the one in which it got ``owned``, -1 for
    none.

    ``version`` is the decoded one; encoding takes a version of its own.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    rack: str | None = None
    version: int = SUBSCRIPTION_VERSION


@dataclass(frozen=True, slots=True)
class Assignment:
    """The partitions that the leader assigned to a member, in the leader's order.

    ``note`` are the bytes after the assignment. Other clients ignore them, and so does a coordinator that
    converts the group to a consumer group (KIP-848); with user data it would refuse the conversion.
    """

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None
    version: int = SUBSCRIPTION_VERSION
    note: bytes = b""


def encode_subscription(subscription: Subscription, version: int = SUBSCRIPTION_VERSION) -> bytes:
    """Encode a subscription, with topics and owned partitions sorted as the Java client sorts them.

    Omits fields that ``version`` does not have. Raises ValueError for an unknown version, and for names of
    more than 32,767 bytes.
    """
    _require_known(version)
    out = bytearray(_INT16.pack(version))
    topics = sorted(subscription.topics)
    out += _INT32.pack(len(topics))
    for topic in topics:
        _write_string(out, topic)
    write_bytes(out, subscription.user_data)
    if version >= 1:
        out += encode_topic_partitions(sorted(subscription.owned))
    if version >= 2:
        out += _INT32.pack(subscription.generation)
    if version >= 3:
        if subscription.rack is None:
            out += _INT16.pack(-1)
        else:
            _write_string(out, subscription.rack)
    return bytes(out)


def decode_subscription(data: bytes) -> Subscription:
    """Decode a subscription of any version. Raises MalformedMessageError."""
    reader = WireReader(data)
    version = _read_version(reader)
    topics, user_data = _read_topics_and_user_data(reader, data)
    owned = tuple(reader.topic_partitions()) if version >= 1 else ()
    generation = reader.int32() if version >= 2 else -1
    rack = reader.nullable_string() if version >= 3 else None
    return Subscription(topics, user_data, owned, generation, rack or None, version)


def encode_assignment(
    partitions: Iterable[TopicPartition],
    user_data: bytes | None = None,
    version: int = SUBSCRIPTION_VERSION,
    note: bytes = b"",
) -> bytes:
    """Encode an assignment, followed by ``note``. Raises ValueError as ``encode_subscription`` does.

    Partitions keep their order within a topic; topics are in the order of their first partitions.
    """
    _require_known(version)
    out = bytearray(_INT16.pack(version))
    out += encode_topic_partitions(partitions)
    write_bytes(out, user_data)
    return bytes(out + note)


def decode_assignment(data: bytes) -> Assignment:
    """Decode an assignment of any version. Raises MalformedMessageError.

    Empty bytes are an assignment without partitions: the coordinator sends them to a member that the leader
    left out.
    """
    if not data:
        return Assignment(())
    reader = WireReader(data)
    version = _read_version(reader)
    partitions = tuple(reader.topic_partitions())
    return Assignment(partitions, reader.nullable_bytes(), version, reader.rest())


#: Longest array of topics that is cached.
_REMEMBERED_TOPICS_BYTES = 65_536
#: Longest subscription whose topics are cached: those of the members of a group are mostly equal.
_REMEMBERED_BYTES = 1_024


def subscribed_topics(data: bytes) -> frozenset[str] | None:
    """Return the topics of a subscription, or None for bytes that are not a subscription.

    Reads only the fields that every version has, since a coordinator needs no others.
    """
    return _known_topics(data) if len(data) <= _REMEMBERED_BYTES else _read_topics(data)


def _read_topics(data: bytes) -> frozenset[str] | None:
    reader = WireReader(data)
    try:
        _read_version(reader)
        topics, _ = _read_topics_and_user_data(reader, data)
    except MalformedMessageError:
        return None
    return frozenset(topics)


_known_topics = lru_cache(maxsize=256)(_read_topics)


def encode_topic_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """Encode an array of (topic, array of int32), with topics in the order of their first partitions."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        if topic in by_topic:
            by_topic[topic].append(partition)
        else:
            by_topic[topic] = [partition]
    parts = [_INT32.pack(len(by_topic))]
    for topic, numbers in by_topic.items():
        parts.append(_packed_string(topic))
        if len(numbers) == 1:  # fast path: in large groups, members mostly have one partition of a topic
            parts.append(_ONE_NUMBER.pack(1, numbers[0]))
        else:
            parts.append(struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return b"".join(parts)


def _read_version(reader: WireReader) -> int:
    version = reader.int16()
    if version < 0:
        raise MalformedMessageError(f"version {version} of the consumer protocol: versions start at 0")
    return version


#: The last array of topics that was read: its bytes and its topics. The members of a group mostly have equal
#: subscriptions, and so a leader that reads hundreds of them keeps one tuple for all.
_last_topics: tuple[bytes, tuple[str, ...]] = (_INT32.pack(0), ())


def _read_topics_and_user_data(reader: WireReader, data: bytes) -> tuple[tuple[str, ...], bytes | None]:
    global _last_topics
    known, topics = _last_topics
    if data.startswith(known, _INT16.size):
        reader.skip(len(known))
    else:
        topics = tuple(reader.string() for _ in range(reader.array_size(_MIN_STRING, nullable=True)))
        read = bytes(data[_INT16.size : len(data) - reader.remaining])
        if len(read) <= _REMEMBERED_TOPICS_BYTES:
            _last_topics = read, topics
    return topics, reader.nullable_bytes()


def _require_known(version: int) -> None:
    if not 0 <= version <= SUBSCRIPTION_VERSION:
        raise ValueError(f"consumer protocol version {version}: choose one from 0 to {SUBSCRIPTION_VERSION}")


def _write_string(out: bytearray, text: str) -> None:
    out += _packed_string(text)


@lru_cache(maxsize=4096)
def _packed_string(text: str) -> bytes:
    """Encode a string. Cached: a large group's SyncGroup has the same topic names once for each member."""
    data = text.encode()
    if len(data) > 0x7FFF:
        raise ValueError(f"a string of {len(data)} bytes: the protocol holds at most {0x7FFF}")
    return _INT16.pack(len(data)) + data
