"""``format("kohort")`` and ``stream`` in a real Spark session."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kohort.spark import stream
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

NOW: dict[str, Any] = {"availableNow": True}


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_a_batch_read_has_exactly_the_rows_behind_the_commits(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 1000, 1: 1000})
    side.commit(etl, orders, {0: 500, 1: 700})
    reader = spark.read.format("kohort").options(
        **{
            "kafka.bootstrap.servers": side.bootstrap,
            "groupId": etl,
            "subscribe": orders,
            "minPartitions": "3",
        }
    )
    found = reader.option("includeHeaders", "true").load()
    assert found.columns[-1] == "headers"
    counted = found.groupBy("partition").agg({"offset": "min", "*": "count"})
    assert sorted(tuple(row) for row in counted.select("partition", "min(offset)", "count(1)").collect()) == [
        (0, 500, 500),
        (1, 700, 300),
    ]
    assert reader.option("startingOffsets", "latest").load().count() == 0
    assert side.committed(etl, orders) == {0: 500, 1: 700}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"maxOfsets": "5"}, "unknown option 'maxofsets': the options are"),
        ({"subscribe": "no-such-topic"}, "topic 'no-such-topic' does not exist"),
        ({"schema": "value string"}, "the schema is fixed: key binary, value binary"),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(
    options: dict[str, str], problem: str, spark: SparkSession, side: Side, new_topic: NewTopic, group: Named
) -> None:
    given = {"kafka.bootstrap.servers": side.bootstrap, "groupId": group("etl"), "subscribe": new_topic("t")}
    reader = spark.read.format("kohort")
    if "schema" in options:
        reader = reader.schema(options.pop("schema"))
    with pytest.raises(Exception, match=problem):
        reader.options(**given | options).load().count()


def test_the_group_follows_a_query_never_ahead_of_it_and_to_its_end(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=4), group("etl")
    side.produce(orders, dict.fromkeys(range(4), 2000))
    seen: list[tuple[int, int, int]] = []

    def sink(frame: DataFrame, number: int) -> None:
        rows = frame.count()
        seen.append((number, rows, sum(side.committed(etl, orders).values())))

    query = stream(
        spark,
        checkpoint=str(tmp_path / "checkpoint"),
        foreach_batch=sink,
        trigger=NOW,
        bootstrap=side.bootstrap,
        group=etl,
        topics=[orders],
        max_offsets=2000,
    )
    assert query.awaitTermination(60)
    assert [(number, rows) for number, rows, _ in seen] == [(n, 2000) for n in range(4)]
    assert all(committed <= number * 2000 for number, _, committed in seen)
    assert within(2, lambda: side.lag(etl, orders) == 0)


def test_a_stopped_query_and_one_that_ran_once_leave_no_lag(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 500, 1: 500})
    given: dict[str, Any] = {"bootstrap": side.bootstrap, "group": etl, "topics": [orders]}
    checkpoint, rows = str(tmp_path / "checkpoint"), []

    def sink(frame: DataFrame, _: int) -> None:
        rows.append(frame.count())

    query = stream(spark, checkpoint=checkpoint, foreach_batch=sink, **given)
    assert within(30, lambda: sum(rows) == 1000)
    assert within(2, lambda: side.lag(etl, orders) == 0)
    query.stop()
    side.produce(orders, {0: 100})
    query = stream(spark, checkpoint=checkpoint, foreach_batch=sink, trigger={"once": True}, **given)
    assert query.awaitTermination(30)
    assert within(2, lambda: side.lag(etl, orders) == 0)
    assert sum(rows) == 1100


def test_batch_0_that_spark_has_not_logged_is_the_same_after_a_restart(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 2000})
    target = str(tmp_path / "orders.parquet")
    given: dict[str, Any] = {
        "bootstrap": side.bootstrap,
        "group": etl,
        "topics": [orders],
        "trigger": NOW,
        "checkpoint": str(tmp_path / "checkpoint"),
    }

    def dying(frame: DataFrame, _: int) -> None:
        frame.write.mode("overwrite").parquet(target)
        raise OSError("killed after the sink")

    with pytest.raises(Exception, match="killed after the sink"):
        stream(spark, foreach_batch=dying, **given).awaitTermination(60)
    side.produce(orders, {0: 500})
    side.commit(etl, orders, {0: 2500})
    applied: list[int] = []

    def sink(frame: DataFrame, number: int) -> None:
        frame.write.mode("overwrite").parquet(f"{target}-{number}")
        applied.append(spark.read.parquet(f"{target}-{number}").count())

    assert stream(spark, foreach_batch=sink, **given).awaitTermination(60)
    assert applied == [2000, 500]


def test_a_native_sink_is_stopped_by_a_loss_that_is_named(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 100})
    side.commit(etl, orders, {0: 10})
    side.delete_before(orders, {0: 60})
    query = stream(
        spark,
        checkpoint=str(tmp_path),
        write=lambda df: df.groupBy("topic").count().writeStream.outputMode("complete").format("noop"),
        trigger=NOW,
        bootstrap=side.bootstrap,
        group=etl,
        topics=orders,
    )
    with pytest.raises(Exception, match=rf"DataLossError: .*{orders}-0 \[10, 60\)"):
        query.awaitTermination(60)
    assert side.committed(etl, orders) == {0: 10}
