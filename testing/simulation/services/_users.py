"""A user's own ConsumerService in the place of the planned ones."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from ....consumer import Record
from ....consumer.service import ConsumerService
from ....protocol import TopicPartition
from .._plan import GroupPlan
from ._work import BOOTSTRAP, ServiceProgram

if TYPE_CHECKING:
    from ._ledger import Entry, Row
    from ._plan import ServicePlan
    from ._process import Process

MakeService = Callable[[], ConsumerService]
#: From a topic and a source of chance to key and value.
MakeRecord = Callable[[str, Random], "Row"]
#: Takes keys and values by partition.
Settled = Callable[[Mapping[TopicPartition, Sequence["Row"]]], None]


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
        plan.dead_letter_topics = service.dead_letter_topics

    def program(self, process: Process) -> ServiceProgram:
        """What a process runs."""
        plan = process.world.plan
        service = self._service()
        service.reconfigure(bootstrap=BOOTSTRAP, group_instance_id=process.plan.instance_id, **plan.config)
        service._drain_timeout_ms = plan.drain_ms
        for handler in service._handlers:
            handler.function = _told(process, handler.function)
        return ServiceProgram(service)


def _told(process: Process, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, and the ledger is told of what it does."""
    ledger = process.world.ledger

    def entries(given: tuple[Any, ...]) -> list[Entry]:
        records: list[Record] = []
        for each in given:
            records += [r for r in (each if isinstance(each, list) else [each]) if isinstance(r, Record)]
        return ledger.all_of(records)

    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):

        @functools.wraps(function)
        async def called(*given: Any, **values: Any) -> None:
            found, finished = entries(given), False
            ledger.begins(process, found)
            try:
                await function(*given, **values)
                finished = True
            finally:
                ledger.ends(process, found, finished=finished)

        return called

    @functools.wraps(function)
    def done(*given: Any, **values: Any) -> None:
        found, finished = entries(given), False
        ledger.begins(process, found)
        try:
            function(*given, **values)
            finished = True
        finally:
            ledger.ends(process, found, finished=finished)

    return done
