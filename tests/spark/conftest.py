"""A cluster to drive batches from, as seen by others; one Spark session for all tests that need one."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from kohort.consumer import LATEST, Cluster, CommittedOffset
from kohort.protocol import TopicPartition
from kohort.spark import GroupBatches
from kohort.spark._client import Client, ConnectionOptions
from tests.spark.loops import NO_SPARK, Driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: Spark starts processes for each query; on a busy machine that takes its time.
SPARK_TIMEOUT_SECONDS = 1500


@pytest.fixture
def new_topic(new_topic: Callable[..., str]) -> Callable[..., str]:
    """Topics of records of any time: by default a broker deletes old ones, at any moment."""
    return partial(new_topic, retention_ms="-1")


class Side:
    """What producers, operators and tools do to the cluster while a driver runs."""

    def __init__(self, bootstrap: str) -> None:
        from kafka import KafkaProducer

        self.bootstrap = bootstrap
        self.client = Client(ConnectionOptions(bootstrap, "test-side"))
        self._producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5)

    def close(self) -> None:
        self._producer.close()
        self.client.close()

    def produce(
        self, topic: str, counts: Mapping[int, int], value: Callable[[int], bytes] = b"%d".__mod__
    ) -> None:
        """Append so many records to each partition; the n-th has key ``n`` and ``value(n)``."""
        sent = [
            self._producer.send(topic, key=b"%d" % n, value=value(n), partition=partition)
            for partition, count in counts.items()
            for n in range(count)
        ]
        self._producer.flush()
        for future in sent:
            future.get(timeout=30)

    def send(self, topic: str, **record: Any) -> None:
        self._producer.send(topic, **record).get(timeout=30)

    def commit(self, group: str, topic: str, offsets: Mapping[int, int], metadata: str = "") -> None:
        """As an operator's reset does: without metadata unless given."""
        values = {
            TopicPartition(topic, p): CommittedOffset(at, metadata=metadata) for p, at in offsets.items()
        }
        self.client.run(lambda cluster: cluster.commit(group, values))

    def committed(self, group: str, topic: str) -> dict[int, int]:
        found = self.client.run(lambda cluster: cluster.committed(group))
        return {partition.partition: at.offset for partition, at in found.items() if partition.topic == topic}

    def lag(self, group: str, topic: str) -> int:
        async def ask(cluster: Cluster) -> int:
            await cluster.metadata([topic])
            ends = await cluster.list_offsets(dict.fromkeys(cluster.known_metadata.partitions(topic), LATEST))
            commits = await cluster.committed(group)
            return sum(end.offset - commits[partition].offset for partition, end in ends.items())

        return self.client.run(ask)

    def delete_group(self, group: str) -> None:
        from kafka import KafkaAdminClient

        with KafkaAdminClient(bootstrap_servers=self.bootstrap) as admin:
            admin.delete_groups([group])

    def delete_before(self, topic: str, offsets: Mapping[int, int]) -> None:
        """As retention does."""
        from kafka import KafkaAdminClient
        from kafka.structs import TopicPartition as KafkaPartition

        with KafkaAdminClient(bootstrap_servers=self.bootstrap) as admin:
            admin.delete_records({KafkaPartition(topic, p): before for p, before in offsets.items()})


@pytest.fixture(scope="session")
def side(bootstrap: str) -> Iterator[Side]:
    side = Side(bootstrap)
    yield side
    side.close()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from kohort.spark import spark_session

    # py4j waits by select, which takes no descriptor from 1,024 on: those of tests before go now
    gc.collect()
    session = spark_session(
        "kohort tests",
        master="local[2]",
        **{
            "spark.log.level": "OFF",
            # Spark gives its Python processes 15 seconds to begin, which a busy machine does not keep
            "spark.python.authenticate.socketTimeout": "10m",
            "spark.sql.shuffle.partitions": "2",
            # not UTC: times must not move with the session
            "spark.sql.session.timeZone": "America/New_York",
        },
    )
    yield session
    session.stop()


@pytest.fixture
def driver(bootstrap: str) -> Iterator[Driver]:
    """``driver(group, *topics, **options)``: a loop that is closed after the test."""
    made: list[GroupBatches] = []

    def make(group: str, *topics: str, **options: Any) -> GroupBatches:
        options = {"topics": topics, **options}
        made.append(GroupBatches(NO_SPARK, bootstrap=bootstrap, group=group, **options))
        return made[-1]

    yield make
    for batches in made:
        batches.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """``pytest.mark.pyspark("4.2")``: skipped with an older one."""
    for item in items:
        if item.get_closest_marker("spark") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT_SECONDS))
        marked = item.get_closest_marker("pyspark")
        if marked is None:
            continue
        import pyspark

        needed = marked.args[0]
        if [int(part) for part in pyspark.__version__.split(".")[:2]] < [
            int(part) for part in needed.split(".")
        ]:
            item.add_marker(pytest.mark.skip(reason=f"needs PySpark {needed}, not {pyspark.__version__}"))
