"""The content of any one file of a data folder, an entry at a time, whatever bytes it holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from ...protocol import BatchHeader, Codec, CorruptBatchError, JsonObject, parse_batch_header
from .. import _names
from .._checkpoints import read_epochs, read_offsets, read_properties
from .._errors import DataFolderError
from .._indexes import OffsetIndex, TimeIndex, TxnIndex
from .._names import offset_of
from .._producers import decode_snapshot
from .._records import decode_records, parse_marker
from .._scan import salvage_segments
from .._segment import Segment
from ._read_only import READ_ONLY

#: Kind and fields of each entry of a file; a reader returns them for a file's path and name.
_Entries: TypeAlias = Iterator[tuple[str, dict[str, object]]]
_Reader: TypeAlias = Callable[[str, str], _Entries]


class Dumped(NamedTuple):
    """One entry of a file: its kind and its fields. ``kind`` is "damage" for bytes that cannot be read; its
    fields are ``position`` (-1: the whole file) and ``what``.
    """

    kind: str
    fields: JsonObject


def dump_file(path: str | os.PathLike[str], *, records: bool = False) -> Iterator[Dumped]:
    """Yield every entry of a file; its kind follows from the suffix of its name.

    With ``records``, also yields the records of batches. Raises DataFolderError for a file of an unknown
    kind, and OSError for one that cannot be read.
    """
    path = os.path.abspath(os.fspath(path))
    name = os.path.basename(path)
    for suffix in (_names.DELETED, _names.CLEANED, _names.SWAP):
        name = name.removesuffix(suffix)
    kind = os.path.splitext(name)[1]
    if not os.path.isfile(path):
        raise DataFolderError(f"{path} is no file: name files of a data folder, such as *.log or *.index")
    if kind == _names.LOG:
        return _dump_batches(path, name, records=records)
    for suffix, read in _READERS.items():
        if name.endswith(suffix):
            return _guard_read(read, path, name)
    known = ", ".join((_names.LOG, *_READERS))
    raise DataFolderError(f"{path} is of no kind that is known here: {known}")


def _guard_read(read: _Reader, path: str, name: str) -> Iterator[Dumped]:
    try:
        for kind, fields in read(path, name):
            yield Dumped(kind, fields)
    except (CorruptBatchError, DataFolderError) as error:
        what = str(error).removeprefix(path).strip()
        yield Dumped("damage", {"position": -1, "what": what})


def _dump_batches(path: str, name: str, *, records: bool) -> Iterator[Dumped]:
    file = READ_ONLY.file(path)
    base_offset = offset_of(name)
    if base_offset is None:
        # a copy under another name: it begins where its first batch does
        base_offset = max(int.from_bytes(file.read(0, 8).ljust(8, b"\x00"), "big", signed=True), 0)
    segment = Segment(READ_ONLY, os.path.dirname(path), base_offset, created_ms=0)
    segment.file, segment.size = file, file.size()
    for piece in salvage_segments([segment], base_offset):
        if piece.damage:
            yield Dumped("damage", {"position": piece.position, "what": piece.damage})
            continue
        header = parse_batch_header(piece.records)
        yield Dumped("batch", _dump_batch(header, piece.position))
        if records or header.control:
            yield from _dump_records(piece.records, header, piece.position)
    file.close()


def _dump_batch(header: BatchHeader, position: int) -> JsonObject:
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "position": position,
        "size": header.size,
        "leader_epoch": header.leader_epoch,
        "codec": Codec(header.codec).name.lower() if header.codec <= max(Codec) else str(header.codec),
        "time": "LogAppendTime" if header.log_append_time else "CreateTime",
        "base_timestamp_ms": header.base_timestamp_ms,
        "max_timestamp_ms": header.max_timestamp_ms,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "transactional": header.transactional,
        "control": header.control,
        "delete_horizon": header.has_delete_horizon,
        "crc": header.crc,
    }


def _dump_records(data: bytes, header: BatchHeader, position: int) -> Iterator[Dumped]:
    try:
        if header.control:
            marker = parse_marker(data, header)
            if marker is not None:
                kind = "commit" if marker.committed else "abort"
                fields = {"offset": header.base_offset, "marker": kind}
                yield Dumped("marker", {**fields, "coordinator_epoch": marker.coordinator_epoch})
                return
        for offset, timestamp_ms, key, value in decode_records(data, header):
            yield Dumped(
                "record", {"offset": offset, "timestamp_ms": timestamp_ms, "key": key, "value": value}
            )
    except CorruptBatchError as error:
        yield Dumped("damage", {"position": position, "what": str(error)})


def _offset_index(path: str, name: str) -> _Entries:
    base_offset = offset_of(name) or 0
    index = OffsetIndex(READ_ONLY.file(path), base_offset)
    for relative, position in _index_entries(index):
        yield "entry", {"offset": base_offset + relative, "position": position}
    yield from _rest_of(index)


def _time_index(path: str, name: str) -> _Entries:
    base_offset = offset_of(name) or 0
    index = TimeIndex(READ_ONLY.file(path), base_offset)
    for timestamp_ms, relative in _index_entries(index):
        yield "entry", {"timestamp_ms": timestamp_ms, "offset": base_offset + relative}
    yield from _rest_of(index)


def _index_entries(index: OffsetIndex | TimeIndex) -> Iterator[tuple[int, int]]:
    index.open()
    return (index.entry(number) for number in range(index.count))


def _rest_of(index: OffsetIndex | TimeIndex) -> _Entries:
    size, used = index.file.size(), index.count * index.ENTRY.size
    if size % index.ENTRY.size:
        at = size - size % index.ENTRY.size
        yield "damage", {"position": at, "what": f"{size - at} bytes are no entry of {index.ENTRY.size}"}
    elif size > used:
        yield "preallocated", {"position": used, "bytes": size - used}


def _txn_index(path: str, _name: str) -> _Entries:
    index = TxnIndex(READ_ONLY.file(path))
    fits = index.open()
    yield from (("aborted", entry._asdict()) for entry in index.entries)
    if not fits:
        raise CorruptBatchError("not all of it are entries of version 0", 0)


def _dump_snapshot(path: str, _name: str) -> _Entries:
    file = READ_ONLY.file(path)
    for producer in decode_snapshot(file.read(0, file.size())):
        last = producer.batches[-1] if producer.batches else None
        yield (
            "producer",
            {
                "producer_id": producer.producer_id,
                "producer_epoch": producer.epoch,
                "last_sequence": last.last_sequence if last else -1,
                "last_offset": last.last_offset if last else -1,
                "offset_delta": last.offset_delta if last else 0,
                "last_timestamp_ms": producer.last_timestamp_ms,
                "coordinator_epoch": producer.coordinator_epoch,
                "transaction_start": producer.transaction_start,
            },
        )


def _dump_offsets(path: str, _name: str) -> _Entries:
    for key, offset in read_offsets(READ_ONLY, path).items():
        yield "checkpoint", {"topic": key.topic, "partition": key.partition, "offset": offset}


def _dump_epochs(path: str, _name: str) -> _Entries:
    for epoch, start_offset in read_epochs(READ_ONLY, path):
        yield "epoch", {"epoch": epoch, "start_offset": start_offset}


def _dump_properties(path: str, _name: str) -> _Entries:
    for key, value in (read_properties(READ_ONLY, path) or {}).items():
        yield "property", {"key": key, "value": value}


def _dump_text(path: str, _name: str) -> _Entries:
    file = READ_ONLY.file(path)
    for line in file.read(0, file.size()).decode("utf-8", "replace").splitlines():
        yield "line", {"text": line}


#: Readers by the suffix of a file's name.
_READERS: Final[dict[str, _Reader]] = {
    _names.INDEX: _offset_index,
    _names.TIME_INDEX: _time_index,
    _names.TXN_INDEX: _txn_index,
    _names.SNAPSHOT: _dump_snapshot,
    _names.LEADER_EPOCHS: _dump_epochs,
    "-checkpoint": _dump_offsets,
    ".properties": _dump_properties,
    _names.PARTITION_METADATA: _dump_text,
    ".kafka_cleanshutdown": _dump_text,
}
