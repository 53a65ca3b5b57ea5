"""A disk that fails: what was acknowledged stays, what was not leaves no trace."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kohort.log import LogConfig, PartitionLog
from kohort.log._files import OsFile
from kohort.protocol import ErrorCode, KafkaError
from tests.log.batches import NOW_MS, all_records, batch, marker, offsets_of, open_log
from tests.log.faulty import FaultyFiles

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100)

#: Steps of a scenario, and more writes than a close, an opening or a retention makes.
STEPS = 14
MANY = 60


def append(log: PartitionLog, number: int) -> None:
    """One step of a scenario that rolls, indexes, opens and aborts transactions."""
    if number % 7 == 6:
        log.append(marker(1, committed=False), now_ms=NOW_MS, from_client=False)
    elif number % 7 == 4:
        records = batch(2, producer_id=1, sequence=-1, transactional=True)
        log.append(records, now_ms=NOW_MS, from_client=False, leader_epoch=number // 7)
    else:
        log.append(batch(1 + number % 3, timestamp_ms=NOW_MS + number), now_ms=NOW_MS)


def code_of(call: Callable[[], object]) -> ErrorCode | None:
    """The error that a call ends with."""
    try:
        call()
    except KafkaError as error:
        return error.code
    return None


def scenario(log: PartitionLog, steps: int, fs: FaultyFiles) -> int:
    """Take the steps, each again after a failure that left the log usable; how many failed."""
    failures = 0
    for number in range(steps):
        before = (log.log_end_offset, all_records(log), log.size_bytes, log.last_stable_offset)
        code = code_of(partial(append, log, number))
        if code is not None:
            assert code is ErrorCode.KAFKA_STORAGE_ERROR
            failures += 1
            assert (log.log_end_offset, all_records(log), log.size_bytes, log.last_stable_offset) == before
            fs.heal()
            append(log, number)
    return failures


def test_a_full_disk_at_any_write_of_appends_is_undone_and_the_step_can_be_taken_again(
    tmp_path: Path,
) -> None:
    untouched = open_log(tmp_path / "untouched", CONFIG)
    scenario(untouched, STEPS, FaultyFiles())
    expected = all_records(untouched)
    failed_at: list[str] = []
    for number in range(1, 500):
        fs = FaultyFiles()
        log = open_log(tmp_path / str(number), CONFIG, fs=fs)
        fs.arm(number)
        failures = scenario(log, STEPS, fs)
        fs.heal()
        assert all_records(log) == expected
        assert (failures, log.offline) == (len(fs.failed), False)
        log.close()
        again = open_log(tmp_path / str(number), CONFIG, clean=number % 2 == 0)
        assert all_records(again) == expected
        assert not again.recovery.cuts
        assert again.read(0, 9999, committed=True).aborted == [(1, 7)]
        again.close()
        if not failures:
            break
        failed_at += fs.failed
    assert failures == 0
    suffixes = {what.rpartition(".")[2] for what in failed_at}
    assert suffixes >= {"log", "index", "timeindex", "txnindex", "tmp"}


def test_an_append_that_cannot_be_undone_takes_the_log_offline_and_loses_nothing(tmp_path: Path) -> None:
    fs = FaultyFiles()
    log = open_log(tmp_path, CONFIG, fs=fs)
    append(log, 0)
    append(log, 1)
    before = all_records(log)
    fs.arm(1, sticky=True)
    with pytest.raises(KafkaError, match="while undoing"):
        append(log, 2)
    assert log.offline
    fs.heal()
    with pytest.raises(KafkaError, match="closed or its disk failed"):
        append(log, 2)
    with pytest.raises(KafkaError, match="closed or its disk failed"):
        log.read(0, 100)
    log.close()
    again = open_log(tmp_path, CONFIG, clean=False)
    assert all_records(again) == before
    assert len(again.recovery.cuts) == 1


def test_a_failed_sync_takes_the_log_offline(tmp_path: Path) -> None:
    """What an fsync that failed has lost, the next one would not tell."""
    fs = FaultyFiles(errno.EIO)
    log = open_log(tmp_path, CONFIG, fs=fs)
    append(log, 0)
    fs.arm(1)
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        log.flush()
    assert log.offline
    assert log.recovery_point == 0
    with pytest.raises(KafkaError):
        log.flush()


def test_a_close_that_fails_says_so_and_gives_the_files_back(tmp_path: Path) -> None:
    for number in range(1, MANY):
        fs = FaultyFiles()
        log = open_log(tmp_path / str(number), CONFIG, fs=fs)
        for step in range(6):
            append(log, step)
        expected = all_records(log)
        fs.arm(number)
        code = code_of(log.close)
        assert code is (ErrorCode.KAFKA_STORAGE_ERROR if fs.failed else None)
        fs.heal()
        again = open_log(tmp_path / str(number), CONFIG, clean=not fs.failed)
        assert all_records(again) == expected
        if not fs.failed:
            break
    assert 3 < number < MANY - 1


def test_an_opening_that_fails_can_be_tried_again(tmp_path: Path) -> None:
    for number in range(1, MANY):
        fs = FaultyFiles()
        fs.arm(number)
        code = code_of(partial(open_log, tmp_path / str(number), CONFIG, fs=fs))
        assert code is (ErrorCode.KAFKA_STORAGE_ERROR if fs.failed else None)
        fs.heal()
        if not fs.failed:
            break
        log = open_log(tmp_path / str(number), CONFIG, clean=False, fs=fs)
        append(log, 0)
        assert offsets_of(all_records(log)) == [(0, 0)]
    assert 5 < number < MANY - 1


@pytest.mark.parametrize("left", [[(3, 3)], []], ids=["all but the last one", "all"])
def test_retention_that_fails_leaves_the_rest_readable(tmp_path: Path, left: list[tuple[int, int]]) -> None:
    start = 4 - len(left)
    config = LogConfig(segment_bytes=len(batch()), retention_ms=0)
    for number in range(1, MANY):
        fs = FaultyFiles()
        log = open_log(tmp_path / str(number), config, fs=fs)
        for _ in range(3):
            log.append(batch(timestamp_ms=NOW_MS - 10), now_ms=NOW_MS)
        log.append(batch(timestamp_ms=NOW_MS if left else NOW_MS - 10), now_ms=NOW_MS)
        fs.arm(number)
        code = code_of(partial(log.apply_retention, NOW_MS))
        assert code is (ErrorCode.KAFKA_STORAGE_ERROR if fs.failed else None)
        fs.heal()
        log.apply_retention(NOW_MS)
        assert (log.log_start_offset, offsets_of(all_records(log))) == (start, left)
        log.close()
        again = open_log(tmp_path / str(number), config, clean=False, fs=fs)
        assert (again.log_start_offset, offsets_of(all_records(again))) == (start, left)
        if not fs.failed:
            break
    assert 5 < number < MANY - 1


def test_retention_says_that_a_file_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path, CONFIG)
    log.append(batch(timestamp_ms=NOW_MS), now_ms=NOW_MS)
    log.close()
    log = open_log(tmp_path, CONFIG)

    def read(file: OsFile, position: int, size: int) -> bytes:
        raise OSError(errno.EIO, f"{size} bytes at {position}", file.path)

    monkeypatch.setattr(OsFile, "read", read)
    assert code_of(partial(log.apply_retention, NOW_MS)) is ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    assert log.apply_retention(NOW_MS) == 0
