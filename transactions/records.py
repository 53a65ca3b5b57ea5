"""Records of ``__transaction_state``: one for each transactional id, in Apache Kafka's format.

The schemas are Kafka's TransactionLogKey.json and TransactionLogValue.json. Numbers are big-endian:

=====  ======  =============================================================================================
       type    field
=====  ======  =============================================================================================
key    int16   version 0
       string  transactional id
value  int16   version: 0, or 1 (flexible, KIP-482: compact strings and arrays, tags behind each struct)
       int64   producer id
       int16   producer epoch
       int32   timeout of its transactions, in milliseconds
       int8    state: 0 Empty, 1 Ongoing, 2 PrepareCommit, 3 PrepareAbort, 4 and 5 CompleteCommit and -Abort
       array   topics, null in Empty: string name, array of int32 partitions
       int64   time of the last change, in milliseconds since 1970
       int64   start of the transaction; -1 for none
tag 0  int64   previous producer id
tag 1  int64   next producer id; left out if there is none
tag 2  int16   transaction.version of the client; left out if it is 0
=====  ======  =============================================================================================

Both versions are read. Like Apache Kafka, the coordinator writes version 0 while transaction.version is 0, so
that a downgrade stays possible. A record without a value is a tombstone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, TypeAlias

from ..protocol import KohortError, ProtocolError, TopicPartition
from ..protocol.messages.wire import (
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    read_tags,
    skip_tags,
    write_compact_count,
    write_compact_string,
    write_count,
    write_string,
    write_tags,
)
from ..protocol.named_tuples import NamedTuple
from ..statemachine import TransactionState

#: Stands for "none" in numbers: no producer id, epoch or time.
NONE: Final = -1

#: The states; the index of a state is its number in a record.
_STATES: Final = (
    TransactionState.EMPTY,
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
)
_NUMBERS: Final = {state: number for number, state in enumerate(_STATES)}

_VERSION: Final = struct.Struct(">h")
#: Producer id, epoch, timeout in ms, state.
_HEAD: Final = struct.Struct(">qhib")
#: Last update and start, in ms.
_TIMES: Final = struct.Struct(">qq")
_INT16: Final = struct.Struct(">h")
_INT64: Final = struct.Struct(">q")

_PREVIOUS_ID, _NEXT_ID, _CLIENT_VERSION = range(3)
_ELEMENTS: Final = 1 << 31
_INT32_BYTES: Final = 4
#: Upper bounds in bytes: of a topic besides its name and partitions, and of a batch besides the id and
#: topics.
_TOPIC_BYTES: Final = 9
_REST_BYTES: Final = 192
_MAX_STRING_BYTES: Final = 0x7FFF


class CorruptTransactionRecordError(KohortError):
    """A record of the topic cannot be read. The text says why."""


class TransactionMetadata(NamedTuple):
    """State of a transactional id: the content of its last record.

    ``client_version``: the transaction.version that the producer of this transaction uses.
    ``next_producer_id``: set while a transaction with the last epoch ends; the producer continues with that
    id. ``last_epoch``: the previous epoch, by which the coordinator recognizes a repeated request; it is not
    in the record. ``update_ms`` and ``start_ms`` are in milliseconds since 1970.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    update_ms: int = NONE
    start_ms: int = NONE
    previous_producer_id: int = NONE
    next_producer_id: int = NONE
    client_version: int = 0
    last_epoch: int = NONE


class TransactionDeleted(NamedTuple):
    """Tombstone of a transactional id."""

    transactional_id: str


Record: TypeAlias = TransactionMetadata | TransactionDeleted


def encode_all(
    records: Iterable[Record], *, flexible: bool = True
) -> tuple[list[tuple[bytes, bytes | None]], int]:
    """Return keys and values, and their size in bytes. Raises ValueError for an id over 32,767 bytes."""
    pairs = [encode(record, flexible=flexible) for record in records]
    return pairs, sum(len(key) + len(value or b"") for key, value in pairs)


def encode(record: Record, *, flexible: bool = True) -> tuple[bytes, bytes | None]:
    """Return key and value of a record.

    A value that is not ``flexible`` (version 0) has neither the previous and next producer ids nor the
    client's version. Raises ValueError for an id over 32,767 bytes.
    """
    if len(record.transactional_id.encode()) > _MAX_STRING_BYTES:
        raise ValueError(f"a transactional id of more than {_MAX_STRING_BYTES} bytes")
    key = bytearray(_VERSION.pack(0))
    write_string(key, record.transactional_id)
    if isinstance(record, TransactionDeleted):
        return bytes(key), None
    return bytes(key), _encode_value(record, flexible=flexible)


def largest_bytes(transaction: TransactionMetadata) -> int:
    """Return an upper bound, in bytes, of a batch with this or any later record with the same partitions."""
    names = sum(len(topic) + _TOPIC_BYTES for topic in {topic for topic, _ in transaction.partitions})
    size = len(transaction.transactional_id.encode()) + names + _INT32_BYTES * len(transaction.partitions)
    return size + _REST_BYTES


def decode(key: bytes | None, value: bytes | None) -> Record | None:
    """Return a record; None for an unknown key version. Raises CorruptRecordError."""
    try:
        if key is None:
            raise CorruptTransactionRecordError("a record without a key")
        if _VERSION.unpack_from(key)[0] != 0:
            return None
        transactional_id, end = read_string(key, _VERSION.size)
        if transactional_id is None or end != len(key):
            raise CorruptTransactionRecordError("a key that is no transactional id")
        if value is None:
            return TransactionDeleted(transactional_id)
        return _read_value(transactional_id, value)
    except (ProtocolError, struct.error, IndexError, ValueError) as error:
        raise CorruptTransactionRecordError(f"a record of a transaction: {error}") from error


def _encode_value(record: TransactionMetadata, *, flexible: bool) -> bytes:
    out = bytearray(_VERSION.pack(int(flexible)))
    put_count = write_compact_count if flexible else write_count
    put_text = write_compact_string if flexible else write_string
    number = _NUMBERS[record.state]
    out += _HEAD.pack(record.producer_id, record.producer_epoch, record.timeout_ms, number)
    by_topic = None if record.state is TransactionState.EMPTY else _by_topic(record.partitions)
    put_count(out, by_topic)
    for topic, numbers in by_topic or ():
        put_text(out, topic)
        put_count(out, numbers)
        out += struct.pack(f">{len(numbers)}i", *numbers)
        if flexible:
            write_tags(out, [])
    out += _TIMES.pack(record.update_ms, record.start_ms)
    if not flexible:
        return bytes(out)
    tags = [(_PREVIOUS_ID, bytearray(_INT64.pack(record.previous_producer_id)))]
    if record.next_producer_id != NONE:
        tags.append((_NEXT_ID, bytearray(_INT64.pack(record.next_producer_id))))
    if record.client_version:
        tags.append((_CLIENT_VERSION, bytearray(_INT16.pack(record.client_version))))
    write_tags(out, tags)
    return bytes(out)


def _by_topic(partitions: Sequence[TopicPartition]) -> list[tuple[str, list[int]]]:
    found = groupby(sorted(partitions), key=attrgetter("topic"))
    return [(topic, [partition.partition for partition in some]) for topic, some in found]


def _read_value(transactional_id: str, data: bytes) -> TransactionMetadata:
    (version,) = _VERSION.unpack_from(data)
    if version not in (0, 1):
        raise CorruptTransactionRecordError(f"a value of version {version}: 0 and 1 are known")
    producer_id, epoch, timeout_ms, number = _HEAD.unpack_from(data, _VERSION.size)
    if not 0 <= number < len(_STATES):
        raise CorruptTransactionRecordError(f"state {number} is not known")
    count_of, text_of = (read_compact_count, read_compact_string) if version else (read_count, read_string)
    topics, at, left = count_of(data, _VERSION.size + _HEAD.size, _ELEMENTS, 3, "partitions")
    partitions: list[TopicPartition] = []
    for _ in range(topics):
        topic, at = text_of(data, at)
        count, at, left = count_of(data, at, left, 4, "partition ids")
        partitions += (TopicPartition(topic, n) for n in struct.unpack_from(f">{count}i", data, at))
        at += 4 * count
        if version:
            at = skip_tags(data, at)
    update_ms, start_ms = _TIMES.unpack_from(data, at)
    tagged = (
        {tag: data[start:end] for tag, start, end in read_tags(data, at + _TIMES.size)[0]} if version else {}
    )
    return TransactionMetadata(
        transactional_id,
        producer_id,
        epoch,
        timeout_ms,
        _STATES[number],
        tuple(partitions),
        update_ms,
        start_ms,
        _read_tag(tagged, _PREVIOUS_ID, _INT64, NONE),
        _read_tag(tagged, _NEXT_ID, _INT64, NONE),
        _read_tag(tagged, _CLIENT_VERSION, _INT16, 0),
    )


def _read_tag(tagged: dict[int, bytes], tag: int, form: struct.Struct, default: int) -> int:
    found = tagged.get(tag)
    return default if found is None else int(form.unpack(found)[0])
