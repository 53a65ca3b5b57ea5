"""What a query, driven from committed offsets, must show: points 1, 2, 3, 5, 6, 7 and 9."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kohort.protocol import TopicPartition
from kohort.spark import stream
from kohort.spark._source_options import read_source_options
from kohort.spark._stream import SourceOffsets
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic
from tests.spark.queries import await_that, begun, run_to_end
from tests.spark.test_driver_refusals import member_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.pyspark("4.2")]

NOW: dict[str, Any] = {"availableNow": True}


def test_point_1_the_first_batch_has_the_800_rows_from_500_and_700_on(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 1000, 1: 1000})
    side.commit(etl, orders, {0: 500, 1: 700})
    found: dict[int, list[tuple[int, int]]] = {}

    def sink(frame: DataFrame, number: int) -> None:
        rows = frame.select("partition", "offset").collect()
        found[number] = sorted((row["partition"], row["offset"]) for row in rows)

    run_to_end(
        lambda: stream(
            spark,
            checkpoint=str(tmp_path),
            foreach_batch=sink,
            trigger=NOW,
            bootstrap=side.bootstrap,
            group=etl,
            topics=orders,
        )
    )
    assert found == {0: [(0, n) for n in range(500, 1000)] + [(1, n) for n in range(700, 1000)]}


def test_points_2_and_3_while_the_sink_runs_the_group_stands_at_the_start_and_after_20_batches_at_the_end(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=4), group("etl")
    side.produce(orders, dict.fromkeys(range(4), 2000))
    seen: list[tuple[int, int]] = []

    def committed() -> int:
        return sum(side.committed(etl, orders).values())

    def sink(frame: DataFrame, number: int) -> None:
        start = sum(rows for _, rows in seen)
        # the last batch's commit may still be on its way; none is ever ahead
        assert committed() <= start
        await_that(lambda: committed() == start)
        seen.append((number, frame.count()))

    given: dict[str, Any] = {
        "checkpoint": str(tmp_path),
        "foreach_batch": sink,
        "trigger": NOW,
        "bootstrap": side.bootstrap,
        "group": etl,
        "topics": [orders],
    }
    run_to_end(lambda: stream(spark, max_offsets=2000, **given))
    assert seen == [(n, 2000) for n in range(4)]
    await_that(lambda: side.lag(etl, orders) == 0)

    side.produce(orders, dict.fromkeys(range(4), 400))
    run_to_end(lambda: stream(spark, max_offsets=100, **given))
    assert seen[4:] == [(4 + n, 100) for n in range(16)]
    await_that(lambda: side.lag(etl, orders) == 0)


def test_point_3_a_stopped_query_and_one_that_ran_once_leave_no_lag(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 500, 1: 500})
    given: dict[str, Any] = {"bootstrap": side.bootstrap, "group": etl, "topics": [orders]}
    checkpoint, rows = str(tmp_path / "checkpoint"), []

    def sink(frame: DataFrame, _: int) -> None:
        rows.append(frame.count())

    query = begun(lambda: stream(spark, checkpoint=checkpoint, foreach_batch=sink, **given))
    await_that(lambda: sum(rows) == 1000)
    time.sleep(1)
    query.stop()
    await_that(lambda: side.lag(etl, orders) == 0)
    side.produce(orders, {0: 100})
    run_to_end(
        lambda: stream(spark, checkpoint=checkpoint, foreach_batch=sink, trigger={"once": True}, **given)
    )
    await_that(lambda: side.lag(etl, orders) == 0)
    assert sum(rows) == 1100


def test_points_5_and_6_batch_0_and_batch_3_that_spark_has_not_logged_are_the_same_after_a_restart(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 2000})
    given: dict[str, Any] = {
        "bootstrap": side.bootstrap,
        "group": etl,
        "topics": [orders],
        "trigger": NOW,
        "checkpoint": str(tmp_path / "checkpoint"),
    }

    def overwrite(frame: DataFrame, number: int) -> None:
        frame.write.mode("overwrite").parquet(f"{tmp_path}/batch={number}")

    def dying_in(last: int) -> Callable[[DataFrame, int], None]:
        def sink(frame: DataFrame, number: int) -> None:
            overwrite(frame, number)
            if number == last:
                raise OSError("killed after the sink")

        return sink

    def written(number: int) -> tuple[int, int, int]:
        row = spark.read.parquet(f"{tmp_path}/batch={number}").selectExpr(
            "count(*)", "min(offset)", "max(offset)"
        )
        count, first, last = row.collect()[0]
        return count, first, last

    with pytest.raises(Exception, match="killed after the sink"):
        run_to_end(lambda: stream(spark, foreach_batch=dying_in(0), **given))
    # somebody moves the group, and more comes: the batch stays what it was
    side.commit(etl, orders, {0: 2500})
    side.produce(orders, {0: 6000})
    with pytest.raises(Exception, match="killed after the sink"):
        run_to_end(lambda: stream(spark, foreach_batch=dying_in(3), max_offsets=2000, **given))
    assert written(0) == (2000, 0, 1999)
    before = written(3)
    assert before == (2000, 6000, 7999)
    side.produce(orders, {0: 12_000})
    run_to_end(lambda: stream(spark, foreach_batch=overwrite, **given))
    assert written(3) == before
    assert written(4) == (12_000, 8000, 19_999)


def test_point_7_a_query_runs_on_while_a_stranger_is_in_the_group_and_then_lag_goes_to_0(
    bootstrap: str, spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl, rows = new_topic("orders", partitions=1), group("etl"), []
    side.commit(etl, orders, {0: 0})

    def sink(frame: DataFrame, _: int) -> None:
        rows.append(frame.count())

    with member_of(bootstrap, etl, orders):
        query = begun(
            lambda: stream(
                spark,
                checkpoint=str(tmp_path),
                foreach_batch=sink,
                trigger={"processingTime": "200 milliseconds"},
                bootstrap=side.bootstrap,
                group=etl,
                topics=orders,
            )
        )
        for expected in (10, 15):
            side.produce(orders, {0: expected - sum(rows)})
            await_that(lambda wanted=expected: sum(rows) == wanted)  # type: ignore[misc]
        assert side.lag(etl, orders) == 15
    await_that(lambda: side.lag(etl, orders) == 0)
    query.stop()


def test_point_9_lags_of_100_and_2000_and_a_partition_that_is_added_share_batches_of_at_most_501(
    side: Side, new_topic: NewTopic, group: Named
) -> None:
    from kafka import KafkaAdminClient

    orders = new_topic("orders", partitions=2)
    side.produce(orders, {0: 100, 1: 2000})
    given = {
        "kafka.bootstrap.servers": side.bootstrap,
        "kafka.metadata.max.age.ms": "1",
        "groupId": group("etl"),
        "subscribe": orders,
    }
    offsets = SourceOffsets(read_source_options(given, stream=True), side.client)
    at = offsets.initial()
    ends = {TopicPartition(orders, 0): 100, TopicPartition(orders, 1): 2000}
    batches = 0
    while (new := offsets.latest(at, 500, all_of_it=False)) != at:
        moved = {p: new[p] - at.get(p, 0) for p in new}
        assert sum(moved.values()) <= 501
        assert all(moved[p] or at[p] == ends[p] for p in at)
        at, batches = new, batches + 1
        if batches == 2:
            with KafkaAdminClient(bootstrap_servers=side.bootstrap) as admin:
                admin.create_partitions({orders: 3})
            producer = Side(side.bootstrap)  # one that has not heard of the topic with two partitions
            producer.produce(orders, {2: 7})
            producer.close()
            ends[TopicPartition(orders, 2)] = 7
        if batches == 4:
            assert at[TopicPartition(orders, 2)] > 0
    assert at == ends
