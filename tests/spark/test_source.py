"""``format("kohort")`` and ``stream`` in a real Spark session.

Covers: spark/_query.py, spark/_readers.py, spark/_schema.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kohort.spark import stream
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic
from tests.spark.queries import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

NOW: dict[str, Any] = {"availableNow": True}


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
    at = f"`kafka.bootstrap.servers` '{side.bootstrap}', subscribe '{orders}'"
    spark.sql(f"create temporary view all_of_it using kohort options ({at})")
    assert spark.sql("select count(*) from all_of_it").first() == (2000,)
    spark.catalog.dropTempView("all_of_it")
    assert side.committed(etl, orders) == {0: 500, 1: 700}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"maxOfsets": "5"}, "maxofsets is no option of the source: did you mean"),
        ({"subscribe": "no-such-topic"}, "topic 'no-such-topic' does not exist"),
        ({"schema": "value string"}, "the schema is fixed: key binary, value binary"),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(
    options: dict[str, str], problem: str, spark: SparkSession, side: Side, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders"), group("etl")
    side.commit(etl, orders, {0: 0})
    given = {"kafka.bootstrap.servers": side.bootstrap, "groupId": etl, "subscribe": orders}
    reader = spark.read.format("kohort")
    if "schema" in options:
        reader = reader.schema(options.pop("schema"))
    with pytest.raises(Exception, match=problem):
        reader.options(**given | options).load().count()
    assert side.committed(etl, orders) == {0: 0}


def test_a_native_sink_is_stopped_by_a_loss_that_is_named(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 100})
    side.commit(etl, orders, {0: 10})
    side.delete_before(orders, {0: 60})

    def start() -> StreamingQuery:
        return stream(
            spark,
            checkpoint=str(tmp_path),
            write=lambda df: df.groupBy("topic").count().writeStream.outputMode("complete").format("noop"),
            trigger=NOW,
            bootstrap=side.bootstrap,
            group=etl,
            topics=orders,
        )

    with pytest.raises(Exception, match=rf"DataLossError: .*{orders}-0 \[10, 60\)"):
        run_to_end(start)
    assert side.committed(etl, orders) == {0: 10}
