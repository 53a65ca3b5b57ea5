"""Records of a batch: what the Python reader finds, and that the compiled one finds the same in any bytes.

Covers: protocol/_native.pyx.
"""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.protocol import CorruptBatchError, records
from kohort.protocol.records import (
    RecordColumns,
    copy_fields,
    iter_records,
    locate_record,
    locate_records,
    read_records,
)
from tests.fuzzing import inputs
from tests.leaks import require_no_leak
from tests.native_parts import needs_native
from tests.records import (
    ROWS,
    header_of,
    locate_all,
    outcome_of,
    read_all,
    record,
    require_same_readers,
    rows_of,
    varint,
)

Row = tuple[int, int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]

WHOLE = b"".join(
    record(number, number, b"key", b"value" * number, [(b"name", b"x"), (b"\xff", None)][: number % 3])
    for number in range(12)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, max_size=8), st.booleans())
def test_every_field_is_read_as_it_was_written(rows: list[Row], stamped: bool) -> None:
    data = b"".join(record(*row) for row in rows)
    header = header_of(len(rows), attributes=8 if stamped else 0, max_timestamp_ms=99)
    expected = [
        (
            50 + delta,
            99 if stamped else 1_000 + time,
            key,
            value,
            [(name.decode("utf-8", "replace"), content) for name, content in headers] or (),
        )
        for time, delta, key, value, headers in rows
    ]
    assert require_same_readers(data, header) == expected
    assert list(iter_records(data, header)) == expected


def test_positions_are_those_of_the_fields() -> None:
    data = record(3, 1, b"key", None, [(b"name", b"x")])
    later_ms, delta, key_at, key_size, _, value_size, headers_at, end = locate_record(b"ab" + data, 2)
    assert (later_ms, delta, key_size, value_size, end) == (3, 1, 3, -1, 2 + len(data))
    assert (b"ab" + data)[key_at:][:3] == b"key"
    assert (b"ab" + data)[headers_at:] == b"\x02\x08name\x02x"


def test_batches_that_lie_behind_each_other_are_located_together() -> None:
    one, other = record(0, 0, b"a", b"1") + record(0, 1, b"b", b"2"), record(0, 0, b"c", b"3")
    together = rows_of(locate_records(b"__" + one + other, 2, [(len(one), 2), (0, 0), (len(other), 1)]), 8)
    assert [row[2] for row in together] == [(b"__" + one + other).index(key) for key in (b"a", b"b", b"c")]
    for batches in ([(len(one), 1), (len(other), 2)], [(len(one) + 1, 2), (len(other) - 1, 1)]):
        with pytest.raises(CorruptBatchError):
            locate_records(b"__" + one + other, 2, batches)


@pytest.mark.parametrize(
    ("data", "count"),
    [
        pytest.param(record(0, 0, b"k", b"v"), 2, id="fewer records than the header says"),
        pytest.param(record(0, 0, b"k", b"v"), 0, id="more records"),
        pytest.param(record(0, 0, b"k", b"v"), -1, id="a count below zero"),
        pytest.param(record(0, 0, b"k", b"v") + b"\x00", 1, id="bytes behind the last record"),
        pytest.param(b"\x01" + record(0, 0, b"k", b"v")[1:], 1, id="a length below zero"),
        pytest.param(b"\x02\x00", 1, id="a record without fields"),
        pytest.param(b"\x80" * 11, 1, id="a number without an end"),
        pytest.param(b"\x0e\x00\x00\x00\x06k\x00\x00", 1, id="a key beyond its record"),
        pytest.param(b"\x0e\x00\x00\x00\x01\x08v\x00", 1, id="a value beyond its record"),
        pytest.param(b"\x0c\x00\x00\x00\x01\x01\x01", 1, id="a count of headers below zero"),
        pytest.param(b"\x10\x00\x00\x00\x01\x01\x02\x01\x01", 1, id="a header without a name"),
        pytest.param(b"\x10\x00\x00\x00\x01\x01\x02\x00\x06", 1, id="a header beyond its record"),
        pytest.param(b"\x0e\x00\x00\x00\x01\x01\x00\x00", 1, id="a record longer than its fields"),
        pytest.param(b"\x0c\x00\x00\x00\x01\x01\x7e", 1, id="more headers than bytes"),
    ],
)
def test_bytes_that_are_no_records_are_corrupt(data: bytes, count: int) -> None:
    assert isinstance(require_same_readers(data, header_of(count)), str)


@pytest.mark.parametrize(
    ("time_bytes", "delta_bytes", "read"), [(10, 5, True), (11, 5, False), (10, 6, False)]
)
def test_numbers_may_be_longer_than_they_have_to_be(time_bytes: int, delta_bytes: int, read: bool) -> None:
    # 4 and -1, with bits that a number of 64 or 32 has no room for
    time = b"\x88" + b"\x80" * (time_bytes - 2) + b"\x7e"
    delta = b"\x81" + b"\x80" * (delta_bytes - 2) + b"\x70"
    body = b"\x00" + time + delta + b"\x83\x80\x00" + b"\x84\x80\x00vv" + b"\x80\x00"
    rows = require_same_readers(varint(len(body)) + body, header_of(1))
    assert rows == [(49, 1_004, None, b"vv", ())] if read else isinstance(rows, str)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_records_are_read_or_refused_alike(seed: int) -> None:
    for damaged in inputs(WHOLE, random.Random(seed)):
        require_same_readers(damaged, header_of(12))


def test_records_may_end_anywhere() -> None:
    for cut in range(len(WHOLE)):
        assert isinstance(require_same_readers(WHOLE[:cut], header_of(12)), str)


@given(st.binary(max_size=60), st.integers(-1, 4))
def test_no_bytes_are_too_much(data: bytes, count: int) -> None:
    require_same_readers(data, header_of(count))


@pytest.mark.parametrize("base", [2**62, -(2**62), 2**63 - 1])
def test_times_and_offsets_that_add_up_to_more_than_64_bits_are_kept(base: int) -> None:
    data = record(2**62 - 1, 5, None, None)
    rows = require_same_readers(data, header_of(1, base_offset=base, base_timestamp_ms=base))
    assert rows == [(base + 5, base + 2**62 - 1, None, None, ())]


@needs_native("protocol")
def test_what_is_no_batch_at_all_is_refused() -> None:
    from kohort.protocol import _native

    nothing: Any = None
    for position in (-1, 4, 2**62):
        with pytest.raises(IndexError):
            _native.check_records(b"abc", position, 0, 1)
        with pytest.raises(IndexError):
            _native.locate_records(b"abc", position, [])
        with pytest.raises(IndexError):
            _native.locate_headers(b"abc", position.to_bytes(8, "little", signed=True), bytes(8))
    with pytest.raises(ValueError, match="places"):
        _native.locate_headers(b"abc", bytes(8), bytes(16))
    with pytest.raises(TypeError):
        _native.check_records(nothing, 0, 0, 1)
    with pytest.raises(TypeError):
        _native.read_records(nothing, 1, 0, 0, None, [], [], [], [], [])
    assert _native.locate_records(b"abc", 0, [(2**62, 1)]) is None
    assert _native.locate_records(b"abc", 0, [(-1, 0)]) is None
    assert _native.locate_records(b"abc", 0, [(2, 2**62)]) is None


@pytest.mark.parametrize("native", [True, False])
def test_fields_are_copied_one_behind_the_other_and_none_from_outside_nor_beyond_the_room(
    native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "NATIVE_COPY", records.NATIVE_COPY and native)

    def copy(at: list[int], sizes: list[int], room: bytearray) -> bytearray:
        starts, lengths = (memoryview(array("q", numbers)) for numbers in (at, sizes))
        copy_fields(b"abcdef", starts, lengths, memoryview(room))
        return room

    assert copy([4, 9, 0, 2], [2, -1, 0, 3], bytearray(b"......")) == b"efcde."
    for at, size in ((-1, 1), (6, 1), (0, 7), (2**62, 2**62), (1, 6)):
        with pytest.raises(IndexError):
            copy([at], [size], bytearray(6))
    with pytest.raises(IndexError):
        copy([0, 0], [4, 3], bytearray(6))
    with pytest.raises(ValueError, match=r"sizes|shorter|longer"):
        copy([0, 0], [1], bytearray(6))


@needs_native("protocol")
def test_no_memory_stays_behind() -> None:
    header = header_of(12)

    def work() -> None:
        read_records(memoryview(WHOLE), header, RecordColumns([], [], [], [], []))
        locate_all(WHOLE, 12)
        outcome_of(lambda: read_all(WHOLE[:-3], header))

    require_no_leak(work, [WHOLE], 100)
