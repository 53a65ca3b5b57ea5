"""How many tasks a batch may have: as many as may run at once when Spark has all executors that it may get.

Covers: spark/_dataframes.py, spark/_source.py.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle

from kohort.spark import OffsetRange, register
from kohort.spark._dataframes import count_cores
from kohort.spark._plan import split_tasks
from kohort.spark._schema import COLUMNS
from kohort.spark._source_options import SourceOptions
from kohort.spark._stream import SourceOffsets
from tests.spark.fake_session import FakeSession

GROWS = {"spark.master": "yarn", "spark.dynamicAllocation.enabled": "true"}


SCHEMA = f"struct<{COLUMNS.replace(', ', ',').replace(' ', ':')}>"


def session(now: int, settings: dict[str, str]) -> Any:
    """A session whose executors of now run ``now`` tasks at the same time."""
    return FakeSession({"spark.master": "local[2]"} | settings, parallelism=now)


@pytest.mark.parametrize(
    ("now", "settings", "tasks", "tasks_of_a_query"),
    [
        (4, {"spark.master": "local[4]"}, 4, 4),
        # dynamic allocation does nothing in a local session
        (4, GROWS | {"spark.master": "local[4]"}, 4, 4),
        # without executors Spark says 2
        (2, GROWS, 10, 10),
        (2, GROWS | {"spark.dynamicAllocation.maxExecutors": "4", "spark.executor.cores": "2"}, 8, 8),
        (2, GROWS | {"spark.dynamicAllocation.maxExecutors": "4"}, 10, 10),
        (
            2,
            GROWS
            | {
                "spark.dynamicAllocation.maxExecutors": "4",
                "spark.executor.cores": "2",
                "spark.task.cpus": "2",
            },
            4,
            4,
        ),
        # executors that have been asked for and are not there yet
        (2, {"spark.master": "yarn", "spark.executor.instances": "3", "spark.executor.cores": "2"}, 6, 6),
        (2, {"spark.master": "spark://m:7077", "spark.cores.max": "5"}, 5, 5),
        # a loop asks again for each batch; a query asks once, when not all executors are there
        (6, {"spark.master": "spark://m:7077"}, 6, 10),
    ],
)
def test_a_million_offsets_of_8_partitions(
    now: int, settings: dict[str, str], tasks: int, tasks_of_a_query: int
) -> None:
    ranges = [OffsetRange("t", number, 0, 125_000) for number in range(8)]
    spark = session(now, settings)
    assert len(split_tasks(ranges, cores=count_cores(spark))) == tasks
    assert len(SourceOffsets(options_of_a_query(spark)).tasks(ranges)) == tasks_of_a_query


def test_cores_of_the_options_come_before_those_of_the_session() -> None:
    assert options_of_a_query(session(4, {"spark.master": "local[4]"}), cores="7").cores == 7


def options_of_a_query(spark: Any, **given: str) -> SourceOptions:
    """Options of ``readStream``, in the process that Spark has plan the query."""
    register(spark)
    pickler: Any = cloudpickle
    sent = pickler.loads(pickler.dumps(spark.dataSource.registered[0]))
    source = sent({"kafka.bootstrap.servers": "localhost:9092", "groupId": "etl", "subscribe": "t", **given})
    schema: Any = SimpleNamespace(simpleString=lambda: SCHEMA)
    options: SourceOptions = source.streamReader(schema).options
    return options
