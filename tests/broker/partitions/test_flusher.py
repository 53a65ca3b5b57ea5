"""Group commit, with a disk that syncs when the test says so."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.broker.metrics import Histogram
from kohort.broker.partitions import flusher as _flusher
from kohort.broker.partitions.flusher import Flusher
from kohort.log import LogConfig, PartitionLog
from kohort.log._files import OsFile
from kohort.log._producers import MOST_SAVED
from kohort.protocol import ErrorCode, KafkaError, parse_batch_header
from tests.log.batches import NOW_MS, batch, open_log


class Disk:
    """Syncs wait for ``go_on``; ``fail`` lets them fail."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)
        self.fail = False
        self.error = errno.EIO
        self.threads: list[str] = []

    def sync(self, path: str) -> None:
        if not path.endswith(".log"):
            return
        self.threads.append(threading.current_thread().name)
        self.entered.release()
        assert self.go_on.acquire(timeout=10)
        if self.fail:
            raise OSError(self.error, "the disk is gone", path)

    async def under_way(self) -> None:
        """Wait until a sync has begun."""
        assert await asyncio.to_thread(self.entered.acquire, timeout=10)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    made = Disk()
    monkeypatch.setattr(OsFile, "sync", lambda file: made.sync(file.path))
    yield made
    made.go_on.release(100)


class Told:
    def __init__(self) -> None:
        self.flushed = 0
        self.errors: list[KafkaError] = []


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return open_log(tmp_path, LogConfig())


@pytest.fixture
def flusher(log: PartitionLog, told: Told) -> Flusher:
    def flushed() -> None:
        told.flushed += 1

    return Flusher(log, flushed, told.errors.append, Histogram())


def append(log: PartitionLog) -> int:
    return log.append(batch(1), now_ms=NOW_MS).last_offset + 1


async def test_concurrent_appends_share_a_flush(
    log: PartitionLog, flusher: Flusher, disk: Disk, told: Told
) -> None:
    first = [flusher.wait_flushed(append(log)) for _ in range(3)]
    await disk.under_way()
    second = [flusher.wait_flushed(append(log)) for _ in range(5)]
    disk.go_on.release()
    await asyncio.gather(*first)
    assert log.recovery_point == 3
    assert not any(one.done() for one in second)
    disk.go_on.release()
    await asyncio.gather(*second)
    assert (log.recovery_point, told.flushed, len(disk.threads)) == (8, 2, 2)


async def test_the_loop_goes_on_while_the_disk_syncs(log: PartitionLog, flusher: Flusher, disk: Disk) -> None:
    done = flusher.wait_flushed(append(log))
    await disk.under_way()
    for _ in range(10):
        append(log)
        await asyncio.sleep(0)
    assert not done.done()
    assert disk.threads[0] != threading.current_thread().name
    disk.go_on.release()
    await done


async def test_a_failed_sync_is_told_to_all_who_wait(
    log: PartitionLog, flusher: Flusher, disk: Disk, told: Told
) -> None:
    waiting = [flusher.wait_flushed(append(log))]
    await disk.under_way()
    waiting.append(flusher.wait_flushed(append(log)))
    disk.fail = True
    disk.go_on.release()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [one.code for one in results if isinstance(one, KafkaError)] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert log.offline
    assert [error.code for error in told.errors] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert told.flushed == 0


async def test_an_offline_log_is_not_flushed_again(log: PartitionLog, flusher: Flusher, disk: Disk) -> None:
    end = append(log)
    log.offline = True
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        await flusher.wait_flushed(end)
    assert not disk.threads


async def test_a_flush_by_time_comes_by_itself_and_once(
    log: PartitionLog, flusher: Flusher, disk: Disk
) -> None:
    disk.go_on.release(10)
    append(log)
    flusher.start_within(0.01)
    flusher.start_within(0.01)
    await disk.under_way()
    await asyncio.sleep(0.05)
    assert (log.recovery_point, len(disk.threads)) == (1, 1)


async def test_who_went_away_does_not_keep_others_waiting(
    log: PartitionLog, flusher: Flusher, disk: Disk
) -> None:
    gone, there = flusher.wait_flushed(append(log)), flusher.wait_flushed(append(log))
    gone.cancel()
    disk.go_on.release()
    await there


async def test_closing_ends_the_wait(log: PartitionLog, flusher: Flusher, disk: Disk) -> None:
    waiting = flusher.wait_flushed(append(log))
    flusher.start_within(60)
    await disk.under_way()
    flusher.close(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "deleted"))
    with pytest.raises(KafkaError, match="deleted"):
        await waiting
    disk.go_on.release()


async def test_a_flush_that_can_open_no_file_is_tried_again(
    log: PartitionLog, flusher: Flusher, disk: Disk, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_flusher, "AGAIN_S", 0.0)
    disk.error = errno.EMFILE
    disk.fail = True
    disk.go_on.release()
    with pytest.raises(KafkaError) as refused:
        await flusher.wait_flushed(append(log))
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    disk.fail = False
    disk.go_on.release(100)
    while log.recovery_point < 1:  # noqa: ASYNC110 - the flusher tells those that wait, nobody does
        await asyncio.sleep(0.001)
    assert (told.errors, log.offline) == ([], False)


async def test_a_snapshot_of_many_producers_is_written_beside_serving(
    log: PartitionLog, flusher: Flusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = parse_batch_header(batch(producer_id=1, sequence=0))
    for number in range(3 * MOST_SAVED):
        log._producers.note(header._replace(producer_id=number), None, NOW_MS)
    log._roll_segment(NOW_MS)
    threads: list[str] = []
    sync = OsFile.sync

    def note(file: OsFile) -> None:
        threads.append(threading.current_thread().name)
        sync(file)

    monkeypatch.setattr(OsFile, "sync", note)
    flusher.save()
    flusher.save()
    assert flusher._saver is not None
    await flusher._saver
    assert list(Path(log.path).glob("*.snapshot"))
    assert not log.has_snapshot_to_write
    assert len(threads) == 1
    assert threads[0] != threading.current_thread().name


async def test_a_snapshot_that_fails_costs_a_start_alone(
    log: PartitionLog, flusher: Flusher, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = parse_batch_header(batch(producer_id=1, sequence=0))
    for number in range(2 * MOST_SAVED):
        log._producers.note(header._replace(producer_id=number), None, NOW_MS)
    log._roll_segment(NOW_MS)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(OsFile, "write", full)
    flusher.save()
    assert flusher._saver is not None
    await flusher._saver
    monkeypatch.undo()
    assert (log.offline, log.has_snapshot_to_write, told.errors) == (False, False, [])
