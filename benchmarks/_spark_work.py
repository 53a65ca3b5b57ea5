"""What ``benchmarks.spark`` measures, in a process of its own that is given a job as JSON.

One Spark session for both sources, so that both find its JVM equally warm. A line of JSON a measurement.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ._processes import Meter
from ._rows import Figures
from ._spark_rows import BUILT_IN, BY_NAME, CONTRAST, LEDGER, OURS, PARTITIONS, Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Job = dict[str, Any]
_TIMEOUT_S = 300
#: The unit of processor time in the table.
_PER = 5_000_000
#: Partitions of a topic of the planned ones; plans, of which the first does not count.
_PER_TOPIC, _PLANS = 1_000, 5


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
    return _timed(rows.write.format("noop").mode("overwrite").save, job["records"])


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

    return {**_timed(run, job["records"]), "bookkeeping_ms": statistics.median(logs)}


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

    return _timed(run, job["records"])


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

    return {**_timed(run, job["records"]), "bookkeeping_ms": statistics.median(told)}


def sink(spark: SparkSession, job: Job, contender: str, *, ledger: bool) -> Figures:
    """Rows that Spark makes into a new topic."""
    value = "cast(lpad(cast(id as string), 100, 'x') as binary) as value"
    rows = spark.range(0, job["sink_rows"], 1, PARTITIONS)
    frame = rows.selectExpr("cast(lpad(cast(id % 1000 as string), 8, '0') as binary) as key", value)
    writer = frame.write.format("kafka" if contender == BUILT_IN else "kohort").mode("append")
    with _topics(job["bootstrap"], {f"{job['prefix']}-{_name('sink')}": PARTITIONS}) as (topic,):
        writer = writer.option("kafka.bootstrap.servers", job["bootstrap"]).option("topic", topic)
        if ledger and contender == OURS:
            # ids of transactions stay the same from batch to batch, as in a job
            group = f"{job['prefix']}-{LEDGER}"
            writer = writer.options(ledgerGroup=group, batchKey=_name("key"), transactions="required")
        return _timed(writer.save, job["sink_rows"])


def built_in_fixed(spark: SparkSession, job: Job, topic: str) -> Figures:
    """A query's batches of few records: what Spark says of their whole time."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", job["bootstrap"])
    frame = reader.options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="100").load()
    with tempfile.TemporaryDirectory() as checkpoint:
        query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
        try:
            deadline = time.monotonic() + _TIMEOUT_S
            while len(done := query.recentProgress) < job["batches"]:
                if time.monotonic() > deadline or not query.isActive:
                    raise RuntimeError("the query makes no batches")
                time.sleep(0.05)
        finally:
            query.stop()
    return {"fixed_s": statistics.median(each["durationMs"]["triggerExecution"] for each in done[5:]) / 1000}


def our_fixed(spark: SparkSession, job: Job, topic: str) -> Figures:
    """The loop's batches of few records, from the look to the end of the commit."""
    from kohort.spark import GroupBatches

    took: list[float] = []
    settings = {"bootstrap": job["bootstrap"], "group": _name("fixed"), "topics": [topic]}
    with GroupBatches(spark, max_offsets=100, **settings) as batches:
        for _ in range(job["batches"]):
            began = time.perf_counter()
            batch = batches.next_batch()
            if batch is None:
                raise RuntimeError("there are fewer records than the batches need")
            batch.df.write.format("noop").mode("overwrite").save()
            batch.commit()
            took.append(time.perf_counter() - began)
    return {"fixed_s": statistics.median(took[5:])}


def plan(job: Job) -> Figures:
    """A batch of very many partitions, from the look to the intent, several times."""
    from confluent_kafka import Producer

    from kohort.spark import GroupBatches

    no_session: Any = None
    count = min(job["partitions"], _PER_TOPIC)
    wanted = {f"{job['prefix']}-many-{nth}": count for nth in range(job["partitions"] // count)}
    took, worked = [], []
    with _topics(job["bootstrap"], wanted) as topics:
        producer = Producer({"bootstrap.servers": job["bootstrap"], "linger.ms": 100})
        settings = {"bootstrap": job["bootstrap"], "group": _name("plan"), "topics": topics}
        with GroupBatches(no_session, read_on_driver_below=0, **settings) as batches:
            for _ in range(_PLANS):
                for topic in topics:
                    for partition in range(count):
                        producer.produce(topic, b"one", partition=partition)
                    producer.poll(0)
                if producer.flush(_TIMEOUT_S):
                    raise RuntimeError("not all records could be written")
                began, before = time.perf_counter(), time.process_time()
                batch = batches.next_batch()
                took.append(time.perf_counter() - began)
                worked.append(time.process_time() - before)
                if batch is None:
                    raise RuntimeError("the records are not there")
                batch.commit()
    return {"plan_s": statistics.median(took[1:]), "plan_cpu_s": statistics.median(worked[1:])}


@contextmanager
def _topics(bootstrap: str, topics: Mapping[str, int]) -> Iterator[list[str]]:
    """New topics, which are deleted in the end."""
    from kohort.consumer import Cluster

    async def create() -> None:
        async with Cluster(bootstrap, default_api_timeout_ms=_TIMEOUT_S * 1000) as cluster:
            # one at a time: Apache Kafka creates no more than 10,000 partitions by one request
            for topic, count in topics.items():
                await cluster.create_topics({topic: count})

    async def delete() -> None:
        async with Cluster(bootstrap, default_api_timeout_ms=_TIMEOUT_S * 1000) as cluster:
            await cluster.delete_topics(topics)

    asyncio.run(create())
    try:
        yield list(topics)
    finally:
        asyncio.run(delete())


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
    topic = f"{job['prefix']}-{row.data}"
    if row.name == "plan":
        return plan(job)
    if not row.jvm:
        return {"decode": decode, "poll": poll}[row.name](job, topic)
    assert spark is not None
    if row.name == "latency":
        from . import _spark_latency

        work = {BUILT_IN: _spark_latency.built_in, OURS: _spark_latency.ours}[contender]
        return work(spark, job)
    kind = row.name.partition("_")[0]
    if kind == "sink":
        return sink(spark, job, contender, ledger=row.name.endswith(LEDGER))
    works = {"stream": our_stream, "loop": our_loop, "fixed": our_fixed}
    if kind in works:
        theirs = built_in_fixed if kind == "fixed" else built_in_stream
        return (theirs if contender == BUILT_IN else works[kind])(spark, job, topic)
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


def _timed(run: Callable[[], object], records: int) -> Figures:
    with Meter() as meter:
        run()
    return {
        "k_per_second": records / meter.seconds / 1000,
        "cpu_s": meter.cpu_seconds * _PER / records,
    }


def _per_trigger(job: Job) -> int:
    return max(1, -(-int(job["records"]) // int(job["triggers"])))


def _name(what: str) -> str:
    return f"benchmark-{what}-{uuid.uuid4().hex[:10]}"


if __name__ == "__main__":
    sys.exit(main())
