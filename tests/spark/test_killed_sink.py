"""``kill -9`` of a job of the sink before each of its steps, and between the commits of two transactions.

All jobs run in one process, each stands still at its step, and then the process is killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest

from kohort.spark import _transaction
from tests.spark.conftest import Side
from tests.spark.killed_sink import BETWEEN, COMMIT_ALL, STEPS, Cell, run
from tests.spark.loops import Named, NewTopic
from tests.spark.test_transaction import ids_of, visible

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).resolve().parents[2]
#: For all jobs to reach their steps; the machine may be slow.
PATIENCE_SECONDS = 300

ROWS = [b"a0", b"a1", b"b0", b"b1"]
SAME = [["b0", "a0"], ["a1", "b1"]]
FEWER = [["a0", "b0", "a1", "b1"]]
MORE = [["a0"], ["b0"], ["a1"], ["b1"]]


def kill_when_all_stand_still(bootstrap: str, cells: list[Cell], folder: Path) -> None:
    config = folder / "config.json"
    config.write_text(json.dumps({"bootstrap": bootstrap, "cells": [asdict(cell) for cell in cells]}))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.killed_sink", str(config)], cwd=ROOT, start_new_session=True
    )
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not all(Path(cell.reached).exists() for cell in cells):
            assert process.poll() is None, "a job failed, or passed its step"
            assert time.monotonic() < deadline, [one for one in cells if not Path(one.reached).exists()]
            time.sleep(0.05)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)


def test_a_job_that_is_killed_before_any_step_writes_each_row_once(
    side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    steps = [*range(STEPS), BETWEEN]
    # what is still open when the job comes back has timed out for these
    late = [COMMIT_ALL, BETWEEN, STEPS - 1]
    cells = [
        Cell(new_topic("out", 1), group("ledger"), step, str(tmp_path / f"{number}"))
        for number, step in enumerate(steps + late)
    ]
    kill_when_all_stand_still(side.bootstrap, cells, tmp_path)

    def come_back(number: int) -> int:
        """Start a job again; return how many rows were there before."""
        cell = cells[number]
        if number >= len(steps):
            for name in ids_of(side, cell.ledger, "Ongoing"):
                time_out(side, name)
        seen = len(visible(side.bootstrap, cell.topic))
        # only a batch that is there in part has to come in the same tasks again
        run(side.bootstrap, cell, SAME if seen == 2 else (SAME, FEWER, MORE)[number % 3])
        assert visible(side.bootstrap, cell.topic) == ROWS, cell
        assert side.committed(cell.ledger, cell.topic) == {0: 1}
        return seen

    with ThreadPoolExecutor(8) as threads:
        seen = list(threads.map(come_back, range(len(cells))))
    # the steps are where they are said to be
    assert seen == [0] * (COMMIT_ALL + 1) + [4, 2] + [0, 2, 4]


def time_out(side: Side, name: str) -> None:
    side.client.run(lambda cluster: _transaction._fence_id(cluster, name, 60_000))
