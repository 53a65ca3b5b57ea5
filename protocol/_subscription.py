"""Subscriptions and assignments of consumer groups (protocol type "consumer"), passed on by coordinators.

Layouts (KIP-341, KIP-429, KIP-792, KIP-881), all after an int16 version and none of them flexible:

* Subscription: topics; user data; from v1 owned partitions; from v2 generation; from v3 rack.
* Assignment: partitions; user data; v1 to v3 are the same.

Fields are only ever appended, so a newer version is read as the newest known and what follows is left alone.
The bytes come from other clients: counts and lengths are checked against the bytes left first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from ._errors import MalformedMessageError
from ._reader import TopicPartition, WireReader
from .messages._wire import write_bytes

#: Newest version of Subscription and Assignment known here.
SUBSCRIPTION_VERSION = 3

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ONE_NUMBER = struct.Struct(">ii")
_MIN_STRING = 2


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's part in a rebalance. ``generation`` is that of ``owned``, -1 for none.

    ``version`` is the one on the wire when decoded; encoding takes its own argument.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    rack: str | None = None
    version: int = SUBSCRIPTION_VERSION


@dataclass(frozen=True, slots=True)
class Assignment:
    """Partitions that the leader gave to one member, in the leader's order.

    ``note`` are the bytes after it: readers of other clients pass over them, and so does a coordinator that
    turns the group into a consumer group (KIP-848), which it refuses where there is user data.
    """

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None
    version: int = SUBSCRIPTION_VERSION
    note: bytes = b""


def encode_subscription(subscription: Subscription, version: int = SUBSCRIPTION_VERSION) -> bytes:
    """Bytes of a subscription, as the Java client orders them: topics and owned partitions sorted.

    Fields that ``version`` does not have are left out. Raises ValueError for a version not known here.
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
    """Read a subscription of any version. Raises MalformedMessageError when it cannot be read."""
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
    """Bytes of an assignment; partitions stay in order within a topic, topics in that of their first."""
    _require_known(version)
    out = bytearray(_INT16.pack(version))
    out += encode_topic_partitions(partitions)
    write_bytes(out, user_data)
    return bytes(out + note)


def decode_assignment(data: bytes) -> Assignment:
    """Read an assignment of any version. No bytes at all mean no partitions: the coordinator sends that to a
    member its leader left out. Raises MalformedMessageError when it cannot be read.
    """
    if not data:
        return Assignment(())
    reader = WireReader(data)
    version = _read_version(reader)
    partitions = tuple(reader.topic_partitions())
    return Assignment(partitions, reader.nullable_bytes(), version, reader.rest())


#: Longest array of topics that is remembered.
_REMEMBERED_TOPICS_BYTES = 65_536
#: Longest subscription whose topics are remembered: members of one service say the same.
_REMEMBERED_BYTES = 1_024


def subscribed_topics(data: bytes) -> frozenset[str] | None:
    """The topics of a subscription; None if the bytes are no subscription.

    Reads only what every version has: a coordinator looks no further than that.
    """
    return _known_topics(data) if len(data) <= _REMEMBERED_BYTES else _topics(data)


def _topics(data: bytes) -> frozenset[str] | None:
    reader = WireReader(data)
    try:
        _read_version(reader)
        topics, _ = _read_topics_and_user_data(reader, data)
    except MalformedMessageError:
        return None
    return frozenset(topics)


_known_topics = lru_cache(maxsize=256)(_topics)


def encode_topic_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """An array of (topic, array of int32), grouped by topic in the order of first appearance."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        if topic in by_topic:
            by_topic[topic].append(partition)
        else:
            by_topic[topic] = [partition]
    parts = [_INT32.pack(len(by_topic))]
    for topic, numbers in by_topic.items():
        parts.append(_packed_string(topic))
        if len(numbers) == 1:  # what most members of a large group have of most topics
            parts.append(_ONE_NUMBER.pack(1, numbers[0]))
        else:
            parts.append(struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return b"".join(parts)


def _read_version(reader: WireReader) -> int:
    version = reader.int16()
    if version < 0:
        raise MalformedMessageError(f"version {version} of the consumer protocol: versions start at 0")
    return version


#: The array of topics that was read last, and its bytes: members of one group mostly want the same, and a
#: leader that reads hundreds of subscriptions gets one tuple for all.
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
    """Names of topics come again and again: in a large group's SyncGroup once for each member."""
    data = text.encode()
    if len(data) > 0x7FFF:
        raise ValueError(f"a string of {len(data)} bytes: the protocol holds at most {0x7FFF}")
    return _INT16.pack(len(data)) + data
