"""Where Spark keeps things by thread and by query: loops in threads, and queries with several sources."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kohort.spark import Batch, BatchCommitted, Event, GroupBatches, OffsetRange, OffsetsLost, stream
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic
from tests.spark.queries import await_that, run_to_end
from tests.spark.test_transaction import visible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.mark.check
def test_a_loop_in_a_thread_writes_each_record_once_and_again_after_a_rewind(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named
) -> None:
    orders, out, etl = new_topic("orders", partitions=1), new_topic("out", partitions=1), group("etl")
    side.produce(orders, {0: 20})

    def write(batch: Batch) -> None:
        batch.df.select("key", "value").write.format("kohort").mode("append").options(
            **{"kafka.bootstrap.servers": side.bootstrap, "topic": out},
            ledgerGroup=f"{etl}-ledger",
            batchKey=batch.key,
        ).save()

    def run() -> int:
        assert threading.current_thread() is not threading.main_thread()
        with GroupBatches(spark, bootstrap=side.bootstrap, group=etl, topics=[orders]) as batches:
            return batches.run(write, trigger="available_now")

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(run).result() == 1
        side.commit(etl, orders, {0: 0})
        assert thread.submit(run).result() == 1
    assert len(visible(side.bootstrap, out)) == 40


@pytest.mark.pyspark("4.2")
def test_each_of_a_querys_sources_is_followed_by_its_own_group(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    """The other source is the first one of the plan; what foreachBatch writes has a key by itself."""
    orders, others, out = new_topic("orders", 1), new_topic("others", 1), new_topic("out", 1)
    etl, other, ledger = group("etl"), group("other"), group("ledger")
    events = list[Event]()
    side.produce(orders, {0: 30})
    side.produce(others, {0: 70})
    side.commit(etl, orders, {0: 0})
    side.delete_before(orders, {0: 10})

    def twice(frame: DataFrame, _: int) -> None:
        # Spark counts rows as often as they are read
        frame.persist()
        for _time in range(2):
            frame.select("key", "value").write.format("kohort").mode("append").options(
                **{"kafka.bootstrap.servers": side.bootstrap, "topic": out}, ledgerGroup=ledger
            ).save()
        frame.unpersist()

    def write(frame: DataFrame) -> Any:
        first = spark.readStream.format("kohort").options(
            **{"kafka.bootstrap.servers": side.bootstrap, "groupId": other, "subscribe": others}
        )
        return first.load().union(frame).writeStream.foreachBatch(twice)

    query = run_to_end(
        lambda: stream(
            spark,
            checkpoint=str(tmp_path),
            write=write,
            trigger="available_now",
            on_event=events.append,
            bootstrap=side.bootstrap,
            group=etl,
            topics=orders,
            fail_on_data_loss=False,
        )
    )
    await_that(lambda: len(events) >= 2)
    assert events[0] == OffsetsLost(etl, (OffsetRange(orders, 0, 0, 10),))
    done = events[1]
    assert isinstance(done, BatchCommitted)
    assert (done.rows, done.ranges) == (20, (OffsetRange(orders, 0, 0, 30),))
    await_that(lambda: side.committed(etl, orders) == {0: 30})
    assert side.committed(etl, others) == {}
    assert side.committed(other, orders) == {}
    assert len(visible(side.bootstrap, out)) == 90
    assert query.exception() is None
    assert len(events) == 2
