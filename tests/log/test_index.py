"""The sparse offset index."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.log import OS_FILES
from kohort.log._index import OffsetIndex

#: From a data folder of Apache Kafka 4.3.1: batches of 8 records and 5,565 bytes from offset 1506 on.
GOLDEN = bytes.fromhex("0000000f000015bd 0000001700002b7a 0000001f00004137")


def index(folder: Path, base: int = 1506, content: bytes = b"") -> OffsetIndex:
    path = folder / "x.index"
    path.write_bytes(content)
    made = OffsetIndex(OS_FILES.file(str(path)), base)
    made.open()
    return made


def test_entries_are_written_as_kafka_does(tmp_path: Path) -> None:
    made = index(tmp_path)
    for number in (1, 2, 3):
        made.append(1506 + 8 * number + 7, 5565 * number)
    assert (tmp_path / "x.index").read_bytes()[:8] == GOLDEN[:8]
    assert index(tmp_path, content=GOLDEN).last() == (1537, 0x4137)


@pytest.mark.parametrize(
    ("offset", "position"),
    [(1506, 0), (1520, 0), (1521, 0x15BD), (1528, 0x15BD), (1529, 0x2B7A), (1537, 0x4137), (9999, 0x4137)],
)
def test_a_look_up_gives_the_last_entry_at_or_before_the_offset(
    tmp_path: Path, offset: int, position: int
) -> None:
    entry = index(tmp_path, content=GOLDEN).entry_for(offset)
    assert (entry[1] if entry else 0) == position


@pytest.mark.parametrize(("limit", "position"), [(0, 0), (0x15BC, 0), (0x15BD, 0x15BD), (0x5000, 0x4137)])
def test_the_last_batch_start_before_a_position_is_found(tmp_path: Path, limit: int, position: int) -> None:
    entry = index(tmp_path, content=GOLDEN).entry_before(limit)
    assert (entry[1] if entry else 0) == position


@pytest.mark.parametrize("zeros", [8, 80, 10 << 20])
def test_the_zeros_of_a_preallocated_index_are_no_entries(tmp_path: Path, zeros: int) -> None:
    made = index(tmp_path, content=GOLDEN + bytes(zeros))
    assert made.count == 3
    made.append(1600, 0x6000)
    assert made.last() == (1600, 0x6000)
    made.truncate(2)
    assert (tmp_path / "x.index").read_bytes() == GOLDEN[:16]


def test_an_index_of_zeros_alone_is_empty(tmp_path: Path) -> None:
    made = index(tmp_path, content=bytes(4096))
    assert made.count == 0
    assert made.last() is None
    assert made.entry_for(5000) is None
    assert made.entry_before(5000) is None


@pytest.mark.parametrize(
    ("content", "log_size", "fits"),
    [
        (b"", 0, True),
        (GOLDEN, 0x5000, True),
        (GOLDEN, 0x4137, False),
        (GOLDEN[:-1], 0x5000, False),
        (bytes.fromhex("ffffffff00000010"), 0x5000, False),
        (bytes.fromhex("0000000f00000000"), 0x5000, False),
    ],
)
def test_an_index_that_cannot_be_this_segments_is_told(
    tmp_path: Path, content: bytes, log_size: int, fits: bool
) -> None:
    assert index(tmp_path, content=content).fits(log_size) is fits


def test_it_is_full_while_one_entry_is_left_for_the_close(tmp_path: Path) -> None:
    made = index(tmp_path, content=GOLDEN)
    assert made.is_full(32)
    assert not made.is_full(40)


@given(st.sets(st.integers(0, 2000)), st.lists(st.integers(0, 2100), min_size=1))
def test_look_ups_agree_with_a_search_in_memory(offsets: set[int], wanted: list[int]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        made = index(Path(name), base=0)
        known = sorted(offsets)
        for number, offset in enumerate(known):
            made.append(offset, 100 * (number + 1))
        for offset in wanted:
            number = bisect_right(known, offset)
            assert made.entry_for(offset) == ((known[number - 1], 100 * number) if number else None)
        made.file.close()
