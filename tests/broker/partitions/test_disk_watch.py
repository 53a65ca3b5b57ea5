"""What a broker says of a disk that refuses writes, in its log, its metrics and its responses.

Covers: broker/partitions/disk_watch.py.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from kohort.broker import Broker
from kohort.broker.metrics import DiskFigures
from kohort.broker.metrics._exposer import exposition
from kohort.broker.partitions.disk_watch import QUIET_S, REPEAT_S, DiskWatch
from kohort.log import NoDescriptorsError
from kohort.log._files import OsFile
from kohort.protocol import ApiKey, ErrorCode, KafkaError
from kohort.testing import running_broker
from tests.broker.wire import Wire, batch, create_topic, produce
from tests.waiting import until

FULL = OSError(errno.ENOSPC, "no space left on device")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_refusal_is_told_at_once_then_once_a_minute_and_its_end_when_none_came_for_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    watch = DiskWatch(str(tmp_path), clock)
    for _ in range(1_000):
        watch.on_refused(FULL)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert f"the disk of {tmp_path} refuses writes, 1 so far" in caplog.text
    assert "no space left on device" in caplog.text
    watch.on_accepted()  # a small batch, beside large ones that are refused
    assert watch.failing
    clock.now += REPEAT_S
    watch.on_refused(FULL)
    assert "refuses writes, 1001 so far" in caplog.text
    clock.now += QUIET_S
    watch.on_accepted()
    assert repr(watch).endswith("1001 refused)")
    assert f"the disk of {tmp_path} takes writes again, after {REPEAT_S:.0f} s" in caplog.text
    assert len(caplog.records) == 3
    assert watch.figures().writes_refused == 1_001


def test_what_the_disk_has_no_part_in_is_not_its_failure(tmp_path: Path) -> None:
    watch = DiskWatch(str(tmp_path))
    watch.on_refused(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the files are damaged"))
    error = NoDescriptorsError(ErrorCode.KAFKA_STORAGE_ERROR, "too many open files")
    error.__cause__ = OSError(errno.EMFILE, "too many open files")
    watch.on_refused(error)
    assert (watch.failing, watch.figures().writes_refused) == (False, 0)


def test_a_folder_that_is_gone_has_no_space(tmp_path: Path) -> None:
    assert DiskWatch(str(tmp_path / "gone")).figures() == DiskFigures(0, 0, 0)


def test_little_space_is_told_and_when_there_is_more_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, percent = Clock(), [10]
    space = SimpleNamespace(f_blocks=1_000, f_frsize=4, f_bavail=100)
    monkeypatch.setattr("os.statvfs", lambda _: space)
    watch = DiskWatch(str(tmp_path), clock, lambda: percent[0])
    watch.look_at_space()
    assert watch.figures() == DiskFigures(400, 4_000, 0, low_bytes=400)
    assert caplog.text == ""
    space.f_bavail = 99
    watch.look_at_space()
    clock.now += 60
    watch.look_at_space()
    space.f_bavail = 101
    watch.look_at_space()
    space.f_bavail, percent[0] = 0, 0
    watch.look_at_space()
    full, free = (record.getMessage() for record in caplog.records)
    assert full.startswith(f"the disk of {tmp_path} fills: 396 of 4000 bytes are free; shorten retention")
    assert free == f"the disk of {tmp_path} has space again, after 60 s"


async def test_a_broker_looks_at_its_start_and_its_metrics_tell_where_little_begins(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Broker(settings={"kohort.log.dir.low.space.percent": 100}) as broker:
        await until(lambda: "fills: " in caplog.text)
        now = broker.metrics()
    assert now.disk.low_bytes == now.disk.total_bytes
    shown = exposition(now)[0].decode()
    (told,) = re.findall(r"^kohort_log_dir_low_bytes (\S+)$", shown, re.MULTILINE)
    assert float(told) == now.disk.total_bytes
    assert "kohort_log_dir_failing 0.0" in shown


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT])
def test_a_full_disk_is_in_the_log_and_in_describe_log_dirs_until_writes_succeed_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("kohort.broker.partitions.disk_watch.QUIET_S", 0.0)
    with running_broker() as broker, Wire(broker.bootstrap) as wire:

        def told() -> int:
            (folder,) = wire.call(ApiKey.DESCRIBE_LOG_DIRS, 4, topics=[]).results
            error_code: int = folder.error_code
            return error_code

        create_topic(wire, "orders")
        with monkeypatch.context() as full:
            full.setattr(OsFile, "write", fails)
            assert produce(wire, "orders", batch(3)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert told() == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce(wire, "orders", batch(3)).error_code == ErrorCode.NONE
        assert told() == ErrorCode.NONE
    assert caplog.text.count("refuses writes, 1 so far") == 1
    assert os.strerror(number) in caplog.text
    assert caplog.text.count("takes writes again") == 1


async def test_metrics_have_the_space_of_the_disk() -> None:
    async with Broker() as broker:
        disk = broker.metrics().disk
        assert 0 < disk.free_bytes < disk.total_bytes
        assert disk.writes_refused == 0
