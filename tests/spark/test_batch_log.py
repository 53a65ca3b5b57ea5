"""The log of batches: what it keeps, how large it becomes, and texts that are none."""

from __future__ import annotations

import base64
import json
import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark._batch_log import (
    MAX_LOG_CHARS,
    SINGLE_BATCHES,
    BatchLog,
    BatchLogError,
    BatchRow,
    UnderWay,
    decode_log,
    encode_log,
    largest_part,
    sum_up,
)

NUMBERS = st.integers(0, 2**52)
TIMES = st.integers(0, 253_402_300_799_999)
KNOWN_OR_NOT = st.none() | NUMBERS
ROWS = st.builds(
    BatchRow,
    number=NUMBERS,
    started_ms=TIMES,
    offsets=NUMBERS,
    partitions=st.integers(1, 2**31),
    largest_part=st.integers(0, 1000),
    rows=KNOWN_OR_NOT,
    plan_ms=KNOWN_OR_NOT,
    read_ms=KNOWN_OR_NOT,
    sink_ms=KNOWN_OR_NOT,
    commit_ms=KNOWN_OR_NOT,
    lag=KNOWN_OR_NOT,
    lag_ms=KNOWN_OR_NOT,
    replays=KNOWN_OR_NOT,
)


def row(number: int, **values: int | None) -> BatchRow:
    known: dict[str, int | None] = {"offsets": 10, "partitions": 2, "largest_part": 700, **values}
    return BatchRow(number, 1_000 * number, **known)  # type: ignore[arg-type]


def after(count: int) -> BatchLog:
    log = BatchLog().begin_run("local-1")
    for number in range(count):
        log = log.end(row(number, rows=9, sink_ms=100, lag=number, replays=number % 2))
    return log


@settings(max_examples=200, deadline=None)
@given(st.lists(ROWS, max_size=150), st.lists(st.text(max_size=300), max_size=5), st.booleans())
def test_a_log_of_any_batches_fits_and_counts_all_of_them(
    rows: list[BatchRow], applications: list[str], under_way: bool
) -> None:
    log = BatchLog()
    for nth, each in enumerate(rows):
        if nth % 30 == 0:
            log = log.begin_run(applications[nth // 30 % len(applications)] if applications else None)
        log = log.end(each)
    if under_way:
        log = log.announce(2**62, 2**47, replayed=False)
    text = encode_log(log)
    assert len(text) <= MAX_LOG_CHARS
    read = decode_log(text)
    assert read.batches == log.batches == len(rows)
    assert sum(each.offsets for each in read.rows) == sum(each.offsets for each in rows)
    assert (read.under_way, read.runs, read.writes) == (log.under_way, log.runs, log.writes)
    if rows:
        assert (read.rows[0].first, read.rows[0].started_ms) == (rows[0].number, rows[0].started_ms)
        assert (read.rows[-1].number, read.rows[-1].run) == (rows[-1].number, log.runs)


@settings(deadline=None)
@given(st.lists(ROWS, max_size=SINGLE_BATCHES))
def test_rows_that_have_room_read_back_as_they_were(rows: list[BatchRow]) -> None:
    log = BatchLog(tuple(rows), UnderWay(7, 70, 2), writes=3, runs=2, applications={2: "app-1"})
    text = encode_log(log, most_chars=100_000)
    assert decode_log(text) == log


def test_the_newest_batches_have_a_row_each_and_sums_double_towards_the_past() -> None:
    log = after(1_000)
    sizes = [each.batches for each in log.rows]
    assert sum(sizes) == 1_000
    assert sizes[-SINGLE_BATCHES:] == [1] * SINGLE_BATCHES
    assert sizes == sorted(sizes, reverse=True)
    older = sizes[:-SINGLE_BATCHES]
    assert all(older.count(size) <= 2 for size in older)
    assert [each.number for each in log.rows[-3:]] == [997, 998, 999]
    assert log.rows[0].first == 0
    assert all(later.first == each.number + 1 for each, later in zip(log.rows, log.rows[1:], strict=False))
    assert sum(each.replays or 0 for each in log.rows) == 500


def test_the_log_of_a_million_batches_has_sixty_rows_at_most() -> None:
    log = BatchLog()
    rows = sum_up([row(number) for number in range(1_000)])
    # each sum stands for a thousand times as many
    huge = [BatchRow(1, 0, 1, 1, 1, batches=each.batches << 40) for each in rows[:-SINGLE_BATCHES]]
    log = BatchLog(tuple(huge))
    for number in range(500):
        log = log.end(row(number))
        assert len(log.rows) <= 60
    assert log.batches == 500 + sum(each.batches for each in huge)


def test_a_log_of_ordinary_batches_keeps_all_its_rows_in_the_commit() -> None:
    chance = random.Random(1)
    log = BatchLog()
    for number in range(100_000, 101_000):
        if number % 40 == 0:
            log = log.begin_run(f"application_1700000000000_{number:04}")
        sizes = [chance.randrange(100_000) for _ in range(50)]
        each = BatchRow(
            number,
            1_700_000_000_000 + 10_000 * number + chance.randrange(900),
            sum(sizes),
            len(sizes),
            largest_part(sizes),
            sum(sizes),
            plan_ms=chance.randrange(50),
            read_ms=chance.randrange(5_000),
            sink_ms=chance.randrange(9_000),
            commit_ms=chance.randrange(50),
            lag=chance.randrange(10**6),
            lag_ms=chance.randrange(20_000),
            replays=0,
        )
        log = log.end(each)
    assert len(log.rows) > 40
    assert decode_log(encode_log(log)).rows == log.rows


def test_what_is_not_known_of_one_batch_is_not_known_of_the_sum() -> None:
    known, unknown = row(3, rows=5, sink_ms=20, lag=8, lag_ms=900), row(4, sink_ms=30, lag=2)
    both = known.add(unknown)
    assert (both.batches, both.first, both.number, both.started_ms) == (2, 3, 4, 3_000)
    assert (both.offsets, both.sink_ms, both.lag) == (20, 50, 8)
    assert (both.rows, both.lag_ms, both.commit_ms) == (None, None, None)


def test_replays_are_counted_from_the_first_announcement_on() -> None:
    log = BatchLog().announce(5, 1_000, replayed=False)
    for later in (2_000, 3_000):
        log = decode_log(encode_log(log)).announce(5, later, replayed=True)
    assert log.under_way == UnderWay(5, 1_000, replays=2)
    assert log.end(row(5)).under_way is None
    # another batch was under way when the log was lost or written last
    assert log.announce(6, 4_000, replayed=True).under_way == UnderWay(6, 4_000, replays=1)
    assert log.announce(6, 4_000, replayed=False).under_way == UnderWay(6, 4_000)


def test_the_time_of_a_commit_is_added_when_it_is_known() -> None:
    log = BatchLog().end(row(1))
    assert log.rows[0].commit_ms is None
    assert log.amend(12).rows[0].commit_ms == 12
    assert BatchLog().amend(12) == BatchLog()


def test_runs_are_counted_and_applications_kept_as_long_as_they_have_a_row() -> None:
    log = after(1)
    assert (log.rows[0].run, log.applications) == (1, {1: "local-1"})
    log = log.begin_run(None).begin_run("local-3")
    for number in range(1, 200):
        log = log.end(row(number))
    assert (log.runs, log.rows[-1].run, log.applications) == (3, 3, {3: "local-3"})


def test_the_largest_part_is_in_thousandths() -> None:
    assert largest_part([100, 200, 100]) == 500
    assert largest_part([0]) == largest_part([]) == 0


def text_of(document: object) -> str:
    return base64.b64encode(zlib.compress(json.dumps(document).encode())).decode()


GOOD: dict[str, object] = {"v": 1, "w": 0, "r": 0, "a": {}, "n": None, "d": []}
CELLS: list[object] = [3, 9, 10, 1, 1000, *[None] * 9, 1, 0]


def test_the_format_is_as_documented() -> None:
    assert decode_log(text_of(GOOD)) == BatchLog()
    (found,) = decode_log(text_of(GOOD | {"d": [CELLS]})).rows
    assert found == BatchRow(3, 9, 10, 1, 1000)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot be decoded|cut off"),
        ("by hand", "cannot be decoded"),
        ("eJyr", "cut off"),
        (encode_log(after(3))[:-8], "cannot be decoded|cut off"),
        (text_of([]), "another format"),
        (text_of(GOOD | {"v": 2}), "newer version"),
        (text_of({"v": 1}), "wrong value"),
        (text_of(GOOD | {"w": -1}), "wrong value"),
        (text_of(GOOD | {"w": True}), "wrong value"),
        (text_of(GOOD | {"w": 2**63}), "wrong value"),
        (text_of(GOOD | {"a": {"x": "y"}}), "wrong value"),
        (text_of(GOOD | {"a": []}), "wrong value"),
        (text_of(GOOD | {"n": [1]}), "wrong value"),
        (text_of(GOOD | {"n": ["x", 2, 3]}), "wrong value"),
        (text_of(GOOD | {"d": [[1, 2]]}), "wrong value"),
        (text_of(GOOD | {"d": 3}), "wrong value"),
        (text_of(GOOD | {"d": [[None, *CELLS[1:]]]}), "wrong value"),
        (text_of(GOOD | {"d": [[*CELLS[:-2], 0, 0]]}), "wrong value"),
        (text_of(GOOD | {"d": [[*CELLS[:-1], 4]]}), "wrong value"),
        (base64.b64encode(zlib.compress(b" " * 100_000)).decode(), "too long"),
        (base64.b64encode(zlib.compress(b"[" * 60_000)).decode(), "cannot be decoded"),
    ],
)
def test_a_text_that_is_no_log_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(BatchLogError, match=words):
        decode_log(text)


@settings(deadline=None)
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: base64.b64encode(data).decode()))
def test_no_text_is_any_other_error(text: str) -> None:
    with pytest.raises(BatchLogError):
        decode_log(text)
