"""What a broker does by itself."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from kohort.broker.partitions.partition import Partition
from kohort.log._files import OsFile
from kohort.testing import running_broker
from tests.broker.wire import Wire, batch, create_topic, offset_at, produce
from tests.waiting import wait_until

EARLIEST = -2
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


def points(folder: Path) -> str:
    path = folder / RECOVERY_POINTS
    return path.read_text() if path.exists() else ""


def test_old_segments_go() -> None:
    with (
        running_broker(log_retention_check_interval_ms=50, log_segment_bytes=200) as broker,
        Wire(broker.bootstrap) as wire,
    ):
        create_topic(wire, "short", retention_ms="1000")
        for _ in range(10):
            produce(wire, "short", batch())
        wait_until(lambda: offset_at(wire, "short", EARLIEST).offset > 0)


def test_a_partition_that_cannot_be_looked_at_keeps_no_other_from_its_retention(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    retain = Partition.apply_retention

    def apply_retention(partition: Partition, now_ms: int) -> None:
        if partition.topic.name == "bad":
            raise ValueError("an index of five bytes")
        retain(partition, now_ms)

    monkeypatch.setattr(Partition, "apply_retention", apply_retention)
    with (
        running_broker(log_retention_check_interval_ms=50, log_segment_bytes=200) as broker,
        Wire(broker.bootstrap) as wire,
    ):
        for name in ("bad", "short"):
            create_topic(wire, name, retention_ms="1000")
        for _ in range(10):
            produce(wire, "short", batch())
        wait_until(lambda: offset_at(wire, "short", EARLIEST).offset > 0)


def test_recovery_points_are_written_while_it_runs(tmp_path: Path) -> None:
    with (
        running_broker(
            data=tmp_path, log_flush_interval_messages=1, log_flush_offset_checkpoint_interval_ms=50
        ) as broker,
        Wire(broker.bootstrap) as wire,
    ):
        create_topic(wire, "orders")
        produce(wire, "orders", batch(3))
        wait_until(lambda: "orders 0 3" in points(tmp_path))


def test_recovery_points_that_a_full_disk_refuses_are_a_line_and_written_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole, is_full = OsFile.write, threading.Event()

    def write(file: OsFile, position: int, data: bytes) -> None:
        if RECOVERY_POINTS in file.path and is_full.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(file, position, data)

    monkeypatch.setattr(OsFile, "write", write)
    is_full.set()
    with (
        running_broker(
            data=tmp_path, log_flush_interval_messages=1, log_flush_offset_checkpoint_interval_ms=50
        ) as broker,
        Wire(broker.bootstrap) as wire,
    ):
        create_topic(wire, "orders")
        produce(wire, "orders", batch(3))
        wait_until(lambda: "could not be written, which is tried again: KAFKA_STORAGE_ERROR" in caplog.text)
        is_full.clear()
        wait_until(lambda: "orders 0 3" in points(tmp_path))
    assert "Traceback" not in caplog.text


def test_records_are_synced_when_they_are_old_enough(tmp_path: Path) -> None:
    with (
        running_broker(data=tmp_path, log_flush_offset_checkpoint_interval_ms=50) as broker,
        Wire(broker.bootstrap) as wire,
    ):
        create_topic(wire, "orders", flush_ms="100")
        produce(wire, "orders", batch(3))
        wait_until(lambda: "orders 0 3" in points(tmp_path))
