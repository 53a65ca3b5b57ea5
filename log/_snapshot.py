"""Producer snapshots: what a log knows of its producers as of an offset, so that a start need not read it
all.

Layout: int16 version 1, uint32 CRC-32C of what follows, int32 count, then 46 bytes a producer.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Iterable

from ..protocol import CorruptBatchError
from ._files import FileSystem, read_whole, write_whole
from ._names import SNAPSHOT, file_name, offset_of
from ._producers import AppendedBatch, Producer

_HEAD = struct.Struct(">hIi")
_CRC_END = 6
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = 1


def encode_snapshot(producers: Iterable[Producer]) -> bytes:
    entries = [_encode(producer) for producer in producers]
    body = struct.pack(">i", len(entries)) + b"".join(entries)
    return _HEAD.pack(_VERSION, _crc32c(body), len(entries)) + body[4:]


def decode_snapshot(data: bytes) -> list[Producer]:
    """The producers of a snapshot file. Raises CorruptBatchError."""
    if len(data) < _HEAD.size:
        raise CorruptBatchError(f"producer snapshot of {len(data)} bytes")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptBatchError(f"producer snapshot of version {version}: only {_VERSION} is known")
    if crc != _crc32c(data[_CRC_END:]) or len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptBatchError("producer snapshot that does not match its checksum")
    return [_decode(*fields) for fields in _ENTRY.iter_unpack(data[_HEAD.size :])]


def write_snapshot(fs: FileSystem, folder: str, offset: int, producers: Iterable[Producer]) -> None:
    """Write ``<offset>.snapshot``. Raises OSError."""
    path = os.path.join(folder, file_name(offset, SNAPSHOT))
    write_whole(fs, path, encode_snapshot(producers), sync_folder=False)


def read_snapshot(fs: FileSystem, folder: str, offset: int) -> list[Producer]:
    """Read ``<offset>.snapshot``. Raises CorruptBatchError."""
    return decode_snapshot(read_whole(fs, os.path.join(folder, file_name(offset, SNAPSHOT))) or b"")


def remove_snapshot(fs: FileSystem, folder: str, offset: int) -> None:
    """Remove ``<offset>.snapshot``, if it is there. Raises OSError."""
    fs.remove(os.path.join(folder, file_name(offset, SNAPSHOT)))


def stray_snapshots(offsets: Iterable[int], bases: Iterable[int]) -> list[int]:
    """Offsets of the snapshots that no recovery begins with: neither at a segment's base nor the newest."""
    offsets = sorted(offsets)
    return sorted(set(offsets[:-1]).difference(bases))


def snapshot_offsets(names: Iterable[str]) -> list[int]:
    """Offsets of the snapshots among a folder's files, rising."""
    found = (offset_of(name) for name in names if name.endswith(SNAPSHOT))
    return sorted(offset for offset in found if offset is not None)


def _encode(producer: Producer) -> bytes:
    last = producer.batches[-1] if producer.batches else AppendedBatch(-1, -1, 0, -1)
    return _ENTRY.pack(
        producer.producer_id,
        producer.epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        producer.last_timestamp_ms,
        producer.coordinator_epoch,
        producer.transaction_start,
    )


def _decode(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp_ms: int,
    coordinator_epoch: int,
    transaction_start: int,
) -> Producer:
    producer = Producer(producer_id, epoch, coordinator_epoch, timestamp_ms, transaction_start)
    if last_offset >= 0:
        last = AppendedBatch(last_sequence, last_offset, offset_delta, timestamp_ms)
        producer.batches = deque([last], producer.batches.maxlen)
    return producer


def _crc32c(data: bytes) -> int:
    # on first use: the package reads its own metadata at import, a tenth of a broker's time to start
    from crc32c import crc32c

    return crc32c(data)
