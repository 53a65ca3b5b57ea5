"""A run with numbers that were put out twice tells how that came about."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.offsets_topic import OffsetCommitted, encode
from kohort.protocol import build_batch
from tests.torture.double_work import set_back, traces
from tests.torture.history import FetchedOffset


def told(asked: int, answered: int, offset: int, error: int = 0) -> FetchedOffset:
    return FetchedOffset(asked, answered, "g", "source", 0, offset, error)


@pytest.mark.parametrize(
    ("later", "found"),
    [
        (told(2, 3, -1), ["g: source-0 was 154, then -1"]),
        (told(2, 3, 153), ["g: source-0 was 154, then 153"]),
        (told(2, 3, 154), []),
        (told(2, 3, -1000, 88), []),
        # it was on its way when the other was told
        (told(0, 3, -1), []),
    ],
)
def test_an_offset_that_was_told_is_not_followed_by_a_lower_one(
    later: FetchedOffset, found: list[str]
) -> None:
    assert set_back([told(0, 1, 154), later]) == found


def write(folder: Path, *batches: bytes | bytearray) -> None:
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(b"".join(batches))


def test_who_wrote_numbers_twice_is_found_in_the_files(tmp_path: Path) -> None:
    def numbers(producer_id: int, *some: int) -> bytearray:
        records = [(b"", b"%d" % number) for number in some]
        return build_batch(records, timestamp_ms=5, producer_id=producer_id, producer_epoch=1)

    def end(producer_id: int) -> bytearray:
        records = [(bytes((0, 0, 0, 1)), bytes(6))]
        return build_batch(
            records,
            timestamp_ms=6,
            producer_id=producer_id,
            producer_epoch=1,
            transactional=True,
            control=True,
        )

    held = encode(OffsetCommitted("g", "source", 0, 2, -1, "", 5))
    offsets = build_batch([held], timestamp_ms=5, producer_id=7, producer_epoch=1, transactional=True)
    write(tmp_path / "source-0", numbers(1, 0, 1), numbers(1, 2))
    write(tmp_path / "target-0", numbers(7, 0, 1), end(7), numbers(8, 0, 1), end(8), numbers(8, 2))
    write(tmp_path / "__consumer_offsets-0", offsets, end(7))
    (tmp_path / "errors").write_text(
        "1.0 p-1 reads 0 from 0 on\n1.0 p-1 reads 1 from 0 on\n2.0 p-2 reads 0 from 0 on\n"
    )
    text = traces(tmp_path, "g", [told(4, 5, -1)], tmp_path / "errors", [[0, 1, 0, 1, 2]])
    assert text.splitlines() == [
        "source 0: 0 to 1 by producer 1 epoch 1, 5 ms, sequence -1, leader epoch -1",
        "target 0: 0 to 1 by producer 7 epoch 1, 5 ms, sequence -1, leader epoch -1",
        "target 0: commit by producer 7 epoch 1, 6 ms",
        "target 0: 0 to 1 by producer 8 epoch 1, 5 ms, sequence -1, leader epoch -1",
        "target 0: commit by producer 8 epoch 1, 6 ms",
        "offsets 0: 2 by producer 7 epoch 1, 5 ms",
        "offsets 0: commit by producer 7 epoch 1, 6 ms",
        "told -1 NONE, ticks 4 to 5",
        "1.0 p-1 reads 0 from 0 on",
        "2.0 p-2 reads 0 from 0 on",
    ]
    assert traces(tmp_path, "g", [], tmp_path / "errors", [[0, 1, 2]]) == ""
