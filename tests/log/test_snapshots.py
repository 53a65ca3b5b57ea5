"""Snapshots of many producers are written in steps, while the log goes on.

Covers: log/_producers.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.log import LogConfig, PartitionLog, ThreadWork, _producers
from kohort.log._producers import MOST_SAVED, decode_snapshot
from kohort.protocol import BatchHeader, parse_batch_header
from tests.log.batches import NOW_MS, batch, open_log

#: As many as one client can make with ids of its own choice, and more than a step takes.
MANY = 60_000
SEGMENT_BYTES = 1_200
VALUE = b"x" * 1_000


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The producers whose entries were made."""
    made: list[int] = []
    encode = _producers._encode_producer

    def counting(one: Any) -> bytes:
        made.append(one.producer_id)
        return encode(one)

    monkeypatch.setattr(_producers, "_encode_producer", counting)
    return made


def crowded(folder: Path, count: int = MANY) -> PartitionLog:
    """A log with so many producers, the next batch of which begins a segment."""
    log = open_log(folder, LogConfig(segment_bytes=SEGMENT_BYTES, retention_ms=-1))
    log.append(batch(value=VALUE, producer_id=1, sequence=0), now_ms=NOW_MS)
    header = parse_batch_header(batch(producer_id=1, sequence=0))
    for number in range(2, count + 1):
        log._producers.note(header._replace(producer_id=number), None, NOW_MS)
    return log


def rolled(log: PartitionLog) -> PartitionLog:
    """Another batch of producer 1, in a segment of its own."""
    log.append(batch(value=VALUE, producer_id=1, sequence=log.log_end_offset), now_ms=NOW_MS)
    return log


def snapshots(log: PartitionLog) -> list[int]:
    return sorted(int(path.name[:20]) for path in Path(log.path).glob("*.snapshot"))


def beside(log: PartitionLog) -> list[str]:
    return [path.name for path in Path(log.path).glob("*.tmp")]


def run(log: PartitionLog, between: Callable[[], object] = lambda: None) -> int:
    """Write the snapshot as its owner does, with other work ``between`` steps; return how often that ran."""
    steps, count = log.write_snapshot(), 0
    try:
        work = next(steps)
        while True:
            count += 1
            between()
            work = steps.send(work.call() if isinstance(work, ThreadWork) else None)
    except StopIteration:
        return count


def test_no_stretch_of_work_is_longer_than_a_step(tmp_path: Path, encoded: list[int]) -> None:
    log = rolled(crowded(tmp_path))
    stretches = [len(encoded)]

    def between() -> None:
        stretches.append(len(encoded) - sum(stretches))

    run(log, between)
    assert len(encoded) == MANY
    # the append that began the segment changed producer 1, which was kept as it was
    assert stretches[0] == 1
    assert max(stretches) <= MOST_SAVED
    assert (snapshots(log), beside(log), log.has_snapshot_to_write) == ([1], [], False)


def test_few_producers_are_written_with_the_segment(tmp_path: Path, encoded: list[int]) -> None:
    log = rolled(crowded(tmp_path, MOST_SAVED))
    assert len(encoded) == MOST_SAVED
    assert (snapshots(log), log.has_snapshot_to_write) == ([1], False)


def test_it_has_producers_as_they_were_at_its_offset_whatever_they_write_meanwhile(tmp_path: Path) -> None:
    log = rolled(crowded(tmp_path, 3 * MOST_SAVED))
    changing = iter(range(3 * MOST_SAVED, 0, -700))
    header = parse_batch_header(batch(producer_id=1, sequence=1))

    def write(number: int) -> BatchHeader:
        log._producers.note(header._replace(producer_id=number, base_offset=9), None, NOW_MS)
        return header

    def between() -> None:
        write(next(changing))
        write(100_000)

    run(log, between)
    found = decode_snapshot(next(Path(log.path).glob("*.snapshot")).read_bytes())
    assert sorted(one.producer_id for one in found) == list(range(1, 3 * MOST_SAVED + 1))
    assert {one.batches[-1].last_offset for one in found} == {0}
    assert {one.batches[-1].last_sequence for one in found} == {0}


def test_a_start_after_a_crash_before_it_was_written_knows_the_same(tmp_path: Path) -> None:
    log = rolled(crowded(tmp_path, 2 * MOST_SAVED))
    next(log.write_snapshot())
    log.flush()
    log.abandon()
    again = open_log(tmp_path, log.config, clean=False)
    assert again.log_end_offset == 2
    producer = again._producers.get(1)
    assert producer is not None
    assert producer.batches[-1].last_offset == 1


def test_the_next_segment_s_takes_its_place(tmp_path: Path) -> None:
    log = rolled(crowded(tmp_path, 3 * MOST_SAVED))
    again = iter([True])

    def between() -> None:
        if next(again, False):
            rolled(log)

    assert run(log, between) == 1
    assert (snapshots(log), log.has_snapshot_to_write) == ([], True)
    run(log)
    assert (snapshots(log), beside(log), log.has_snapshot_to_write) == ([2], [], False)


def test_it_is_there_before_records_go_that_say_the_same(tmp_path: Path) -> None:
    log = rolled(crowded(tmp_path, 2 * MOST_SAVED))
    steps = log.write_snapshot()
    next(steps)
    log.high_watermark = log.log_end_offset
    log.delete_records(1, now_ms=NOW_MS)
    assert snapshots(log) == [1]
    log.abandon()
    again = open_log(tmp_path, log.config, clean=False, log_start_offset=1)
    assert len(again._producers) == 2 * MOST_SAVED


def test_it_is_not_left_behind_the_end_of_a_log_that_is_cut_meanwhile(tmp_path: Path) -> None:
    log = rolled(crowded(tmp_path, 2 * MOST_SAVED))

    def between() -> None:
        if not log.offline and not log._producers.saving._left:  # type: ignore[union-attr]
            log.replace_truncated(0, now_ms=NOW_MS)

    run(log, between)
    assert log.offline
    assert (snapshots(log), beside(log)) == ([], [])


def test_a_clean_stop_writes_its_own(tmp_path: Path) -> None:
    log = rolled(crowded(tmp_path, 2 * MOST_SAVED))
    log.close()
    assert (snapshots(log), log.has_snapshot_to_write) == ([2], False)
