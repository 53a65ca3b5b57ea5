"""Control batches: the markers that end a transaction (KIP-98)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..protocol import BatchHeader, CorruptBatchError, ErrorCode, KafkaError
from ._records import decode_records

_ABORT, _COMMIT = 0, 1


class Marker(NamedTuple):
    """The end of a producer's transaction."""

    committed: bool
    coordinator_epoch: int


def parse_marker(data: bytes | bytearray, header: BatchHeader, position: int = 0) -> Marker | None:
    """What the control batch at ``position`` says; None for a type that ends no transaction.

    Raises CorruptBatchError if it holds no record or one too short.
    """
    records = decode_records(data, header, position)
    if not records:
        return None  # compaction keeps the emptied batch for its producer's epoch
    _, _, key, value = records[0]
    if key is None or value is None or len(key) < 4 or len(value) < 6:
        raise CorruptBatchError("control record too short for a type and a coordinator epoch", position)
    kind = int.from_bytes(key[2:4], "big", signed=True)
    if kind not in (_ABORT, _COMMIT):
        return None
    return Marker(kind == _COMMIT, int.from_bytes(value[2:6], "big", signed=True))


def markers_of(data: bytes | bytearray, headers: Sequence[BatchHeader]) -> list[Marker | None]:
    """What each of the batches that are to be appended says. Raises KafkaError INVALID_RECORD."""
    markers: list[Marker | None] = []
    position = 0
    for header in headers:
        try:
            markers.append(parse_marker(data, header, position) if header.control else None)
        except CorruptBatchError as error:
            raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from error
        position += header.size
    return markers
