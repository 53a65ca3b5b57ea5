"""``kill -9`` of a real Spark driver, or of its JVM alone, at random moments: each row is written once.

With ``--soak`` only: each start of Spark takes its time.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.spark.conftest import Side
from tests.spark.killed_driver import BATCH_ROWS
from tests.spark.kills import Job
from tests.spark.loops import NewTopic
from tests.spark.queries import TOO_SLOW
from tests.spark.test_transaction import visible

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.pyspark("4.2"), pytest.mark.timeout(3600)]

KILLS = 6
#: Longest time from the beginning of a batch to the kill: about that of two batches.
LONGEST_SECONDS = 3.0


@pytest.mark.parametrize("mode", ["loop", "query"])
def test_a_driver_that_is_killed_again_and_again_writes_each_row_once(
    mode: str, side: Side, new_topic: NewTopic, tmp_path: Path, soaks: bool
) -> None:
    if not soaks:
        pytest.skip("starts Spark eight times and more: ask for it with --soak 1")
    source, target = new_topic("source", partitions=2), new_topic("target", partitions=2)
    rows = KILLS * 2 * BATCH_ROWS
    side.produce(source, {0: rows // 2, 1: rows // 2})
    wanted = sorted([b"%d" % n for n in range(rows // 2)] * 2)
    draw, kills, starts = random.Random(mode), 0, 0
    while True:
        starts += 1
        assert starts < 4 * KILLS
        job = Job("tests.spark.killed_driver", tmp_path, side.bootstrap, mode, source, target)
        try:
            if kills < KILLS and job.kill(jvm_alone=kills % 2 == 0, after=draw.uniform(0, LONGEST_SECONDS)):
                kills += 1
            elif job.end():
                break
            else:
                assert TOO_SLOW in job.printed, job.printed[-4000:]
        finally:
            job.close()
    assert visible(side.bootstrap, target) == wanted
    assert side.lag(f"{source}-etl", source) == 0
    print(f"{mode}: {kills} kills in {starts} starts, {rows} rows once each")
