"""Schedules of services by seed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..engine._runs import ScheduleKind, SimulationReport
from ..engine._violation import Violation
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
    kind = _services(service, record, settled, protocol)
    return kind.simulate(seeds, left_out=left_out, checked=checked, go_on=go_on)


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
    return _services(service, record, settled, protocol).trace(seed, left_out=left_out)


def _services(
    service: MakeService | None,
    record: MakeRecord | None,
    settled: Settled | None,
    protocol: str,
) -> ScheduleKind:
    users = None if service is None else UsersService(service, record, settled)

    def draw_plan(seed: int) -> ServicePlan:
        plan = draw_service_plan(seed)
        plan.speak(protocol)
        if users is not None:
            users.takes_part(plan)
        return plan

    def make_world(plan: ServicePlan, **options: bool) -> ServiceWorld:
        world = ServiceWorld(plan, users, **options)
        ServiceIncidents(world)
        return world

    spoken = "" if protocol == "classic" else f" --protocol {protocol}"
    return ScheduleKind(f" --services{spoken}", draw_plan, make_world)
