"""Schedules of transactions by seed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from .._simulate import ScheduleRun, SimulationReport, run_all, trace_run
from .._violation import Violation
from ._plan import TransactionPlan, draw_transaction_plan
from ._world import TransactionWorld


def simulate_transactions(
    seeds: int | Iterable[int] = 100,
    *,
    left_out: Collection[str] = (),
    checked: bool = True,
    go_on: bool = False,
) -> SimulationReport:
    """Run schedules of transactions; ``seeds`` is how many, or which.

    Raises SimulationFailed with the shrunk first failure; with ``go_on`` failures are counted instead.
    """
    return run_all(lambda seed: _TransactionRun(seed, checked), seeds, left_out, go_on=go_on)


def trace_transactions(seed: int, *, left_out: Collection[str] = ()) -> tuple[list[str], Violation | None]:
    """The trace of a schedule, line by line, and the violation that ends it."""
    return trace_run(_TransactionRun(seed, True), left_out)


@dataclass(slots=True)
class _TransactionRun(ScheduleRun):
    """Runs of one seed."""

    seed: int
    checked: bool

    options = " --transactions"

    def plan(self, left_out: Collection[str]) -> TransactionPlan:
        return draw_transaction_plan(self.seed).leave_out(left_out)

    def world(self, plan: TransactionPlan, *, traced: bool) -> TransactionWorld:
        return TransactionWorld(plan, checked=self.checked, traced=traced)
