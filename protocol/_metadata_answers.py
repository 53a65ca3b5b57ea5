"""Metadata answers, written by hand: what is said of a topic's partitions is encoded once and used again.

Clients of many topics ask for all of them, and often. kafka-python's classes are the reference: the frame is
the one that they write.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from ._apis import ApiKey, api_for
from ._hot_fields import CLASSIC_WRITERS, COMPACT_WRITERS, INT32

_NO_TOPIC: Final = uuid.UUID(int=0)
_INT16 = struct.Struct(">h")
_TO_BE_FILLED: Final = b"\x00\x00\x00\x00"

#: The operations of a field that nobody has asked for.
_NOT_ASKED: Final = 1 << 31


class MetadataPartition(NamedTuple):
    """What Metadata says of one partition, by the schema's names."""

    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: Sequence[int]
    isr_nodes: Sequence[int]
    offline_replicas: Sequence[int]


class MetadataPartitions:
    """The partitions of a topic as they are now; those with an error are what it gives one by one."""

    __slots__ = ("_encoded", "_rows")

    def __init__(self, rows: Sequence[MetadataPartition]) -> None:
        self._rows = rows
        self._encoded: dict[int, bytes] = {}

    def __repr__(self) -> str:
        return f"MetadataPartitions({len(self._rows)})"

    def __iter__(self) -> Iterator[MetadataPartition]:
        return (row for row in self._rows if row.error_code)

    def encoded(self, version: int) -> bytes:
        """The array of them as an answer of this version has it."""
        found = self._encoded.get(version)
        if found is None:
            found = self._encoded[version] = _writer(version).partitions(self._rows)
        return found


def metadata_answer(version: int, correlation_id: int, body: Any) -> bytearray:
    """A whole response frame, length included, for a body with the schema's field names; ``partitions`` may
    be MetadataPartitions.
    """
    return _writer(version).frame(correlation_id, body)


class _Writer(NamedTuple):
    frame: Callable[[int, Any], bytearray]
    partitions: Callable[[Sequence[Any]], bytes]


@cache
def _writer(version: int) -> _Writer:
    flexible = api_for(ApiKey.METADATA).flexible(version)
    text, nullable, count, _, tags = COMPACT_WRITERS if flexible else CLASSIC_WRITERS
    start = struct.Struct(">hiii" if version >= 7 else ">hii")

    def nodes(found: Sequence[int]) -> bytes:
        return count(len(found)) + struct.pack(f">{len(found)}i", *found)

    def partition(row: Any) -> bytes:
        begin = (row.error_code, row.partition_index, row.leader_id)
        data = start.pack(*begin, row.leader_epoch) if version >= 7 else start.pack(*begin)
        data += nodes(row.replica_nodes) + nodes(row.isr_nodes)
        return data + (nodes(row.offline_replicas) if version >= 5 else b"") + tags

    def partitions(rows: Sequence[Any]) -> bytes:
        return count(len(rows)) + b"".join([partition(row) for row in rows])

    def topic(found: Any) -> bytes:
        name = found.name if version >= 12 else found.name or ""
        rows = found.partitions
        return b"".join(
            (
                _INT16.pack(found.error_code),
                nullable(name) if version >= 12 else text(name),
                (found.topic_id or _NO_TOPIC).bytes if version >= 10 else b"",
                bytes((bool(found.is_internal),)) if version >= 1 else b"",
                rows.encoded(version) if isinstance(rows, MetadataPartitions) else partitions(rows),
                _operations(found.authorized_operations) if version >= 8 else b"",
                tags,
            )
        )

    def broker(found: Any) -> bytes:
        rack = nullable(found.rack) if version >= 1 else b""
        return INT32.pack(found.node_id) + text(found.host) + INT32.pack(found.port) + rack + tags

    def frame(correlation_id: int, body: Any) -> bytearray:
        out = bytearray(_TO_BE_FILLED) + INT32.pack(correlation_id) + tags
        if version >= 3:
            out += INT32.pack(body.throttle_time_ms)
        out += count(len(body.brokers)) + b"".join([broker(each) for each in body.brokers])
        if version >= 2:
            out += nullable(body.cluster_id)
        if version >= 1:
            out += INT32.pack(body.controller_id)
        out += count(len(body.topics)) + b"".join([topic(each) for each in body.topics])
        if 8 <= version <= 10:
            out += _operations(body.authorized_operations)
        if version >= 13:
            out += _INT16.pack(body.error_code)
        out += tags
        out[:4] = INT32.pack(len(out) - 4)
        return out

    return _Writer(frame, partitions)


def _operations(allowed: Collection[int] | None) -> bytes:
    field = _NOT_ASKED if allowed is None else sum(1 << each for each in allowed)
    return field.to_bytes(4, "big")
