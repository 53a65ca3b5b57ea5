"""A topic is created, gets more partitions, and is deleted."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from ....broker.assembly import BrokerAssembly
from ....cluster.controller import NewPartitions, NewTopic
from ....protocol import KohortError
from ..brokers._plan import Values
from ..brokers._world import AnyWorld
from ..engine._plan import Incident

_MOST_PARTITIONS: Final = 3


class TopicFaults:
    """Carries out ``topic-made`` and ``topic-deleted`` with the topic ``name`` of these ``configs``."""

    def __init__(self, world: AnyWorld, name: str, configs: Values) -> None:
        self._world = world
        self._name = name
        self._configs = configs

    def meet(self, incident: Incident) -> bool:
        """Carry out an incident; return False if it is another one."""
        if incident.kind not in ("topic-made", "topic-deleted"):
            return False
        for broker in self._world.brokers.values():
            parts = broker.parts
            if parts is not None and parts.node.control.is_active:
                broker.do(self._change(parts, incident))
                break
        return True

    async def _change(self, parts: BrokerAssembly, incident: Incident) -> None:
        topics, control = parts.node.topics, parts.node.control
        topic = topics.image.topic(self._name)
        work: Awaitable[object]
        if incident.kind == "topic-deleted":
            if topic is None:
                return
            work = topics.delete([topic])
        elif topic is None:
            made = NewTopic(
                self._name,
                partitions=1 + incident.who % 2,
                replication_factor=self._world.plan.brokers,
                configs=self._configs,
            )
            work = topics.carry_out([made])
        else:
            count = min(len(topic.partitions) + 1, _MOST_PARTITIONS)
            work = control.add_partitions([NewPartitions(self._name, count)])
        try:
            self._world.say(f"{incident.kind} {self._name}: {await work}")
        except KohortError as error:
            self._world.say(f"{incident.kind} {self._name} failed: {error}")
