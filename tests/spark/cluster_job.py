"""A job for spark-submit whose executors share neither disk nor process with it: run by test_executors.py.

Its argument is JSON; it prints one line of JSON, and everything that Spark would show to people.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 4_000


def where(_: Iterable[int]) -> Iterator[tuple[str, str]]:
    """On an executor: where its kohort is from, and where it runs."""
    import kohort

    yield str(kohort.__file__), os.getcwd()


def summed(frame: DataFrame) -> list[int]:
    """Rows, and the sum of their values."""
    rows, total = frame.selectExpr("count(*)", "sum(cast(cast(value as string) as bigint))").collect()[0]
    return [rows, total]


def driver_loop(spark: SparkSession, job: dict[str, Any]) -> list[list[int]]:
    from kohort.spark import GroupBatches

    seen = []
    options: dict[str, Any] = {**job["security"], "group": job["group"], "topics": job["topic"]}
    with GroupBatches(
        spark, bootstrap=job["bootstrap"], read_on_driver_below=0, min_tasks=2, **options
    ) as batches:

        def write(batch: Any) -> None:
            batch.df.explain(True)
            seen.append(summed(batch.df))

        batches.run(write, trigger="available_now")
    return seen


def query(spark: SparkSession, job: dict[str, Any]) -> list[list[int]]:
    from kohort.spark import stream

    seen = []

    def write(frame: DataFrame, _: int) -> None:
        frame.explain(True)
        seen.append(summed(frame))

    running = stream(
        spark,
        checkpoint=job["checkpoint"],
        foreach_batch=write,
        trigger={"availableNow": True},
        bootstrap=job["bootstrap"],
        group=job["group"] + "-query",
        topics=job["topic"],
        minPartitions="2",
        **job["security"],
    )
    running.awaitTermination()
    running.explain(True)
    print(running.lastProgress)
    return seen


def from_topic(spark: SparkSession, job: dict[str, Any], topic: str) -> DataFrame:
    reader = spark.read.format("kohort").option("kafka.bootstrap.servers", job["bootstrap"])
    return reader.options(**job["options"], groupId=job["group"] + "-read", subscribe=topic).load()


def read(spark: SparkSession, job: dict[str, Any]) -> list[list[int]]:
    frame = from_topic(spark, job, job["topic"])
    frame.createOrReplaceTempView("orders")
    spark.sql("explain formatted select * from orders").show(truncate=False)
    print(frame._jdf.queryExecution().toString())
    return [summed(frame)]


def written(spark: SparkSession, job: dict[str, Any]) -> list[list[int]]:
    """By two tasks, and once more with a number that the ledger has; what is in the topic then."""
    rows = spark.range(0, ROWS, 1, 2).selectExpr("cast(id as string) as value")
    for _ in range(2):
        writer = rows.write.format("kohort").mode("append").options(**job["options"], topic=job["out"])
        writer = writer.option("kafka.bootstrap.servers", job["bootstrap"])
        writer.options(ledgerGroup=job["group"] + "-ledger", batchKey="0").save()
    return [summed(from_topic(spark, job, job["out"]))]


def shown(spark: SparkSession) -> None:
    """The pages and the documents of the UI."""
    base = spark.sparkContext.uiWebUrl
    application = spark.sparkContext.applicationId
    pages = ["/environment/", "/SQL/", "/jobs/", "/stages/", "/StreamingQuery/"]
    pages += [f"/SQL/execution/?id={number}" for number in range(5)]
    pages += [f"/api/v1/applications/{application}/sql?details=true&planDescription=true&length=100"]
    pages += [f"/api/v1/applications/{application}/environment"]
    for page in pages:
        with urllib.request.urlopen(f"{base}{page}", timeout=60) as answer:
            print(answer.read().decode())


def main() -> None:
    from pyspark.sql import SparkSession

    from kohort.spark import register

    job = json.loads(sys.argv[1])
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    found = {
        "executors": spark.sparkContext.parallelize(range(8), 8).mapPartitions(where).collect(),
        "loop": driver_loop(spark, job),
        "query": query(spark, job),
        "read": read(spark, job),
        "written": written(spark, job),
    }
    shown(spark)
    spark.stop()
    print("FOUND", json.dumps(found))


if __name__ == "__main__":
    main()
