"""Schedules of brokers by seed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from .._simulate import ScheduleRun, SimulationReport, run_all, trace_run
from .._violation import Violation
from ._plan import ClusterPlan, draw_cluster_plan
from ._world import ClusterWorld


def simulate_cluster(
    seeds: int | Iterable[int] = 100,
    *,
    left_out: Collection[str] = (),
    checked: bool = True,
    go_on: bool = False,
) -> SimulationReport:
    """Run schedules of brokers; ``seeds`` is how many, or which.

    Raises SimulationFailed with the shrunk first failure; with ``go_on`` failures are counted instead.
    """
    return run_all(lambda seed: _ClusterRun(seed, checked), seeds, left_out, go_on=go_on)


def trace_cluster(seed: int, *, left_out: Collection[str] = ()) -> tuple[list[str], Violation | None]:
    """The trace of a schedule, line by line, and the violation that ends it."""
    return trace_run(_ClusterRun(seed, True), left_out)


@dataclass(slots=True)
class _ClusterRun(ScheduleRun):
    """Runs of one seed."""

    seed: int
    checked: bool

    options = " --cluster"

    def plan(self, left_out: Collection[str]) -> ClusterPlan:
        return draw_cluster_plan(self.seed).leave_out(left_out)

    def world(self, plan: ClusterPlan, *, traced: bool) -> ClusterWorld:
        return ClusterWorld(plan, checked=self.checked, traced=traced)
