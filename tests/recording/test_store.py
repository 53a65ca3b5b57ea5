"""Rows are written to a file, and read back as they were, with what is missing.

Covers: recording/rows.py, recording/file.py.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.recording import (
    END_OF_TIME,
    EventRow,
    LagSample,
    Loss,
    Stretch,
    gaps_between,
    group_names,
    read_group,
)
from kohort.recording.file import FILE_NAME, FileLock, InUseError, open_writable
from kohort.recording.rows import MAX_CAUSE, MAX_TEXT
from kohort.recording.store import MOST_SAMPLES, Store


def row(at_ms: int, group: str = "g", *, generation: int = 1, lasting: bool = True, **own: str) -> EventRow:
    return EventRow(group, at_ms, "RebalanceCompleted", generation, lasting=lasting, **own)


def written(
    folder: Path, *rows: EventRow, samples: list[LagSample] | None = None, now_ms: int = 1_000
) -> Store:
    store = Store(open_writable(folder), now_ms)
    store.watch("", now_ms)
    store.write(rows, samples or [], [], now_ms)
    return store


def generations(folder: Path, group: str = "g", limit: int = 1_000) -> list[int]:
    return [kept.event.generation for kept in read_group(folder, group, 0, END_OF_TIME, limit=limit).rows]


def test_what_is_written_is_read_back_while_the_writer_goes_on(tmp_path: Path) -> None:
    whole = EventRow("g", 5, "MemberGone", 7, "why", "m-1", "c", "/h", True, '{"a":1}', '{"moves":[]}')
    store = written(
        tmp_path, whole, samples=[LagSample("g", 2_000, 3, 4_000, 5), LagSample("g", 3_000, None)]
    )
    found = read_group(tmp_path, "g", 0, END_OF_TIME)
    assert [kept.event for kept in found.rows] == [whole]
    assert found.samples == (LagSample("g", 2_000, 3, 4_000, 5), LagSample("g", 3_000, None))
    store.write([row(6)], [], [], 1_000)
    assert len(read_group(tmp_path, "g", 0, END_OF_TIME).rows) == 2
    assert group_names(tmp_path) == ["g"]
    assert read_group(tmp_path, "another", 0, END_OF_TIME).rows == ()


def test_the_newest_rows_of_a_stretch_are_read_and_older_ones_on_request(tmp_path: Path) -> None:
    written(tmp_path, *(row(10 * (number // 2), generation=number) for number in range(10)))
    found = read_group(tmp_path, "g", 10, 40, limit=4)
    assert [kept.event.generation for kept in found.rows] == [6, 7, 8, 9]
    assert found.has_older
    first = found.rows[0]
    older = read_group(tmp_path, "g", 10, 40, limit=4, before=(first.event.timestamp_ms, first.number))
    assert [kept.event.generation for kept in older.rows] == [2, 3, 4, 5]
    assert not older.has_older


def test_only_lasting_rows_are_read_on_request(tmp_path: Path) -> None:
    written(tmp_path, row(1, generation=1), row(2, generation=2, lasting=False), row(3, generation=3))
    found = read_group(tmp_path, "g", 0, END_OF_TIME, only_lasting=True)
    assert [kept.event.generation for kept in found.rows] == [1, 3]


def test_texts_of_any_length_and_content_are_kept_cut(tmp_path: Path) -> None:
    long = row(1, member="m" * 100_000, cause="c" * 100_000, client_id="\udcff", extras="x" * 1_000_000)
    written(tmp_path, long)
    [kept] = read_group(tmp_path, "g", 0, END_OF_TIME).rows
    assert kept.event.member == "m" * MAX_TEXT + "..."
    assert kept.event.cause == "c" * MAX_CAUSE + "..."
    assert kept.event.client_id == "?"
    assert kept.event.extras == ""


def test_what_nobody_watched_is_known_also_after_a_writer_that_did_not_end(tmp_path: Path) -> None:
    first = Store(open_writable(tmp_path), 1_000)
    first.watch("", 1_000)
    first.write((), (), (), 5_000)
    # it is killed here
    first.connection.close()
    second = Store(open_writable(tmp_path), 9_000)
    second.watch("", 9_000)
    second.end_watch("", 12_000)
    second.watch("other", 13_000)
    second.write((), (), (), 20_000)
    found = read_group(tmp_path, "g", 0, END_OF_TIME)
    assert found.watched == (Stretch(1_000, 5_000), Stretch(9_000, 12_000))
    assert gaps_between(found.watched, 2_000, 15_000) == [Stretch(5_000, 9_000), Stretch(12_000, 15_000)]
    assert read_group(tmp_path, "g", 0, END_OF_TIME, scopes=["other"]).watched == (Stretch(13_000, 20_000),)


def test_a_clock_that_goes_back_shortens_what_is_known(tmp_path: Path) -> None:
    store = Store(open_writable(tmp_path), 1_000)
    store.watch("", 1_000)
    store.write((), (), (), 90_000)
    store.write((), (), (), 3_000)
    assert read_group(tmp_path, "g", 0, END_OF_TIME).watched == (Stretch(1_000, 3_000),)


def test_losses_of_the_group_and_of_all_are_read(tmp_path: Path) -> None:
    store = Store(open_writable(tmp_path), 0)
    store.write([], [], [Loss("", 1, 2, 3), Loss("g", 4, 5, 6), Loss("other", 7, 8, 9)], 0)
    assert read_group(tmp_path, "g", 0, END_OF_TIME).losses == (Loss("", 1, 2, 3), Loss("g", 4, 5, 6))


def test_many_samples_are_thinned_out_and_the_highest_stay(tmp_path: Path) -> None:
    samples = [
        LagSample("g", 1_000 * at, 1_000_000 if at == 777 else at % 7) for at in range(3 * MOST_SAMPLES)
    ]
    written(tmp_path, samples=samples)
    found = read_group(tmp_path, "g", 0, END_OF_TIME).samples
    assert len(found) <= MOST_SAMPLES
    assert max(sample.records or 0 for sample in found) == 1_000_000


@pytest.mark.parametrize(
    "content",
    [b"this is no database" * 100, b"SQLite format 3\0" + b"\0" * 5_000],
    ids=["other", "torn"],
)
def test_a_damaged_file_is_set_aside_with_one_line(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with caplog.at_level(logging.WARNING, "kohort.recording"):
        written(tmp_path, row(1))
    assert len(caplog.records) == 1
    assert generations(tmp_path) == [1]
    assert (tmp_path / "recording.db.damaged").read_bytes() == content


def test_an_empty_file_is_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE_NAME).touch()
    written(tmp_path, row(1))
    assert generations(tmp_path) == [1]
    assert not caplog.records


def test_a_file_of_a_later_version_is_set_aside(tmp_path: Path) -> None:
    store = written(tmp_path, row(1))
    store.connection.execute("PRAGMA user_version = 99")
    store.connection.close()
    written(tmp_path, row(1, generation=2)).connection.close()
    assert generations(tmp_path) == [2]


def test_a_row_with_damaged_details_is_read_without_them(tmp_path: Path) -> None:
    store = written(tmp_path, row(1, cause="why", details='{"members":3}'))
    store.connection.execute("UPDATE events SET details = x'ff00ff'")
    [kept] = read_group(tmp_path, "g", 0, END_OF_TIME).rows
    assert (kept.event.cause, kept.event.details) == ("why", "")


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    lock = FileLock(tmp_path)
    with pytest.raises(InUseError, match="another process records"):
        FileLock(tmp_path)
    lock.release()
    FileLock(tmp_path).release()


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    store = written(tmp_path, row(1))
    pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
    store.connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        store.write([row(2, f"new-{number}", cause="x" * 1_500) for number in range(100)], [], [], 0)
    store.connection.execute("PRAGMA max_page_count = 100000")
    store.write([row(3, "new-1", generation=3)], [], [], 0)
    assert group_names(tmp_path) == ["g", "new-1"]
    assert generations(tmp_path, "new-1") == [3]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to_can_be_read(tmp_path: Path) -> None:
    written(tmp_path, row(1)).connection.close()
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert generations(tmp_path) == [1]
    finally:
        tmp_path.chmod(stat.S_IRWXU)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20))), st.integers(0, 30), st.integers(0, 40))
def test_gaps_and_spans_together_are_the_whole_stretch(
    drawn: list[tuple[int, int]], from_ms: int, length: int
) -> None:
    spans = tuple(Stretch(begin, begin + size) for begin, size in drawn)
    gaps = gaps_between(spans, from_ms, from_ms + length)
    for moment in range(from_ms, from_ms + length):
        covered = any(span.from_ms <= moment < span.until_ms for span in spans)
        assert covered != any(gap.from_ms <= moment < gap.until_ms for gap in gaps)
    assert all(from_ms <= gap.from_ms < gap.until_ms <= from_ms + length for gap in gaps)
