"""The indexes of a segment."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.log import OS_FILES
from kohort.log._indexes import NO_TIMESTAMP, AbortedTransaction, OffsetIndex, TimeIndex, TxnIndex

#: From a data folder of Apache Kafka 4.3.1: batches of 8 records and 5,565 bytes from offset 1506 on.
GOLDEN_OFFSETS = bytes.fromhex("0000000f000015bd 0000001700002b7a 0000001f00004137")


def offset_index(folder: Path, base: int = 1506, content: bytes = b"") -> OffsetIndex:
    path = folder / "x.index"
    path.write_bytes(content)
    made = OffsetIndex(OS_FILES.file(str(path)), base)
    made.open()
    return made


def test_offset_entries_are_written_as_kafka_does(tmp_path: Path) -> None:
    made = offset_index(tmp_path)
    for number in (1, 2, 3):
        made.append(1506 + 8 * number + 7, 5565 * number)
    assert (tmp_path / "x.index").read_bytes()[:8] == GOLDEN_OFFSETS[:8]
    assert offset_index(tmp_path, content=GOLDEN_OFFSETS).last() == (1537, 0x4137)


@pytest.mark.parametrize(
    ("offset", "position"),
    [(1506, 0), (1520, 0), (1521, 0x15BD), (1528, 0x15BD), (1529, 0x2B7A), (1537, 0x4137), (9999, 0x4137)],
)
def test_an_offset_look_up_gives_the_last_entry_at_or_before_the_offset(
    tmp_path: Path, offset: int, position: int
) -> None:
    entry = offset_index(tmp_path, content=GOLDEN_OFFSETS).entry_for(offset)
    assert (entry[1] if entry else 0) == position


@pytest.mark.parametrize(("limit", "position"), [(0, 0), (0x15BC, 0), (0x15BD, 0x15BD), (0x5000, 0x4137)])
def test_the_last_batch_start_before_a_position_is_found(tmp_path: Path, limit: int, position: int) -> None:
    entry = offset_index(tmp_path, content=GOLDEN_OFFSETS).entry_before(limit)
    assert (entry[1] if entry else 0) == position


@pytest.mark.parametrize("zeros", [8, 80, 10 << 20])
def test_the_zeros_of_a_preallocated_index_are_no_entries(tmp_path: Path, zeros: int) -> None:
    made = offset_index(tmp_path, content=GOLDEN_OFFSETS + bytes(zeros))
    assert made.count == 3
    made.append(1600, 0x6000)
    assert made.last() == (1600, 0x6000)
    made.truncate(2)
    assert (tmp_path / "x.index").read_bytes() == GOLDEN_OFFSETS[:16]


def test_an_index_of_zeros_alone_is_empty(tmp_path: Path) -> None:
    made = offset_index(tmp_path, content=bytes(4096))
    assert made.count == 0
    assert made.last() is None
    assert made.entry_for(5000) is None
    assert made.entry_before(5000) is None


@pytest.mark.parametrize(
    ("content", "log_size", "fits"),
    [
        (b"", 0, True),
        (GOLDEN_OFFSETS, 0x5000, True),
        (GOLDEN_OFFSETS, 0x4137, False),
        (GOLDEN_OFFSETS[:-1], 0x5000, False),
        (bytes.fromhex("ffffffff00000010"), 0x5000, False),
        (bytes.fromhex("0000000f00000000"), 0x5000, False),
    ],
)
def test_an_offset_index_that_cannot_be_this_segments_is_told(
    tmp_path: Path, content: bytes, log_size: int, fits: bool
) -> None:
    assert offset_index(tmp_path, content=content).fits(log_size) is fits


def test_it_is_full_while_one_entry_is_left_for_the_close(tmp_path: Path) -> None:
    made = offset_index(tmp_path, content=GOLDEN_OFFSETS)
    assert made.is_full(32)
    assert not made.is_full(40)


@given(st.sets(st.integers(0, 2000)), st.lists(st.integers(0, 2100), min_size=1))
def test_look_ups_agree_with_a_search_in_memory(offsets: set[int], wanted: list[int]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        made = offset_index(Path(name), base=0)
        known = sorted(offsets)
        for number, offset in enumerate(known):
            made.append(offset, 100 * (number + 1))
        for offset in wanted:
            number = bisect_right(known, offset)
            assert made.entry_for(offset) == ((known[number - 1], 100 * number) if number else None)
        made.file.close()


#: ``clicks-a-2`` of a data folder of Apache Kafka 4.3.1.
GOLDEN_TIMES = bytes.fromhex("000001a1fa6c9e28 00000035")


def time_index(folder: Path, base: int = 0, content: bytes = b"") -> TimeIndex:
    path = folder / "x.timeindex"
    path.write_bytes(content)
    made = TimeIndex(OS_FILES.file(str(path)), base)
    made.open()
    return made


def test_time_entries_are_written_as_kafka_does(tmp_path: Path) -> None:
    time_index(tmp_path).append(0x01A1FA6C9E28, 53)
    assert (tmp_path / "x.timeindex").read_bytes() == GOLDEN_TIMES
    assert time_index(tmp_path, base=100, content=GOLDEN_TIMES).last() == (0x01A1FA6C9E28, 153)


def test_an_entry_that_would_not_rise_is_left_out(tmp_path: Path) -> None:
    made = time_index(tmp_path, content=GOLDEN_TIMES)
    made.append(0x01A1FA6C9E28, 60)
    made.append(0x01A1FA6C9E27, 61)
    assert made.count == 1
    made.append(0x01A1FA6C9E29, 62)
    assert made.last() == (0x01A1FA6C9E29, 62)
    made.truncate(1)
    made.append(0x01A1FA6C9E29, 63)
    assert made.last() == (0x01A1FA6C9E29, 63)


def test_an_empty_time_index_has_no_timestamp(tmp_path: Path) -> None:
    for content in (b"", bytes(1200)):
        made = time_index(tmp_path, base=7, content=content)
        assert made.last() == (NO_TIMESTAMP, 7)
        assert made.offset_before(5) == 7


@pytest.mark.parametrize(("timestamp", "offset"), [(9, 100), (10, 110), (19, 110), (20, 120), (99, 130)])
def test_a_time_look_up_gives_the_last_entry_that_is_not_later(
    tmp_path: Path, timestamp: int, offset: int
) -> None:
    made = time_index(tmp_path, base=100)
    for time, at in ((10, 110), (20, 120), (30, 130)):
        made.append(time, at)
    assert made.offset_before(timestamp) == offset


def test_a_time_index_that_cannot_be_this_segments_is_told(tmp_path: Path) -> None:
    assert time_index(tmp_path, content=GOLDEN_TIMES).fits(54)
    assert not time_index(tmp_path, content=GOLDEN_TIMES).fits(53)
    assert not time_index(tmp_path, content=GOLDEN_TIMES + b"\0").fits(54)
    assert time_index(tmp_path, base=9).fits(9)


#: ``clicks-a-2`` of a data folder of Apache Kafka 4.3.1: producer 1 aborted 52..53, stable up to 54.
GOLDEN_ABORTED = bytes.fromhex("0000 0000000000000001 0000000000000034 0000000000000035 0000000000000036")
ABORTED = AbortedTransaction(producer_id=1, first_offset=52, last_offset=53, last_stable_offset=54)


def txn_index(folder: Path) -> TxnIndex:
    return TxnIndex(OS_FILES.file(str(folder / "x.txnindex")))


def test_aborted_transactions_are_written_and_read_as_kafka_does(tmp_path: Path) -> None:
    made = txn_index(tmp_path)
    assert made.open()
    assert made.file is None
    made.append(ABORTED)
    assert (tmp_path / "x.txnindex").read_bytes() == GOLDEN_ABORTED
    again = txn_index(tmp_path)
    assert again.open()
    assert again.entries == [ABORTED]
    again.truncate(0)
    assert (tmp_path / "x.txnindex").read_bytes() == b""


def test_no_file_is_made_without_an_aborted_transaction(tmp_path: Path) -> None:
    assert txn_index(tmp_path).open()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [GOLDEN_ABORTED[:-1], b"\x00\x01" + GOLDEN_ABORTED[2:], b"x"])
def test_a_file_of_something_else_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.txnindex").write_bytes(content)
    assert not txn_index(tmp_path).open()
