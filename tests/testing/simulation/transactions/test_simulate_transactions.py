"""Schedules of transactions: drawn from their seeds alone, told line by line, shrunk when they fail."""

from __future__ import annotations

import itertools
import sys

import pytest

from kohort.client.pool import SURROUNDINGS, Surroundings
from kohort.testing import SimulationFailed, simulate_transactions
from kohort.testing.simulation.__main__ import main
from kohort.testing.simulation.transactions import trace_transactions
from tests.simulation.planted_transactions import TRANSACTION_BUGS


def test_a_seed_gives_the_same_schedule_each_time() -> None:
    first, violation = trace_transactions(7)
    assert violation is None
    assert trace_transactions(7) == (first, None)
    assert any("END_TXN" in line for line in first)


def test_a_schedule_does_not_look_at_the_clock_of_the_machine() -> None:
    first, _ = trace_transactions(7)
    late = itertools.count()
    slow = Surroundings(time_ms=lambda: next(late), work_clock=lambda: float(next(late)))
    token = SURROUNDINGS.set(slow)
    try:
        assert trace_transactions(7) == (first, None)
    finally:
        SURROUNDINGS.reset(token)


def test_what_fails_is_shrunk_and_can_be_run_again() -> None:
    bug = next(bug for bug in TRANSACTION_BUGS if bug.what.startswith("readers of committed records"))
    with bug.planted():
        with pytest.raises(SimulationFailed) as caught:
            simulate_transactions([0])
        lines, violation = trace_transactions(0, left_out=caught.value.left_out)
    assert caught.value.violation.name == "T2"
    assert violation is not None
    assert violation.name == "T2"
    assert "--transactions --seed 0" in str(caught.value)
    assert lines


def test_the_command_line_runs_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in (["--seed", "3"], ["--seeds", "2"]):
        monkeypatch.setattr(sys, "argv", ["simulation", "--transactions", *options])
        assert main() == 0
    told = capsys.readouterr().out
    assert "every invariant holds" in told
    assert "2 schedules" in told
