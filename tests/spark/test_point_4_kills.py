"""Point 4: kill -9 at five points x four sinks x new data or not. Lost: nothing, ever.

All jobs of a mode run in one process, each stands still at its point, and then the process is killed. The
loop's forty jobs read without a JVM here; with ``--soak`` they, and forty queries, do so in Spark, and the
table is printed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from tests.spark.conftest import Side
from tests.spark.killed_job import (
    BATCH_ROWS,
    POINTS,
    ROWS_AT_FIRST,
    ROWS_LATER,
    Cell,
    Config,
)
from tests.spark.loops import Named, NewTopic
from tests.spark.sinks import SINKS

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
#: For all jobs to reach their points, or to end; the machine may be slow.
PATIENCE_SECONDS = 900


@dataclass(frozen=True)
class Judged:
    """What became of a job's records."""

    cell: Cell
    more: bool
    lost: int
    duplicates: int

    @property
    def well(self) -> bool:
        allowed = BATCH_ROWS if self.cell.sink == "append" else 0
        return self.lost == 0 and self.duplicates <= allowed


class Jobs:
    """``killed_job`` in a process of its own."""

    def __init__(self, config: Config, folder: Path) -> None:
        self.config = config
        self._file = folder / "config.json"
        self._file.write_text(json.dumps(asdict(config)))
        self._printed = folder / f"printed-{config.stop}"
        with self._printed.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.killed_job", str(self._file)],
                cwd=ROOT,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill_when_all_stand_still(self) -> None:
        self._await(lambda: all(cell.reached.exists() for cell in self.config.cells))
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)

    def end(self) -> None:
        self._await(lambda: self.process.poll() is not None)
        assert self.process.returncode == 0, self._printed.read_text(errors="replace")[-4000:]

    def _await(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            over = self.process.poll() is not None and not holds()
            if over or time.monotonic() > deadline:
                self.close()
                missing = [cell for cell in self.config.cells if not cell.reached.exists()]
                said = self._printed.read_text(errors="replace")[-4000:]
                pytest.fail(f"{'over' if over else 'late'}; not reached: {missing}\n{said}")
            time.sleep(0.05)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(60)


def judge(side: Side, mode: str, cells: Sequence[Cell], more: Sequence[bool], folder: Path) -> list[Judged]:
    """Run the jobs, kill them at their points, start them again; what became of each."""
    for cell in cells:
        side.produce(cell.topic, {0: ROWS_AT_FIRST // 2, 1: ROWS_AT_FIRST // 2})
    jobs = Jobs(Config(side.bootstrap, mode, True, list(cells)), folder)
    try:
        jobs.kill_when_all_stand_still()
    finally:
        jobs.close()
    for cell, grows in zip(cells, more, strict=True):
        if grows:
            side.produce(cell.topic, {0: ROWS_LATER, 1: 0})
    jobs = Jobs(Config(side.bootstrap, mode, False, list(cells)), folder)
    try:
        jobs.end()
    finally:
        jobs.close()
    return [judged(cell, grows) for cell, grows in zip(cells, more, strict=True)]


def judged(cell: Cell, more: bool) -> Judged:
    counts = Counter(cell.open_sink().rows())
    sizes = {0: ROWS_AT_FIRST // 2 + (ROWS_LATER if more else 0), 1: ROWS_AT_FIRST // 2}
    wanted = {(partition, at) for partition, size in sizes.items() for at in range(size)}
    assert counts.keys() <= wanted
    return Judged(cell, more, len(wanted - counts.keys()), counts.total() - len(counts))


def matrix(
    folder: Path, new_topic: NewTopic, group: Named, points: Sequence[str] = POINTS
) -> tuple[list[Cell], list[bool]]:
    cells: list[Cell] = []
    more: list[bool] = []
    for point in points:
        for sink in SINKS:
            for grows in (False, True):
                place = folder / f"{len(cells)}"
                place.mkdir()
                cells.append(Cell(new_topic("orders", 2), group("etl"), sink, point, str(place)))
                more.append(grows)
    return cells, more


def table(mode: str, found: Sequence[Judged]) -> str:
    """Lost and duplicate rows by point and sink, without and with new data."""
    lines = [
        f"mode {mode}: lost / duplicates, without and with new data",
        f"| killed | {' | '.join(SINKS)} |",
    ]
    for point in dict.fromkeys(one.cell.point for one in found):
        row = [point]
        for sink in SINKS:
            of = [one for one in found if (one.cell.point, one.cell.sink) == (point, sink)]
            row.append(", ".join(f"{one.lost} / {one.duplicates}" for one in of))
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def test_point_4_a_loop_killed_anywhere_loses_nothing_and_repeats_a_batch_at_most_where_it_appends(
    side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    cells, more = matrix(tmp_path, new_topic, group)
    found = judge(side, "A without Spark", cells, more, tmp_path)
    assert len(found) == 40
    assert [one for one in found if not one.well] == []
    # the points are where they are said to be
    repeated = {one.cell.point: one.duplicates for one in found if one.cell.sink == "append"}
    assert repeated == {
        "before the intent": 0,
        "after the intent": 0,
        "halfway through the sink": BATCH_ROWS // 2,
        "after the sink": BATCH_ROWS,
        "after the commit": 0,
    }


@pytest.mark.parametrize(
    ("mode", "points"),
    # queries take long: a point at a time
    [pytest.param("A", POINTS, id="A"), *(pytest.param("B", [point], id=f"B {point}") for point in POINTS)],
)
def test_point_4_in_spark(
    mode: str,
    points: Sequence[str],
    side: Side,
    new_topic: NewTopic,
    group: Named,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    if request.config.getoption("--soak") is None:
        pytest.skip("eighty Spark jobs: ask for them with --soak 1")
    cells, more = matrix(tmp_path, new_topic, group, points)
    found: list[Judged] = []
    # a query has processes of its own: not too many of them at a time
    share = len(cells) if mode == "A" else 4
    for first in range(0, len(cells), share):
        part = slice(first, first + share)
        place = tmp_path / f"part-{first}"
        place.mkdir()
        found += judge(side, mode, cells[part], more[part], place)
    print(f"\n{table(mode, found)}")
    assert len(found) == 8 * len(points)
    assert [one for one in found if not one.well] == []
