"""How many tasks a batch may have: as many as may run at once when Spark has all executors that it may get.

Covers: spark/_frames.py.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kohort.spark import OffsetRange
from kohort.spark._frames import cores
from kohort.spark._plan import split_tasks

GROWS = {"spark.master": "yarn", "spark.dynamicAllocation.enabled": "true"}


def session(now: int, settings: dict[str, str]) -> Any:
    """A session whose executors of now run ``now`` tasks at the same time."""
    conf = SimpleNamespace(get=lambda name, default: settings.get(name, default))
    return SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=now), conf=conf)


@pytest.mark.parametrize(
    ("now", "settings", "tasks"),
    [
        (4, {"spark.master": "local[4]"}, 4),
        # dynamic allocation does nothing in a local session
        (4, GROWS | {"spark.master": "local[4]"}, 4),
        # without executors Spark says 2
        (2, GROWS, 10),
        (2, GROWS | {"spark.dynamicAllocation.maxExecutors": "4", "spark.executor.cores": "2"}, 8),
        (2, GROWS | {"spark.dynamicAllocation.maxExecutors": "4"}, 10),
        (
            2,
            GROWS
            | {
                "spark.dynamicAllocation.maxExecutors": "4",
                "spark.executor.cores": "2",
                "spark.task.cpus": "2",
            },
            4,
        ),
        # executors that have been asked for and are not there yet
        (2, {"spark.master": "yarn", "spark.executor.instances": "3", "spark.executor.cores": "2"}, 6),
        (2, {"spark.master": "spark://m:7077", "spark.cores.max": "5"}, 5),
        (6, {"spark.master": "spark://m:7077"}, 6),
    ],
)
def test_a_million_offsets_of_8_partitions(now: int, settings: dict[str, str], tasks: int) -> None:
    ranges = [OffsetRange("t", number, 0, 125_000) for number in range(8)]
    assert len(split_tasks(ranges, cores=cores(session(now, settings)))) == tasks
