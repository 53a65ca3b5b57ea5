"""Runs of batches as columns."""

from __future__ import annotations

import pytest
from crc32c import crc32c
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kohort.consumer.reading.fetched_records import ChunkReader
from kohort.protocol import (
    BATCH_OVERHEAD,
    CorruptBatchError,
    TopicPartition,
    build_batch,
)
from tests.consumer.batches import batch, written
from tests.records import require_same

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
    """All fields of all records."""
    reader = ChunkReader(ORDERS, data, start, generation=3, session_id=7)
    found: list[list[object]] = []
    while (batch := reader.read_batch()) is not None:
        found += [[*record[:6], list(record.headers), *record[7:]] for record in batch.records()]
    assert reader.size == 0
    return found


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(_BATCHES, st.integers(0, 200))
def test_batches_are_read_as_kafka_python_wrote_them(batches: list[list[list[Row]]], start: int) -> None:
    data = _written(batches)
    found = require_same(lambda: _all(data, start))
    expected: list[list[object]] = []
    base = 100
    for runs in batches:
        delta = -1
        for gap, time, key, value in (record for run in runs for record in run):
            delta += 1 + gap
            expected.append([*ORDERS, base + delta, time, key, value, [], 3, 7])
        base += delta + 1
    assert found == [fields for fields in expected if int(str(fields[2])) >= start]


def test_records_with_headers_may_come_among_others() -> None:
    rows = [(None, b"v", ()), (b"k", b"v", [("name", b"1")]), (None, b"v", ())]
    with_headers = bytes(build_batch(rows, timestamp_ms=5, base_offset=100))
    found = _all(batch([b"x"] * 100) + with_headers + batch([b"x"], 103))
    assert [fields[2] for fields in found] == list(range(104))
    assert [fields[6] for fields in found[99:]] == [[], [], [("name", b"1")], [], []]


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
