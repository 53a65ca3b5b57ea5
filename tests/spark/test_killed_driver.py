"""``kill -9`` of a real Spark driver, or of its JVM alone, at random moments: each row is written once.

With ``--soak`` only: each start of Spark takes its time.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.conftest import Side
from tests.spark.killed_driver import BATCH_ROWS
from tests.spark.loops import NewTopic
from tests.spark.queries import TOO_SLOW
from tests.spark.test_transaction import visible

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.pyspark("4.2"), pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 600
KILLS = 6
#: Longest time from the beginning of a batch to the kill: about that of two batches.
LONGEST_SECONDS = 3.0


class Job:
    """``killed_driver`` in a process of its own, with its JVM."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._folder = folder
        (folder / "jvm").unlink(missing_ok=True)
        self._begun = self._batches()
        self._printed = folder / "printed"
        with self._printed.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.killed_driver", *arguments, str(folder)],
                cwd=ROOT,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self, *, jvm_alone: bool, after: float) -> bool:
        """Kill it so many seconds after it began a batch. Return False if it ended before."""
        self._await(lambda: self.process.poll() is not None or self._batches() > self._begun)
        time.sleep(after)
        if self.process.poll() is not None:
            return False
        if jvm_alone:
            os.kill(int((self._folder / "jvm").read_text()), signal.SIGKILL)
        self.close(jvm_alone=jvm_alone)
        return True

    def end(self) -> bool:
        """Wait for its end. Return whether it has read everything."""
        self._await(lambda: self.process.poll() is not None)
        return self.process.returncode == 0

    @property
    def printed(self) -> str:
        return self._printed.read_text(errors="replace")

    def close(self, *, jvm_alone: bool = False) -> None:
        if jvm_alone:
            # Python notices at the latest when it next calls the JVM
            self._await(lambda: self.process.poll() is not None)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(60)

    def _batches(self) -> int:
        file = self._folder / "batches"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def _await(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < deadline, self.printed[-4000:]
            time.sleep(0.05)


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
        job = Job(tmp_path, side.bootstrap, mode, source, target)
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
