"""Schedules of transactions and of brokers: drawn from their seeds alone, told line by line, shrunk when they
fail.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from kohort.client.surroundings import SURROUNDINGS, Surroundings
from kohort.testing import SimulationFailed, simulate_cluster, simulate_transactions
from kohort.testing.simulation.__main__ import main
from kohort.testing.simulation.cluster import trace_cluster
from kohort.testing.simulation.transactions import trace_transactions
from tests.simulation.planted import Bug, found_by
from tests.simulation.planted_cluster import CLUSTER_BUGS
from tests.simulation.planted_transactions import TRANSACTION_BUGS


class Kind(NamedTuple):
    option: str
    simulate: Callable[..., object]
    trace: Callable[..., Any]
    #: A seed, and part of a line of its trace.
    seed: int
    line: str
    bug: Bug


def planted(bugs: tuple[Bug, ...], begins: str) -> Bug:
    return next(bug for bug in bugs if bug.what.startswith(begins))


KINDS = [
    Kind(
        "--transactions",
        simulate_transactions,
        trace_transactions,
        7,
        "END_TXN",
        planted(TRANSACTION_BUGS, "readers of committed records"),
    ),
    Kind(
        "--cluster",
        simulate_cluster,
        trace_cluster,
        8,
        "leads orders-0",
        planted(CLUSTER_BUGS, "a new leader has the epoch"),
    ),
]
of_each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.option)


@pytest.mark.slow(2)
@of_each_kind
def test_a_seed_gives_the_same_schedule_each_time(kind: Kind) -> None:
    first, violation = kind.trace(kind.seed)
    assert violation is None
    assert kind.trace(kind.seed) == (first, None)
    assert any(kind.line in line for line in first)


def test_a_schedule_does_not_look_at_the_clock_of_the_machine() -> None:
    first, _ = trace_transactions(7)
    late = itertools.count()
    slow = Surroundings(time_ms=lambda: next(late), work_clock=lambda: float(next(late)))
    token = SURROUNDINGS.set(slow)
    try:
        assert trace_transactions(7) == (first, None)
    finally:
        SURROUNDINGS.reset(token)


@pytest.mark.slow(5)
@of_each_kind
def test_what_fails_is_shrunk_and_can_be_run_again(kind: Kind) -> None:
    found = found_by(kind.bug, range(20))
    assert found is not None
    seed, name = found
    with kind.bug.planted():
        with pytest.raises(SimulationFailed) as caught:
            kind.simulate([seed])
        lines, violation = kind.trace(seed, left_out=caught.value.left_out)
    assert caught.value.left_out
    assert caught.value.violation.name == violation.name == name
    assert f"{kind.option} --seed {seed}" in str(caught.value)
    assert lines == caught.value.trace


@of_each_kind
def test_the_command_line_runs_them(
    kind: Kind, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in (["--seed", "3"], ["--seeds", "2"]):
        monkeypatch.setattr(sys, "argv", ["simulation", kind.option, *options])
        assert main() == 0
    told = capsys.readouterr().out
    assert "every invariant holds" in told
    assert "2 schedules" in told
