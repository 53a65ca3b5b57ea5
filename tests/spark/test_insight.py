"""What a job tells of its batches in a real Spark session.

Covers: spark/_read_metrics.py.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kohort.protocol import TopicPartition
from kohort.spark import Batch, BatchCommitted, Event, GroupBatches
from kohort.spark._fetch import TaskFigures
from kohort.spark._log_keeper import find_newest
from kohort.spark._read_metrics import NewestRecords, _Most, furthest_behind
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic, commits_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def committed(events: list[Event]) -> list[BatchCommitted]:
    return [event for event in events if isinstance(event, BatchCommitted)]


@pytest.mark.parametrize("read_on_driver_below", [0, 10_000], ids=["by tasks", "on the driver"])
def test_the_loop_tells_rows_lag_and_durations_of_each_batch(
    read_on_driver_below: int,
    spark: SparkSession,
    side: Side,
    new_topic: NewTopic,
    group: Named,
    caplog: pytest.LogCaptureFixture,
) -> None:
    orders, etl, events = new_topic("orders", partitions=2), group("etl"), list[Event]()
    side.produce(orders, {0: 300, 1: 300})
    described: list[str | None] = []

    def write(batch: Batch) -> None:
        for _ in range(2):  # what is read twice counts once
            assert batch.df.count() == 200
        described.append(spark.sparkContext.getLocalProperty("spark.job.description"))

    with (
        caplog.at_level(logging.INFO, "kohort.spark"),
        GroupBatches(
            spark,
            bootstrap=side.bootstrap,
            group=etl,
            topics=[orders],
            max_offsets=200,
            min_tasks=2,
            read_on_driver_below=read_on_driver_below,
            on_event=[events.append],
        ) as batches,
    ):
        batches.run(write, trigger="available_now")
    told = committed(events)
    assert [(one.number, one.rows, one.lag_before, one.lag) for one in told] == [
        (0, 200, 600, 400),
        (1, 200, 400, 200),
        (2, 200, 200, 0),
    ]
    assert all(0 < (one.read_seconds or 0) <= one.sink_seconds for one in told)
    assert all(one.plan_seconds > 0 and one.commit_seconds > 0 for one in told)
    assert [
        words and words.startswith(f"kohort: {etl}, Batch({n}: ") for n, words in enumerate(described)
    ] == [
        True,
        True,
        True,
    ]
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None
    assert str(told[0]) in caplog.messages
    # the group's commits tell the same to whoever asks
    found = find_newest(commits_of(side, etl))
    assert found is not None
    assert found.log.applications == {1: spark.sparkContext.applicationId}
    assert [(row.number, row.rows, row.lag, row.largest_part) for row in found.log.rows] == [
        (0, 200, 400, 500),
        (1, 200, 200, 500),
        (2, 200, 0, 500),
    ]
    assert all(one.lag_seconds is not None and 0 <= one.lag_seconds < 600 for one in told)
    for one, row in zip(told, found.log.rows, strict=True):
        assert one.lag_seconds is not None
        assert row.lag_ms == round(one.lag_seconds * 1_000)
        assert row.sink_ms == round(one.sink_seconds * 1_000)


def test_rows_of_a_batch_that_is_not_read_to_its_end_are_not_known(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named
) -> None:
    orders, events = new_topic("orders", partitions=1), list[Event]()
    side.produce(orders, {0: 100})
    settings: dict[str, Any] = {"bootstrap": side.bootstrap, "group": group("etl"), "topics": [orders]}
    with GroupBatches(spark, read_on_driver_below=0, on_event=events.append, **settings) as batches:
        batches.run(lambda _: None, trigger="available_now")
    assert [(one.rows, one.read_seconds, one.offsets) for one in committed(events)] == [(None, None, 100)]


def test_the_longest_of_a_task_s_readings_counts() -> None:
    most = _Most()
    longer = {("3-a", 0): TaskFigures(40, 0.1, ((P0, 7),)), ("3-a", 1): TaskFigures(7, 0.2)}
    told = most.addInPlace({("3-a", 0): TaskFigures(10, 0.5)}, longer)
    assert told == longer
    assert most.zero(told) == {}


def test_a_batch_is_as_late_as_the_newest_record_of_its_latest_partition() -> None:
    def records(partition: int, *times_ms: int) -> pa.RecordBatch:
        columns: dict[str, list[Any]] = {"topic": ["orders"], "partition": [partition]}
        micros = pa.array([at * 1_000 for at in times_ms], pa.timestamp("us", tz="UTC"))
        return pa.record_batch(
            {name: one * len(times_ms) for name, one in columns.items()} | {"timestamp": micros}
        )

    first, second = NewestRecords(), NewestRecords()
    for task, part in ((first, (0, 50, 90, 20)), (first, (1, 70)), (second, (0, 60)), (second, (1, 95, 80))):
        task.add(records(*part))
    second.add(records(2))
    assert first.take() == ((P0, 90), (P1, 70))
    assert furthest_behind([first.take(), second.take()]) == 90
    assert furthest_behind([first.take()]) == 70
    # records from before timestamps were introduced have -1
    assert furthest_behind([((P0, -1), (P1, 70))]) is None
    assert furthest_behind([]) is None
