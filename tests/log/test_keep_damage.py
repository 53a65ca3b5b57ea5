"""A log whose reader steps over damage: it opens with damage in its middle, whatever the last stop was."""

from __future__ import annotations

import pytest

from kohort.log import CorruptLogError, LogConfig, PartitionLog
from kohort.log._recovery import Damaged
from kohort.testing.faults import FaultyFileSystem
from tests.log.batches import NOW_MS, TOPIC_ID, OnlyReplica, batch
from tests.log.disks import FIRST, FOLDER, batches_of, disk, opened

CONFIG = LogConfig(cleanup_policy="compact", index_interval_bytes=150)
BATCHES = 12


def damaged(
    *numbers: int, clean: bool = False, config: LogConfig = CONFIG
) -> tuple[FaultyFileSystem, list[int]]:
    """A log of twelve batches of which some have a wrong byte; and where each batch starts."""
    fs = disk()
    log = opened(fs, config)
    for number in range(BATCHES):
        log.append(batch(1, producer_id=3, sequence=number), now_ms=NOW_MS)
    if clean:
        log.close()
    fs = fs.after_kill()
    size = len(fs.content(FIRST)) // BATCHES
    for number in numbers:
        fs.flip(FIRST, number * size + 65)
    return fs, [number * size for number in range(BATCHES)]


def kept(fs: FaultyFileSystem, config: LogConfig = CONFIG, *, clean: bool = False) -> PartitionLog:
    return OnlyReplica.open(
        FOLDER, config, now_ms=NOW_MS, clean=clean, topic_id=TOPIC_ID, keep_damage=True, fs=fs
    )


def salvaged(log: PartitionLog) -> list[int]:
    """The offsets of the whole batches."""
    return [piece.offset for piece in log.salvage(log.log_start_offset) if not piece.damage]


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("numbers", [(0,), (4,), (4, 5), (2, 7), (10,)])
def test_everything_but_the_damage_is_salvaged_after_any_stop(numbers: tuple[int, ...], clean: bool) -> None:
    fs, starts = damaged(*numbers, clean=clean)
    content = fs.content(FIRST)
    log = kept(fs, clean=clean)
    assert salvaged(log) == [number for number in range(BATCHES) if number not in numbers]
    assert log.log_end_offset == BATCHES
    assert log.append(batch(1, producer_id=3, sequence=BATCHES), now_ms=NOW_MS).base_offset == BATCHES
    assert fs.content(FIRST).startswith(content)
    if not clean:
        places = {(place.position, place.resume) for place in log.recovery.damaged}
        assert {start for start, _ in places} <= {starts[number] for number in numbers}
        assert {place.path for place in log.recovery.damaged} == {FIRST}


def test_what_lies_behind_the_damage_is_read_without_a_walk_over_it() -> None:
    config = LogConfig(cleanup_policy="compact", index_interval_bytes=1 << 20)
    fs, _ = damaged(4, config=config)
    log = kept(fs, config)
    for offset in range(5, BATCHES):
        assert batches_of(log.read(offset, 1).records)[0][0] == offset
    log.close()
    again = kept(fs, config, clean=True)
    assert (again.log_end_offset, again.recovery.rebuilt_indexes) == (BATCHES, [])


def test_a_torn_tail_is_cut_all_the_same() -> None:
    fs, starts = damaged(4, BATCHES - 1)
    log = kept(fs)
    assert [cut.position for cut in log.recovery.cuts] == [starts[-1]]
    assert [(place.position, place.resume) for place in log.recovery.damaged] == [(starts[4], starts[5])]
    assert salvaged(log) == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10]


def test_a_file_that_is_damaged_to_its_end_is_no_reason_to_leave_the_next_one_out() -> None:
    config = LogConfig(cleanup_policy="compact", segment_bytes=400)
    fs = disk()
    log = opened(fs, config)
    for number in range(BATCHES):
        log.append(batch(1, producer_id=3, sequence=number), now_ms=NOW_MS)
    size = len(fs.content(FIRST))
    fs.put(FIRST, fs.content(FIRST)[: size - 5])
    with pytest.raises(CorruptLogError, match="follows"):
        opened(fs.after_kill(), config)
    log = kept(fs, config)
    in_first = size // len(batch())
    assert salvaged(log) == [number for number in range(BATCHES) if number != in_first - 1]
    (place,) = log.recovery.damaged
    assert place == Damaged(FIRST, size - len(batch()), size - 5, place.reason)


def test_a_roll_of_a_damaged_segment_does_not_look_at_the_damage() -> None:
    config = LogConfig(cleanup_policy="compact", segment_ms=1_000)
    fs, _ = damaged(0, config=config)
    content = bytearray(fs.content(FIRST))
    content[16] = 9  # no batch at all
    fs.put(FIRST, bytes(content))
    log = kept(fs, config)
    info = log.append(batch(1, timestamp_ms=NOW_MS + 5_000), now_ms=NOW_MS + 5_000)
    assert info.base_offset == BATCHES
