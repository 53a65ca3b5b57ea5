"""The recorder writes behind whom it records, and no trouble with its file reaches them."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kohort.recording import (
    END_OF_TIME,
    EventRow,
    LagSample,
    Recorder,
    RecordingBounds,
    Stretch,
    read_group,
    recorder,
)
from kohort.recording.file import FILE_NAME, FileLock
from kohort.recording.store import Store


def row_of(generation: int) -> EventRow | None:
    if generation < 0:
        return None
    return EventRow("g", 1_000 + generation, "RebalanceCompleted", generation, "why", lasting=True)


@contextmanager
def recording(
    folder: Path, bounds: RecordingBounds | None = None, now_ms: int = 5_000
) -> Iterator[Recorder[int]]:
    made = Recorder(folder, row_of, bounds, lambda: now_ms)
    made.start()
    try:
        yield made
    finally:
        made.close()


def generations(folder: Path) -> list[int]:
    return [kept.event.generation for kept in read_group(folder, "g", 0, END_OF_TIME, limit=100_000).rows]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "LINGER_S", 0.0)
    monkeypatch.setattr(recorder, "_RETRY_S", 0.0)


def test_events_and_samples_are_in_the_file_a_moment_later(tmp_path: Path) -> None:
    with recording(tmp_path / "not" / "there") as made:
        made.watch()
        for generation in range(2_000):
            made.record_event(generation, lasting=True)
        made.record_event(-1, lasting=False)
        made.record_samples([LagSample("g", 2_000, 5)])
        assert made.flush()
        assert generations(made.folder) == list(range(2_000))
        assert made.figures.rows == 2_001
        assert made.figures.lost == 0
        assert made.figures.bytes > 0


def test_what_waits_is_written_at_the_end_and_the_watch_ends_there(tmp_path: Path) -> None:
    with recording(tmp_path, now_ms=7_000) as made:
        made.watch()
        made.record_event(1, lasting=True)
    found = read_group(tmp_path, "g", 0, END_OF_TIME)
    assert [kept.event.generation for kept in found.rows] == [1]
    assert found.watched == (Stretch(7_000, 7_000),)


def test_events_are_there_after_the_process_was_killed(tmp_path: Path) -> None:
    script = f"""
import os, signal
from pathlib import Path
from kohort.recording import EventRow, Recorder
row_of = lambda n: EventRow("g", 1_000 + n, "K", n, f"cause {{n}}", lasting=True)
made = Recorder(Path({str(tmp_path)!r}), row_of, now_ms=lambda: 5_000)
made.start()
made.watch()
for n in range(200):
    made.record_event(n, lasting=True)
assert made.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == -9, done.stderr
    assert generations(tmp_path) == list(range(200))
    with recording(tmp_path) as made:
        made.record_event(200, lasting=True)
    assert generations(tmp_path) == list(range(201))


def test_what_comes_too_fast_is_lost_and_counted_but_not_what_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MOST_OTHERS", 10)
    made = Recorder(tmp_path, row_of, now_ms=lambda: 5_000)
    for generation in range(100):
        made.record_event(generation, lasting=False)
    made.record_event(100, lasting=True)
    made.start()
    assert made.flush()
    made.close()
    assert generations(tmp_path) == [*range(10), 100]
    [loss] = read_group(tmp_path, "g", 0, END_OF_TIME).losses
    assert loss.lost == made.figures.lost == 90


def test_a_file_that_another_process_has_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lock = FileLock(tmp_path)
    with caplog.at_level(logging.WARNING, "kohort.recording"), recording(tmp_path) as made:
        made.watch()
        for generation in range(5):
            made.record_event(generation, lasting=True)
            assert not made.flush(0.05)
        assert made.figures.failing
        lock.release()
        made.record_event(5, lasting=True)
        assert made.flush()
        made.record_event(6, lasting=True)
        assert made.flush()
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert "another process records" in messages[0]
    assert "recorded again" in messages[1]
    found = read_group(tmp_path, "g", 0, END_OF_TIME)
    lost = sum(loss.lost for loss in found.losses)
    assert lost + len(found.rows) == 7
    assert found.rows[-1].event.generation == 6


@pytest.mark.parametrize("trouble", ["a file in place of the folder", "a folder in place of the file"])
def test_a_place_that_cannot_be_written_troubles_nobody(
    tmp_path: Path, trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "recording"
    if trouble.startswith("a file"):
        folder.write_text("")
    else:
        (folder / FILE_NAME).mkdir(parents=True)
    with caplog.at_level(logging.WARNING, "kohort.recording"), recording(folder) as made:
        made.record_event(1, lasting=True)
        assert not made.flush(0.05)
        made.record_event(2, lasting=True)
        assert not made.flush(0.05)
        assert made.figures.failing
    assert len(caplog.records) == 1


def test_a_full_disk_loses_what_comes_meanwhile_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = threading.Event()
    write = Store.write

    def write_or_fail(self: Store, *args: object) -> None:
        if full.is_set():
            raise sqlite3.OperationalError("database or disk is full")
        write(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "write", write_or_fail)
    with caplog.at_level(logging.WARNING, "kohort.recording"), recording(tmp_path) as made:
        made.record_event(1, lasting=True)
        assert made.flush()
        full.set()
        made.record_event(2, lasting=True)
        assert not made.flush(0.1)
        full.clear()
        made.record_event(3, lasting=True)
        assert made.flush()
    assert [("disk is full" in line, "again in" in line) for line in caplog.messages] == [
        (True, False),
        (False, True),
    ]
    found = read_group(tmp_path, "g", 0, END_OF_TIME)
    assert [kept.event.generation for kept in found.rows] == [1, 3]
    assert sum(loss.lost for loss in found.losses) == 1


def test_a_file_that_is_damaged_while_it_is_written_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = iter([True])
    write = Store.write

    def write_or_fail(self: Store, *args: object) -> None:
        if next(damaged, False):
            raise sqlite3.DatabaseError("database disk image is malformed")
        write(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "write", write_or_fail)
    with caplog.at_level(logging.WARNING, "kohort.recording"), recording(tmp_path) as made:
        made.record_event(1, lasting=True)
        made.flush(0.1)
        made.record_event(2, lasting=True)
        assert made.flush()
    assert (tmp_path / "recording.db.damaged").exists()
    assert generations(tmp_path)[-1] == 2


def test_an_event_that_makes_no_row_for_an_error_stops_nothing(tmp_path: Path) -> None:
    def broken(generation: int) -> EventRow:
        if generation == 1:
            raise RuntimeError("a mistake")
        return EventRow("g", generation, "K", generation)

    made = Recorder(tmp_path, broken, now_ms=lambda: 5_000)
    made.start()
    made.record_event(1, lasting=True)
    made.record_event(2, lasting=True)
    assert made.flush()
    made.close()
    assert generations(tmp_path) == [2]
    assert [loss.lost for loss in read_group(tmp_path, "g", 0, END_OF_TIME).losses] == [1]


def test_a_killed_recorder_writes_nothing_more(tmp_path: Path) -> None:
    made = Recorder(tmp_path, row_of)
    made.record_event(1, lasting=True)
    made.start()
    made.abandon()
    assert not (tmp_path / FILE_NAME).exists() or generations(tmp_path) in ([], [1])


def test_the_files_of_a_recording_are_few(tmp_path: Path) -> None:
    with recording(tmp_path) as made:
        made.record_event(1, lasting=True)
    assert sorted(os.listdir(tmp_path)) == [FILE_NAME, "recording.lock"]
