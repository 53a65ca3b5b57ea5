"""What a broker asks of the controller, whichever broker that is.

A decision is a function of the image; who is controller decides, writes, and replies once this broker's own
image shows the outcome.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from ...cluster import ClusterImage, TopicImage
from ...cluster.controller import (
    Decision,
    NewPartitions,
    NewTopic,
    Refusals,
    Rules,
    add_partitions,
    alter_configs,
    create_topics,
    delete_topics,
    elect_leaders,
    reassign,
)
from ...protocol import ErrorCode, KafkaError, TopicPartition
from ..partitions.topic_names import COORDINATORS, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from ..settings import BrokerSettings

A = TypeVar("A")


class ControllerRequests(ABC):
    """``settings`` are this broker's."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings

    # -- for the homes of the metadata -----------------------------------------------------------------------

    @property
    @abstractmethod
    def is_active(self) -> bool:
        """Return whether this broker is the controller."""

    @property
    @abstractmethod
    def image(self) -> ClusterImage:
        """The image as decisions see it."""

    @abstractmethod
    def stored_configs(self, configs: Mapping[str, object]) -> Mapping[str, object]:
        """Typed configs of a topic in the form that ``image`` has."""

    @abstractmethod
    async def decide(self, decision: Callable[[ClusterImage, Rules], Decision[A]]) -> A:
        """Carry out a decision and return its answer; by then this broker has seen the change. Raises
        KafkaError: NOT_CONTROLLER on other brokers.
        """

    @abstractmethod
    async def report_removed(self, topic_ids: Collection[UUID]) -> None:
        """Note that this broker has no files left of deleted topics. What cannot be noted now is tried again
        by the caller.
        """

    # -- requests --------------------------------------------------------------------------------------------

    async def create_topics(self, wanted: Sequence[NewTopic]) -> dict[str, KafkaError]:
        """Create topics; return the errors of those that cannot be created. Raises KafkaError."""
        topics = self._with_configs(wanted)
        return refusals_in(await self.decide(lambda image, _: create_topics(image, topics)))

    async def create_internal(self, name: str) -> None:
        """Create a topic of a coordinator, unless it exists. Raises KafkaError: INVALID_REPLICATION_FACTOR as
        long as there are too few brokers, and others.
        """
        wanted = internal_topic(self._settings, name, len(self.image.brokers))
        for error in (await self.create_topics([wanted])).values():
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise error

    def refused_topics(self, wanted: Sequence[NewTopic]) -> dict[str, KafkaError]:
        """Errors of topics that cannot be created at present."""
        return refusals_in(create_topics(self.image, wanted).answer)

    def refused_partitions(self, wanted: Sequence[NewPartitions]) -> dict[str, KafkaError]:
        """Errors of topics that cannot have this many partitions at present."""
        return refusals_in(add_partitions(self.image, wanted).answer)

    async def add_partitions(self, wanted: Sequence[NewPartitions]) -> dict[str, KafkaError]:
        """Add partitions to topics; return the errors of those that cannot have them."""
        return refusals_in(await self.decide(lambda image, _: add_partitions(image, wanted)))

    async def alter_topics(self, changes: Mapping[TopicImage, Mapping[str, object]]) -> None:
        """Replace the configs of topics; typed, by field name."""
        wanted = {topic.id: self.stored_configs(configs) for topic, configs in changes.items()}
        await self.decide(lambda image, _: alter_configs(image, wanted))

    async def delete_topics(self, topics: Collection[TopicImage]) -> None:
        """Delete topics; those that are gone already are passed over."""
        names = [topic.name for topic in topics]
        await self.decide(lambda image, _: delete_topics(image, names))

    async def elect(
        self, partitions: Collection[TopicPartition] | None, *, unclean: bool
    ) -> Mapping[TopicPartition, KafkaError | None]:
        """Elect preferred leaders, or any; see ``elect_leaders``."""
        return await self.decide(
            lambda image, rules: elect_leaders(image, partitions, rules, unclean=unclean)
        )

    async def reassign(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None], *, same_factor: bool = False
    ) -> Mapping[TopicPartition, KafkaError | None]:
        """Give partitions other replicas, or cancel that (None); see ``reassign``."""
        return await self.decide(lambda image, rules: reassign(image, wanted, rules, same_factor=same_factor))

    def _with_configs(self, wanted: Sequence[NewTopic]) -> list[NewTopic]:
        """The topics with the first configs of coordinators' topics, in the form that ``image`` has."""
        found = []
        for topic in wanted:
            first = first_configs(self._settings, topic.name)
            configs = self.stored_configs({**first, **topic.configs} if first else topic.configs)
            found.append(topic if configs is topic.configs else replace(topic, configs=configs))
        return found


def refusals_in(answer: Refusals[str]) -> dict[str, KafkaError]:
    """Return the errors of an answer, without what succeeded."""
    return {name: error for name, error in answer.items() if error is not None}


def internal_topic(settings: BrokerSettings, name: str, brokers: int) -> NewTopic:
    """The topic of a coordinator as the settings want it, without its first configs."""
    if name == OFFSETS_TOPIC:
        count, factor = settings.offsets_topic_num_partitions, settings.offsets_topic_replication_factor
    elif name == SHARE_STATE_TOPIC:
        count = settings.share_coordinator_state_topic_num_partitions
        # with Kafka's default of 3 share groups would have nothing on one broker or two, and no client could
        # see why
        factor = max(min(settings.share_coordinator_state_topic_replication_factor, brokers), 1)
        least = min(settings.share_coordinator_state_topic_min_isr, factor)
        configs = {"min_insync_replicas": least}
        return NewTopic(name, partitions=count, replication_factor=factor, configs=configs)
    else:
        count = settings.transaction_state_log_num_partitions
        factor = settings.transaction_state_log_replication_factor
    return NewTopic(name, partitions=count, replication_factor=factor)


def first_configs(settings: BrokerSettings, name: str) -> dict[str, object]:
    """The first configs of a topic that came without any: most topics of coordinators are compacted."""
    if name not in COORDINATORS:
        return {}
    sizes = {
        OFFSETS_TOPIC: settings.offsets_topic_segment_bytes,
        TRANSACTIONS_TOPIC: settings.transaction_state_log_segment_bytes,
        SHARE_STATE_TOPIC: settings.share_coordinator_state_topic_segment_bytes,
    }
    configs = {"cleanup_policy": "compact", "segment_bytes": sizes[name], "compression_type": "producer"}
    if name == SHARE_STATE_TOPIC:
        # its coordinator cuts it
        configs |= {"cleanup_policy": "delete", "retention_ms": -1}
        if settings.log_retention_bytes >= 0:
            # Apache Kafka would delete state by size
            configs["retention_bytes"] = -1
    if name == TRANSACTIONS_TOPIC:
        # with a larger min.insync.replicas than there are replicas nothing could be written
        least = min(settings.transaction_state_log_min_isr, settings.transaction_state_log_replication_factor)
        configs |= {
            "compression_type": "uncompressed",
            "min_insync_replicas": least,
            "unclean_leader_election_enable": False,
        }
    return configs
