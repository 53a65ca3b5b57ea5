"""Schedules of brokers: drawn from their seeds alone, told line by line, shrunk when they fail."""

from __future__ import annotations

import sys

import pytest

from kohort.testing import SimulationFailed, simulate_cluster
from kohort.testing.simulation.__main__ import main
from kohort.testing.simulation.cluster import trace_cluster
from tests.simulation.planted import found_by
from tests.simulation.planted_cluster import CLUSTER_BUGS


@pytest.mark.slow(2)
def test_a_seed_gives_the_same_schedule_each_time() -> None:
    first, violation = trace_cluster(8)
    assert violation is None
    assert trace_cluster(8) == (first, None)
    assert any("leads orders-0" in line for line in first)


@pytest.mark.slow(5)
def test_what_fails_is_shrunk_and_can_be_run_again() -> None:
    bug = next(bug for bug in CLUSTER_BUGS if bug.what.startswith("a new leader has the epoch"))
    found = found_by(bug, range(20))
    assert found is not None
    seed, name = found
    with bug.planted():
        with pytest.raises(SimulationFailed) as caught:
            simulate_cluster([seed])
        lines, violation = trace_cluster(seed, left_out=caught.value.left_out)
    assert caught.value.violation.name == name
    assert violation is not None
    assert violation.name == name
    assert f"--cluster --seed {seed}" in str(caught.value)
    assert lines


def test_the_command_line_runs_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["simulation", "--cluster", "--seeds", "2"])
    assert main() == 0
    assert "2 schedules" in capsys.readouterr().out
