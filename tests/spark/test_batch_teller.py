"""Events of a query's batches, made of what Spark reports. No JVM."""

from __future__ import annotations

import json

import pytest

from kohort.protocol import TopicPartition
from kohort.spark import BatchCommitted, Event, OffsetRange
from kohort.spark._follower import BatchTeller, Progress
from kohort.spark._streams import _first

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


def report(
    start: dict[str, int] | None, end: dict[str, int], latest: dict[str, int] | None, **took: int
) -> Progress:
    def told(offsets: dict[str, int] | None) -> object:
        return None if offsets is None else {"orders": offsets}

    source = {
        "description": "kohort",
        "startOffset": told(start),
        # a text in the reports of some versions
        "endOffset": json.dumps(told(end)),
        "latestOffset": told(latest),
        "numInputRows": 150,
    }
    return Progress.read(
        json.dumps(
            {
                "id": "6f7f0a3e-0000-4000-8000-000000000000",
                "runId": "6f7f0a3e-0000-4000-8000-000000000001",
                "name": None,
                "timestamp": "2026-01-01T00:00:00.000Z",
                "batchId": 7,
                "durationMs": took,
                "sources": [source],
                "numInputRows": 150,
            }
        )
    )


def events_of(progress: Progress, first: dict[TopicPartition, int] | None = None) -> list[Event]:
    told: list[Event] = []
    assert progress.end is not None
    BatchTeller("etl", first or {}, told.append).batch_done(progress, progress.end)
    return told


TOOK = {
    "latestOffset": 4,
    "getBatch": 1,
    "queryPlanning": 5,
    "addBatch": 80,
    "walCommit": 20,
    "commitOffsets": 30,
}


def test_a_batch_has_its_ranges_rows_lag_and_durations() -> None:
    progress = report({"0": 100, "1": 50}, {"0": 200, "1": 100}, {"0": 230, "1": 100}, **TOOK)
    assert events_of(progress) == [
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


def test_the_first_batch_begins_where_the_query_did() -> None:
    (event,) = events_of(report(None, {"0": 250}, None, **TOOK), {A: 100})
    assert isinstance(event, BatchCommitted)
    assert event.ranges == (OffsetRange("orders", 0, 100, 250),)
    assert (event.lag_before, event.lag) == (150, 0)


@pytest.mark.parametrize(
    "progress",
    [
        report({"0": 5}, {"0": 5}, {"0": 5}, **TOOK),
        report({"0": 5}, {"0": 9}, {"0": 9}, latestOffset=3, triggerExecution=4),
    ],
    ids=["nothing new", "no batch"],
)
def test_a_report_without_a_batch_is_no_event(progress: Progress) -> None:
    assert events_of(progress) == []


def test_offsets_of_another_source_are_not_ours() -> None:
    sources = [{"description": "files", "startOffset": None, "endOffset": {"logOffset": 3}}]
    report = {"runId": "6f7f0a3e", "batchId": 3, "sources": sources}
    assert Progress.read(json.dumps(report)).end is None


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ({}, {}),
        ({"startingOffsets": "committed"}, {}),
        ({"startingOffsets": '{"orders":{"0":100,"1":-2}}'}, {A: 100}),
        ({"startingOffsets": '{"orders":{"0":1,"1":0}}'}, {A: 1, B: 0}),
    ],
)
def test_offsets_that_the_options_name_are_where_a_new_query_begins(
    given: dict[str, str], first: dict[TopicPartition, int]
) -> None:
    assert _first(given) == first
