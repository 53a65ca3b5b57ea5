"""The comparison with Spark's own source runs, and judges by its goals; its figures are not judged here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import _table
from benchmarks._processes import Meter
from benchmarks._spark_rows import BUILT_IN, BY_NAME, CONTRAST, OURS, ROWS
from benchmarks.spark import contrast, parse

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow(40)
@pytest.mark.spark
@pytest.mark.timeout(400)
def test_rows_are_measured_without_the_other_source() -> None:
    command = [sys.executable, "-m", "benchmarks.spark", "--rounds", "1"]
    command += ["--only", "loop,sink_ledger,decode,poll,plan", "--records", "2000", "--triggers", "2"]
    command += ["--sink-rows", "100", "--partitions", "20", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=360, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert not any(figures[BUILT_IN].values())
    assert {name: set(rounds[0]) for name, rounds in figures[OURS].items()} == {
        "loop": {"k_per_second", "cpu_s", "bookkeeping_ms"},
        "sink_ledger": {"k_per_second", "cpu_s"},
        "decode": {"k_per_second"},
        "poll": {"poll_ms"},
        "plan": {"plan_s", "plan_cpu_s"},
    }
    assert all(figure > 0 for rounds in figures[OURS].values() for figure in rounds[0].values())


@pytest.mark.parametrize(("ours", "verdict"), [(250.0, "met"), (249.0, "missed")])
def test_a_goal_is_beside_spark_s_own_source(ours: float, verdict: str) -> None:
    row = BY_NAME["count_none"]
    measured = {
        name: {row.name: [{"k_per_second": rate}]} for name, rate in ((BUILT_IN, 100.0), (OURS, ours))
    }
    cells = [
        cell.strip() for cell in _table.table(measured, [row], OURS, [BUILT_IN]).splitlines()[-1].split("|")
    ]
    assert cells[-4:-1] == [f"{ours / 100:.2f}", "≥ 2.5", verdict]


def test_what_another_consumer_does_is_told_as_a_share_of_spark_s_own_source() -> None:
    measured = {
        BUILT_IN: {"noop_none": [{"k_per_second": rate} for rate in (900.0, 1000.0, 1100.0)], "poll": []},
        CONTRAST: {"noop_none": [{"k_per_second": 440.0}], "poll": []},
    }
    assert list(contrast(measured).values()) == ["noop_none 440 k records/s (0.44)"]
    assert contrast({BUILT_IN: {}, CONTRAST: {}}) == {}


def test_processor_time_counts_what_children_used_and_those_that_have_ended() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    with Meter() as meter:
        subprocess.run([sys.executable, "-c", burn], check=True)
        child = subprocess.Popen([sys.executable, "-c", burn + "\ninput()"], stdin=subprocess.PIPE)
        while _seconds(child.pid) < 0.25:
            time.sleep(0.01)
    child.communicate(b"\n")
    assert meter.cpu_seconds >= 0.5


def _seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_rows_have_names_of_their_own_and_unknown_ones_are_refused() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    with pytest.raises(SystemExit):
        parse(["--only", "nonsense"])
