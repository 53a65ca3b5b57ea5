"""The content of each kind of file, entry by entry.

Covers: log/tools/_read_only.py.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from kohort.log import DataFolderError
from kohort.log.tools.dump import dump_file
from kohort.protocol import build_batch, parse_batch_header
from kohort.protocol._batch import _write_crc
from tests.log.batches import NOW_MS, batch, marker

NAME = "00000000000000000100"


def dumped(path: Path, *, records: bool = False) -> list[tuple[str, dict[str, Any]]]:
    return [(entry.kind, entry.fields) for entry in dump_file(path, records=records)]


def at(offset: int, data: bytes) -> bytes:
    """A batch as it lies in a log from this offset on, under leader epoch 7."""
    changed = bytearray(data)
    changed[:8] = offset.to_bytes(8, "big")
    changed[12:16] = (7).to_bytes(4, "big")
    return bytes(changed)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two records, three of a transaction, its end, and bytes that are no batch."""
    path = tmp_path / f"{NAME}.log"
    plain = at(100, batch(2, value=b"v"))
    transaction = at(
        102,
        batch(3, timestamp_ms=NOW_MS + 5, producer_id=9, producer_epoch=1, sequence=4, transactional=True),
    )
    end = at(105, marker(9, committed=False, producer_epoch=1))
    path.write_bytes(plain + transaction + end)
    return path


def shown(offset: int, count: int, position: int, data: bytes, **more: Any) -> tuple[str, dict[str, Any]]:
    return "batch", {
        "base_offset": offset,
        "last_offset": offset + count - 1,
        "count": count,
        "position": position,
        "size": len(data),
        "leader_epoch": 7,
        "codec": "none",
        "time": "CreateTime",
        "base_timestamp_ms": NOW_MS,
        "max_timestamp_ms": NOW_MS,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "last_sequence": -1,
        "transactional": False,
        "control": False,
        "delete_horizon": False,
        "crc": parse_batch_header(data).crc,
        **more,
    }


def test_batches_are_shown_with_all_that_their_headers_say(log: Path) -> None:
    data = log.read_bytes()
    sizes = [len(batch(2, value=b"v")), len(batch(3)), len(marker(9, committed=False))]
    plain, transaction, end = (
        data[: sizes[0]],
        data[sizes[0] : sizes[0] + sizes[1]],
        data[sizes[0] + sizes[1] :],
    )
    batches = [
        shown(100, 2, 0, plain),
        shown(
            102,
            3,
            sizes[0],
            transaction,
            producer_id=9,
            producer_epoch=1,
            base_sequence=4,
            last_sequence=6,
            transactional=True,
            base_timestamp_ms=NOW_MS + 5,
            max_timestamp_ms=NOW_MS + 5,
        ),
        shown(
            105,
            1,
            sizes[0] + sizes[1],
            end,
            producer_id=9,
            producer_epoch=1,
            transactional=True,
            control=True,
        ),
    ]
    ended = ("marker", {"offset": 105, "marker": "abort", "coordinator_epoch": 5})
    assert dumped(log) == [*batches, ended]

    def record(offset: int, number: int, value: bytes, timestamp_ms: int) -> tuple[str, dict[str, Any]]:
        key = b"key-%d" % number
        return "record", {"offset": offset, "timestamp_ms": timestamp_ms, "key": key, "value": value}

    assert dumped(log, records=True) == [
        batches[0],
        *(record(100 + number, number, b"v", NOW_MS) for number in range(2)),
        batches[1],
        *(record(102 + number, number, b"value", NOW_MS + 5) for number in range(3)),
        batches[2],
        ended,
    ]


def test_the_end_of_a_transaction_that_was_committed_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(at(100, marker(9, committed=True)))
    assert dumped(path)[1] == ("marker", {"offset": 100, "marker": "commit", "coordinator_epoch": 5})


def test_a_control_batch_of_another_kind_is_shown_by_its_records(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.log"
    other = build_batch([(b"\0\0\0\7", b"\0\0\0\0\0\5", ())], timestamp_ms=NOW_MS, control=True)
    path.write_bytes(at(100, bytes(other)))
    assert dumped(path)[1:] == [
        ("record", {"offset": 100, "timestamp_ms": NOW_MS, "key": b"\0\0\0\7", "value": b"\0\0\0\0\0\5"})
    ]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        *((codec, {"codec": name}) for codec, name in enumerate(("none", "gzip", "snappy", "lz4", "zstd"))),
        (7, {"codec": "7"}),
        (0x08, {"time": "LogAppendTime"}),
        (0x40, {"delete_horizon": True}),
    ],
)
def test_the_attributes_of_a_batch_are_shown_by_name(
    tmp_path: Path, attributes: int, expected: dict[str, Any]
) -> None:
    path, data = tmp_path / f"{NAME}.log", bytearray(at(100, batch(2)))
    data[22] = attributes
    _write_crc(data, 0)
    path.write_bytes(data)
    assert dumped(path) == [shown(100, 2, 0, bytes(data), **expected)]


@pytest.mark.parametrize(
    ("at_byte", "value", "what"),
    [
        (22, 7, "records cannot be read: codec 7 data cannot be decompressed: the codec is not assigned"),
        (61, 0x7E, "records cannot be read: a record of 63 bytes where 33 are left"),
    ],
    ids=["no codec", "a record too long"],
)
def test_records_that_cannot_be_read_are_damage_at_their_batch(
    tmp_path: Path, at_byte: int, value: int, what: str
) -> None:
    path, first, data = tmp_path / f"{NAME}.log", at(100, batch(1)), bytearray(at(101, batch(2)))
    data[at_byte] = value
    _write_crc(data, 0)
    path.write_bytes(first + data + at(103, batch(1)))
    entries = dumped(path, records=True)
    assert [kind for kind, _ in entries] == ["batch", "record", "batch", "damage", "batch", "record"]
    told = entries[3][1]
    assert {**told, "what": told["what"].partition(" (at byte")[0]} == {"position": len(first), "what": what}


def test_damage_is_shown_in_its_place_and_what_follows_goes_on(log: Path) -> None:
    data = bytearray(log.read_bytes())
    first = len(batch(2, value=b"v"))
    data[first + 70] ^= 1
    log.write_bytes(data)
    entries = dumped(log)
    assert [kind for kind, _ in entries] == ["batch", "damage", "batch", "marker"]
    assert entries[1][1]["position"] == first
    assert "checksum" in entries[1][1]["what"]
    assert entries[2][1]["base_offset"] == 105


@pytest.mark.parametrize(
    "name", ["copy.log", f"{NAME}.log.deleted", f"{NAME}.log.swap", f"{NAME}.log.cleaned"]
)
def test_a_log_under_another_name_begins_where_its_first_batch_does(log: Path, name: str) -> None:
    before = dumped(log)
    assert dumped(log.rename(log.with_name(name))) == before


def test_an_empty_log_has_nothing(tmp_path: Path) -> None:
    for name in (f"{NAME}.log", "copy.log"):
        (tmp_path / name).write_bytes(b"")
        assert dumped(tmp_path / name) == []


@pytest.mark.parametrize(
    ("suffix", "form", "entries", "expected"),
    [
        (
            ".index",
            ">ii",
            [(3, 0), (9, 4_000)],
            [{"offset": 103, "position": 0}, {"offset": 109, "position": 4_000}],
        ),
        (
            ".timeindex",
            ">qi",
            [(NOW_MS, 3), (NOW_MS + 1, 9)],
            [{"timestamp_ms": NOW_MS, "offset": 103}, {"timestamp_ms": NOW_MS + 1, "offset": 109}],
        ),
    ],
)
def test_indexes_are_shown_with_whole_offsets_and_what_lies_behind_the_last_entry(
    tmp_path: Path, suffix: str, form: str, entries: list[tuple[int, int]], expected: list[dict[str, int]]
) -> None:
    path, size = tmp_path / f"{NAME}{suffix}", struct.calcsize(form)
    data = b"".join(struct.pack(form, *entry) for entry in entries)
    path.write_bytes(data)
    whole = [("entry", fields) for fields in expected]
    assert dumped(path) == whole
    path.write_bytes(data + bytes(3 * size))
    assert dumped(path) == [*whole, ("preallocated", {"position": 2 * size, "bytes": 3 * size})]
    path.write_bytes(data + b"\1\2\3")
    assert dumped(path) == [
        *whole,
        ("damage", {"position": 2 * size, "what": f"3 bytes are no entry of {size}"}),
    ]
    path.write_bytes(b"")
    assert dumped(path) == []


def test_small_files_are_shown_line_by_line(tmp_path: Path) -> None:
    epochs = tmp_path / "leader-epoch-checkpoint"
    epochs.write_text("0\n2\n1 0\n4 250\n")
    assert dumped(epochs) == [
        ("epoch", {"epoch": 1, "start_offset": 0}),
        ("epoch", {"epoch": 4, "start_offset": 250}),
    ]
    points = tmp_path / "recovery-point-offset-checkpoint"
    points.write_text("0\n2\norders 0 17\nbills 3 4\n")
    assert dumped(points) == [
        ("checkpoint", {"topic": "orders", "partition": 0, "offset": 17}),
        ("checkpoint", {"topic": "bills", "partition": 3, "offset": 4}),
    ]
    properties = tmp_path / "meta.properties"
    properties.write_text("#comment\nversion=1\nnode.id=7\n")
    assert dumped(properties) == [
        ("property", {"key": "version", "value": "1"}),
        ("property", {"key": "node.id", "value": "7"}),
    ]
    topic = tmp_path / "partition.metadata"
    topic.write_bytes(b"version: 0\ntopic_id: \xff\n")
    assert dumped(topic) == [
        ("line", {"text": "version: 0"}),
        ("line", {"text": "topic_id: \N{REPLACEMENT CHARACTER}"}),
    ]


@pytest.mark.parametrize(
    "name", ["leader-epoch-checkpoint", "recovery-point-offset-checkpoint", f"{NAME}.snapshot"]
)
def test_a_file_that_cannot_be_read_is_one_entry_of_damage_without_its_path(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"9\nx\n")
    ((kind, fields),) = dumped(path)
    assert (kind, fields["position"]) == ("damage", -1)
    assert fields["what"]
    assert str(tmp_path) not in fields["what"]


def test_what_is_no_file_of_a_data_folder_is_refused_with_what_is_known(tmp_path: Path) -> None:
    with pytest.raises(DataFolderError) as caught:
        dump_file(tmp_path)
    assert (
        str(caught.value) == f"{tmp_path} is no file: name files of a data folder, such as *.log or *.index"
    )
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(DataFolderError) as caught:
        dump_file(tmp_path / "x.txt")
    assert str(caught.value) == (
        f"{tmp_path / 'x.txt'} is of no kind that is known here: .log, .index, .timeindex, .txnindex, "
        ".snapshot, leader-epoch-checkpoint, -checkpoint, .properties, partition.metadata, "
        ".kafka_cleanshutdown"
    )
