"""Schedules of services by seed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from .._simulate import ScheduleRun, SimulationReport, run_all, trace_run
from .._violation import Violation
from ._incidents import ServiceIncidents
from ._ledger import MakeRecord
from ._plan import ServicePlan, draw_service_plan
from ._users import MakeService, Settled, UsersService
from ._world import ServiceWorld


def simulate_service(
    seeds: int | Iterable[int] = 100,
    *,
    service: MakeService | None = None,
    record: MakeRecord | None = None,
    settled: Settled | None = None,
    left_out: Collection[str] = (),
    checked: bool = True,
    go_on: bool = False,
    protocol: str = "classic",
) -> SimulationReport:
    """Run schedules of whole services; ``seeds`` is how many, or which. The members of planned ones speak
    ``protocol``, "classic" or "consumer", or share partitions out by ZooKeeper, "registry".

    ``service`` makes the ConsumerService of each process that starts; without it those of the plan run.
    ``record(topic, random)`` makes the key and the value of a record. ``settled`` gets the keys and values of
    each partition, in their order, when a schedule is over and all of them are handled and committed. What
    one of the three raises fails the schedule. Raises SimulationFailed with the shrunk first failure; with
    ``go_on`` failures are counted instead.
    """
    users = None if service is None else UsersService(service, record, settled)
    return run_all(lambda seed: _ServiceRun(seed, users, checked, protocol), seeds, left_out, go_on=go_on)


def trace_service(
    seed: int,
    *,
    service: MakeService | None = None,
    record: MakeRecord | None = None,
    settled: Settled | None = None,
    left_out: Collection[str] = (),
    protocol: str = "classic",
) -> tuple[list[str], Violation | None]:
    """The trace of a schedule, line by line, and the violation that ends it."""
    users = None if service is None else UsersService(service, record, settled)
    return trace_run(_ServiceRun(seed, users, True, protocol), left_out)


@dataclass(slots=True)
class _ServiceRun(ScheduleRun):
    """Runs of one seed."""

    seed: int
    users: UsersService | None
    checked: bool
    protocol: str
    options: str = field(init=False)

    def __post_init__(self) -> None:
        spoken = "" if self.protocol == "classic" else f" --protocol {self.protocol}"
        self.options = f" --services{spoken}"

    def plan(self, left_out: Collection[str]) -> ServicePlan:
        plan = draw_service_plan(self.seed)
        plan.speak(self.protocol)
        if self.users is not None:
            self.users.takes_part(plan)
        return plan.leave_out(left_out)

    def world(self, plan: ServicePlan, *, traced: bool) -> ServiceWorld:
        world = ServiceWorld(plan, self.users, checked=self.checked, traced=traced)
        ServiceIncidents(world)
        return world
