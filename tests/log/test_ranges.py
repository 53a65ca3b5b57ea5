"""Ranges of a log's files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kohort.log import CorruptLogError, LogConfig, _files
from kohort.log._files import OsFile
from tests.log.batches import NOW_MS, batch, open_log
from tests.log.faulty import FaultyFiles

SMALL = LogConfig(segment_bytes=300, file_delete_delay_ms=0, retention_bytes=0)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_range_is_what_would_be_read(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(20):
        log.append(batch(3), now_ms=NOW_MS)
    for offset, most in ((0, 1 << 20), (7, 500), (30, 400)):
        plain = log.read(offset, most)
        found = log.read(offset, most, range_bytes=1)
        assert found.range is not None
        assert (found.records, len(found.range)) == (b"", len(plain.records))
        assert found.range.read() == plain.records
        assert found.range.read(61) == plain.records[61:]


def test_little_is_read_at_once(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(), now_ms=NOW_MS)
    size = len(log.read(0, 1 << 20).records)
    assert log.read(0, 1 << 20, range_bytes=size + 1).range is None
    assert log.read(0, 1 << 20, range_bytes=size).range is not None


def test_a_file_system_that_is_not_the_system_s_gives_no_ranges(tmp_path: Path) -> None:
    log = open_log(tmp_path, fs=FaultyFiles())
    log.append(batch(), now_ms=NOW_MS)
    found = log.read(0, 1 << 20, range_bytes=1)
    assert (found.range, bool(found.records)) == (None, True)


def test_a_range_outlives_its_segment_and_the_partition(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    for _ in range(10):
        log.append(batch(), now_ms=NOW_MS)
    expected = log.read(0, 1 << 20).records
    first, second = (log.read(0, 1 << 20, range_bytes=1).range for _ in range(2))
    assert first is not None
    assert second is not None
    assert log.apply_retention(NOW_MS) > 0
    log.apply_retention(NOW_MS + 1)
    assert first.read() == expected
    log.abandon()
    shutil.rmtree(log.path)
    assert second.read() == expected


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(), now_ms=NOW_MS)
    log.read(0, 1 << 20)
    before = open_descriptors()
    for _ in range(10):
        log.read(0, 1 << 20, range_bytes=1)
    assert open_descriptors() == before


def test_ranges_of_a_file_need_no_descriptors_of_their_own(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(), now_ms=NOW_MS)
    expected = log.read(0, 1 << 20).records
    before = open_descriptors()
    ranges = [log.read(0, 1 << 20, range_bytes=1).range for _ in range(10)]
    assert open_descriptors() == before
    log.close()
    assert [each.read() for each in ranges if each is not None] == [expected] * 10
    ranges.clear()
    assert open_descriptors() < before


def test_what_slow_clients_may_keep_open_is_none_of_the_descriptors_that_connections_leave_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    log.append(batch(5), now_ms=NOW_MS)
    file = log._segments.active.file
    assert isinstance(file, OsFile)
    file.close()
    lower = os.dup(0)
    whole = log.read(0, 1 << 20).records
    assert file.descriptor is not None
    taken = file.descriptor.number
    with monkeypatch.context() as patch:
        patch.setattr(_files, "is_reserved", lambda _number: True)
        found = log.read(0, 1 << 20, range_bytes=1)
        assert (found.range, found.records) == (None, whole)
    # a connection has gone: the file gives its descriptor up for a lower one
    os.close(lower)
    monkeypatch.setattr(_files, "is_reserved", lambda number: number >= taken)
    found = log.read(0, 1 << 20, range_bytes=1)
    assert found.range is not None
    assert found.range.fileno() < taken
    assert found.range.read() == whole


def test_a_file_that_was_cut_is_damage(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(5), now_ms=NOW_MS)
    found = log.read(0, 1 << 20, range_bytes=1).range
    assert found is not None
    log.append(batch(5), now_ms=NOW_MS)
    path = next(tmp_path.glob("*/*.log"))
    size = path.stat().st_size
    os.truncate(path, size - 1)
    with pytest.raises(CorruptLogError) as caught:
        log.read(5, 1 << 20, range_bytes=1)
    error = caught.value
    assert (error.path, error.position, error.reason) == (str(path), size // 2, "1 bytes are missing")
    os.truncate(path, size // 2 - 1)
    with pytest.raises(OSError, match="the file ends before"):
        found.read()
