"""Batches as DataFrames, in a real Spark session."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kohort.consumer.reading import arrow
from kohort.spark import Batch, GroupBatches, _dataframes
from tests.spark.conftest import Side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

NewTopic = Callable[..., str]
Named = Callable[[str], str]

BY_TASKS: dict[str, Any] = {"read_on_driver_below": 0}
ON_DRIVER: dict[str, Any] = {"read_on_driver_below": 10**9}


def rows(batch: Batch) -> list[dict[str, Any]]:
    """Without Spark's Row and bytearray, by partition and offset."""
    return [row.asDict(recursive=True) for row in batch.df.orderBy("partition", "offset").collect()]


@pytest.mark.parametrize("how", [BY_TASKS, ON_DRIVER], ids=["by tasks", "on the driver"])
@pytest.mark.parametrize("include_headers", [False, True])
def test_columns_are_those_of_the_built_in_source(
    how: dict[str, Any],
    include_headers: bool,
    spark: SparkSession,
    side: Side,
    new_topic: NewTopic,
    group: Named,
) -> None:
    orders = new_topic("orders", partitions=1)
    headers = [("trace", b"\x01"), ("empty", b"")]
    side.send(orders, key=b"k", value=None, partition=0, timestamp_ms=1_700_000_000_123, headers=headers)
    with GroupBatches(
        spark,
        bootstrap=side.bootstrap,
        group=group("etl"),
        topics=[orders],
        include_headers=include_headers,
        **how,
    ) as batches:
        batch = batches.next_batch()
        assert batch is not None
        types = [
            "key binary",
            "value binary",
            "topic string",
            "partition int",
            "offset bigint",
            "timestamp timestamp",
            "timestampType int",
            "headers array<struct<key:string,value:binary>>",
        ]
        names_and_types = [" ".join(pair) for pair in batch.df.dtypes]
        assert names_and_types == types[: 8 if include_headers else 7]
        shown = batch.df.selectExpr("*", "cast(timestamp as string) as local", "unix_millis(timestamp) as ms")
        row = shown.collect()[0].asDict(recursive=True)
    assert (row["key"], row["value"], row["topic"], row["partition"], row["offset"]) == (
        b"k",
        None,
        orders,
        0,
        0,
    )
    # 22:13:20 UTC in the session's New York
    assert (row["ms"], row["local"]) == (1_700_000_000_123, "2023-11-14 17:13:20.123")
    if include_headers:
        assert row["headers"] == [{"key": "trace", "value": b"\x01"}, {"key": "empty", "value": b""}]


def test_few_records_that_are_large_are_left_to_tasks(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_dataframes, "MAX_DRIVER_BYTES", 50_000)
    orders = new_topic("orders", partitions=1)
    side.produce(orders, {0: 10}, value=lambda _: bytes(10_000))
    with GroupBatches(
        spark, bootstrap=side.bootstrap, group=group("etl"), topics=[orders], **ON_DRIVER
    ) as batches:
        batch = batches.next_batch()
        assert batch is not None
        assert batch.df.count() == 10
        assert "MapInArrow" in batch.df._jdf.queryExecution().toString()


@pytest.mark.pyspark("4.0")
def test_rows_are_those_of_create_dataframe(spark: SparkSession) -> None:
    at = datetime.datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=datetime.UTC)
    row: dict[str, Any] = {"key": b"k", "value": None, "topic": "t", "partition": 1, "offset": 7}
    row |= {"timestamp": at, "timestampType": 0}
    row |= {"headers": [{"key": "trace", "value": b"1"}, {"key": "none", "value": None}]}
    schema = arrow.SCHEMA_WITH_HEADERS
    batches = [pa.RecordBatch.from_pylist(rows, schema=schema) for rows in ([row, row], [], [row])]
    quick, other = _dataframes.DriverFrames(spark), _dataframes.DriverFrames(spark)
    frame = quick.frame(batches, schema)
    assert quick.frame([], schema).collect() == []
    assert quick._quick is not None
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        slow = other.frame(batches, schema)
        assert other._quick is None
        assert frame.collect() == slow.collect()
        assert frame.schema == slow.schema
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")


def test_several_tasks_and_several_ranges_give_each_record_once(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named
) -> None:
    orders = new_topic("orders", partitions=3)
    side.produce(orders, {0: 700, 1: 5, 2: 300})
    options = {"bootstrap": side.bootstrap, "topics": [orders], "min_tasks": 4, **BY_TASKS}
    with GroupBatches(spark, group=group("etl"), **options) as batches:
        batch = batches.next_batch()
        assert batch is not None
        assert batch.df.rdd.getNumPartitions() == 4
        read = [(row["partition"], row["offset"]) for row in rows(batch)]
    assert read == [(partition, n) for partition, count in ((0, 700), (1, 5), (2, 300)) for n in range(count)]


def test_available_now_reads_8000_in_4_batches_and_leaves_no_lag(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=4), group("etl")
    side.produce(orders, dict.fromkeys(range(4), 2000))
    target = str(tmp_path / "orders.parquet")

    def sink(batch: Batch) -> None:
        batch.df.write.mode("append").parquet(target)

    with GroupBatches(
        spark, bootstrap=side.bootstrap, group=etl, topics=[orders], max_offsets=2000
    ) as batches:
        assert batches.run(sink, trigger="available_now") == 4
        assert batches.next_batch() is None
    assert side.lag(etl, orders) == 0
    written = spark.read.parquet(target)
    assert (written.count(), written.select("partition", "offset").distinct().count()) == (8000, 8000)


KILLED_JOB = """
    import json, os, signal, sys
    from kohort.spark import GroupBatches, spark_session

    bootstrap, group, topic, ledger = sys.argv[1:]
    spark = spark_session("killed", master="local[1]", **{"spark.log.level": "OFF"})

    def sink(batch):
        rows = sorted((row.partition, row.offset) for row in batch.df.select("partition", "offset").collect())
        with open(ledger, "a") as file:
            file.write(json.dumps({"number": batch.number, "rows": rows}) + "\\n")
        if batch.number == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    batches = GroupBatches(spark, bootstrap=bootstrap, group=group, topics=[topic], max_offsets=2000)
    batches.run(sink, trigger="available_now")
"""


@pytest.mark.slow(40)
def test_killed_between_sink_and_commit_it_repeats_the_same_range_and_loses_nothing(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 4000, 1: 4000})
    ledger = tmp_path / "ledger"
    job = tmp_path / "job.py"
    job.write_text(textwrap.dedent(KILLED_JOB))
    done = subprocess.run(
        [sys.executable, str(job), side.bootstrap, etl, orders, str(ledger)],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    applied = {row["number"]: row["rows"] for row in map(json.loads, ledger.read_text().splitlines())}
    assert list(applied) == [0, 1, 2]
    assert side.committed(etl, orders) == {0: 2000, 1: 2000}

    side.produce(orders, {0: 6000, 1: 6000})
    replayed: list[int] = []

    def sink(batch: Batch) -> None:
        again = [[row["partition"], row["offset"]] for row in rows(batch)]
        if batch.number in applied:
            assert batch.replayed
            assert applied[batch.number] == again
            replayed.append(batch.number)
        applied[batch.number] = again

    with GroupBatches(spark, bootstrap=side.bootstrap, group=etl, topics=[orders]) as batches:
        batches.run(sink, trigger="available_now")
    assert replayed == [2]
    everything = sorted(tuple(place) for places in applied.values() for place in places)
    assert everything == [(partition, offset) for partition in (0, 1) for offset in range(10_000)]
    assert side.lag(etl, orders) == 0


def test_an_error_while_reading_in_a_task_reaches_the_driver_and_leaves_the_offsets(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 100})
    with GroupBatches(spark, bootstrap=side.bootstrap, group=etl, topics=[orders], **BY_TASKS) as batches:
        batch = batches.next_batch()
        assert batch is not None
        side.delete_before(orders, {0: 60})
        with pytest.raises(Exception, match=rf"DataLossError: .*{orders}-0 \[0, 60\)"):
            batch.df.count()
    assert side.committed(etl, orders) == {0: 0}
