"""What the driver loop, driven from committed offsets, must show: points 1 to 10, without a JVM but for 1."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaAdminClient
from kafka.errors import InconsistentGroupProtocolError

from kohort.protocol import TopicPartition
from kohort.spark import Batch, BatchCommitted, CommitRefused, DataLossError, Event, OffsetRange, OffsetsLost
from kohort.spark._client import ConnectionOptions
from kohort.spark._fetch import ReadTask, read_task
from tests.broker_process import BrokerProcess
from tests.kafka_python import group_consumer
from tests.spark.conftest import Side
from tests.spark.loops import NO_SPARK, Driver, Named, NewTopic, bounds, next_of
from tests.spark.test_driver_refusals import member_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("read_on_driver_below", [0, 10_000], ids=["by tasks", "on the driver"])
def test_point_1_the_first_batch_has_the_800_rows_from_500_and_700_on(
    read_on_driver_below: int, spark: SparkSession, side: Side, new_topic: NewTopic, group: Named
) -> None:
    from kohort.spark import GroupBatches

    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 1000, 1: 1000})
    side.commit(etl, orders, {0: 500, 1: 700})
    with GroupBatches(
        spark,
        bootstrap=side.bootstrap,
        group=etl,
        topics=orders,
        read_on_driver_below=read_on_driver_below,
    ) as batches:
        batch = next_of(batches)
        rows = [(row["partition"], row["offset"]) for row in batch.df.select("partition", "offset").collect()]
    assert sorted(rows) == [(0, n) for n in range(500, 1000)] + [(1, n) for n in range(700, 1000)]
    assert (batch.number, batch.replayed, batch.lag) == (0, False, 0)


@pytest.mark.kafka
def test_point_2_in_20_batches_the_group_stands_at_the_start_while_the_sink_runs_and_then_at_the_end(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 300, 1: 100})
    batches = driver(etl, orders, max_offsets=20)
    for number in range(20):
        batch = next_of(batches)
        assert batch.number == number
        before = side.committed(etl, orders)
        batch.commit()
        # within 0 ms: the commit has been answered
        after = side.committed(etl, orders)
        for partition, (start, end) in bounds(batch).items():
            assert (before[partition], after[partition]) == (start, end)
    assert batches.next_batch() is None
    assert side.lag(etl, orders) == 0


@pytest.mark.kafka
def test_point_3_available_now_takes_8000_in_4_batches_and_leaves_no_lag(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=4), group("etl")
    side.produce(orders, dict.fromkeys(range(4), 2000))
    sizes: list[int] = []

    def sink(batch: Batch) -> None:
        sizes.append(sum(span.offsets for span in batch.ranges))

    assert driver(etl, orders, max_offsets=2000).run(sink, trigger="available_now") == 4
    assert sizes == [2000] * 4
    assert side.lag(etl, orders) == 0


DIES_AFTER_THE_SINK_OF_BATCH_3 = """
import os, signal, sys
from kohort.spark import GroupBatches

bootstrap, group, topic = sys.argv[1:]
with GroupBatches(None, bootstrap=bootstrap, group=group, topics=topic, max_offsets=2000) as batches:
    for batch in batches:
        if batch.number == 3:
            print(*(f"{span.partition}:{span.start}-{span.end}" for span in batch.ranges), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        batch.commit()
"""


@pytest.mark.kafka
def test_point_5_batch_3_of_2000_rows_killed_after_its_sink_is_the_same_with_12000_more(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 5000, 1: 3000})
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(DIES_AFTER_THE_SINK_OF_BATCH_3))
    job = subprocess.run(
        [sys.executable, str(script), side.bootstrap, etl, orders],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert job.returncode == -9, job.stderr
    side.produce(orders, {0: 12_000})
    replayed = next_of(driver(etl, orders))  # other limits change nothing
    assert (replayed.number, replayed.replayed) == (3, True)
    assert " ".join(f"{s.partition}:{s.start}-{s.end}" for s in replayed.ranges) == job.stdout.strip()
    assert sum(span.offsets for span in replayed.ranges) == 2000
    assert replayed.lag == 12_000


@pytest.mark.kafka
def test_point_7_while_a_stranger_is_in_the_group_commits_are_refused_and_then_lag_goes_to_0(
    bootstrap: str, side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    side.commit(etl, orders, {0: 0})
    events: list[Event] = []
    refused = threading.Event()

    def note(event: Event) -> None:
        events.append(event)
        if isinstance(event, CommitRefused):
            refused.set()

    batches = driver(etl, orders, on_event=note)
    done: list[int] = []
    with member_of(bootstrap, etl, orders):
        running = threading.Thread(
            target=lambda: done.append(batches.run(lambda _: None, trigger="available_now"))
        )
        running.start()
        assert refused.wait(60)
        assert side.lag(etl, orders) == 10
    running.join(60)
    assert done == [1]
    assert side.lag(etl, orders) == 0
    kinds = [type(event) for event in events]
    assert kinds[-1] is BatchCommitted
    assert set(kinds[:-1]) == {CommitRefused}


@pytest.mark.kafka
def test_point_7_in_exclusive_mode_a_consumer_with_range_gets_error_23(
    bootstrap: str, side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    batch = next_of(driver(etl, orders, group_mode="exclusive"))
    consumer = group_consumer(
        orders,
        etl,
        bootstrap_servers=bootstrap,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    with pytest.raises(InconsistentGroupProtocolError) as refused:
        consumer.poll(timeout_ms=60_000)
    assert refused.value.errno == 23
    consumer.close()
    batch.commit()
    assert side.lag(etl, orders) == 0


@pytest.mark.kafka
def test_point_8_what_retention_took_is_named_and_500_stays_or_1200_are_read_and_300_are_lost(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 2000})
    side.commit(etl, orders, {0: 500})
    side.delete_before(orders, {0: 800})
    with pytest.raises(DataLossError, match=rf"{orders}-0 \[500, 800\)"):
        driver(etl, orders).next_batch()
    assert side.committed(etl, orders) == {0: 500}

    events: list[Event] = []
    batch = next_of(driver(etl, orders, fail_on_data_loss=False, on_event=events.append))
    lost = (OffsetRange(orders, 0, 500, 800),)
    assert bounds(batch) == {0: (800, 2000)}
    assert batch.lost == lost
    assert sum(span.offsets for span in lost) == 300
    assert events == [OffsetsLost(etl, lost)]
    assert sum(one.num_rows for one in rows_of(side, batch)) == 1200


@contextmanager
def eager_cleaner(folder: Path) -> Iterator[Side]:
    """A broker that compacts at once."""
    broker = BrokerProcess(folder, data=None, settings={"log.cleaner.backoff.ms": "20"})
    broker.start()
    try:
        side = Side(broker.bootstrap)
        try:
            yield side
        finally:
            side.close()
    finally:
        broker.stop()


def test_point_8_gaps_that_compaction_left_raise_nothing(tmp_path: Path) -> None:
    from kohort.spark import GroupBatches

    with eager_cleaner(tmp_path) as side:
        configs = {"cleanup.policy": "compact", "segment.bytes": "300", "min.cleanable.dirty.ratio": "0.01"}
        side.client.run(lambda cluster: cluster.create_topics({"table": 1}, configs=configs))
        for n in range(80):
            side.send("table", key=b"%d" % (n % 5), value=b"%d" % n, partition=0)

        def rows() -> int:
            whole = OffsetRange("table", 0, 0, 80)
            found = read_task(ReadTask(ConnectionOptions(side.bootstrap), (whole,)))
            return sum(one.num_rows for one in found)

        deadline = time.monotonic() + 60
        while rows() > 40:
            assert time.monotonic() < deadline
        read = 0
        with GroupBatches(
            NO_SPARK,
            bootstrap=side.bootstrap,
            group="etl",
            topics="table",
            max_offsets=30,
        ) as batches:
            while (batch := batches.next_batch()) is not None:
                assert batch.lost == ()
                read += sum(one.num_rows for one in rows_of(side, batch))
                batch.commit()
        assert 5 <= read <= 40
        assert side.lag("etl", "table") == 0


def rows_of(side: Side, batch: Batch) -> Iterator[pa.RecordBatch]:
    return read_task(ReadTask(ConnectionOptions(side.bootstrap), batch.ranges))


@pytest.mark.kafka
def test_point_9_a_partition_that_is_added_is_read_from_its_first_record_within_2_batches(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 5})
    batches = driver(etl, orders, metadata_max_age_ms=1)
    next_of(batches).commit()
    with KafkaAdminClient(bootstrap_servers=side.bootstrap) as admin:
        admin.create_partitions({orders: 2})
    producer = Side(side.bootstrap)  # one that has not heard of the topic with one partition
    try:
        producer.produce(orders, {1: 7})
    finally:
        producer.close()
    side.produce(orders, {0: 1})
    read: dict[int, tuple[int, int]] = {}
    for _ in range(2):
        batch = batches.next_batch()
        if batch is not None:
            read |= bounds(batch)
            batch.commit()
    assert read == {0: (5, 6), 1: (0, 7)}


@pytest.mark.kafka
def test_point_9_lags_of_100_and_2000_share_batches_of_at_most_501_and_neither_starves(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 100, 1: 2000})
    batches = driver(etl, orders, max_offsets=500)
    left = {0: 100, 1: 2000}
    while (batch := batches.next_batch()) is not None:
        assert sum(span.offsets for span in batch.ranges) <= 501
        assert bounds(batch).keys() == {partition for partition, lag in left.items() if lag}
        for span in batch.ranges:
            left[span.partition] -= span.offsets
        batch.commit()
    assert left == {0: 0, 1: 0}


@pytest.mark.kafka
def test_point_10_other_clients_admins_list_the_group_with_its_lag(
    side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions
    from confluent_kafka import TopicPartition as Place
    from confluent_kafka.admin import AdminClient, OffsetSpec
    from kafka.structs import TopicPartition as KafkaPartition

    orders, etl = new_topic("orders", partitions=2), group("etl")
    side.produce(orders, {0: 100, 1: 20})
    batch = next_of(driver(etl, orders, max_offsets=60))
    batch.commit()
    expected = {0: 100 - batch.ranges[0].end, 1: 20 - batch.ranges[1].end}
    assert sum(expected.values()) == 60

    with KafkaAdminClient(bootstrap_servers=side.bootstrap) as kafka_python:
        assert etl in {row["group_id"] for row in kafka_python.list_groups()}
        offsets = kafka_python.list_group_offsets([etl])[etl]
    ends = ends_of(side, orders)
    assert {p: ends[p] - offsets[KafkaPartition(orders, p)].offset for p in ends} == expected

    confluent = AdminClient({"bootstrap.servers": side.bootstrap})
    listed = confluent.list_consumer_groups().result(60)
    assert etl in {one.group_id for one in listed.valid}
    asked = ConsumerGroupTopicPartitions(etl, [Place(orders, 0), Place(orders, 1)])
    committed = confluent.list_consumer_group_offsets([asked])[etl].result(60).topic_partitions
    latest = confluent.list_offsets({Place(orders, p): OffsetSpec.latest() for p in (0, 1)})
    newest = {place.partition: found.result(60).offset for place, found in latest.items()}
    assert {one.partition: newest[one.partition] - one.offset for one in committed} == expected


def ends_of(side: Side, topic: str) -> dict[int, int]:
    from kohort.consumer import LATEST

    places = [TopicPartition(topic, p) for p in (0, 1)]
    found = side.client.run(lambda cluster: cluster.list_offsets(dict.fromkeys(places, LATEST)))
    return {place.partition: at.offset for place, at in found.items()}
