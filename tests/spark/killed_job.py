"""Many Spark jobs in one process that is to be killed: each stands still at its point, and says so in a file.

    python tests/spark/killed_job.py CONFIG

CONFIG is JSON, see ``Config``. Without a ``stop`` the jobs read what is there and end. A job stands still in
batch 1, so that batch 0 is behind it; in mode B two points are told by the state of the group and of Spark's
checkpoint instead, since no code of the job runs there.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kohort.spark import Batch, GroupBatches, spark_session, stream
from kohort.spark._client import Client, ConnectionOptions
from kohort.spark._fetch import ReadTask, read_task
from tests.spark.loops import NO_SPARK
from tests.spark.queries import begun
from tests.spark.sinks import SINKS, Row, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Records of a batch; a topic has ROWS_AT_FIRST before the kill, and ROWS_LATER more after it or not.
BATCH_ROWS, ROWS_AT_FIRST, ROWS_LATER = 200, 600, 300

POINTS = (
    "before the intent",
    "after the intent",
    "halfway through the sink",
    "after the sink",
    "after the commit",
)
BETWEEN, BEGUN, HALFWAY, WRITTEN, COMMITTED = POINTS

_STOPPED_IN = 1


@dataclass(frozen=True)
class Cell:
    """One job: where it reads, where it writes, where it stands still."""

    topic: str
    group: str
    sink: str
    point: str
    folder: str

    @property
    def reached(self) -> Path:
        return Path(self.folder) / "reached"

    @property
    def checkpoint(self) -> str:
        return str(Path(self.folder) / "checkpoint")

    def open_sink(self) -> Sink:
        return SINKS[self.sink](Path(self.folder) / "sink")


@dataclass(frozen=True)
class Config:
    """``mode``: A, B, or "A without Spark", where the tasks' own code reads the ranges."""

    bootstrap: str
    mode: str
    stop: bool
    cells: list[Cell]


class Stops:
    """Stands still for ever where the cell says."""

    def __init__(self, cell: Cell, *, stop: bool) -> None:
        self._cell = cell
        self._stop = stop

    def at(self, point: str, number: int) -> None:
        if self._stop and point == self._cell.point and number == _STOPPED_IN:
            self.here()

    def here(self) -> None:
        self._cell.reached.touch()
        threading.Event().wait()


def by_hand(config: Config, spark: SparkSession | None, cell: Cell) -> None:
    """Mode A."""
    stops, sink, number = Stops(cell, stop=config.stop), cell.open_sink(), 0
    with GroupBatches(
        spark or NO_SPARK,
        bootstrap=config.bootstrap,
        group=cell.group,
        topics=[cell.topic],
        max_offsets=BATCH_ROWS,
    ) as batches:
        while True:
            stops.at(BETWEEN, number)
            batch = batches.next_batch()
            if batch is None:
                return
            number = batch.number
            stops.at(BEGUN, number)
            sink.write(batch.key, rows_of(batch, config, spark), partial(stops.at, HALFWAY, number))
            stops.at(WRITTEN, number)
            batch.commit()
            stops.at(COMMITTED, number)
            number += 1


def rows_of(batch: Batch, config: Config, spark: SparkSession | None) -> list[Row]:
    if spark is not None:
        return collected(batch.df)
    found = read_task(ReadTask(ConnectionOptions(config.bootstrap), batch.ranges))
    return [
        (row["partition"], row["offset"])
        for one in found
        for row in one.select(["partition", "offset"]).to_pylist()
    ]


def collected(df: DataFrame) -> list[Row]:
    return [(row["partition"], row["offset"]) for row in df.select("partition", "offset").collect()]


def by_query(config: Config, spark: SparkSession, cell: Cell) -> None:
    """Mode B."""
    stops, sink = Stops(cell, stop=config.stop), cell.open_sink()

    def write(df: DataFrame, number: int) -> None:
        stops.at(BEGUN, number)
        sink.write(str(number), collected(df), partial(stops.at, HALFWAY, number))
        stops.at(WRITTEN, number)

    options: dict[str, Any] = {"trigger": {"availableNow": True}}
    if config.stop and cell.point == COMMITTED:
        # Spark's log has the batch, the group has not
        options["commit_offsets"] = "never"
    query = begun(
        lambda: stream(
            spark,
            checkpoint=cell.checkpoint,
            foreach_batch=write,
            bootstrap=config.bootstrap,
            group=cell.group,
            topics=[cell.topic],
            max_offsets=BATCH_ROWS,
            **options,
        )
    )
    if config.stop and cell.point in (BETWEEN, COMMITTED):
        where = committed_rows(config, cell) if cell.point == BETWEEN else logged_batches(cell)
        while not where():
            if (failure := query.exception()) is not None:
                raise failure
            time.sleep(0.02)
        stops.here()
    query.awaitTermination()


def committed_rows(config: Config, cell: Cell) -> Callable[[], bool]:
    client = Client(ConnectionOptions(config.bootstrap))

    def past_batch_0() -> bool:
        found = client.run(lambda cluster: cluster.committed(cell.group))
        return sum(at.offset for at in found.values()) >= BATCH_ROWS

    return past_batch_0


def logged_batches(cell: Cell) -> Callable[[], bool]:
    return lambda: (Path(cell.checkpoint) / "commits" / str(_STOPPED_IN)).exists()


def run(config: Config) -> None:
    spark = None
    if config.mode != "A without Spark":
        spark = spark_session(
            "killed jobs",
            master="local[4]",
            **{"spark.log.level": "OFF", "spark.python.authenticate.socketTimeout": "10m"},
        )
    with ThreadPoolExecutor(len(config.cells)) as jobs:
        for done in [jobs.submit(run_one, config, spark, cell) for cell in config.cells]:
            done.result()
    if spark is not None:
        spark.stop()


def run_one(config: Config, spark: SparkSession | None, cell: Cell) -> None:
    job = by_query if config.mode == "B" else by_hand
    try:
        job(config, spark, cell)  # type: ignore[arg-type]
    except BaseException:
        # the other jobs may stand still, and would be waited for
        traceback.print_exc()
        os._exit(1)


def read_config(text: str) -> Config:
    given = json.loads(text)
    cells = [Cell(**cell) for cell in given.pop("cells")]
    return Config(cells=cells, **given)


def main(arguments: Sequence[str]) -> None:
    run(read_config(Path(arguments[0]).read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
