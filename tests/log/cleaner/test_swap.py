"""A compaction that stops or fails at any operation leaves the old segments or the new ones."""

from __future__ import annotations

import contextlib
import errno
import itertools
from collections.abc import Callable
from functools import partial

import pytest

from kohort.log import Cleaning, CorruptLogError, LogConfig, PartitionLog
from kohort.log._names import SNAPSHOT, offset_of
from kohort.testing.faults import CHANGES, TAKES_SPACE, FaultyFileSystem, SimulatedCrash
from tests.log.batches import NOW_MS, marker
from tests.log.cleaning import Found, compact, found, keyed, newest, write
from tests.log.disks import disk, opened

SMALL = LogConfig(cleanup_policy="compact", segment_bytes=400, index_interval_bytes=100)

#: New segments take in more than one of those that were written.
CONFIG = LogConfig(cleanup_policy="compact", segment_bytes=700, index_interval_bytes=100)

#: Ways in which a disk may come out of a crash.
SURVIVORS: list[Callable[[FaultyFileSystem], FaultyFileSystem]] = [
    FaultyFileSystem.after_kill,
    FaultyFileSystem.only_synced,
    *(lambda fs, seed=seed: fs.after_crash(seed) for seed in range(3)),
    *(lambda fs, seed=seed: fs.after_crash(seed, ordered=False) for seed in range(3)),
]


def a_log(fs: FaultyFileSystem, *, flushed: bool = True) -> PartitionLog:
    """Several segments with superseded records, tombstones, a transaction of each kind; then a flush."""
    log = opened(fs, SMALL, clean=True)
    for round_ in range(4):
        write(
            log,
            keyed(("a", f"{round_}"), (f"only-{round_}", "x")),
            keyed(("b", f"{round_}"), ("c", None if round_ % 2 else "here")),
            keyed(("t", f"{round_}"), producer_id=1, sequence=round_, transactional=True),
            marker(1, committed=round_ != 2),
            keyed(("a", f"{round_}+")),
        )
    write(log, keyed(("last", "1")), keyed(("last", "2")))
    log.reconfigure(CONFIG)
    if flushed:
        log.flush()
    return log


def run(cleaning: Cleaning) -> None:
    for stage in cleaning.stages():
        stage.run()


def meaning(log: PartitionLog) -> dict[bytes | None, tuple[int, bytes | None]]:
    return newest(found(log, committed=True))


def test_what_a_reader_ends_with_is_the_same_before_and_after() -> None:
    fs = disk()
    log = a_log(fs)
    before, size = meaning(log), log.size_bytes
    report = compact(log)
    assert meaning(log) == before
    assert report.bytes_after < report.bytes_before
    assert log.size_bytes < size
    assert report.segments_after < report.segments_before
    log.close()
    again = opened(fs, CONFIG, clean=True)
    assert meaning(again) == before
    assert not [path for path in fs.paths() if path.endswith((".cleaned", ".swap", ".deleted"))]


def test_a_crash_at_any_operation_leaves_all_that_counts() -> None:
    expected = meaning(a_log(disk()))
    for number in itertools.count(1):
        fs = disk()
        log = a_log(fs)
        fs.crash_at(number)
        try:
            compact(log)
        except SimulatedCrash:
            pass
        else:
            break
        for survive in SURVIVORS:
            survivor = survive(fs)
            after = opened(survivor, CONFIG, recovery_point=log.recovery_point)
            assert meaning(after) == expected, f"crash at operation {number}, {fs.operations[-1]}"
            assert after.log_end_offset == log.log_end_offset
            leftovers = [path for path in survivor.paths() if path.endswith((".cleaned", ".swap"))]
            assert not leftovers
            compact(after)
            assert meaning(after) == expected
    assert number > 50


def compact_with_retention_at(point: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Apply retention at that point before or behind an operation on files; return how many there were."""
    fs = disk()
    log = a_log(fs)
    before, points = meaning(log), itertools.count()

    def pass_point() -> None:
        if next(points) == point:
            log.apply_retention(NOW_MS)

    def run(operation: Callable[..., object], *given: object) -> object:
        pass_point()
        result = operation(*given)
        pass_point()
        return result

    for name in ("exists", "remove", "rename", "sync_dir"):
        monkeypatch.setattr(fs, name, partial(run, getattr(fs, name)))
    compact(log)
    passed = next(points)
    log.apply_retention(NOW_MS)
    assert meaning(log) == before
    snapshots = {offset_of(path[-29:]) for path in fs.paths() if path.endswith(SNAPSHOT)}
    assert snapshots <= {segment.base_offset for segment in log._segments.all}
    return passed


def test_retention_beside_any_operation_of_a_compaction_stops_neither(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point = 0
    while compact_with_retention_at(point, monkeypatch) > point:
        point += 1
    assert point > 30


def test_a_deletion_at_any_stage_costs_the_partition_that_is_made_anew_nothing() -> None:
    for number in itertools.count():
        fs = disk()
        log = a_log(fs)
        cleaning = log.begin_cleaning(NOW_MS)
        stages = cleaning.stages()
        for stage in itertools.islice(stages, number):
            stage.run()
        if cleaning.done:
            break
        log.abandon()
        fs.rename(log.path, f"{log.path}.0-delete")
        anew = opened(fs, CONFIG, clean=True)
        write(anew, keyed(("new", "1")), keyed(("new", "2")))
        with contextlib.suppress(OSError, CorruptLogError):
            for stage in stages:
                stage.run()
        log.end_cleaning(cleaning)
        anew.close()
        assert meaning(opened(fs, CONFIG, clean=True)) == {b"new": (1, b"2")}, f"after {number} stages"
    assert number > 8


def test_what_was_durable_stays_durable_though_later_records_were_not() -> None:
    """A record may go only when the one that takes its place is on the disk."""

    def scenario(fs: FaultyFileSystem) -> tuple[PartitionLog, list[Found]]:
        log = a_log(fs)
        durable = found(log, committed=True)
        write(log, *(keyed((key, "later")) for key in ("a", "b", "only-0", "only-3", "last", "end", "end")))
        return log, durable

    for number in itertools.count(1):
        fs = disk()
        log, durable = scenario(fs)
        fs.crash_at(number)
        try:
            compact(log)
        except SimulatedCrash:
            pass
        else:
            break
        for survive in SURVIVORS:
            after = opened(survive(fs), CONFIG, recovery_point=log.recovery_point)
            left = meaning(after)
            for key, (offset, _) in newest(durable).items():
                assert key in left, f"crash at operation {number}, {fs.operations[-1]}"
                assert left[key][0] >= offset
    assert number > 50


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_at_any_operation_leaves_the_log_as_it_was(error: int) -> None:
    expected = meaning(a_log(disk()))
    for number in itertools.count(1):
        fs = disk()
        log = a_log(fs)
        fs.fail_at(number, error, kinds=TAKES_SPACE if error == errno.ENOSPC else CHANGES)
        cleaning = log.begin_cleaning(NOW_MS)
        try:
            run(cleaning)
        except OSError:
            assert not log.end_cleaning(cleaning)
        if not fs.failed:
            break
        fs.heal()
        if not log.offline:
            assert meaning(log) == expected
            write(log, keyed(("more", "1")))
            compact(log)
            assert meaning(log) == {**expected, b"more": (log.log_end_offset - 1, b"1")}
        else:
            log.close()
        after = opened(fs.after_kill(), CONFIG, recovery_point=0)
        assert {key: entry for key, entry in meaning(after).items() if key != b"more"} == expected
    assert number > 50


def test_a_failure_before_the_new_segment_is_in_use_leaves_no_file_behind() -> None:
    fs = disk()
    log = a_log(fs)
    before = fs.paths()
    fs.fail_at(1, errno.ENOSPC, kinds=("sync",))
    cleaning = log.begin_cleaning(NOW_MS)
    with pytest.raises(OSError, match="space"):
        run(cleaning)
    assert not log.end_cleaning(cleaning)
    assert fs.paths() == before
    assert log.cleaner_offset == 0


def test_a_source_that_cannot_be_synced_ends_it() -> None:
    fs = disk()
    log = a_log(fs, flushed=False)
    cleaning = log.begin_cleaning(NOW_MS)
    source = [path for path in fs.paths() if path.endswith(".log")][1]
    fs.fail_at(1, errno.EIO, kinds=("sync",), path=source)
    with pytest.raises(OSError, match="error"):
        run(cleaning)
    assert not log.end_cleaning(cleaning)


def test_damage_is_told_with_file_and_position_and_changes_nothing() -> None:
    fs = disk()
    log = a_log(fs)
    path = sorted(path for path in fs.paths() if path.endswith(".log"))[1]
    fs.flip(path, 70)
    before = {path: fs.content(path) for path in fs.paths()}
    cleaning = log.begin_cleaning(NOW_MS)
    with pytest.raises(CorruptLogError, match=path):
        run(cleaning)
    assert not log.end_cleaning(cleaning)
    assert {path: fs.content(path) for path in fs.paths()} == before
    assert not log.offline


def test_retention_that_comes_between_ends_it_quietly() -> None:
    for steps in range(1, 4):
        fs = disk()
        log = a_log(fs)
        cleaning = log.begin_cleaning(NOW_MS)
        stages = cleaning.stages()
        for _ in range(steps):
            next(stages).run()
        log.delete_records(log._segments.all[1].base_offset, now_ms=NOW_MS)
        expected = meaning(log)
        with contextlib.suppress(FileNotFoundError):
            for stage in stages:
                stage.run()
        assert not log.end_cleaning(cleaning)
        assert cleaning.overtaken
        assert meaning(log) == expected
        assert not [path for path in fs.paths() if path.endswith((".cleaned", ".swap"))]
        compact(log)
        assert meaning(log) == expected


def test_retention_waits_while_a_new_segment_gets_its_name() -> None:
    fs = disk()
    log = a_log(fs)
    expected = meaning(log)
    cleaning = log.begin_cleaning(NOW_MS)
    for stage in cleaning.stages():
        stage.run()
        if log._segments.replacing:
            log.delete_records(log.log_start_offset + 1, now_ms=NOW_MS)
            count = len(log._segments)
            log.apply_retention(NOW_MS)
            assert len(log._segments) == count
    assert log.end_cleaning(cleaning)
    log.close()
    left = meaning(opened(fs, CONFIG, clean=True))
    assert {key for key, _ in left.items()} == {key for key, _ in expected.items()}


def test_a_log_that_is_closed_meanwhile_is_left_to_the_next_start() -> None:
    expected = meaning(a_log(disk()))
    for steps in itertools.count(1):
        fs = disk()
        log = a_log(fs)
        cleaning = log.begin_cleaning(NOW_MS)
        stages = cleaning.stages()
        ran = 0
        for stage in itertools.islice(stages, steps):
            stage.run()
            ran += 1
        log.close()
        if ran < steps:
            break
        for stage in stages:
            stage.run()
        log.end_cleaning(cleaning)
        assert meaning(opened(fs, CONFIG, clean=True)) == expected
