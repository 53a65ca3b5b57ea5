"""Covers: lag/unread.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.lag import Looked, Unread, find_oldest, measure_unread
from kohort.lag.unread import BEYOND_END, NO_END, NO_OFFSET
from kohort.protocol import (
    BATCH_CONTROL,
    BATCH_DELETE_HORIZON,
    BATCH_LOG_APPEND_TIME,
    BatchHeader,
    Codec,
    build_batch,
    compress_batch,
    encode_records,
    parse_batch_header,
    seal_batch,
)


@pytest.mark.parametrize(
    ("position", "start", "end", "unread"),
    [
        (10, 0, 10, Unread(0, 10)),
        (4, 0, 10, Unread(6, 4)),
        (4, None, 10, Unread(6, 4)),
        (0, 0, 0, Unread(0, 0)),
        # retention has deleted some, or all
        (2, 5, 10, Unread(5, 5, deleted=3)),
        (2, 10, 10, Unread(0, 10, deleted=8)),
        (None, 0, 10, Unread(None, None, note=NO_OFFSET)),
        (3, None, None, Unread(None, None, note=NO_END)),
        (11, 0, 10, Unread(None, None, note=BEYOND_END)),
    ],
)
def test_unread_is_what_the_log_still_has_behind_the_offset(
    position: int | None, start: int | None, end: int | None, unread: Unread
) -> None:
    assert measure_unread(position, start, end) == unread


def make_batch(
    base: int,
    records: dict[int, int],
    *,
    codec: Codec = Codec.NONE,
    span: int = 0,
    attributes: int = 0,
    padding: bytes = b"",
) -> bytes:
    """A batch with records at these offset deltas, with these timestamps, of ``span`` offsets or more."""
    base_ms = next(iter(records.values()), 0)
    data = bytearray()
    for delta, time_ms in records.items():
        data += encode_records([(b"k", b"v" * 30 + padding, (), time_ms)], base_ms, delta)
    last = max([span - 1, *records])
    newest = max(records.values(), default=-1)
    header = BatchHeader(base, 0, 0, 2, 0, attributes, last, base_ms, newest, -1, -1, -1, len(records))
    batch = seal_batch(header, data)
    return bytes(compress_batch(batch, codec)) if codec else bytes(batch)


def test_the_first_record_of_a_batch_is_timed_by_its_header() -> None:
    batch = make_batch(7, {0: 1_000, 1: 1_500})
    # the records are cut off
    assert find_oldest(batch[:70], 7) == Looked(7, is_found=True, timestamp_ms=1_000)
    assert find_oldest(batch[:70], 3) == Looked(7, is_found=True, timestamp_ms=1_000)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_record_within_a_batch_is_read(codec: Codec) -> None:
    batch = make_batch(7, {0: 1_000, 1: 900, 2: 1_500}, codec=codec)
    assert find_oldest(batch, 8) == Looked(8, is_found=True, timestamp_ms=900)
    assert find_oldest(batch, 9) == Looked(9, is_found=True, timestamp_ms=1_500)


@pytest.mark.parametrize(
    "batch",
    [
        make_batch(7, {0: 1_000, 1: 1_500}, padding=bytes(40_000)),
        make_batch(7, {0: 1_000, 1: 1_500} | dict.fromkeys(range(2, 600), 1_600)),
    ],
)
def test_a_large_batch_is_timed_by_its_first_record_if_it_has_to_be_quick(batch: bytes) -> None:
    assert find_oldest(batch, 8, quick=True) == Looked(8, is_found=True, timestamp_ms=1_000)
    assert find_oldest(batch, 8) == Looked(8, is_found=True, timestamp_ms=1_500)
    small = make_batch(7, {0: 1_000, 1: 1_500})
    assert find_oldest(small, 8, quick=True) == Looked(8, is_found=True, timestamp_ms=1_500)


def test_markers_of_transactions_and_gaps_are_no_records() -> None:
    marker = bytes(build_batch([(b"\0\0\0\1", b"\0\0\0\0\0\0")], timestamp_ms=5, base_offset=3, control=True))
    assert parse_batch_header(marker).attributes & BATCH_CONTROL
    empty = make_batch(4, {}, span=3)
    assert find_oldest(marker + empty, 3) == Looked(7)
    after = make_batch(9, {0: 77})
    assert find_oldest(marker + empty + after, 3) == Looked(9, is_found=True, timestamp_ms=77)


def test_a_compacted_batch_is_timed_by_what_is_left_of_it() -> None:
    gone = make_batch(10, {0: 100, 3: 400, 4: 500}, span=7)
    assert find_oldest(gone, 11) == Looked(13, is_found=True, timestamp_ms=400)
    # its last records went: the next batch has the oldest
    assert find_oldest(gone + make_batch(17, {0: 900}), 15) == Looked(17, is_found=True, timestamp_ms=900)
    # a base timestamp that has become a delete horizon is no time of a record
    wide = bytes(40_000)
    horizon = make_batch(10, {0: 9_000, 1: 100}, attributes=BATCH_DELETE_HORIZON, padding=wide)
    assert find_oldest(horizon, 11, quick=True) == Looked(11, is_found=True, timestamp_ms=100)


def test_times_of_the_append_and_records_without_a_time() -> None:
    batch = make_batch(1, {0: 100, 1: 300}, attributes=BATCH_LOG_APPEND_TIME)
    assert find_oldest(batch[:61], 2) == Looked(2, is_found=True, timestamp_ms=300)
    assert find_oldest(make_batch(1, {0: -1, 1: -1}), 2) == Looked(2, is_found=True, timestamp_ms=None)
    assert find_oldest(make_batch(1, {0: -1}), 1) == Looked(1, is_found=True, timestamp_ms=None)


def test_what_cannot_be_read_is_a_record_of_an_unknown_time() -> None:
    old = bytearray(make_batch(5, {0: 1, 1: 2}))
    old[16] = 1
    assert find_oldest(bytes(old), 6) == Looked(6, is_found=True, timestamp_ms=None)
    batch = bytearray(make_batch(5, {0: 1, 1: 2}, codec=Codec.GZIP))
    batch[70:] = bytes(len(batch) - 70)
    assert find_oldest(bytes(batch), 6) == Looked(6, is_found=True, timestamp_ms=None)


def test_bytes_that_end_before_the_record_ask_for_more() -> None:
    batch = make_batch(5, {0: 1, 1: 2})
    assert find_oldest(b"", 5) == Looked(5)
    assert find_oldest(batch[:60], 5) == Looked(5)
    assert find_oldest(batch[:-1], 6) == Looked(6)
    assert find_oldest(batch, 7) == Looked(7)


@st.composite
def logs(draw: st.DrawFn) -> tuple[bytes, dict[int, int], int]:
    """The bytes of a log, its records' times by offset, and its end."""
    data, end = b"", draw(st.integers(0, 5))
    records: dict[int, int] = {}
    for _ in range(draw(st.integers(0, 5))):
        end += draw(st.integers(0, 3))
        deltas = sorted(draw(st.sets(st.integers(0, 6), max_size=5)))
        times = {delta: draw(st.integers(0, 2**40)) for delta in deltas}
        codec = draw(st.sampled_from([Codec.NONE, Codec.LZ4]))
        batch = make_batch(end, times, codec=codec if times else Codec.NONE, span=7)
        is_marker = draw(st.booleans()) and len(times) == 1 and not codec
        if is_marker:
            header = parse_batch_header(batch)
            batch = bytes(seal_batch(header._replace(attributes=BATCH_CONTROL), batch[61:]))
        else:
            records |= {end + delta: time_ms for delta, time_ms in times.items()}
        data += batch
        end += 7
    return data, records, end


@given(logs(), st.integers(0, 60), st.integers(0, 2_000))
def test_the_oldest_record_is_found_in_any_log_however_it_is_cut(
    log: tuple[bytes, dict[int, int], int], offset: int, cut: int
) -> None:
    data, records, end = log
    behind = [found for found in records if found >= offset]
    looked = find_oldest(data, offset)
    if behind:
        assert looked == Looked(min(behind), is_found=True, timestamp_ms=records[min(behind)])
    else:
        assert looked == Looked(max(offset, end) if data else offset)
    part = find_oldest(data[:cut], offset)
    # what is found in a part is the same, and where it says to go on nothing has been passed
    assert part == looked if part.is_found else offset <= part.offset <= min(behind, default=max(offset, end))
