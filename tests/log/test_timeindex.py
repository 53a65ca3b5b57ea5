"""The time index."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.log import OS_FILES
from kohort.log._timeindex import NO_TIMESTAMP, TimeIndex

#: ``clicks-a-2`` of a data folder of Apache Kafka 4.3.1.
GOLDEN = bytes.fromhex("000001a1fa6c9e28 00000035")


def index(folder: Path, base: int = 0, content: bytes = b"") -> TimeIndex:
    path = folder / "x.timeindex"
    path.write_bytes(content)
    made = TimeIndex(OS_FILES.file(str(path)), base)
    made.open()
    return made


def test_entries_are_written_as_kafka_does(tmp_path: Path) -> None:
    index(tmp_path).append(0x01A1FA6C9E28, 53)
    assert (tmp_path / "x.timeindex").read_bytes() == GOLDEN
    assert index(tmp_path, base=100, content=GOLDEN).last() == (0x01A1FA6C9E28, 153)


def test_an_entry_that_would_not_rise_is_left_out(tmp_path: Path) -> None:
    made = index(tmp_path, content=GOLDEN)
    made.append(0x01A1FA6C9E28, 60)
    made.append(0x01A1FA6C9E27, 61)
    assert made.count == 1
    made.append(0x01A1FA6C9E29, 62)
    assert made.last() == (0x01A1FA6C9E29, 62)
    made.truncate(1)
    made.append(0x01A1FA6C9E29, 63)
    assert made.last() == (0x01A1FA6C9E29, 63)


def test_an_empty_index_has_no_timestamp(tmp_path: Path) -> None:
    for content in (b"", bytes(1200)):
        made = index(tmp_path, base=7, content=content)
        assert made.last() == (NO_TIMESTAMP, 7)
        assert made.offset_before(5) == 7


@pytest.mark.parametrize(("timestamp", "offset"), [(9, 100), (10, 110), (19, 110), (20, 120), (99, 130)])
def test_a_look_up_gives_the_last_entry_that_is_not_later(
    tmp_path: Path, timestamp: int, offset: int
) -> None:
    made = index(tmp_path, base=100)
    for time, at in ((10, 110), (20, 120), (30, 130)):
        made.append(time, at)
    assert made.offset_before(timestamp) == offset


def test_an_index_that_cannot_be_this_segments_is_told(tmp_path: Path) -> None:
    assert index(tmp_path, content=GOLDEN).fits(54)
    assert not index(tmp_path, content=GOLDEN).fits(53)
    assert not index(tmp_path, content=GOLDEN + b"\0").fits(54)
    assert index(tmp_path, base=9).fits(9)
