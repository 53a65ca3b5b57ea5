"""Flushes that are begun, run elsewhere, and ended while the log goes on."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from kohort.log import Flush, LogConfig, PartitionLog
from kohort.protocol import KafkaError
from kohort.testing.faults import FaultyFileSystem
from tests.log.batches import NOW_MS, batch, filled, open_log
from tests.log.faulty import FaultyFiles

SMALL = LogConfig(segment_bytes=300, file_delete_delay_ms=0, retention_bytes=0)


def in_a_thread(flush: Flush) -> None:
    thread = threading.Thread(target=flush.run)
    thread.start()
    thread.join()


def test_a_flush_covers_what_was_appended_before_it_began(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), 2)
    flush = log.begin_flush()
    filled(log, 3)
    in_a_thread(flush)
    assert log.recovery_point == 0
    log.end_flush(flush)
    assert (flush.end_offset, log.recovery_point, log.log_end_offset) == (2, 2, 5)


def test_the_first_flush_makes_all_of_a_new_log_durable() -> None:
    disk = FaultyFileSystem()
    disk.make_dirs("/data")
    disk.sync_dir("/")
    filled(open_log(Path("/data"), fs=disk), 2).flush()
    left = disk.only_synced()
    assert {path: left.content(path) for path in left.paths()} == {
        path: disk.content(path) for path in disk.paths()
    }


def test_the_log_rolls_while_it_is_flushed(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path, LogConfig(segment_bytes=300)), 1)
    flush = log.begin_flush()
    filled(log, *[1] * 10)
    in_a_thread(flush)
    log.end_flush(flush)
    assert log.recovery_point == 1
    log.flush()
    assert log.recovery_point == 11


def test_segments_that_retention_took_meanwhile_need_no_sync(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path, SMALL), *[1] * 10)
    flush = log.begin_flush()
    assert log.apply_retention(NOW_MS) > 0
    in_a_thread(flush)
    assert flush.missing
    log.end_flush(flush)
    assert log.recovery_point == 10


def test_a_file_that_somebody_else_took_away_is_a_failure(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), 1)
    path = next(tmp_path.glob("*/*.log"))
    path.unlink()
    with pytest.raises(KafkaError) as caught:
        log.flush()
    assert f"[Errno {errno.ENOENT}] gone before it was synced: '{path}'" in str(caught.value)
    assert log.offline


def test_a_failed_flush_takes_the_log_offline_when_it_is_ended(tmp_path: Path) -> None:
    fs = FaultyFiles(errno.EIO)
    log = filled(open_log(tmp_path, fs=fs), 1)
    flush = log.begin_flush()
    fs.arm(1)
    in_a_thread(flush)
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        log.end_flush(flush)
    assert log.offline
    assert log.recovery_point == 0


def test_a_flush_that_ends_after_its_log_was_closed_or_deleted_says_so(tmp_path: Path) -> None:
    for end in (PartitionLog.close, PartitionLog.abandon):
        log = filled(open_log(tmp_path), 1)
        flush = log.begin_flush()
        end(log)
        in_a_thread(flush)
        with pytest.raises(KafkaError, match="closed"):
            log.end_flush(flush)


def test_files_and_folder_are_synced_only_when_they_have_changed(tmp_path: Path) -> None:
    fs = FaultyFiles(errno.EIO)

    def syncs(log: PartitionLog) -> int:
        fs.count = 0
        log.flush()
        return fs.count

    log = filled(open_log(tmp_path, fs=fs), 1)
    assert syncs(log) == 6  # .log, two indexes, the leader epochs, the folder, and its name
    assert syncs(log) == 0
    filled(log, 1)
    assert syncs(log) == 1
    log.append(batch(1, value=b"v" * 8_000), now_ms=NOW_MS)
    log.append(batch(1), now_ms=NOW_MS)
    assert syncs(log) == 3


def test_a_caller_may_flush_what_is_due_itself(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(flush_messages=2))
    log.append(batch(1), now_ms=NOW_MS, flush_when_due=False)
    due = [log.flush_is_due]
    log.append(batch(1), now_ms=NOW_MS, flush_when_due=False)
    due.append(log.flush_is_due)
    assert due == [False, True]
    assert log.recovery_point == 0


def test_a_file_whose_name_compaction_is_changing_needs_no_sync(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), 1)
    log._segments.replacing = True
    path = next(tmp_path.glob("*/*.log"))
    flush = log.begin_flush()
    path.rename(path.with_suffix(".aside"))
    flush.run()
    log.end_flush(flush)
    assert (log.recovery_point, log.offline) == (1, False)
