"""The topics of a cluster, on one of its brokers: they follow the cluster's image, and the controller changes
them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from ...cluster import NO_LEADER, ClusterImage, TopicImage
from ...log import DataFolder
from ...protocol import KafkaError
from ...settings import SettingsError, read_settings
from ..metrics import Histogram, ReplicaFigures
from ..partitions.local_logs import LocalLogs
from ..partitions.partition import Partition
from ..partitions.topic_config import TopicConfig
from ..partitions.topic_names import fold_name
from ..settings import BrokerSettings
from .controller_client import Control
from .topics import Placed, TopicPlan, Topics

log = logging.getLogger("kohort.broker")


class ClusterTopics(Topics):
    """Topics whose metadata brokers share. Configs in ``image`` are typed, by field name, as everywhere in
    the broker; the cluster's own image has Kafka's names and text.
    """

    def __init__(
        self,
        folder: DataFolder,
        control: Control,
        settings: BrokerSettings,
        now_ms: Callable[[], int],
        flush_times: Histogram,
    ) -> None:
        self._control = control
        #: How often replicas left, and joined, the in-sync replicas of partitions that this broker leads.
        self.isr_shrinks = self.isr_expands = 0
        self._node_id = settings.node_id
        #: Called with each partition that cannot be served any more.
        self.on_damage: Callable[[Partition], None] = lambda _: None
        # the cluster's own image that was followed last
        self._seen = ClusterImage("", -1, {})
        super().__init__(
            ClusterImage(folder.cluster_id, -1, {}),
            LocalLogs(folder, settings, now_ms, flush_times, self._damaged),
            settings,
        )
        self.logs.take_in_replicas()

    def _count(self, before: TopicImage | None, after: TopicImage) -> None:
        """Count in-sync replicas that left and joined, in partitions that this broker leads."""
        for was, now in zip(() if before is None else before.partitions, after.partitions, strict=False):
            if was.leader == now.leader == self._node_id:
                self.isr_shrinks += not set(was.isr) <= set(now.isr)
                self.isr_expands += not set(now.isr) <= set(was.isr)

    def figures(self, *, is_controller: bool) -> ReplicaFigures:
        """Figures of replicas, from the image."""
        led = under_replicated = under_min_isr = offline = here = 0
        for topic in self.image.topics():
            least = 0
            for state in topic.partitions:
                offline += state.leader == NO_LEADER
                here += self._node_id in state.replicas
                if state.leader == self._node_id:
                    least = least or self.config(topic.configs).min_insync_replicas
                    led += 1
                    under_replicated += len(state.isr) < len(state.replicas)
                    under_min_isr += len(state.isr) < least
        return ReplicaFigures(
            led,
            under_replicated,
            under_min_isr,
            self.isr_shrinks,
            self.isr_expands,
            int(is_controller),
            offline if is_controller else 0,
            partitions=here,
        )

    def follow(self, image: ClusterImage) -> tuple[list[TopicImage], list[TopicImage]]:
        """Adapt topics and logs here to the image; return the topics that changed, and those that are
        gone.
        """
        before, self._seen = self._seen, image
        changed = [topic for topic in image.topics() if before.topic(topic.name) is not topic]
        gone = [topic for topic in before.topics() if image.topic_by_id(topic.id) is None]
        typed = []
        for topic in changed:
            known = before.topic(topic.name)
            self._count(known, topic)
            typed.append(topic.having(configs=self._typed_configs(topic, known)))
        now = self.image.changed(
            typed,
            deleted=[self.image.topic(each.name) or each for each in gone],
            brokers=image.brokers,
            controller_id=image.controller_id,
        )
        now.cluster_id = image.cluster_id
        self.image = now
        for topic in gone:
            self._folded.pop(fold_name(topic.name), None)
            if self.logs.topic(topic.name) is not None:
                self.logs.delete(topic.name, is_stray=topic.id not in image.deletions)
        if self._deletions_here():
            self.logs.has_leftovers.set()
        for topic, adapted in zip(changed, typed, strict=True):
            self._folded[fold_name(topic.name)] = topic.name
            if not self._has_as_before(topic, before.topic(topic.name)):
                self._have(adapted)
        return typed, gone

    def with_epochs(self, topic: TopicImage) -> TopicImage:
        return topic

    async def carry_out(self, plans: Sequence[TopicPlan]) -> dict[str, KafkaError]:
        return await self._control.create_topics(plans)

    async def alter(self, changes: Mapping[TopicImage, dict[str, Any]]) -> None:
        await self._control.alter_topics(changes)

    async def add_partitions(
        self, counts: Mapping[TopicImage, int], placed: Placed | None = None
    ) -> dict[str, KafkaError]:
        return await self._control.add_partitions(counts, placed or {})

    async def delete(self, topics: Collection[TopicImage]) -> None:
        await self._control.delete_topics(topics)

    async def clear(self) -> None:
        await self.logs.clear()
        if deleted := self._deletions_here():
            left = self.logs.settle()
            if left is not None:
                await self._control.report_removed([each for each in deleted if each not in left])

    def _deletions_here(self) -> list[UUID]:
        """Ids of deleted topics of which this broker has not reported yet that it has nothing left."""
        return [each for each, brokers in self._seen.deletions.items() if self._node_id in brokers]

    # -- inside ----------------------------------------------------------------------------------------------

    def _have(self, topic: TopicImage) -> None:
        """Create the replicas of a topic that are assigned to this broker, and remove all others."""
        local = self.logs.topic(topic.name)
        here = {n: state for n, state in enumerate(topic.partitions) if self._node_id in state.replicas}
        config = self.config(topic.configs)
        if local is None:
            if not here:
                return
            made = self.logs.add(topic.name, topic.id, config, here)
        else:
            if local.config != config:
                self.logs.reconfigure(topic.name, config)
            self.logs.remove(local, [n for n in local.partitions if n not in here])
            made = self.logs.grow(topic.name, [n for n in here if n not in local.partitions])
        for partition in made:
            partition.replicate()

    def _has_as_before(self, topic: TopicImage, before: TopicImage | None) -> bool:
        """Return whether the replicas here need no change: where brokers come and go, most topics have other
        leaders and in-sync replicas alone.
        """
        if before is None or before.id != topic.id or before.configs != topic.configs:
            return False
        if [each.replicas for each in before.partitions] != [each.replicas for each in topic.partitions]:
            return False
        is_here = any(self._node_id in each.replicas for each in topic.partitions)
        return is_here == (self.logs.topic(topic.name) is not None)

    def _typed_configs(self, topic: TopicImage, before: TopicImage | None) -> Mapping[str, object]:
        known = self.image.topic(topic.name)
        if known is not None and before is not None and before.configs == topic.configs:
            return known.configs  # only its replicas have changed, as is more frequent
        try:
            checked = read_settings(TopicConfig, topic.configs)
        except SettingsError as error:
            log.error("configs of the topic %s cannot be read, its defaults count: %s", topic.name, error)
            return {}
        return {name: getattr(checked, name) for name in (key.replace(".", "_") for key in topic.configs)}

    def _damaged(self, partition: Partition) -> None:
        self.on_damage(partition)
