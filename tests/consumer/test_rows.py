"""Batches taken apart by columns give what a reader gives that goes from field to field."""

from __future__ import annotations

import pytest
from crc32c import crc32c
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kohort.consumer.reading import fetched_records as decode
from kohort.consumer.reading.columns import plain_rows
from kohort.consumer.reading.fetched_records import ChunkReader
from kohort.protocol import (
    BATCH_OVERHEAD,
    BatchHeader,
    CorruptBatchError,
    TopicPartition,
    build_batch,
    parse_batch_header,
)
from tests.consumer.batches import batch, written

ORDERS = TopicPartition("orders", 0)
Row = tuple[int, int, bytes | None, bytes | None]

_PIECES = st.none() | st.binary(max_size=6) | st.integers(60, 9_000).map(lambda size: b"x" * size)
#: Gap before a record, time, key, value: alike in runs, as most topics are, or not.
_RECORDS = st.tuples(st.sampled_from([0, 0, 0, 1, 70]), st.integers(0, 2**40), _PIECES, _PIECES)
_RUNS = st.tuples(_RECORDS, st.integers(1, 40)).map(lambda pair: [pair[0]] * pair[1])
_BATCHES = st.lists(st.lists(_RUNS, min_size=1, max_size=4), min_size=1, max_size=3)


def _written(batches: list[list[list[tuple[int, int, bytes | None, bytes | None]]]]) -> bytes:
    data, base = b"", 100
    for runs in batches:
        delta, rows = -1, []
        for gap, time, key, value in (record for run in runs for record in run):
            delta += 1 + gap
            rows.append((delta, time, key, value))
        data += written(rows, base)
        base += delta + 1
    return data


def _all(data: bytes, start: int = 0) -> list[list[object]]:
    """All fields of all records; no headers are an empty list, whoever reads them."""
    reader = ChunkReader(ORDERS, data, start, generation=3, session_id=7)
    found: list[list[object]] = []
    while (batch := reader.read_batch()) is not None:
        found += [[*record[:6], list(record.headers), *record[7:]] for record in batch.records()]
    assert reader.size == 0
    return found


def _parsed(data: bytes) -> tuple[list[BatchHeader], list[bytes]]:
    return [parse_batch_header(data)], [data[BATCH_OVERHEAD:]]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(_BATCHES, st.integers(0, 200))
def test_columns_are_what_the_readers_give(batches: list[list[list[Row]]], start: int) -> None:
    data = _written(batches)
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for least in (1, 10**9):
            patch.setattr(decode, "COLUMNS_FROM", least)
            patch.setattr(decode, "COLUMNS_FROM_COMPILED", least)
            found.append(_all(data, start))
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("compiled", "records", "by_columns"),
    [
        pytest.param(True, 100, False, id="a fetch of few records goes to the compiled reader"),
        pytest.param(True, 2_000, True, id="one of many does not"),
        pytest.param(False, 30, False, id="without it very few go to plain Python"),
        pytest.param(False, 100, True, id="and few do not"),
    ],
)
def test_the_reader_follows_the_number_of_records(
    monkeypatch: pytest.MonkeyPatch, compiled: bool, records: int, by_columns: bool
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(decode, "_by_columns", lambda: lambda *_: asked.append(1))
    reader = decode._compiled_reader()
    assert reader is not None
    monkeypatch.setattr(decode, "_compiled_reader", lambda: reader if compiled else None)
    assert len(_all(batch([b"x"] * records))) == records
    assert bool(asked) == by_columns


def test_offsets_without_holes_are_a_range() -> None:
    rows = plain_rows(*_parsed(batch([b"x"] * 100, 5)))
    assert rows is not None
    assert rows.offsets == range(5, 105)
    assert rows.headers is None


def test_a_batch_with_headers_is_left_to_the_readers_with_the_batches_that_came_along() -> None:
    with_headers = bytes(build_batch([(b"k", b"v", [("name", b"1")])], timestamp_ms=5, base_offset=100))
    assert plain_rows(*_parsed(with_headers)) is None
    found = _all(batch([b"x"] * 100) + with_headers)
    assert [fields[2] for fields in found] == list(range(101))
    assert found[-1][4:7] == [b"k", b"v", [("name", b"1")]]


def test_offsets_that_do_not_rise_are_left_to_the_readers() -> None:
    data = batch([b"x"] * 70)
    headers, payloads = _parsed(data)
    assert plain_rows(2 * headers, 2 * payloads) is None


@given(st.binary(max_size=300), st.integers(1, 80))
def test_nonsense_is_left_to_the_readers_or_taken_apart_and_never_anything_else(
    payload: bytes, count: int
) -> None:
    header = parse_batch_header(batch([b"x"]))._replace(record_count=count)
    rows = plain_rows([header], [payload])
    assert rows is None or len(rows.values) == count


def test_what_is_before_a_damaged_batch_is_given_first() -> None:
    good, bad = batch([b"x"] * 100), bytearray(batch([b"y"] * 100, 100))
    bad[BATCH_OVERHEAD] ^= 0xFF
    unreadable = bytearray(bad)
    unreadable[17:21] = crc32c(bytes(bad[21:])).to_bytes(4, "big")
    for damaged in (bad, unreadable):
        reader = ChunkReader(ORDERS, good + bytes(damaged), 0)
        assert len(reader.read()) == 100
        assert reader.next_offset == 100
        for _ in range(2):
            with pytest.raises(CorruptBatchError) as caught:
                reader.read()
            assert caught.value.position == len(good)
        assert reader.next_offset == 100
