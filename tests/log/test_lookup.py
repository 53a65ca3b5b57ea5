"""Offsets by time."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kohort.log import CorruptLogError, LogConfig, PartitionLog, at_once
from kohort.protocol import BATCH_OVERHEAD, Codec, build_batch, compress
from kohort.protocol._batch import _write_crc
from tests.log.batches import NOW_MS, batch, open_log


def timed(log: PartitionLog, *times: int) -> PartitionLog:
    for time in times:
        log.append(batch(2, timestamp_ms=time), now_ms=NOW_MS)
    return log


@pytest.mark.parametrize("segment_bytes", [200, 1 << 20])
@pytest.mark.parametrize("interval", [0, 4096])
def test_the_first_record_that_is_not_older_is_found(
    tmp_path: Path, segment_bytes: int, interval: int
) -> None:
    config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=interval)
    times = [100, 300, 200, 300, 50, 400, 350]
    log = timed(open_log(tmp_path, config), *times)
    for wanted in range(0, 402, 10):
        first = next((n for n, time in enumerate(times) if time >= wanted), None)
        expected = None if first is None else (2 * first, times[first], 0)
        assert at_once(log.find_timestamp(wanted)) == expected
    assert at_once(log.find_newest()) == (10, 400)


@pytest.mark.parametrize("clean", [True, False])
def test_times_are_known_after_a_restart(tmp_path: Path, clean: bool) -> None:
    config = LogConfig(segment_bytes=200)
    log = timed(open_log(tmp_path, config), 100, 300, 200)
    if clean:
        log.close()
    log = open_log(tmp_path, config, clean=clean)
    assert at_once(log.find_newest()) == (2, 300)
    assert at_once(log.find_timestamp(150)) == (2, 300, 0)


def test_the_newest_time_of_a_segment_that_was_ended_is_known_after_a_restart(tmp_path: Path) -> None:
    log = timed(open_log(tmp_path, LogConfig(segment_bytes=200)), 100, 300, 200)
    assert len(list(Path(log.path).glob("*.log"))) > 1
    log.close()
    for path in sorted(Path(log.path).glob("*.timeindex"))[:-1]:
        assert struct.unpack(">qi", path.read_bytes()[-12:])[0] in (100, 300)
    log = open_log(tmp_path, LogConfig(segment_bytes=200))
    assert at_once(log.find_timestamp(101)) == (2, 300, 0)


def test_an_empty_log_and_records_without_time_have_none(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert at_once(log.find_newest()) is None
    assert at_once(log.find_timestamp(0)) is None
    timed(log, -1)
    assert at_once(log.find_newest()) is None
    assert at_once(log.find_timestamp(0)) is None


def test_deleted_records_are_not_found(tmp_path: Path) -> None:
    log = timed(open_log(tmp_path), 100, 200)
    log.delete_records(1)
    assert at_once(log.find_timestamp(0)) == (1, 100, 0)
    log.delete_records(2)
    assert at_once(log.find_timestamp(0)) == (2, 200, 0)


def varied(times: list[int], *, lz4: bool) -> bytes:
    """A batch whose records have times of their own."""
    records = b"".join(
        bytes([14, 0])
        + struct.pack(">BB", (2 * (t - times[0])) | 0x80, (t - times[0]) >> 6)
        + bytes([2 * n, 1, 1, 0])
        for n, t in enumerate(times)
    )
    data = build_batch([(None, None, ())] * len(times), timestamp_ms=times[0])[:BATCH_OVERHEAD]
    data += compress(Codec.LZ4, records) if lz4 else records
    data[22] |= 3 if lz4 else 0
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">q", data, 35, max(times))
    _write_crc(data, 0)
    return bytes(data)


@pytest.mark.parametrize("lz4", [False, True])
def test_the_very_record_within_a_batch_is_found(tmp_path: Path, lz4: bool) -> None:
    log = timed(open_log(tmp_path), 10)
    log.append(varied([1000, 1100, 1050, 1100], lz4=lz4), now_ms=NOW_MS)
    assert at_once(log.find_timestamp(11)) == (2, 1000, 0)
    assert at_once(log.find_timestamp(1001)) == (3, 1100, 0)
    assert at_once(log.find_newest()) == (3, 1100)
    log.delete_records(4)
    assert at_once(log.find_timestamp(11)) == (4, 1050, 0)


def test_a_header_that_claims_a_newer_time_than_its_records_have_does_no_harm(tmp_path: Path) -> None:
    data = bytearray(batch(2, timestamp_ms=100))
    struct.pack_into(">q", data, 35, 500)
    _write_crc(data, 0)
    log = open_log(tmp_path)
    log.append(bytes(data), now_ms=NOW_MS, from_client=False)
    timed(log, 450)
    assert at_once(log.find_timestamp(200)) == (2, 450, 0)
    assert at_once(log.find_timestamp(460)) is None
    assert at_once(log.find_newest()) == (1, 500)


def unreadable(timestamp_ms: int) -> bytes:
    """A producer's batch of two that is no batch of records, though its checksum is right."""
    data = bytearray(batch(2, timestamp_ms=timestamp_ms))
    data[61] = 0x7E
    _write_crc(data, 0)
    return bytes(data)


def test_a_producers_batch_that_cannot_be_read_is_found_by_its_header(tmp_path: Path) -> None:
    log = timed(open_log(tmp_path), 1)
    log.append(unreadable(100), now_ms=NOW_MS, from_client=False)
    timed(log, 150)
    assert at_once(log.find_timestamp(50)) == (2, 100, 0)
    assert at_once(log.find_timestamp(120)) == (4, 150, 0)
    log.append(unreadable(300), now_ms=NOW_MS, from_client=False)
    assert at_once(log.find_newest()) == (6, 300)


def test_records_that_the_disk_damaged_are_named_with_their_file(tmp_path: Path) -> None:
    log = timed(open_log(tmp_path), 1, 100)
    size = len(batch(2))
    with (Path(log.path) / "00000000000000000000.log").open("r+b") as file:
        file.seek(size + 61)
        file.write(b"\x7e")
    with pytest.raises(CorruptLogError, match=r"0\.log: checksum is") as caught:
        at_once(log.find_timestamp(50))
    assert caught.value.position == size


def test_a_look_up_in_a_batch_of_many_records_stops_at_the_one_and_gives_others_their_turn(
    tmp_path: Path,
) -> None:
    times = [1_000 + number % 7 for number in range(20_000)]
    times[15_000] = 1_100
    records = b"".join(
        _framed(bytes([0, 2 * (time - 1_000)]) + _two(number) + b"\x01\x01\x00")
        if time < 1_064
        else _framed(b"\x00" + _two(time - 1_000) + _two(number) + b"\x01\x01\x00")
        for number, time in enumerate(times)
    )
    data = build_batch([(None, None, ())] * len(times), timestamp_ms=1_000)[:BATCH_OVERHEAD] + records
    struct.pack_into(">i", data, 8, len(data) - 12)
    _write_crc(data, 0)
    log = open_log(tmp_path)
    log.append(bytes(data), now_ms=NOW_MS)
    turns = [None for _ in log.find_timestamp(1_050)]
    assert 3 < len(turns) < 100
    assert at_once(log.find_timestamp(1_050)) == (15_000, 1_100, 0)
    early = log.find_timestamp(1_003)
    with pytest.raises(StopIteration) as done:
        next(early)
    assert done.value.value == (3, 1_003, 0)


def _framed(body: bytes) -> bytes:
    return bytes([2 * len(body)]) + body


def _two(number: int) -> bytes:
    """A varint of three bytes."""
    number *= 2
    return bytes([number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14])
