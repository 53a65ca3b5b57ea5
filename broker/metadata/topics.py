"""The topics of the cluster, on one of its brokers: they follow the cluster's image, and the controller
changes them.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...cluster import NO_LEADER, UNKNOWN_EPOCH, ClusterImage, TopicImage
from ...cluster.controller import NewPartitions, NewTopic
from ...log import DataFolder
from ...protocol import ErrorCode, KafkaError
from ...settings import SettingsError, read_settings
from ..metrics import Histogram, ReplicaFigures
from ..partitions.local_logs import LocalLogs
from ..partitions.partition import Partition
from ..partitions.topic_config import TopicConfig, topic_defaults
from ..partitions.topic_names import check_name, fold_name
from ..settings import BrokerSettings

if TYPE_CHECKING:
    from .controller_requests import ControllerRequests

log = logging.getLogger("kohort.broker")

#: The id that stands for no topic.
NO_TOPIC_ID = uuid.UUID(int=0)


class Topics:
    """All topics, in ``image``, and their logs on this broker, in ``logs``. Configs in ``image`` are typed,
    by field name, as everywhere in the broker; the image of a shared store has Kafka's names and text.

    ``replicated``: other brokers may have replicas. The owner sets ``control``.
    """

    control: ControllerRequests

    def __init__(
        self,
        folder: DataFolder,
        settings: BrokerSettings,
        now_ms: Callable[[], int],
        flush_times: Histogram,
        *,
        replicated: bool,
    ) -> None:
        #: The cluster as it is now; replaced as a whole.
        self.image = ClusterImage(folder.cluster_id, NO_LEADER, {})
        self.logs = LocalLogs(
            folder,
            settings,
            now_ms,
            flush_times,
            lambda partition: self.on_damage(partition),
            replicated=replicated,
        )
        #: Called with each partition that cannot be served any more.
        self.on_damage: Callable[[Partition], None] = lambda _: None
        #: Called with topics that were deleted.
        self.on_deleted: Callable[[Collection[TopicImage]], None] = lambda _: None
        #: How often replicas left, and joined, the in-sync replicas of partitions that this broker leads.
        self.isr_shrinks = self.isr_expands = 0
        self._node_id = settings.node_id
        self._settings = settings
        self._usual = _usual_config(settings)
        # names that exist, or will in a moment, as they are compared
        self._folded: dict[str, str] = {}
        self._clearing = asyncio.Lock()
        # the shared store's image that was followed last
        self._seen = self.image

    def __repr__(self) -> str:
        return f"Topics({self.image})"

    # -- looking ---------------------------------------------------------------------------------------------

    def get(self, name: str) -> TopicImage | None:
        """Find a topic by its name."""
        return self.image.topic(name)

    def by_id(self, topic_id: uuid.UUID | None) -> TopicImage | None:
        """Find a topic by its id."""
        return self.image.topic_by_id(topic_id)

    def all(self) -> Sequence[TopicImage]:
        """Every topic, the oldest first."""
        return self.image.topics()

    def count_of(self, name: str) -> int | None:
        """Partitions of a topic, None if there is no such topic."""
        found = self.image.topic(name)
        return None if found is None else len(found.partitions)

    def names(self) -> list[str]:
        """Names of all topics."""
        return [topic.name for topic in self.image.topics()]

    def id_of(self, name: str) -> uuid.UUID | None:
        """Return a topic's id; None if there is no such topic."""
        found = self.image.topic(name)
        return None if found is None else found.id

    def name_of(self, topic_id: uuid.UUID | None) -> str | None:
        """Return the name of the topic with an id; None if there is none."""
        found = self.image.topic_by_id(topic_id)
        return None if found is None else found.name

    def with_epochs(self, topic: TopicImage) -> TopicImage:
        """The topic with the leader epochs that its files here have. Raises KafkaError if a file with one
        cannot be opened.
        """
        unread = [n for n, state in enumerate(topic.partitions) if state.leader_epoch == UNKNOWN_EPOCH]
        led = ((n, self.logs.led(topic.name, n)) for n in unread)
        epochs = {n: partition.leader_epoch for n, partition in led if partition is not None}
        if not epochs:
            return topic
        # the image shows by now which partitions were found to be damaged
        found = self.image.topic(topic.name)
        assert found is not None, "nothing is deleted meanwhile"
        states = list(found.partitions)
        for n, epoch in epochs.items():
            states[n] = states[n]._replace(leader_epoch=epoch)
        topic = found.having(partitions=states)
        self.image = self.image.with_changes([topic])
        return topic

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
                    under_min_isr += len(state.isr) < min(least, len(state.replicas))
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

    def config(self, configs: Mapping[str, Any]) -> TopicConfig:
        """The config of a topic for which these were set."""
        return replace(self._usual, **configs) if configs else self._usual

    # -- changing --------------------------------------------------------------------------------------------

    def check_free(self, name: str) -> None:
        """Raise KafkaError for a name that is invalid or taken."""
        check_name(name)
        beside = self._folded.get(fold_name(name))
        if beside == name or self.image.topic(name) is not None:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} is there already")
        if beside is not None:
            raise _too_like(name, beside)

    def check_configs(self, configs: Mapping[str, str]) -> dict[str, Any]:
        """Configs of a topic by field name, checked and typed. Raises SettingsError."""
        checked = read_settings(TopicConfig, configs)
        given = {name: getattr(checked, name) for name in (key.replace(".", "_") for key in configs)}
        if given.keys() & {"min_compaction_lag_ms", "max_compaction_lag_ms"}:
            config = self.config(given)
            if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
                raise SettingsError(
                    f"min.compaction.lag.ms is {config.min_compaction_lag_ms}, max.compaction.lag.ms "
                    f"{config.max_compaction_lag_ms}: a record cannot be kept for longer than it may wait"
                )
        return given

    def refusals(self, plans: Sequence[NewTopic]) -> dict[str, KafkaError]:
        """Return the errors of plans that can no longer be carried out, by name: other topics may exist
        by now.
        """
        refused: dict[str, KafkaError] = {}
        seen: dict[str, str] = {}
        for plan in plans:
            beside = seen.setdefault(fold_name(plan.name), plan.name)
            try:
                self.check_free(plan.name)
                if beside != plan.name:
                    raise _too_like(plan.name, beside)
            except KafkaError as error:
                refused[plan.name] = error
        return refused

    def reserve(self, names: Collection[str]) -> None:
        """Refuse these names from now on: topics that are about to appear have them."""
        self._folded.update((fold_name(name), name) for name in names)

    async def create(self, name: str, partitions: int, configs: Mapping[str, str]) -> TopicImage:
        """Create a topic. Raises KafkaError, and SettingsError for the configs."""
        self.check_free(name)
        await self.carry_out([NewTopic(name, partitions=partitions, configs=self.check_configs(configs))])
        made = self.image.topic(name)
        assert made is not None, "it was just made"
        return made

    async def carry_out(self, plans: Sequence[NewTopic]) -> dict[str, KafkaError]:
        """Create planned topics; return the errors of those that turned out to be impossible. Raises
        KafkaError, and then creates none.
        """
        return await self.control.create_topics(plans)

    async def alter(self, changes: Mapping[TopicImage, Mapping[str, object]]) -> None:
        """Replace the configs of topics, durably. Raises KafkaError, and then changes nothing."""
        await self.control.alter_topics(changes)

    async def add_partitions(self, wanted: Sequence[NewPartitions]) -> dict[str, KafkaError]:
        """Add partitions to topics; return the errors of those for which that turned out to be impossible.
        Raises KafkaError, and then adds none.
        """
        return await self.control.add_partitions(wanted)

    async def delete(self, topics: Collection[TopicImage]) -> None:
        """Delete topics; ``clear`` removes their files. Raises KafkaError, and then deletes none."""
        await self.control.delete_topics(topics)

    async def clear(self) -> None:
        """Remove the files of deleted topics."""
        # one after the other: the second of two would make the same names durable again
        async with self._clearing:
            left = await self.logs.clear()
            if deleted := self._deletions_here():
                left = self.logs.settle() if left is None else left
                if left is not None:
                    await self.control.report_removed([each for each in deleted if each not in left])

    def settings_changed(self) -> None:
        """Apply changed defaults of topics."""
        self._usual = _usual_config(self._settings)
        for each in self.all():
            # this broker may have no partition of a topic
            if self.logs.topic(each.name) is not None:
                self.logs.reconfigure(each.name, self.config(each.configs))

    # -- following -------------------------------------------------------------------------------------------

    def follow(self, image: ClusterImage) -> list[TopicImage]:
        """Adapt topics and logs here to an image of the shared store; return the topics that changed."""
        before, self._seen = self._seen, image
        changed = [topic for topic in image.topics() if before.topic(topic.name) is not topic]
        gone = [topic for topic in before.topics() if image.topic_by_id(topic.id) is None]
        typed = []
        for topic in changed:
            known = before.topic(topic.name)
            self._count_isr_changes(known, topic)
            typed.append(topic.having(configs=self._typed_configs(topic, known)))
        now = self.image.with_changes(
            typed,
            deleted=[self.image.topic(each.name) or each for each in gone],
            brokers=image.brokers,
            controller_id=image.controller_id,
        )
        now.cluster_id, now.deletions = image.cluster_id, image.deletions
        self.become(now, typed, gone)
        return typed

    def become(
        self, image: ClusterImage, changed: Collection[TopicImage], gone: Collection[TopicImage] = ()
    ) -> None:
        """Replace the image; the logs here of topics that have changed or are gone follow."""
        before, self.image = self.image, image
        for topic in gone:
            self._folded.pop(fold_name(topic.name), None)
            if self.logs.topic(topic.name) is not None:
                self.logs.delete(topic.name, is_stray=topic.id not in image.deletions)
        if gone:
            self.on_deleted(gone)
        if self._deletions_here():
            self.logs.has_leftovers.set()
        for topic in changed:
            self._folded[fold_name(topic.name)] = topic.name
            if not self._has_as_before(topic, before.topic(topic.name)):
                self._create_replicas(topic)

    # -- inside ----------------------------------------------------------------------------------------------

    def _deletions_here(self) -> list[uuid.UUID]:
        """Ids of deleted topics of which this broker has not reported yet that it has nothing left."""
        return [each for each, brokers in self.image.deletions.items() if self._node_id in brokers]

    def _count_isr_changes(self, before: TopicImage | None, after: TopicImage) -> None:
        """Count in-sync replicas that left and joined, in partitions that this broker leads."""
        for was, now in zip(() if before is None else before.partitions, after.partitions, strict=False):
            if was.leader == now.leader == self._node_id:
                self.isr_shrinks += not set(was.isr) <= set(now.isr)
                self.isr_expands += not set(now.isr) <= set(was.isr)

    def _create_replicas(self, topic: TopicImage) -> None:
        """Create the replicas of a topic that are assigned to this broker, and remove all others."""
        local = self.logs.topic(topic.name)
        here = {n: state for n, state in enumerate(topic.partitions) if self._node_id in state.replicas}
        config = self.config(topic.configs)
        if local is None:
            if not here:
                return
            self.logs.add(topic.name, topic.id, config, here)
        else:
            if local.config != config:
                self.logs.reconfigure(topic.name, config)
            self.logs.remove(local, [n for n in local.partitions if n not in here])
            self.logs.grow(topic.name, [n for n in here if n not in local.partitions])

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


def _usual_config(settings: BrokerSettings) -> TopicConfig:
    """The config of a topic for which nothing was set."""
    defaults: Mapping[str, Any] = topic_defaults(settings)
    return TopicConfig(**defaults)


def _too_like(name: str, beside: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        f"the topic name {name} differs from {beside} only in dots and underscores: take another",
    )


def metadata_unsaved(error: OSError) -> KafkaError:
    """KAFKA_STORAGE_ERROR, for metadata that cannot be saved."""
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"nothing is changed: {error}")
