"""From produce to the values in hand: records come evenly, each tells when it was given to its producer."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from ._brokers import ROOT
from ._load import percentile
from ._rows import Figures
from ._spark_rows import PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Job = dict[str, Any]
_PATIENCE_S = 60.0


class Arrivals:
    """Takes the values of each batch; ``done`` is set with the last record."""

    def __init__(self, expected: int) -> None:
        self._left = expected
        self._first_counted = expected * 3 // 4
        self.milliseconds: list[float] = []
        self.done = threading.Event()

    def take(self, frame: DataFrame) -> None:
        values = frame.select("value").collect()
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        for (value,) in values:
            if self._left <= self._first_counted:
                self.milliseconds.append((now - int(value)) / 1e6)
            self._left -= 1
        if self._left <= 0:
            self.done.set()

    def figures(self) -> Figures:
        return {
            "p50_ms": percentile(self.milliseconds, 0.5),
            "p99_ms": percentile(self.milliseconds, 0.99),
        }


def built_in(spark: SparkSession, job: Job) -> Figures:
    """A query without a trigger of its own, which is the quickest there is."""
    topic = _new_topic(job)
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", job["bootstrap"])
    frame = reader.options(subscribe=topic, startingOffsets="earliest").load()
    arrivals = Arrivals(_count(job))
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = frame.writeStream.foreachBatch(lambda part, _: arrivals.take(part))
        query = writer.option("checkpointLocation", checkpoint).start()
        try:
            while query.isActive and query.status["message"] != "Waiting for data to arrive":
                time.sleep(0.05)
            _wait(arrivals, _producer(job, topic))
        finally:
            query.stop()
    return arrivals.figures()


def ours(spark: SparkSession, job: Job) -> Figures:
    """A driver loop."""
    from kohort.spark import GroupBatches

    topic = _new_topic(job)
    arrivals = Arrivals(_count(job))
    settings = {"bootstrap": job["bootstrap"], "group": topic, "topics": [topic]}
    with GroupBatches(spark, **settings) as batches:
        producer = _producer(job, topic)

        def take(batch: Any) -> None:
            arrivals.take(batch.df)
            if arrivals.done.is_set():
                batches.stop()

        batches.run(take)
    _wait(arrivals, producer)
    return arrivals.figures()


def _wait(arrivals: Arrivals, producer: subprocess.Popen[bytes]) -> None:
    code = producer.wait(_PATIENCE_S * 5)
    if code or not arrivals.done.wait(_PATIENCE_S):
        raise RuntimeError(f"not all records came (the producer ended with {code})")


def _count(job: Job) -> int:
    return int(job["arrival_s"] * job["per_second"])


def _producer(job: Job, topic: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks._spark_latency", job["bootstrap"], topic]
    return subprocess.Popen([*command, str(_count(job)), str(job["per_second"])], cwd=ROOT)


def _new_topic(job: Job) -> str:
    import asyncio

    from kohort.consumer import Cluster

    name = f"arrivals-{uuid.uuid4().hex[:10]}"

    async def create() -> None:
        async with Cluster(job["bootstrap"]) as cluster:
            await cluster.create_topics({name: PARTITIONS})

    asyncio.run(create())
    return name


def produce(bootstrap: str, topic: str, records: int, per_second: int) -> None:
    """Records at an even pace, each sent at once, to one partition after the other."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    producer.list_topics(topic, timeout=20)
    began = time.monotonic()
    for number in range(records):
        wait = began + number / per_second - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        stamp = b"%d" % time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        producer.produce(topic, stamp, key=b"%08d" % number, partition=number % PARTITIONS)
        producer.poll(0)
    if left := producer.flush(60):
        raise RuntimeError(f"{left} records could not be written")


if __name__ == "__main__":
    produce(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
