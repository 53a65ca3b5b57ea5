"""Schedules by seed: run them, and shrink the first failure to a minimum."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, TypeAlias

from ..engine._runs import ScheduleKind, SimulationReport
from ..engine._violation import Violation
from ._incidents import Incidents
from ._member import MakeApplication
from ._plan import GroupsPlan, MakeAssignors, draw_plan
from ._world import MemberWorld

#: Protocols that members of groups speak.
Protocol: TypeAlias = Literal["classic", "mixed"]


def simulate(
    seeds: int | Iterable[int] = 100,
    *,
    assignors: MakeAssignors | None = None,
    application: MakeApplication | None = None,
    left_out: Collection[str] = (),
    crashes: int = 0,
    protocol: Protocol = "classic",
    checked: bool = True,
    go_on: bool = False,
) -> SimulationReport:
    """Run schedules; ``seeds`` is how many, or which. Raises SimulationFailed with the shrunk first failure.

    ``assignors`` makes the assignors of every member (each call new instances), ``application`` what the
    members of one schedule do with their records. ``left_out`` are faults, incidents or members not to take
    part, ``crashes`` are this many more of the coordinator in each schedule. With ``protocol`` "mixed"
    members speak the classic protocol or that of consumer groups, and change. ``checked`` False compares
    nothing. With ``go_on`` failures are counted instead of raised.
    """
    kind = _groups(assignors, application, crashes, protocol)
    return kind.simulate(seeds, left_out=left_out, checked=checked, go_on=go_on)


def trace(
    seed: int,
    *,
    assignors: MakeAssignors | None = None,
    application: MakeApplication | None = None,
    left_out: Collection[str] = (),
    crashes: int = 0,
    protocol: Protocol = "classic",
) -> tuple[list[str], Violation | None]:
    """The trace of a schedule, line by line, and the violation that ends it."""
    return _groups(assignors, application, crashes, protocol).trace(seed, left_out=left_out)


def _groups(
    assignors: MakeAssignors | None,
    application: MakeApplication | None,
    crashes: int,
    protocol: Protocol,
) -> ScheduleKind:
    """Schedules of groups of light members."""

    def make_world(plan: GroupsPlan, **options: bool) -> MemberWorld:
        world = MemberWorld(plan, application=None if application is None else application(), **options)
        Incidents(world)
        return world

    options = f" --crashes {crashes}" if crashes else ""
    options += "" if protocol == "classic" else f" --protocol {protocol}"
    mixed = protocol == "mixed"
    return ScheduleKind(options, lambda seed: draw_plan(seed, assignors, crashes, mixed=mixed), make_world)
