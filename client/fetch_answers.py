"""Fetch answers, read by hand: records stay where the socket wrote them, and long polls cost little.

Layout: KIP-98, KIP-227, KIP-392, KIP-482 (flexible from v12), KIP-516 (topic ids from v13), KIP-595.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass
from typing import NamedTuple

from ..protocol import ApiKey, MalformedMessageError, api_for

_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_THROTTLE_ERROR_SESSION = struct.Struct(">ihi")
_PARTITION_OF_V4, _PARTITION = struct.Struct(">ihqq"), struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qq")
_EPOCH_END = struct.Struct(">iq")

_ID_BYTES = 16
_MAX_SHIFT = 28
#: The tagged field of a partition that says where its log was cut.
_DIVERGING = 0


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """A partition's part of a Fetch response.

    ``records`` are record batches, the first of which may begin before the offset asked for and the last of
    which may be cut short. Offsets are -1 where the broker did not say; ``aborted`` is set for
    read_committed.
    ``diverging_offset`` is where the log was cut behind what was read (KIP-595), -1 if it was not.
    """

    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: bytes | memoryview
    aborted: tuple[AbortedTransaction, ...] = ()
    diverging_offset: int = -1
    preferred_replica: int = -1


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """``rows`` are topic, partition and what there is of it; topics go by id from v13 on, else by name."""

    error_code: int
    session_id: int
    rows: tuple[tuple[str | uuid.UUID, int, FetchedPartition], ...]


def read_fetch_answer(version: int, frame: bytes | bytearray | memoryview) -> FetchAnswer:
    """A response frame of version 4 or later. Raises MalformedMessageError."""
    reader = _Flexible if api_for(ApiKey.FETCH).flexible(version) else _Classic
    try:
        return _read(reader(frame), version)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedMessageError(f"Fetch answer v{version} cannot be decoded: {error!r}") from error


class _Classic:
    """Reads field by field."""

    def __init__(self, frame: bytes | bytearray | memoryview) -> None:
        self.frame = memoryview(frame)
        self.at = _INT32.size  # behind the correlation id

    def take(self, layout: struct.Struct) -> tuple[int, ...]:
        values = layout.unpack_from(self.frame, self.at)
        self.at += layout.size
        return values

    def raw(self, size: int) -> memoryview:
        begin = self.at
        self.at += size
        if size < 0 or self.at > len(self.frame):
            raise IndexError(f"a length of {size} with {len(self.frame) - begin} bytes left")
        return self.frame[begin : self.at]

    def count(self) -> int:
        """Elements of an array; -1 for null."""
        return self.take(_INT32)[0]

    def size(self) -> int:
        """Bytes of a string; -1 for null."""
        return self.take(_INT16)[0]

    def diverging(self) -> int:
        """Steps over the tagged fields of a struct; where they say that a log was cut, or -1."""
        return -1


class _Flexible(_Classic):
    """As KIP-482 has it."""

    def __init__(self, frame: bytes | bytearray | memoryview) -> None:
        super().__init__(frame)
        self.diverging()

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.frame[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > _MAX_SHIFT:
                raise IndexError("a varint of more than five bytes")

    def count(self) -> int:
        return self.varint() - 1

    def size(self) -> int:
        return self.varint() - 1

    def diverging(self) -> int:
        found = -1
        for _ in range(self.varint()):
            tag, size = self.varint(), self.varint()
            content = self.raw(size)
            if tag == _DIVERGING and size >= _EPOCH_END.size:
                found = _EPOCH_END.unpack_from(content)[1]
        return found


def _read(reader: _Classic, version: int) -> FetchAnswer:
    error_code = session_id = 0
    if version >= 7:
        _, error_code, session_id = reader.take(_THROTTLE_ERROR_SESSION)
    else:
        reader.take(_INT32)
    rows = []
    for _ in range(reader.count()):
        topic: str | uuid.UUID
        if version >= 13:
            topic = uuid.UUID(bytes=bytes(reader.raw(_ID_BYTES)))
        else:
            topic = str(reader.raw(reader.size()), "utf-8")
        for _ in range(reader.count()):
            partition, fetched = _partition(reader, version)
            rows.append((topic, partition, fetched))
        reader.diverging()
    reader.diverging()
    return FetchAnswer(error_code, session_id, tuple(rows))


def _partition(reader: _Classic, version: int) -> tuple[int, FetchedPartition]:
    log_start_offset = preferred_replica = -1
    if version >= 5:
        partition, error_code, high, stable, log_start_offset = reader.take(_PARTITION)
    else:
        partition, error_code, high, stable = reader.take(_PARTITION_OF_V4)
    aborted = []
    for _ in range(reader.count()):
        aborted.append(AbortedTransaction(*reader.take(_ABORTED)))
        reader.diverging()
    if version >= 11:
        (preferred_replica,) = reader.take(_INT32)
    size = reader.count()  # of records it is written as that of an array
    records = reader.raw(max(size, 0))
    diverging_offset = reader.diverging()
    return partition, FetchedPartition(
        error_code,
        high,
        stable,
        log_start_offset,
        records,
        tuple(aborted),
        diverging_offset,
        preferred_replica,
    )
