"""The recorder writes behind whom it records, and no trouble with its file reaches them."""

from __future__ import annotations

import errno
import fcntl
import itertools
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kohort.recording import (
    END_OF_TIME,
    EventRow,
    LagSample,
    Loss,
    Recorder,
    RecordingBounds,
    Stretch,
    read_group,
    recorder,
)
from kohort.recording.file import FILE_NAME, FileLock
from kohort.recording.store import Store
from tests.torture.disk import data_disk


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


def test_the_thread_rests_for_longer_than_it_works_while_much_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests of the process wait while it works."""
    rests = list[float]()

    def rest(seconds: float) -> bool:
        rests.append(seconds)
        return False

    made = Recorder(tmp_path, row_of, now_ms=lambda: 5_000)
    monkeypatch.setattr(made._hurry, "wait", rest)
    for generation in range(2_000):
        made.record_event(generation, lasting=True)
    made.start()
    assert made.flush()
    # 500 at once
    assert sum(rest > 0 for rest in rests) == 4
    made.close()


def test_no_rest_is_long_and_none_is_taken_while_somebody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that was put forward, or a slow disk, is no reason to rest for days."""
    monkeypatch.setattr(recorder, "_RESTS", 1e9)
    made = Recorder(tmp_path, row_of, now_ms=lambda: 5_000)
    for generation in range(1_000):
        made.record_event(generation, lasting=True)
    made.start()
    begun = time.monotonic()
    while made.figures.rows < 1_000 and time.monotonic() < begun + 30:
        time.sleep(0.01)
    assert made.figures.rows == 1_000
    monkeypatch.setattr(recorder, "_MOST_REST_S", 1e6)
    for generation in range(2_000):
        made.record_event(generation, lasting=True)
    assert made.flush(within_s=30)
    for generation in range(2_000):
        made.record_event(generation, lasting=True)
    made.close(within_s=30)
    assert made.figures.rows == 5_000


def test_how_long_all_is_recorded_is_noted_with_the_last_of_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed before has lost what was not written, and the time of it is not known."""
    times = itertools.count(5_000)
    known, ends = list[tuple[int, Stretch]](), list[int]()
    write, end_watch = Store.write, Store.end_watch

    def write_and_look(self: Store, *args: object) -> None:
        write(self, *args)  # type: ignore[arg-type]
        found = read_group(tmp_path, "g", 0, END_OF_TIME, limit=10_000)
        known.append((len(found.rows), found.watched[0]))

    def end_and_look(self: Store, scope: str, until_ms: int) -> None:
        ends.append(len(generations(tmp_path)))
        end_watch(self, scope, until_ms)

    monkeypatch.setattr(Store, "write", write_and_look)
    monkeypatch.setattr(Store, "end_watch", end_and_look)
    made = Recorder(tmp_path, row_of, now_ms=lambda: next(times))
    made.watch()
    for generation in range(1_100):
        made.record_event(generation, lasting=True)
    made.end_watch()
    made.start()
    assert made.flush()
    made.close()
    rows, watched = zip(*known[:3], strict=True)
    assert rows == (500, 1_000, 1_100)
    assert watched[0] == watched[1] < watched[2]
    assert ends == [1_100]


def test_what_comes_all_the_time_keeps_neither_the_bounds_nor_who_waits(tmp_path: Path) -> None:
    def row_and_next(generation: int) -> EventRow | None:
        made.record_event(generation + 1, lasting=True)
        return row_of(generation)

    made = Recorder(tmp_path, row_and_next, now_ms=lambda: 5_000)
    made.record_event(0, lasting=True)
    made.start()
    assert made.flush()
    assert made.figures.bytes > 0
    made.close()


def test_a_recording_that_was_removed_begins_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "recording"
    times = itertools.count(5_000)
    made = Recorder(folder, row_of, now_ms=lambda: next(times))
    made.start()
    made.watch()
    made.record_event(1, lasting=True)
    assert made.flush()
    shutil.rmtree(folder)
    removed_ms = next(times)
    made.record_event(2, lasting=True)
    assert made.flush()
    assert generations(folder) == [2]
    assert read_group(folder, "g", 0, END_OF_TIME).watched[0].from_ms > removed_ms
    with pytest.raises(OSError, match="another process records"):
        FileLock(folder)
    made.close()
    assert "its file was removed" in caplog.messages[0]


def test_a_folder_that_was_replaced_while_nothing_could_be_written_has_one_writer(tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    (folder / FILE_NAME).mkdir(parents=True)
    with recording(folder) as made:
        made.record_event(1, lasting=True)
        assert not made.flush(0.05)
        folder.rename(tmp_path / "old")
        made.record_event(2, lasting=True)
        assert made.flush()
        with pytest.raises(OSError, match="another process records"):
            FileLock(folder)
    assert generations(folder) == [2]


def test_lags_that_come_too_fast_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "_MOST_SAMPLES", 2)
    made = Recorder(tmp_path, row_of, now_ms=lambda: 5_000)
    made.record_samples([LagSample("g", 1_000, 1), LagSample("g", 2_000, 2)])
    made.record_samples([LagSample("g", 3_000, 3)])
    assert made.figures.lost == 1


def test_what_was_lost_while_the_clock_went_back_is_told_of_both_times(tmp_path: Path) -> None:
    times = iter([9_000, 4_000])
    made = Recorder(tmp_path, row_of, now_ms=lambda: next(times, 9_500))
    made.count_lost("", 1)
    made.count_lost("", 1)
    made.start()
    made.close()
    assert read_group(tmp_path, "g", 5_000, 6_000).losses == (Loss("", 4_000, 9_000, 2),)


def test_what_is_counted_while_a_write_fails_is_told_with_what_was_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Recorder(tmp_path, row_of, now_ms=lambda: 5_000)

    def fail_once(*_: object) -> None:
        write.undo()
        made.count_lost("", 4)
        raise sqlite3.OperationalError("disk I/O error")

    made.count_lost("", 3)
    with monkeypatch.context() as write:
        write.setattr(Store, "write", fail_once)
        made.start()
        assert not made.flush()
        assert made.flush()
    made.close()
    assert sum(loss.lost for loss in read_group(tmp_path, "g", 0, END_OF_TIME).losses) == 7


def test_that_groups_were_hidden_is_noted_when_the_disk_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_once(*_: object) -> None:
        mark.undo()
        raise sqlite3.OperationalError("database or disk is full")

    made = Recorder(tmp_path, row_of, now_ms=lambda: 5_000)
    made.note_hidden()
    with monkeypatch.context() as mark:
        mark.setattr(Store, "mark", fail_once)
        made.start()
        assert not made.flush()
        assert made.flush()
    made.close()
    assert read_group(tmp_path, "g", 0, END_OF_TIME).hidden_ms == 5_000


def test_who_waits_no_more_makes_no_rest_for_others_who_wait(tmp_path: Path) -> None:
    made = Recorder(tmp_path, row_of)
    other = threading.Thread(target=made.flush, args=(30,))
    other.start()
    assert made._hurry.wait(30)
    assert not made.flush(0)
    assert made._hurry.is_set()
    made.start()
    other.join(30)
    made.close()
    assert not other.is_alive()


def test_what_waits_is_written_at_the_end_and_the_watch_ends_there(tmp_path: Path) -> None:
    with recording(tmp_path, now_ms=7_000) as made:
        made.watch()
        made.record_event(1, lasting=True)
    found = read_group(tmp_path, "g", 0, END_OF_TIME)
    assert [kept.event.generation for kept in found.rows] == [1]
    assert found.watched == (Stretch(7_000, 7_000),)


def test_at_the_end_rows_are_made_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a tenth would be written in time if each row let others go on."""
    pauses = list[float]()
    made = Recorder(tmp_path, row_of, now_ms=lambda: 5_000)
    for generation in range(100):
        made.record_event(generation, lasting=True)
    made.close()
    with monkeypatch.context() as patch:
        patch.setattr("time.sleep", pauses.append)
        made.start()
        made.close()
    assert generations(tmp_path) == list(range(100))
    assert pauses == []


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
        assert not made.flush()
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


def test_a_disk_that_is_full_and_one_that_takes_no_writes_lose_what_comes_meanwhile(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with data_disk(tmp_path / "disk", size_mib=1) as disk:
        if not disk.mounted:
            pytest.skip("mounting is not permitted")
        with caplog.at_level(logging.WARNING, "kohort.recording"), recording(disk.folder / "data") as made:
            made.record_event(0, lasting=True)
            assert made.flush()
            disk.fill(os.getpid())
            for generation in range(1, 1_001):
                made.record_event(generation, lasting=True)
            assert not made.flush()
            assert made.figures.failing
            disk.clear(os.getpid())
            made.record_event(1_001, lasting=True)
            assert made.flush()
        _remount(disk.folder, "ro")
        with recording(disk.folder / "data") as made:
            made.record_event(1_002, lasting=True)
            assert not made.flush()
            _remount(disk.folder, "rw")
            made.record_event(1_003, lasting=True)
            assert made.flush()
        assert ["tried again" in line for line in caplog.messages] == [True, False, True, False]
        found = read_group(disk.folder / "data", "g", 0, END_OF_TIME, limit=2_000)
        assert found.rows[-1].event.generation == 1_003
        assert len(found.rows) + sum(loss.lost for loss in found.losses) == 1_004


def _remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], check=True)


#: What the recorder calls outside SQLite.
CALLS = {
    "open": os,
    "close": os,
    "stat": os,
    "mkdir": os,
    "replace": os,
    "unlink": os,
    "flock": fcntl,
    "connect": sqlite3,
}


class FailingCall:
    """A call that fails in the recorder's thread from the ``first`` time on, as long as the disk ``is_bad``.
    Closing closes.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, first: int) -> None:
        self.is_bad, self.failures = True, 0
        self._left, self._name = first, name
        self._real = getattr(CALLS[name], name)
        monkeypatch.setattr(CALLS[name], name, self._call)

    def _call(self, *args: object, **options: object) -> object:
        if threading.current_thread().name != "kohort recording" or not self.is_bad:
            return self._real(*args, **options)
        self._left -= 1
        if self._left <= 0:
            self.failures += 1
            if self._name == "close":
                self._real(*args)
            raise OSError(errno.EIO, f"{self._name} fails")
        return self._real(*args, **options)


@pytest.mark.parametrize("is_damaged", [False, True], ids=["fresh", "damaged"])
@pytest.mark.parametrize("first", [1, 2, 3])
@pytest.mark.parametrize("name", CALLS)
def test_whichever_call_fails_it_goes_on_when_the_disk_is_well_and_says_what_is_lost(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    first: int,
    is_damaged: bool,
) -> None:
    folder = tmp_path / "data"
    if is_damaged:
        folder.mkdir()
        (folder / FILE_NAME).write_bytes(b"x" * 5_000)
        # a writer that was killed left them
        (folder / f"{FILE_NAME}-wal").write_bytes(b"x")
    call = FailingCall(monkeypatch, name, first)
    with caplog.at_level(logging.WARNING, "kohort.recording"), recording(folder) as made:
        made.watch()
        for generation in range(3):
            made.record_event(generation, lasting=True)
            made.flush()
            if generation == 1 and folder.exists():
                # so that another is opened
                shutil.rmtree(folder)
        call.is_bad = False
        lost = made.figures.lost
        made.record_event(3, lasting=True)
        assert made.flush()
        assert not made.figures.failing
        assert made.figures.lost == lost
        found = read_group(folder, "g", 0, END_OF_TIME)
        assert found.rows[-1].event.generation == 3
        told = [line for line in caplog.messages if "which is tried again" in line]
        well = [line for line in caplog.messages if "recorded again" in line]
        assert len(told) == len(well)
        assert sum(int(line.split()[-2]) for line in well) == lost
        assert sum(loss.lost for loss in found.losses) <= lost
        call.is_bad = True
    # nothing escaped from its thread: pytest would say so


def test_a_mistake_of_ours_is_told_with_its_place_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, mistakes = Store.write, iter([True])

    def write_or_fail(self: Store, *args: object) -> None:
        if next(mistakes, False):
            raise TypeError("a mistake")
        write(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "write", write_or_fail)
    with caplog.at_level(logging.WARNING, "kohort.recording"), recording(tmp_path) as made:
        made.record_event(1, lasting=True)
        assert not made.flush()
        assert made.figures.failing
        made.record_event(2, lasting=True)
        assert made.flush()
    assert [bool(line.exc_info) for line in caplog.records] == [True, False]
    assert caplog.messages[-1].endswith("lost meanwhile: 1 events")
    assert generations(tmp_path) == [2]


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
        assert not made.flush()
        made.record_event(2, lasting=True)
        assert made.flush()
    assert (tmp_path / "recording.db.damaged").exists()
    assert generations(tmp_path)[-1] == 2


def test_events_that_make_no_row_for_an_error_stop_nothing_and_are_told_together(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(generation: int) -> EventRow:
        if generation < 100:
            raise RuntimeError("a mistake")
        return EventRow("g", generation, "K", generation)

    made = Recorder(tmp_path, broken, now_ms=lambda: 5_000)
    for generation in range(101):
        made.record_event(generation, lasting=True)
    made.start()
    assert made.flush()
    made.close()
    assert generations(tmp_path) == [100]
    assert [loss.lost for loss in read_group(tmp_path, "g", 0, END_OF_TIME).losses] == [100]
    assert caplog.messages == ["an event cannot be recorded"]


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
