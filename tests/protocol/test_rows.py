"""Rows of a table as records: what Python makes of them, and that the compiled part makes the same.

Covers: protocol/_murmur2.py, protocol/_native.pyx.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from kohort.protocol import (
    BatchHeader,
    Headers,
    TimedRecord,
    encode_records,
    murmur2,
    partition_of_key,
    rows,
    seal_batch,
)
from kohort.protocol.records import iter_records
from kohort.protocol.rows import (
    BytesColumn,
    FillingRecords,
    HeaderColumn,
    RowColumns,
    TimestampColumn,
    encode_rows,
    partition_rows,
    sum_rows,
)
from tests.leaks import require_no_leak
from tests.native_parts import both, needs_native

NOW_MS = 1_700_000_000_000
Row = tuple[bytes | None, bytes | None, Headers, int | None]

CONTENTS = st.none() | st.binary(max_size=90)
TIMES = st.none() | st.integers(0, 2**62) | st.integers(NOW_MS - 100, NOW_MS + 100)
ROWS = st.tuples(CONTENTS, CONTENTS, st.lists(st.tuples(st.text(max_size=4), CONTENTS), max_size=3), TIMES)
#: How columns lie in memory: rows before the first one, bytes of offsets, whether nulls have bytes.
LAYOUTS = st.tuples(st.integers(0, 17), st.sampled_from([4, 8]), st.booleans())


def bits(valid: Sequence[bool]) -> bytes:
    number = sum(1 << nth for nth, one in enumerate(valid) if one)
    return number.to_bytes(len(valid) // 8 + 1, "little")


def bytes_column(cells: Sequence[bytes | None], layout: tuple[int, int, bool]) -> BytesColumn:
    """The cells, behind others that do not belong to the column."""
    before, width, fills_nulls = layout
    data, offsets = b"", [0]
    for cell in [b"no", None] * (before // 2) + [b"1"] * (before % 2) + [*cells]:
        data += (b"null" if fills_nulls else b"") if cell is None else cell
        offsets.append(len(data))
    valid = [True] * before + [cell is not None for cell in cells]
    packed = array("i" if width == 4 else "q", offsets).tobytes()
    return BytesColumn(packed, width, data, None if all(valid) else bits(valid), before)


def columns_of(given: Sequence[Row], layout: tuple[int, int, bool] = (0, 4, False)) -> RowColumns:
    headers = [header for row in given for header in row[2]]
    ends = [sum(len(row[2]) for row in given[: nth + 1]) for nth in range(len(given))]
    before = layout[0]
    times = array("q", [0] * before + [row[3] or 0 for row in given]).tobytes()
    timed = [False] * before + [row[3] is not None for row in given]
    return RowColumns(
        len(given),
        bytes_column([row[0] for row in given], layout),
        bytes_column([row[1] for row in given], layout),
        HeaderColumn(
            array("i", ends).tobytes(),
            bytes_column([name.encode() for name, _ in headers], layout),
            bytes_column([content for _, content in headers], layout),
        ),
        TimestampColumn(times, bits(timed), before),
    )


def in_both(work: Callable[[], Any]) -> Any:
    """The outcome, which is the same in Python and compiled: a result, or the kind of an error."""
    outcomes = []
    with pytest.MonkeyPatch.context() as patch:
        for native in (False, True) if rows.NATIVE else (False,):
            patch.setattr(rows, "NATIVE", native)
            try:
                outcomes.append(work())
            except (IndexError, ValueError, ZeroDivisionError) as error:
                outcomes.append(type(error))
    assert all(outcome == outcomes[0] for outcome in outcomes)
    return outcomes[0]


def encode_all(
    columns: RowColumns, places: Sequence[int], keyless: int = 0, full: int = 2**31
) -> list[tuple[int, bytes, list[int]]]:
    """Partition, records and numbers of each batch that becomes full, then of those that are left."""
    filling, numbers = FillingRecords.of(3), array("i", places)
    found, done = [], 0
    while done < columns.row_count:
        done = encode_rows(columns, done, numbers, keyless, NOW_MS, filling, full)
        if done < columns.row_count:
            place = places[done] if places[done] >= 0 else keyless
            data, *others = filling.take(place)
            found.append((place, bytes(data), others))
    for place in range(3):
        data, *others = filling.take(place)
        found.append((place, bytes(data), others))
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(ROWS, max_size=12), LAYOUTS, st.data())
def test_rows_become_the_records_of_their_partitions(
    given_rows: list[Row], layout: tuple[int, int, bool], data: st.DataObject
) -> None:
    places = data.draw(st.lists(st.integers(-1, 2), min_size=len(given_rows), max_size=len(given_rows)))
    found = in_both(lambda: encode_all(columns_of(given_rows, layout), places, keyless=1))
    for place, encoded, (count, first_ms, newest_ms) in found:
        records: list[TimedRecord] = [
            (key, value, headers, NOW_MS if time is None else time)
            for (key, value, headers, time), chosen in zip(given_rows, places, strict=True)
            if (1 if chosen < 0 else chosen) == place
        ]
        assert count == len(records)
        if records:
            assert (first_ms, newest_ms) == (records[0][3], max(record[3] for record in records))
            assert encoded == encode_records(records, first_ms)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=12), st.integers(1, 300))
def test_a_batch_ends_before_the_row_for_which_it_has_no_room(given_rows: list[Row], full: int) -> None:
    places = [nth % 3 for nth in range(len(given_rows))]
    found = in_both(lambda: encode_all(columns_of(given_rows), places, full=full))
    assert sum(numbers[0] for _, _, numbers in found) == len(given_rows)
    assert all(numbers[0] == 1 or len(encoded) <= full for _, encoded, numbers in found)
    for number in range(3):
        batches = [encoded for place, encoded, _ in found if place == number]
        # in the batch before, a record's number and time would have taken some bytes more
        assert all(len(before) + len(after) + 20 > full for before, after in pairwise(batches))


@both("protocol")
def test_other_readers_read_the_records(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "NATIVE", native)
    given_rows: list[Row] = [
        (b"k", b"v" * 300, [("a", b"1"), ("ä", None)], NOW_MS + 5),
        (None, None, [], None),
        (b"", b"", [], NOW_MS - 7),
    ]
    (_, records, (count, first_ms, newest_ms)), *_ = encode_all(columns_of(given_rows), [0, 0, 0])
    header = BatchHeader(9, 0, -1, 2, 0, 0, count - 1, first_ms, newest_ms, -1, -1, -1, count)
    sealed = bytes(seal_batch(header, records))
    batch = DefaultRecordBatch(sealed)
    assert batch.validate_crc()
    expected = [
        (9 + nth, NOW_MS if time is None else time, key, value, [*headers])
        for nth, (key, value, headers, time) in enumerate(given_rows)
    ]
    assert [(r.offset, r.timestamp, r.key, r.value, [*r.headers]) for r in batch] == expected
    assert [(*row[:4], [*row[4]]) for row in iter_records(records, header)] == expected


@given(st.lists(CONTENTS, max_size=20), LAYOUTS, st.integers(1, 10_000))
def test_keys_have_the_partitions_of_javas_producers(
    keys: list[bytes | None], layout: tuple[int, int, bool], count: int
) -> None:
    columns = RowColumns(len(keys), bytes_column(keys, layout))
    found = in_both(lambda: partition_rows(columns, count))
    assert [*found] == [-1 if key is None else partition_of_key(key, count) for key in keys]


def test_rows_without_keys_are_for_any_partition() -> None:
    assert [*in_both(lambda: partition_rows(RowColumns(3), 7))] == [-1, -1, -1]
    assert murmur2(b"21") == -973932308 & 0xFFFFFFFF


@given(st.lists(ROWS, max_size=8), LAYOUTS, st.integers(0, 2**32 - 1))
def test_a_sum_is_that_of_the_rows_checksums(
    given_rows: list[Row], layout: tuple[int, int, bool], seed: int
) -> None:
    seeds = array("I", [seed] * len(given_rows))
    total = in_both(lambda: sum_rows(columns_of(given_rows, layout), seeds))
    assert total == in_both(lambda: sum_rows(columns_of(given_rows[::-1], layout), seeds))
    if len(given_rows) == 1 and given_rows[0][2:] == ([], None) and given_rows[0][0] is not None:
        key, value = given_rows[0][0], given_rows[0][1]
        check = crc32(value or b"", crc32(key, seed)) ^ (value is None)
        assert total == check + (len(key) << 32)


def test_a_time_before_1970_is_refused() -> None:
    columns = columns_of([(None, b"v", [], 0), (None, b"v", [], -1)])
    assert in_both(lambda: encode_all(columns, [0, 0])) is ValueError


GOOD = columns_of([(b"k", b"vv", [("h", b"1")], 5)] * 3, (3, 4, False))


def cut(column: Any, **changes: int) -> Any:
    return column._replace(**{name: getattr(column, name)[:size] for name, size in changes.items()})


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param(GOOD._replace(row_count=4), id="more rows than there are"),
        pytest.param(GOOD._replace(keys=cut(GOOD.keys, offsets=27)), id="offsets too short"),
        pytest.param(GOOD._replace(keys=cut(GOOD.keys, data=4)), id="keys beyond their data"),
        pytest.param(GOOD._replace(keys=GOOD.keys and GOOD.keys._replace(validity=b"")), id="no bits"),
        pytest.param(
            GOOD._replace(keys=GOOD.keys and GOOD.keys._replace(first=-1)), id="a first row below 0"
        ),
        pytest.param(GOOD._replace(keys=GOOD.keys and GOOD.keys._replace(first=2**62)), id="a far first row"),
        pytest.param(
            GOOD._replace(values=BytesColumn(array("i", [4, 2, 0, 0]).tobytes(), 4, b"abcd", None, 0)),
            id="offsets that go back",
        ),
        pytest.param(
            GOOD._replace(values=BytesColumn(array("i", [-1, 2, 2, 2]).tobytes(), 4, b"abcd", None, 0)),
            id="an offset below 0",
        ),
        pytest.param(GOOD._replace(headers=cut(GOOD.headers, ends=11)), id="headers of fewer rows"),
        pytest.param(
            GOOD._replace(
                headers=GOOD.headers and GOOD.headers._replace(ends=array("i", [1, 2, 4]).tobytes())
            ),
            id="more headers than there are",
        ),
        pytest.param(GOOD._replace(timestamps_ms=cut(GOOD.timestamps_ms, data=47)), id="too few times"),
    ],
)
def test_columns_that_say_more_than_they_have_are_refused(columns: RowColumns) -> None:
    assert in_both(lambda: encode_all(columns, [0] * 4)) is IndexError
    assert in_both(lambda: sum_rows(columns, array("I", [0] * 4))) is IndexError


def test_partitions_that_are_not_there_are_refused() -> None:
    for place in (3, 2**31 - 1):
        assert in_both(partial(encode_all, GOOD, [place] * 3)) is IndexError
    assert in_both(lambda: encode_all(GOOD, [-1] * 3, keyless=3)) is IndexError
    assert in_both(lambda: encode_all(GOOD, [0])) is IndexError
    assert in_both(lambda: sum_rows(GOOD, array("I", [0]))) is IndexError


@pytest.mark.parametrize("seed", range(3))
def test_damaged_offsets_are_read_or_refused_alike(seed: int) -> None:
    rng = random.Random(seed)
    good = columns_of([(key, b"v", [], None) for key in (b"k", None, b"kk")], (3, 4, True))
    assert good.keys is not None
    for _ in range(300):
        offsets = bytearray(good.keys.offsets)
        offsets[rng.randrange(len(offsets))] = rng.randrange(256)
        columns = good._replace(keys=good.keys._replace(offsets=bytes(offsets)))
        in_both(partial(encode_all, columns, [0, 1, 2]))
        in_both(partial(partition_rows, columns, 5))
        in_both(partial(sum_rows, columns, array("I", [0] * 3)))


@needs_native("protocol")
def test_what_the_compiled_part_cannot_write_to_is_refused() -> None:
    from kohort.protocol import _native

    bad: Any = b"x"
    numbers = array("q", bytes(24))
    with pytest.raises(TypeError, match="bytearray"):
        _native.encode_rows(GOOD, 0, array("i", [0] * 3), 0, 0, [bad], numbers, 1)
    with pytest.raises(BufferError):
        _native.encode_rows(GOOD, 0, array("i", [0] * 3), 0, 0, [bytearray()], bad, 1)
    with pytest.raises(IndexError):
        _native.encode_rows(GOOD, 0, array("i", [0] * 3), 0, 0, [bytearray()] * 2, numbers, 1)
    with pytest.raises(IndexError):
        _native.encode_rows(GOOD, -1, array("i", [0] * 3), 0, 0, [bytearray()], numbers, 1)
    with pytest.raises(ValueError, match="4 or 8"):
        _native.partition_rows(1, bytes(8), 2, b"", None, 0, 1)


@needs_native("protocol")
def test_no_memory_stays_behind_rows() -> None:
    held = [GOOD, GOOD.keys, GOOD.values]

    def work() -> None:
        encode_all(GOOD, [0, 1, 2], full=1)
        partition_rows(GOOD, 5)
        sum_rows(GOOD, array("I", [0] * 3))
        with pytest.raises(IndexError):
            encode_all(GOOD._replace(row_count=4), [0] * 4)

    require_no_leak(work, held, 100)
