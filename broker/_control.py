"""The way from a broker of a cluster to the controller: what it asks for, and its own part in controlling."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from ..client.connection import Connection
from ..cluster import ClusterView, MetadataStore, PartitionState, Registration, TopicImage
from ..cluster.controller import Controller, IsrChange, NewTopic, alter_isr, create_topics
from ..protocol import KafkaError
from ._settings import BrokerSettings
from ._topics import TopicPlan


class Control:
    """``connect`` opens a connection to a broker of the image."""

    def __init__(
        self,
        store: MetadataStore,
        view: ClusterView,
        registration: Registration,
        settings: BrokerSettings,
        now_ms: Callable[[], int],
        connect: Callable[[int], Awaitable[Connection]],
    ) -> None:
        self.controller = Controller(store, view, settings.node_id, now_ms)
        self._view = view
        self._registration = registration
        self._settings = settings
        self._connect = connect

    def start(self) -> None:
        self.controller.start()

    async def stop(self) -> None:
        self.controller.close()

    def image_changed(self) -> None:
        self.controller.wake()

    async def leave(self, timeout_s: float) -> None:
        """Let others lead what this broker leads."""

    async def alter_isr(self, changes: Sequence[IsrChange]) -> list[PartitionState | KafkaError]:
        node_id, epoch = self._settings.node_id, self._registration.epoch
        return await self.controller.ask(
            lambda image, rules: alter_isr(image, node_id, epoch, changes, rules)
        )

    async def create_internal(self, name: str) -> None:
        await self.create_topics([TopicPlan(name, 5, {})])

    async def create_topics(self, plans: Sequence[TopicPlan]) -> None:
        wanted = [
            NewTopic(plan.name, plan.id, plan.partitions, min(3, len(self._view.image.brokers)))
            for plan in plans
        ]
        answer = await self.controller.ask(lambda image, _: create_topics(image, wanted))
        for error in answer.values():
            if error is not None:
                raise error

    async def alter_topics(self, changes: Mapping[TopicImage, dict[str, Any]]) -> None:
        raise NotImplementedError

    async def add_partitions(self, counts: Mapping[TopicImage, int]) -> None:
        raise NotImplementedError

    async def delete_topics(self, topics: Collection[TopicImage]) -> None:
        raise NotImplementedError
