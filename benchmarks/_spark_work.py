"""What ``benchmarks.spark`` measures, in a process of its own that is given a job as JSON.

One Spark session for both sources, so that both find its JVM equally warm. A line of JSON a measurement.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._processes import Meter
from ._rows import Figures
from ._spark_rows import BUILT_IN, BY_NAME, CONTRAST, OURS, Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Job = dict[str, Any]
_TIMEOUT_S = 300
#: The unit of processor time in the table.
_PER = 5_000_000


def built_in_frame(spark: SparkSession, job: Job, topic: str) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", job["bootstrap"])
    return reader.option("subscribe", topic).load()


def our_frame(spark: SparkSession, job: Job, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("kohort").option("kafka.bootstrap.servers", job["bootstrap"])
    return reader.options(groupId=_name("batch"), subscribe=topic, **options).load()


def contrast_frame(spark: SparkSession, job: Job, topic: str) -> DataFrame:
    from . import _spark_contrast

    return _spark_contrast.frame(spark, job["bootstrap"], topic)


def batch(frame: DataFrame, job: Job, *, count: bool) -> Figures:
    """A whole topic into ``noop``, as it is or counted."""
    rows = frame.groupBy("key").count() if count else frame
    return _timed(job, lambda: rows.write.format("noop").mode("overwrite").save())


def built_in_stream(spark: SparkSession, job: Job, topic: str) -> Figures:
    """A whole topic by a query that ends with it; its bookkeeping is what Spark says of its two logs."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", job["bootstrap"])
    frame = reader.options(
        subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=str(_per_trigger(job))
    ).load()
    logs: list[float] = []

    def run() -> None:
        with tempfile.TemporaryDirectory() as checkpoint:
            writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
            query = writer.trigger(availableNow=True).start()
            if not query.awaitTermination(_TIMEOUT_S):
                raise RuntimeError("the query did not end")
            done = [each["durationMs"] for each in query.recentProgress if each["numInputRows"]]
            logs.extend(took["walCommit"] + took["commitOffsets"] for took in done)

    return {**_timed(job, run), "bookkeeping_ms": statistics.median(logs)}


def our_stream(spark: SparkSession, job: Job, topic: str) -> Figures:
    """The same by mode B."""
    from kohort.spark import stream

    def run() -> None:
        with tempfile.TemporaryDirectory() as checkpoint:
            query = stream(
                spark,
                checkpoint=checkpoint,
                write=lambda frame: frame.writeStream.format("noop"),
                trigger={"availableNow": True},
                bootstrap=job["bootstrap"],
                group=_name("stream"),
                topics=[topic],
                max_offsets=_per_trigger(job),
            )
            if not query.awaitTermination(_TIMEOUT_S):
                raise RuntimeError("the query did not end")

    return _timed(job, run)


def our_loop(spark: SparkSession, job: Job, topic: str) -> Figures:
    """The same by mode A."""
    from kohort.spark import BatchCommitted, GroupBatches

    told: list[float] = []

    def listen(event: object) -> None:
        if isinstance(event, BatchCommitted):
            told.append((event.plan_seconds + event.commit_seconds) * 1000)

    def run() -> None:
        settings = {"bootstrap": job["bootstrap"], "group": _name("loop"), "topics": [topic]}
        with GroupBatches(spark, on_event=listen, max_offsets=_per_trigger(job), **settings) as batches:
            batches.run(
                lambda each: each.df.write.format("noop").mode("overwrite").save(), trigger="available_now"
            )

    return {**_timed(job, run), "bookkeeping_ms": statistics.median(told)}


def decode(job: Job, topic: str) -> Figures:
    """Bytes of a Fetch into Arrow, checksums included, by processor time of one thread."""
    from kohort.consumer.reading import arrow
    from kohort.protocol import TopicPartition
    from kohort.spark._client import Client, ConnectionOptions
    from kohort.spark._fetch import fetch_records

    client = Client(ConnectionOptions(job["bootstrap"]))
    try:
        fetched = client.run(
            lambda cluster: fetch_records(cluster, TopicPartition(topic, 0), 0, 4 * 1024 * 1024, False)
        )
    finally:
        client.close()
    records = bytes(fetched.records)
    count = sum(each.num_rows for each in arrow.decode(records, topic=topic, partition=0))
    took = []
    for _ in range(max(3, min(50, 1_000_000 // count))):
        began = time.thread_time()
        for _ in arrow.decode(records, topic=topic, partition=0):
            pass
        took.append(time.thread_time() - began)
    return {"k_per_second": count / statistics.median(took) / 1000}


def poll(job: Job, topic: str) -> Figures:
    """A driver loop with nothing to do."""
    from kohort.spark import GroupBatches

    no_session: Any = None
    settings = {"bootstrap": job["bootstrap"], "group": _name("poll"), "topics": [topic]}
    with GroupBatches(no_session, starting_offsets="latest", **settings) as batches:
        took = []
        for _ in range(60):
            began = time.perf_counter()
            if batches.next_batch() is not None:
                raise RuntimeError(f"somebody writes to {topic}")
            took.append((time.perf_counter() - began) * 1000)
    return {"poll_ms": statistics.median(took[10:])}


def measure(spark: SparkSession | None, row: Work, contender: str, job: Job) -> Figures:
    """One row's figures for one contender."""
    topic = f"{job['prefix']}-{row.codec}"
    if not row.jvm:
        return {"decode": decode, "poll": poll}[row.name](job, topic)
    assert spark is not None
    if row.name == "latency":
        from . import _spark_latency

        work = {BUILT_IN: _spark_latency.built_in, OURS: _spark_latency.ours}[contender]
        return work(spark, job)
    if row.name in ("stream", "loop"):
        works = {"stream": our_stream, "loop": our_loop}
        return (built_in_stream if contender == BUILT_IN else works[row.name])(spark, job, topic)
    if row.name == "one_task":
        whole = str(job["records"])
        return batch(our_frame(spark, job, topic, maxRecordsPerPartition=whole), job, count=False)
    frames = {BUILT_IN: built_in_frame, OURS: our_frame, CONTRAST: contrast_frame}
    return batch(frames[contender](spark, job, topic), job, count=row.name.startswith("count"))


def session(job: Job) -> SparkSession:
    from kohort.spark import spark_session

    jars = {"spark.jars": job["jars"]} if job["jars"] else {}
    return spark_session(
        "kohort benchmark",
        master="local[2]",
        **jars,
        **{"spark.log.level": "OFF", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"},
    )


def main() -> int:
    job: Job = json.loads(sys.argv[1])
    rows = [BY_NAME[name] for name in job["rows"]]
    spark = session(job) if any(row.jvm for row in rows) else None
    # the first turn warms the JVM and the workers up, and does not count
    for number in range(-1 if spark else 0, job["rounds"]):
        for row in rows:
            if number < 0 and (row.name == "latency" or not row.jvm):
                continue
            contenders = [OURS] if row.alone or not job["jars"] else [BUILT_IN, OURS]
            last = number == job["rounds"] - 1
            contrast = [CONTRAST] if last and row.contrast and job["jars"] else []
            for contender in contenders[:: 1 if number % 2 == 0 else -1] + contrast:
                figures = measure(spark, row, contender, job)
                line = {"row": row.name, "contender": contender, "round": number, "figures": figures}
                print(json.dumps(line), flush=True)
    if spark is not None:
        spark.stop()
    return 0


def _timed(job: Job, run: Callable[[], object]) -> Figures:
    with Meter() as meter:
        run()
    return {
        "k_per_second": job["records"] / meter.seconds / 1000,
        "cpu_s": meter.cpu_seconds * _PER / job["records"],
    }


def _per_trigger(job: Job) -> int:
    return max(1, -(-int(job["records"]) // int(job["triggers"])))


def _name(what: str) -> str:
    return f"benchmark-{what}-{uuid.uuid4().hex[:10]}"


if __name__ == "__main__":
    sys.exit(main())
