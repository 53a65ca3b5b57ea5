"""A user's own ConsumerService in place of the planned ones."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ....consumer import Record
from ....protocol import TopicPartition
from ....service import ConsumerService
from ..groups._plan import GroupPlan
from ._ledger import MakeRecord, Row
from ._plan import ServicePlan
from ._process import ServiceProcess
from ._work import BOOTSTRAP, ServiceProgram, instance_of

MakeService = Callable[[], ConsumerService]
#: Takes keys and values by partition.
Settled = Callable[[Mapping[TopicPartition, Sequence[Row]]], None]


class UsersService:
    """``service`` makes one for each process; its times become those of the schedule."""

    def __init__(self, service: MakeService, record: MakeRecord | None, settled: Settled | None) -> None:
        self.record = record or (lambda _topic, rng: (b"k%d" % rng.randrange(3), b"{}"))
        self.settled = settled or (lambda _records: None)
        self._service = service

    def takes_part(self, plan: ServicePlan) -> None:
        """The plan with the topics and the group of the service."""
        service = self._service()
        counts = list(plan.topics.values())
        plan.topics = {name: counts[at % len(counts)] for at, name in enumerate(sorted(service.topics))}
        (group,) = plan.groups.values()
        plan.groups = {
            service.group: GroupPlan(service.group, tuple(plan.topics), group.make_assignors, eager=False)
        }
        plan.kind, plan.calm = "users", False
        # all records are theirs to handle, whatever the service says
        plan.latest, plan.made_at_ms = False, {}
        plan.config["auto_offset_reset"] = "earliest"
        plan.dead_letter_topics = service.dead_letter_topics

    def program(self, process: ServiceProcess) -> ServiceProgram:
        plan = process.world.plan
        service = self._service()
        service.reconfigure(bootstrap=BOOTSTRAP, **{**instance_of(process), **plan.config})
        service._drain_timeout_ms = plan.drain_ms
        for handler in service._handlers:
            handler.function = _with_ledger(process, handler.function)
        return ServiceProgram(service)


def _with_ledger(process: ServiceProcess, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, and the ledger is told of what it does."""
    ledger = process.world.ledger

    @contextmanager
    def seen(given: tuple[object, ...]) -> Iterator[None]:
        records: list[Record] = []
        for each in given:
            records += [r for r in (each if isinstance(each, list) else [each]) if isinstance(r, Record)]
        found, finished = ledger.all_of(records), False
        ledger.begins(process, found)
        try:
            yield
            finished = True
        finally:
            ledger.ends(process, found, finished=finished)

    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):

        @functools.wraps(function)
        async def called(*given: object, **values: object) -> None:
            with seen(given):
                await function(*given, **values)

        return called

    @functools.wraps(function)
    def done(*given: object, **values: object) -> None:
        with seen(given):
            function(*given, **values)

    return done
