"""What a query tells of its batches, and what Spark's own progress has of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kohort.spark import BatchCommitted, Event, stream
from kohort.spark._batch_log import BatchRow
from kohort.spark._log_keeper import find_newest
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic, commits_of
from tests.spark.queries import await_that, run_to_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows_in(side: Side, group: str) -> tuple[BatchRow, ...]:
    found = find_newest(commits_of(side, group))
    return () if found is None else found.log.rows


pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.pyspark("4.2")]


def test_a_query_tells_the_same_and_spark_s_own_progress_has_it(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl, events = new_topic("orders", partitions=1), group("etl"), list[Event]()
    side.produce(orders, {0: 300})
    side.commit(etl, orders, {0: 100})

    def sink(frame: DataFrame, _: int) -> None:
        frame.write.format("noop").mode("overwrite").save()

    query = run_to_end(
        lambda: stream(
            spark,
            checkpoint=str(tmp_path),
            foreach_batch=sink,
            trigger={"availableNow": True},
            on_event=events.append,
            bootstrap=side.bootstrap,
            group=etl,
            topics=[orders],
            max_offsets=150,
        )
    )
    # Spark tells its listeners when it comes to it
    await_that(lambda: len(events) >= 2)
    told = [event for event in events if isinstance(event, BatchCommitted)]
    assert [(one.number, one.rows, one.lag_before, one.lag) for one in told] == [
        (0, 150, 200, 50),
        (1, 50, 50, 0),
    ]
    assert [(span.start, span.end) for one in told for span in one.ranges] == [(100, 250), (250, 300)]
    assert all(one.sink_seconds > 0 and one.commit_seconds > 0 for one in told)
    # the mirror commits each batch, with its row
    await_that(lambda: len(rows_in(side, etl)) >= 2)
    rows = rows_in(side, etl)
    assert [(row.number, row.offsets, row.rows, row.lag, row.run) for row in rows] == [
        (0, 150, 150, 50, 1),
        (1, 50, 50, 0, 1),
    ]
    assert all(row.sink_ms and row.commit_ms is not None and row.replays is None for row in rows)
    progress = [one for one in query.recentProgress if one["numInputRows"]]
    first = progress[0]["sources"][0]
    assert json.loads(first["endOffset"]) == {orders: {"0": 250}}
    assert json.loads(first["latestOffset"]) == {orders: {"0": 300}}
