"""What a job tells: a line, a bar in a terminal, Prometheus metrics. No JVM."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from rich.console import Console

from kohort.spark import (
    BatchCommitted,
    BatchMetrics,
    CommitRefused,
    Event,
    OffsetRange,
    OffsetsLost,
    ProgressBar,
)
from kohort.spark._events import all_of

BATCH = BatchCommitted(
    group="etl",
    number=3,
    ranges=(OffsetRange("orders", 0, 0, 1500), OffsetRange("orders", 1, 100, 600)),
    replayed=False,
    rows=1900,
    lag_before=5000,
    lag=3000,
    plan_seconds=0.005,
    read_seconds=0.02,
    sink_seconds=0.5,
    commit_seconds=0.004,
)
REFUSED = CommitRefused("etl", 4, "UNKNOWN_MEMBER_ID", 2.0)
LOST = OffsetsLost("etl", (OffsetRange("orders", 0, 10, 60),))


def test_a_batch_is_one_line_with_ranges_rows_lag_and_durations() -> None:
    assert str(BATCH) == (
        "group etl: batch 3 of orders-0 [0, 1500), orders-1 [100, 600): 1,900 rows, lag 5,000 to 3,000, "
        "plan 5 ms read 20 ms sink 500 ms commit 4 ms"
    )
    unknown = str(replace(BATCH, rows=None, read_seconds=None, replayed=True))
    assert "batch 3 (a replay) of" in unknown
    assert "rows not counted" in unknown
    assert "read" not in unknown


def test_every_listener_is_told_in_order() -> None:
    told: list[tuple[str, Event]] = []
    all_of(None)(BATCH)
    all_of(lambda event: told.append(("alone", event)))(LOST)
    all_of([lambda event: told.append(("a", event)), lambda event: told.append(("b", event))])(BATCH)
    assert told == [("alone", LOST), ("a", BATCH), ("b", BATCH)]


def drawn(*events: Event, terminal: bool) -> str:
    out = io.StringIO()
    with ProgressBar(Console(file=out, force_terminal=terminal, width=120, color_system=None)) as bar:
        for event in events:
            bar(event)
    return out.getvalue()


def test_the_bar_shows_how_far_the_job_is() -> None:
    shown = drawn(BATCH, LOST, REFUSED, terminal=True)
    assert "etl: batch 3" in shown
    assert "2000/5000 offsets  3,733 rows/s" in shown
    assert "group etl: lost orders-0 [10, 60)" in shown
    assert "group etl: commit refused (UNKNOWN_MEMBER_ID), for 2 s now" in shown


def test_there_is_no_bar_without_a_terminal() -> None:
    assert drawn(BATCH, LOST, REFUSED, terminal=False).strip() == ""


def test_metrics_count_batches_of_each_group() -> None:
    registry = CollectorRegistry()
    metrics = BatchMetrics(registry)
    for event in (BATCH, replace(BATCH, number=4, rows=None, lag=1000), LOST, REFUSED):
        metrics(event)
    metrics(replace(BATCH, group="other"))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"kohort_spark_{name}", {"group": "etl", **labels})

    names = ("batches", "rows", "offsets", "lost_offsets", "commit_refusals")
    assert [value(f"{name}_total") for name in names] == [2, 1900, 4000, 50, 1]
    assert (value("lag"), value("batch_number")) == (1000, 4)
    assert value("batch_seconds_sum", phase="sink") == pytest.approx(1.0)
    assert value("batch_seconds_count", phase="read") == 2
    assert (value("last_commit_timestamp_seconds") or 0) > 1.6e9
