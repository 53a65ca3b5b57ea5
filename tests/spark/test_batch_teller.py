"""Events of a query's batches, made of what Spark reports. No JVM.

Covers: spark/_follower.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.protocol import TopicPartition
from kohort.spark import BatchCommitted, Event, OffsetRange, OffsetsLost
from kohort.spark._follower import BatchTeller, Done, Follower, OffsetMirror
from kohort.spark._stream_plan import BatchReport, Reports

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
RUN = "6f7f0a3e-0000-4000-8000-000000000001"


def source(
    start: dict[str, int] | None, end: dict[str, int], latest: dict[str, int] | None, rows: int = 150
) -> dict[str, Any]:
    def told(offsets: dict[str, int] | None) -> object:
        return None if offsets is None else {"orders": offsets}

    return {
        "description": "PythonMicroBatchStream@1f2b",
        "startOffset": told(start),
        # a text in the reports of some versions
        "endOffset": json.dumps(told(end)),
        "latestOffset": told(latest),
        "numInputRows": rows,
    }


def progress(*sources: dict[str, Any], number: int = 7, **took: int) -> str:
    return json.dumps(
        {
            "id": "6f7f0a3e-0000-4000-8000-000000000000",
            "runId": RUN,
            "name": None,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "batchId": number,
            "durationMs": took,
            "sources": sources,
            "numInputRows": 1000,
        }
    )


class Query:
    """A follower with all it talks to but Spark."""

    def __init__(self, folder: Path) -> None:
        self.reports = Reports(folder)
        self.events: list[Event] = []
        self.committed: list[Done] = []
        self.mirror = OffsetMirror(self.committed.append)
        self.follower = Follower(BatchTeller("etl", self.events.append), self.mirror, self.reports)

    def end(self) -> None:
        self.follower.on_end(RUN)
        self.mirror.join(5)


@pytest.fixture
def query(tmp_path: Path) -> Iterator[Query]:
    query = Query(tmp_path / "reports")
    query.follower.follow(RUN)
    yield query
    query.mirror.close()


TOOK = {
    "latestOffset": 4,
    "getBatch": 1,
    "queryPlanning": 5,
    "addBatch": 80,
    "walCommit": 20,
    "commitOffsets": 30,
}


def test_a_batch_has_its_ranges_rows_lag_and_durations(query: Query) -> None:
    query.reports.write(BatchReport({A: 100, B: 50}, {A: 200, B: 100}))
    ours = source({"0": 100, "1": 50}, {"0": 200, "1": 100}, {"0": 230, "1": 100})
    query.follower.on_report(progress(ours, **TOOK))
    assert query.events == [
        BatchCommitted(
            group="etl",
            number=7,
            ranges=(OffsetRange("orders", 0, 100, 200), OffsetRange("orders", 1, 50, 100)),
            replayed=False,
            rows=150,
            lag_before=180,
            lag=30,
            plan_seconds=0.010,
            read_seconds=None,
            sink_seconds=0.08,
            commit_seconds=0.05,
        )
    ]
    query.end()
    assert query.committed == [Done(7, {A: 200, B: 100})]
    [row] = query.committed[0].rows
    assert (row.number, row.started_ms) == (7, 1_767_225_600_000)
    assert (row.plan_ms, row.read_ms, row.sink_ms, row.commit_ms) == (10, None, 80, 50)
    assert (row.rows, row.largest_part, row.lag, row.lag_ms, row.replays) == (150, 666, 30, None, None)


def test_the_first_batch_begins_where_the_query_did(query: Query) -> None:
    query.reports.write(BatchReport({A: 100}, {A: 250}))
    query.follower.on_report(progress(source(None, {"0": 250}, None), **TOOK))
    (event,) = query.events
    assert isinstance(event, BatchCommitted)
    assert event.ranges == (OffsetRange("orders", 0, 100, 250),)
    assert (event.lag_before, event.lag) == (150, 0)


@pytest.mark.parametrize("place", [0, 1])
def test_another_source_of_the_query_is_not_taken_for_ours(query: Query, place: int) -> None:
    """Both read the same topic, and Spark does not say which is whose."""
    for number, (start, end) in enumerate([(0, 10), (10, 12)]):
        query.reports.write(BatchReport({A: start}, {A: end}))
        sources = [source({"0": start + 500}, {"0": end + 500}, None, rows=77)]
        sources.insert(place, source({"0": start} if number else None, {"0": end}, None, rows=end - start))
        query.follower.on_report(progress(*sources, number=number, **TOOK))
    query.end()
    assert query.committed[-1] == Done(1, {A: 12})
    assert [event.rows for event in query.events if isinstance(event, BatchCommitted)] == [10, 2]


def test_a_batch_that_only_another_source_has_records_of_is_not_ours(query: Query) -> None:
    ours, other = source({"0": 5}, {"0": 5}, None), source({"0": 0}, {"0": 9}, None)
    query.follower.on_report(progress(ours, other, **TOOK))
    query.end()
    assert (query.events, query.committed) == ([], [])


def test_where_a_query_stands_at_its_start_is_committed_and_no_batch(query: Query) -> None:
    query.reports.write(BatchReport({A: 5}, {A: 5}))
    query.follower.on_report(progress(source({"0": 5}, {"0": 5}, {"0": 5}), number=3, triggerExecution=4))
    query.end()
    assert (query.events, query.committed) == ([], [Done(3, {A: 5})])


def test_what_the_source_went_on_behind_is_told_before_its_batch_and_also_if_that_never_ends(
    query: Query,
) -> None:
    lost, more = OffsetRange("orders", 0, 0, 60), OffsetRange("orders", 0, 100, 130)
    query.reports.write(BatchReport({A: 0}, {A: 100}, (lost,)))
    query.follower.on_report(progress(source(None, {"0": 100}, None), **TOOK))
    assert query.events[0] == OffsetsLost("etl", (lost,))
    assert isinstance(query.events[1], BatchCommitted)
    query.reports.write(BatchReport({A: 100}, {A: 200}, (more,)))
    query.end()
    assert query.events[2:] == [OffsetsLost("etl", (more,))]


def test_a_listener_that_raises_does_not_keep_the_group_back(tmp_path: Path) -> None:
    def fail(_: Event) -> None:
        raise ZeroDivisionError

    reports, committed = Reports(tmp_path), list[Done]()
    mirror = OffsetMirror(committed.append)
    follower = Follower(BatchTeller("etl", fail), mirror, reports)
    follower.follow(RUN)
    for end in (10, 20):
        reports.write(BatchReport({A: end - 10}, {A: end}, (OffsetRange("orders", 0, 0, 5),)))
        with pytest.raises(ZeroDivisionError):
            follower.on_report(progress(source({"0": end - 10}, {"0": end}, None), number=end, **TOOK))
    reports.write(BatchReport({A: 20}, {A: 30}, (OffsetRange("orders", 0, 20, 25),)))
    with pytest.raises(ZeroDivisionError):
        follower.on_end(RUN)
    mirror.join(5)
    assert committed[-1] == Done(20, {A: 20})


def test_what_comes_before_the_query_is_known_is_told_when_it_is(tmp_path: Path) -> None:
    query = Query(tmp_path)
    query.reports.write(BatchReport({A: 0}, {A: 10}))
    query.follower.on_report(progress(source(None, {"0": 10}, None), **TOOK))
    query.follower.on_report(progress(number=0).replace(RUN, "another"))
    query.follower.on_end("another")
    assert query.events == []
    query.follower.follow(RUN)
    query.end()
    assert len(query.events) == len(query.committed) == 1


@pytest.mark.parametrize("offsets", [{"logOffset": 3}, None, 3, "text", {"orders": {"0": "x"}}])
def test_offsets_of_another_kind_of_source_are_none(query: Query, offsets: object) -> None:
    query.reports.write(BatchReport({A: 0}, {A: 10}))
    sources = [{"description": "files", "startOffset": None, "endOffset": offsets}]
    query.follower.on_report(progress(*sources, source(None, {"0": 10}, None), **TOOK))
    query.end()
    assert query.committed == [Done(7, {A: 10})]


def test_reports_are_taken_once_in_their_order_and_a_folder_that_is_gone_is_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reports = Reports(tmp_path / "reports")
    assert reports.take() == []
    written = [BatchReport({A: n}, {A: n + 1, B: 0}, (OffsetRange("t-1", 0, n, 9),)) for n in range(3)]
    for report in written:
        reports.write(report)
    assert reports.take() == written
    assert reports.take() == []
    reports.close()
    reports.write(written[0])
    assert reports.take() == written[:1]
    reports.close()
    (tmp_path / "reports").write_text("a file")
    reports.write(written[0])
    assert "the driver is not told" in caplog.text
