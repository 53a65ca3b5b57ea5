"""The comparison of consumers runs, and judges by its goals; what it measures is not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks._consumer_rows import ROWS
from benchmarks.consumer import parse, table

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow(3)
def test_a_row_is_measured_with_every_client() -> None:
    command = [sys.executable, "-m", "benchmarks.consumer", "--only", "batches_lz4", "--rounds", "1"]
    command += ["--records", "600", "--waiting", "600", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]["kohort"]["batches_lz4"]
    assert set(figures) == {"confluent-kafka", "aiokafka", "kohort"}
    assert all(rounds[0]["per_second"] > 0 for rounds in figures.values())


@pytest.mark.parametrize(("ours", "verdict"), [(150.0, "met"), (149.0, "missed")])
def test_a_goal_is_beside_the_best_of_the_others(ours: float, verdict: str) -> None:
    clients = {"kafka-python": 10.0, "confluent-kafka": 100.0, "aiokafka": 50.0, "kohort": ours}
    measured = {"a": {"one_none": {name: [{"per_second": rate}] for name, rate in clients.items()}}}
    cells = [cell.strip() for cell in table(measured).splitlines()[-1].split("|")]
    assert cells[-4:-1] == [f"{ours / 100:.2f}", "≥ 1.5", verdict]


def test_rows_have_names_of_their_own_and_unknown_ones_are_refused() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    with pytest.raises(SystemExit):
        parse(["--only", "nonsense"])
