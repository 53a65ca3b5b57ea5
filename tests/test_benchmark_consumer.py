"""The comparison of consumers runs, and judges by its goals; what it measures is not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks._consumer_rows import ROWS
from benchmarks.consumer import parse, tables

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
    cells = [cell.strip() for cell in tables(measured)["consumer"].splitlines()[-1].split("|")]
    assert cells[-4:-1] == [f"{ours / 100:.2f}", "≥ 1.5", verdict]


def test_what_kohort_does_by_itself_has_a_table_of_its_own_with_what_it_is_compared_to() -> None:
    figures = {"kohort-classic": 8.0, "kohort": 4.0}
    both = {name: [{"join_ms": value, "leave_ms": value}] for name, value in figures.items()}
    found = tables({"a": {"rebalance_protocols": both}})
    assert found.keys() == {"consumer-protocols"}
    line = [cell.strip() for cell in found["consumer-protocols"].splitlines()[-1].split("|")]
    assert line[4:9] == ["8.0", "4.0", "0.50", "≤ 0.5", "met"]


def test_rows_have_names_of_their_own_and_unknown_ones_are_refused() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    with pytest.raises(SystemExit):
        parse(["--only", "nonsense"])
