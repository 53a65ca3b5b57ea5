"""Python workers that stand still (SIGSTOP) in the middle of a batch, and go on. Linux tells which they are.

Covers: spark/_sink.py, spark/_fetch.py.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kohort.client.transactions import describe_transaction
from kohort.spark import GroupBatches
from kohort.spark._dataframes import make_active
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic, next_of
from tests.spark.test_transaction import visible
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow(20),
    pytest.mark.skipif(sys.platform != "linux", reason="workers are found in /proc"),
]

#: Rows so large that no buffer holds them back, before and after the moment at which a worker is stopped.
ROWS, SIZE, AT_A_TIME = 40, 50_000, 10


def workers() -> dict[int, str]:
    """Python workers of this process's Spark, and the state of each (T: stopped)."""
    parents, states, daemons = dict[int, int](), dict[int, str](), set[int]()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        parents[int(folder.name)], states[int(folder.name)] = int(parent), state
        if b"daemon" in command and b"java" not in command.split(b"\0")[0]:
            daemons.add(int(folder.name))

    def is_ours(pid: int) -> bool:
        while pid > 1 and pid != os.getpid():
            pid = parents.get(pid, 0)
        return pid == os.getpid()

    return {pid: states[pid] for pid in daemons if parents[pid] in daemons and is_ours(pid)}


class Halves:
    """The first rows of a frame pass; the others follow when ``go_on`` is called."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def split(self, frame: DataFrame) -> DataFrame:
        folder = self._folder

        def halves(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            (folder / f"upstream-{os.getpid()}").touch()
            for nth, batch in enumerate(batches):
                if nth == ROWS // AT_A_TIME // 2:
                    (folder / "half").touch()
                    while not (folder / "go-on").exists():
                        time.sleep(0.02)
                yield batch

        return frame.mapInArrow(halves, frame.schema)

    @property
    def is_halfway(self) -> bool:
        return (self._folder / "half").exists()

    @contextmanager
    def others_stopped(self) -> Iterator[None]:
        """All workers but those that the frame's rows come from stand still until the block ends."""
        own = {int(path.name.partition("-")[2]) for path in self._folder.glob("upstream-*")}
        stopped = [pid for pid in workers() if pid not in own]
        assert stopped, "no worker to stop"
        try:
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            wait_until(lambda: all(workers().get(pid) == "T" for pid in stopped), timeout_s=300)
            yield
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
            (self._folder / "go-on").touch()


@pytest.fixture
def small_batches(spark: SparkSession) -> Iterator[None]:
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, str(AT_A_TIME))
    yield
    spark.conf.set(name, before or "10000")


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as thread:
        yield thread


def row(number: int) -> bytes:
    return f"{number}-".ljust(SIZE, "x").encode()


def all_rows() -> list[bytes]:
    """In the order of ``visible``."""
    return sorted(row(number) for number in range(ROWS))


def rows_of(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 1).selectExpr(f"rpad(concat(id, '-'), {SIZE}, 'x') as value")


def write(frame: DataFrame, **options: str) -> None:
    make_active(frame.sparkSession)
    frame.write.format("kohort").mode("append").options(**options).save()


def half_written(
    frame: DataFrame, halves: Halves, aside: ThreadPoolExecutor, options: dict[str, str]
) -> Future[None]:
    """Begin to write; return when the first records are in the topic."""
    writing = aside.submit(write, halves.split(frame), **options)
    there = options["kafka.bootstrap.servers"], options["topic"], "read_uncommitted"
    wait_until(lambda: writing.done() or visible(*there), timeout_s=300)
    assert not writing.done(), str(writing.exception())[:3000]
    return writing


def of_sink(side: Side, topic: str, ledger: str, **options: str) -> dict[str, Any]:
    return {
        "kafka.bootstrap.servers": side.bootstrap,
        "topic": topic,
        "ledgerGroup": ledger,
        "batchKey": "7-f00d",
        "kafka.batch.size": "60000",
        **{name.replace("_", "."): value for name, value in options.items()},
    }


@pytest.mark.usefixtures("small_batches")
def test_a_sink_s_worker_that_stood_still_goes_on_with_its_transaction(
    spark: SparkSession,
    side: Side,
    new_topic: NewTopic,
    group: Named,
    aside: ThreadPoolExecutor,
    tmp_path: Path,
) -> None:
    out, halves = new_topic("out", partitions=1), Halves(tmp_path)
    writing = half_written(rows_of(spark), halves, aside, of_sink(side, out, group("ledger")))
    with halves.others_stopped():
        assert visible(side.bootstrap, out) == []
    writing.result(300)
    assert visible(side.bootstrap, out) == all_rows()


@pytest.mark.usefixtures("small_batches")
def test_a_sink_s_worker_that_stood_still_longer_than_its_transaction_writes_nothing_twice(
    spark: SparkSession,
    side: Side,
    new_topic: NewTopic,
    group: Named,
    aside: ThreadPoolExecutor,
    tmp_path: Path,
) -> None:
    out, ledger, halves = new_topic("out", partitions=1), group("ledger"), Halves(tmp_path)
    options = of_sink(side, out, ledger, kafka_transaction_timeout_ms="2000")
    writing = half_written(rows_of(spark), halves, aside, options)

    def is_over() -> bool:
        known = side.client.run(lambda cluster: describe_transaction(cluster, f"{ledger}-0"))
        return known.transaction_state == "CompleteAbort"

    with halves.others_stopped():
        wait_until(is_over, timeout_s=300)
    with pytest.raises(Exception, match=r"can only be aborted|INVALID_PRODUCER_EPOCH|PRODUCER_FENCED"):
        writing.result(300)
    assert visible(side.bootstrap, out) == []
    write(rows_of(spark), **options)
    assert visible(side.bootstrap, out) == all_rows()


@pytest.mark.usefixtures("small_batches")
def test_a_reader_s_worker_that_stood_still_reads_the_rest_of_its_batch(
    spark: SparkSession,
    side: Side,
    new_topic: NewTopic,
    group: Named,
    aside: ThreadPoolExecutor,
    tmp_path: Path,
) -> None:
    orders, etl, halves = new_topic("orders", partitions=1), group("etl"), Halves(tmp_path)
    side.produce(orders, {0: ROWS}, row)
    with GroupBatches(
        spark, bootstrap=side.bootstrap, group=etl, topics=[orders], read_on_driver_below=0
    ) as batches:
        batch = next_of(batches)
        collecting = aside.submit(lambda: halves.split(batch.df.select("value")).collect())
        wait_until(lambda: collecting.done() or halves.is_halfway, timeout_s=300)
        with halves.others_stopped():
            assert side.committed(etl, orders) == {0: 0}
        assert sorted(bytes(one.value) for one in collecting.result(300)) == all_rows()
        batch.commit()
    assert side.committed(etl, orders) == {0: ROWS}
