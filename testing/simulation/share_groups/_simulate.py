"""Schedules of share groups by seed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from typing import Final

from ..engine._runs import ScheduleKind, SimulationReport
from ..engine._violation import Violation
from ._plan import draw_share_plan
from ._world import ShareWorld

_KIND: Final = partial(ScheduleKind, " --share-groups", draw_share_plan, ShareWorld)


def simulate_share_groups(
    seeds: int | Iterable[int] = 100,
    *,
    left_out: Collection[str] = (),
    checked: bool = True,
    go_on: bool = False,
) -> SimulationReport:
    """Run schedules of share groups; ``seeds`` is how many, or which.

    Raises SimulationFailed with the shrunk first failure; with ``go_on`` failures are counted instead.
    """
    return _KIND(checked=checked).simulate(seeds, left_out, go_on=go_on)


def trace_share_groups(seed: int, *, left_out: Collection[str] = ()) -> tuple[list[str], Violation | None]:
    """The trace of a schedule, line by line, and the violation that ends it."""
    return _KIND().trace(seed, left_out)
