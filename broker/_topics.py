"""The topics of this broker: which there are, their partitions' logs, and how they come and go."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..log import CorruptLogError, DataFolder, DataFolderError, PartitionLog
from ..protocol import ErrorCode, KafkaError, KohortError, TopicPartition
from ._names import INTERNAL, OFFSETS_TOPIC, check_name, folded
from ._partition import Partition
from ._settings import BrokerSettings
from ._topic_config import TopicConfig, topic_defaults
from ._topics_file import TopicEntry, TopicsFile
from ._validation import read_settings
from .metrics import Histogram
from .metrics._traffic import TopicTraffic

log = logging.getLogger("kohort.broker")

#: The id that stands for none.
NO_TOPIC_ID = uuid.UUID(int=0)


@dataclass(slots=True, eq=False)
class Topic:
    """A topic. ``configs`` is what was set for it, ``config`` all of it with the defaults."""

    name: str
    id: uuid.UUID
    configs: dict[str, Any]
    config: TopicConfig
    partitions: list[Partition] = field(default_factory=list)
    traffic: TopicTraffic = field(default_factory=TopicTraffic)
    flush_times: Histogram = field(default_factory=Histogram)

    def __repr__(self) -> str:
        return f"Topic({self.name}, {len(self.partitions)} partitions)"

    @property
    def internal(self) -> bool:
        return self.name in INTERNAL


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic that may be created."""

    name: str
    id: uuid.UUID
    partitions: int
    configs: dict[str, Any]


class Topics:
    """All topics by name and by id."""

    def __init__(
        self,
        folder: DataFolder,
        settings: BrokerSettings,
        now_ms: Callable[[], int],
        flush_times: Histogram | None = None,
    ) -> None:
        self._flush_times = flush_times or Histogram()
        self._folder = folder
        self._settings = settings
        self._now_ms = now_ms
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}
        self._folded: dict[str, str] = {}
        self._file = TopicsFile.load(Path(folder.path))
        self._on_disk: dict[TopicPartition, PartitionLog] = {}
        self._damaged: dict[TopicPartition, str] = {}

    def __repr__(self) -> str:
        return f"Topics({len(self._by_name)})"

    # looking

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: uuid.UUID) -> Topic | None:
        return self._by_id.get(topic_id)

    def all(self) -> list[Topic]:
        return list(self._by_name.values())

    def partitions(self) -> Iterator[Partition]:
        """Every partition; a snapshot of the topics, so that they may change meanwhile."""
        for topic in self.all():
            yield from list(topic.partitions)

    def count_of(self, name: str) -> int | None:
        """Partitions of a topic, None if there is no such topic."""
        topic = self._by_name.get(name)
        return None if topic is None else len(topic.partitions)

    def id_of(self, name: str) -> uuid.UUID | None:
        topic = self._by_name.get(name)
        return None if topic is None else topic.id

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        topic = self._by_id.get(topic_id)
        return None if topic is None else topic.name

    # changing

    def open(self) -> None:
        """Open every log of the data folder, finish deletions, create ``__consumer_offsets``."""
        self._take_in_folders()
        for name, entry in self._file.topics.items():
            self._open_topic(name, entry)
        if OFFSETS_TOPIC not in self._by_name:
            count, configs = self._settings.offsets_topic_num_partitions, self._first_configs(OFFSETS_TOPIC)
            self.carry_out(TopicPlan(OFFSETS_TOPIC, _new_id(), count, configs))

    def plan(self, name: str, partitions: int, configs: Mapping[str, str]) -> TopicPlan:
        """Check what would be created. Raises KafkaError, and SettingsError for the configs."""
        self.check_free(name)
        return TopicPlan(name, _new_id(), partitions, self.check_configs(configs))

    def check_free(self, name: str) -> None:
        """Raise KafkaError for a name that no topic can have, or that one has."""
        check_name(name)
        if name in self._by_name:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} is there already")
        beside = self._folded.get(folded(name))
        if beside is not None:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"the topic name {name} differs from {beside} only in dots and underscores: take another",
            )

    def check_configs(self, configs: Mapping[str, str]) -> dict[str, Any]:
        """Configs of a topic by field name, checked and typed. Raises SettingsError."""
        checked = read_settings(TopicConfig, configs, "topic config")
        return {name: getattr(checked, name) for name in (key.replace(".", "_") for key in configs)}

    def create(self, name: str, partitions: int, configs: Mapping[str, str]) -> Topic:
        """Create a topic. Raises KafkaError, and SettingsError for the configs."""
        return self.carry_out(self.plan(name, partitions, configs))

    def carry_out(self, plan: TopicPlan) -> Topic:
        """Create what was planned: on disk as a whole before any of it is seen."""
        entry = TopicEntry(plan.id, plan.partitions, plan.configs)
        self._file.topics[plan.name] = entry
        try:
            self._file.save()
        except OSError:
            del self._file.topics[plan.name]
            raise
        return self._open_topic(plan.name, entry)

    def alter(self, topic: Topic, configs: dict[str, Any]) -> None:
        """Let these be all that is set for a topic: on disk, then in force. Raises OSError."""
        entry = self._file.topics[topic.name]
        before, entry.configs = entry.configs, configs
        try:
            self._file.save()
        except OSError:
            entry.configs = before
            raise
        topic.configs, topic.config = configs, self._config(configs)
        for partition in topic.partitions:
            partition.reconfigure()

    def settings_changed(self) -> None:
        """The defaults of the topics are others now."""
        for topic in self.all():
            topic.config = self._config(topic.configs)
            for partition in topic.partitions:
                partition.reconfigure()

    def add_partitions(self, topic: Topic, count: int) -> None:
        """Let a topic have ``count`` partitions, more than it has."""
        entry = self._file.topics[topic.name]
        before, entry.partitions = entry.partitions, count
        try:
            self._file.save()
        except OSError:
            entry.partitions = before
            raise
        self._open_partitions(topic, count)

    def delete(self, topic: Topic) -> None:
        """Delete a topic and its files; waiting Fetch requests are woken and find it gone."""
        entry = self._file.topics.pop(topic.name)
        self._file.deleted.add(topic.id)
        try:
            self._file.save()
        except OSError:
            self._file.topics[topic.name] = entry
            self._file.deleted.discard(topic.id)
            raise
        del self._by_name[topic.name], self._by_id[topic.id]
        self._folded.pop(folded(topic.name), None)
        for partition in topic.partitions:
            if self._damaged.pop(TopicPartition(topic.name, partition.index), None) is not None:
                self._folder.remove_partition(topic.name, partition.index)
            partition.delete()
        # the folders are renamed: nothing is left to take in again, the next saving may forget the id
        self._file.deleted.discard(topic.id)

    def reserve_producer_ids(self, end: int) -> None:
        """Make durable that producer ids below ``end`` may have been given out."""
        self._file.next_producer_id = end
        self._file.save()

    @property
    def next_producer_id(self) -> int:
        return self._file.next_producer_id

    @property
    def damaged(self) -> bool:
        """Whether a partition was left as it was found: the next start must look at the files again."""
        logs = (partition.log for partition in self.partitions() if partition.topic.name != OFFSETS_TOPIC)
        return (
            bool(self._damaged)
            or any(partition.damage for partition in self.partitions())
            or any(found.is_damaged for found in logs if found is not None)
        )

    def write_checkpoints(self) -> None:
        """Make recovery points and log starts durable. Raises KafkaError."""
        logs = (partition.log for partition in self.partitions())
        self._folder.write_checkpoints(log for log in logs if log is not None)

    def close(self) -> None:
        """Flush and close every log. Raises KafkaError if a disk failed; the stop is not clean then."""
        failed: KafkaError | None = None
        for partition in self.partitions():
            try:
                partition.close()
            except KafkaError as error:
                failed = error
        if failed is not None:
            raise failed
        self.write_checkpoints()

    def check_name(self, name: str) -> None:
        """Raise KafkaError for a name that no topic can have."""
        check_name(name)

    # opening

    def _take_in_folders(self) -> None:
        """Open what is on disk: topics the file does not know are added, deletions cut short are finished."""
        deleted, self._file.deleted = self._file.deleted, set()
        unknown: set[str] = set()
        for name, index, _ in self._folder.partitions():
            entry = self._file.topics.get(name)
            try:
                opened = self._open_log(name, index, entry)
            except (CorruptLogError, DataFolderError, KafkaError) as error:
                self._leave_damaged(TopicPartition(name, index), error)
                continue
            if opened.topic_id in deleted:
                opened.delete()
                continue
            self._on_disk[TopicPartition(name, index)] = opened
            if entry is None:
                entry = self._file.topics[name] = TopicEntry(
                    opened.topic_id, index + 1, self._first_configs(name)
                )
                unknown.add(name)
            if name in unknown:
                entry.partitions = max(entry.partitions, index + 1)
        if unknown or deleted:
            self._file.save()

    def _leave_damaged(self, partition: TopicPartition, error: KohortError) -> None:
        """One bad file is no reason to serve nothing; what it holds is left for somebody to look at."""
        self._damaged[partition] = str(error)
        log.error("%s-%d is not served, its files are left as they are: %s", *partition, error)

    def _open_log(self, name: str, index: int, entry: TopicEntry | None) -> PartitionLog:
        config = self._config(self._first_configs(name) if entry is None else entry.configs).log_config()
        topic_id = None if entry is None else entry.id
        # a damaged batch is answered as such; the coordinator steps over what cannot be read of its own topic
        keep_damage = name != OFFSETS_TOPIC or not self._settings.kohort_offsets_load_strict
        opened = self._folder.open_log(
            name, index, config, now_ms=self._now_ms(), topic_id=topic_id, keep_damage=keep_damage
        )
        for cut in opened.recovery.cuts:
            log.warning("%s: cut %d bytes at %d: %s", cut.path, cut.bytes_cut, cut.position, cut.reason)
        if lost := opened.recovery.lost_offsets:
            log.error(
                "%s-%d ends at offset %d: %d offsets behind it were on the disk and are gone, restore the "
                "files from a copy, or expect committed offsets behind the end",
                *(name, index, opened.log_end_offset, lost),
            )
        for damage in opened.recovery.damaged:
            log.error("%s: damaged at %d, left as it is: %s", damage.path, damage.position, damage.reason)
        return opened

    def _first_configs(self, name: str) -> dict[str, Any]:
        """What is set for a topic that came without settings: offsets are compacted, not deleted by age."""
        if name != OFFSETS_TOPIC:
            return {}
        return {"cleanup_policy": "compact", "segment_bytes": self._settings.offsets_topic_segment_bytes}

    def _config(self, configs: Mapping[str, Any]) -> TopicConfig:
        return TopicConfig(**{**topic_defaults(self._settings), **configs})

    def _open_topic(self, name: str, entry: TopicEntry) -> Topic:
        config = self._config(entry.configs)
        topic = Topic(name, entry.id, entry.configs, config, flush_times=self._flush_times)
        self._open_partitions(topic, entry.partitions)
        self._by_name[name] = topic
        self._by_id[topic.id] = topic
        self._folded[folded(name)] = name
        return topic

    def _open_partitions(self, topic: Topic, count: int) -> None:
        for index in range(len(topic.partitions), count):
            key = TopicPartition(topic.name, index)
            found, damage = self._on_disk.pop(key, None), self._damaged.get(key)
            topic.partitions.append(Partition(topic, index, found, self._create_log, damage))

    def _create_log(self, partition: Partition) -> PartitionLog:
        topic = partition.topic
        if self._by_name.get(topic.name) is not topic:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name} was deleted")
        return self._open_log(topic.name, partition.index, self._file.topics[topic.name])


def _new_id() -> uuid.UUID:
    """A topic id; like Apache Kafka none whose text begins with a hyphen, which tools take for an option."""
    while True:
        made = uuid.uuid4()
        if made.bytes[0] >> 2 != _HYPHEN:
            return made


#: The six bits that base64url writes as a hyphen.
_HYPHEN = 62
