"""What of a log is compacted, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kohort.log import LogConfig
from kohort.log.cleaner._plan import (
    Cleanable,
    SegmentInfo,
    find_cleanable,
    may_join,
)
from tests.log.batches import NOW_MS, batch, committed, open_log


def segments(*ages_ms: int, size: int = 100) -> list[SegmentInfo]:
    """Segments of ten offsets each; the last one is the active one."""
    return [
        SegmentInfo(n * 10, n * 10 + 10, size, 8, 12, NOW_MS - age, NOW_MS - age)
        for n, age in enumerate(ages_ms)
    ]


def plan(
    infos: list[SegmentInfo], *, first_dirty: int = 0, stable: int = 10**6, **config: Any
) -> tuple[int, int, int, bool]:
    cleanable = find_cleanable(
        infos,
        LogConfig(cleanup_policy="compact", **config),
        first_dirty=first_dirty,
        last_stable_offset=stable,
        now_ms=NOW_MS,
    )
    return cleanable.end_offset, cleanable.clean_bytes, cleanable.dirty_bytes, cleanable.forced


@pytest.mark.parametrize(
    ("what", "options", "expected"),
    [
        ("all but the active segment", {}, (40, 0, 400, False)),
        ("what was compacted counts as clean", {"first_dirty": 20}, (40, 200, 200, False)),
        ("a segment that was compacted in part is dirty", {"first_dirty": 25}, (40, 200, 200, False)),
        ("nothing new", {"first_dirty": 40}, (40, 400, 0, False)),
        ("not above the last stable offset", {"stable": 30}, (30, 0, 300, False)),
        ("not a segment that reaches above it", {"stable": 29}, (20, 0, 200, False)),
        ("an open transaction at the start", {"stable": 5}, (0, 0, 0, False)),
        ("not what is too young", {"min_compaction_lag_ms": 250}, (20, 0, 200, False)),
        ("what is just old enough", {"min_compaction_lag_ms": 200}, (30, 0, 300, False)),
        (
            "a clean segment may be young",
            {"first_dirty": 40, "min_compaction_lag_ms": 250},
            (40, 400, 0, False),
        ),
        ("what has waited too long forces it", {"max_compaction_lag_ms": 350}, (40, 0, 400, True)),
        ("what has waited just so long does not", {"max_compaction_lag_ms": 400}, (40, 0, 400, False)),
        (
            "what has waited is clean already",
            {"max_compaction_lag_ms": 350, "first_dirty": 20},
            (40, 200, 200, False),
        ),
    ],
)
def test_what_can_be_compacted(
    what: str, options: dict[str, int], expected: tuple[int, int, int, bool]
) -> None:
    assert plan(segments(400, 300, 200, 100, 0), **options) == expected, what


@pytest.mark.parametrize(("first_ms", "forced"), [(-1, False), (0, False), (1, True)])
def test_a_segment_without_a_time_has_not_waited(first_ms: int, forced: bool) -> None:
    infos = [SegmentInfo(0, 10, 100, 8, 12, first_ms, 5), *segments(0, 0)[1:]]
    assert plan(infos, max_compaction_lag_ms=350)[3] is forced


def test_a_lone_active_segment_is_never_compacted() -> None:
    assert plan(segments(400)) == (0, 0, 0, False)


def test_a_dirty_start_below_the_first_segment_is_the_first_segment() -> None:
    infos = segments(400, 300, 0)[1:]
    assert plan(infos, first_dirty=5) == (20, 0, 100, False)


@pytest.mark.parametrize(
    ("clean", "dirty", "forced", "due"),
    [
        (0, 0, False, False),
        (0, 1, False, True),
        (50, 50, False, False),
        (49, 51, False, True),
        (99, 1, False, False),
        (99, 1, True, True),
        (99, 0, True, False),
    ],
)
def test_it_is_due_above_the_dirty_ratio(clean: int, dirty: int, forced: bool, due: bool) -> None:
    assert Cleanable(0, 10, clean, dirty, forced).is_due(0.5) is due


@pytest.mark.parametrize(
    ("checkpoint", "start", "end", "expected"),
    [(0, 0, 100, 0), (50, 0, 100, 50), (100, 0, 100, 100), (101, 0, 100, 0), (5, 10, 100, 10)],
)
def test_a_checkpoint_that_cannot_be_right_counts_for_nothing(
    tmp_path: Path, checkpoint: int, start: int, end: int, expected: int
) -> None:
    log = open_log(tmp_path)
    log.append(batch(end), now_ms=NOW_MS)
    committed(log)
    log.delete_records(start)
    log.cleaner_offset = checkpoint
    assert log.cleanable(NOW_MS).first_dirty_offset == expected


@pytest.mark.parametrize(
    ("what", "new", "following", "joins"),
    [
        ("both fit", SegmentInfo(0, 10, 500, 40, 40, -1, -1), SegmentInfo(10, 20, 500, 40, 40, 0, 0), True),
        ("bytes", SegmentInfo(0, 10, 501, 40, 40, -1, -1), SegmentInfo(10, 20, 500, 40, 40, 0, 0), False),
        ("index", SegmentInfo(0, 10, 1, 61, 40, -1, -1), SegmentInfo(10, 20, 1, 40, 40, 0, 0), False),
        ("time index", SegmentInfo(0, 10, 1, 8, 61, -1, -1), SegmentInfo(10, 20, 1, 8, 40, 0, 0), False),
        ("offsets", SegmentInfo(0, 10, 1, 8, 8, -1, -1), SegmentInfo(10, 2**31 + 1, 1, 8, 8, 0, 0), False),
        ("all offsets", SegmentInfo(0, 10, 1, 8, 8, -1, -1), SegmentInfo(10, 2**31, 1, 8, 8, 0, 0), True),
    ],
)
def test_segments_become_one_while_they_fit(
    what: str, new: SegmentInfo, following: SegmentInfo, joins: bool
) -> None:
    config = LogConfig(segment_bytes=1000, segment_index_bytes=100)
    assert may_join(new, following, config) is joins, what
