"""The topics of this broker: which there are, and how they come and go.

A change of many topics is one: ``kohort.json`` is written once for all of them, before any of it is seen.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..log import DataFolder
from ..protocol import ErrorCode, KafkaError, MetadataPartitions, TopicPartition
from ..settings import SettingsError, read_settings
from ._names import INTERNAL, OFFSETS_TOPIC, check_name, folded
from ._partition import Partition
from ._settings import BrokerSettings, topic_defaults
from ._topic_config import TopicConfig
from ._topic_logs import TopicLogs
from ._topics_file import TopicEntry, TopicsFile
from .metrics import Histogram
from .metrics._traffic import TopicTraffic

#: The id that stands for none.
NO_TOPIC_ID = uuid.UUID(int=0)


@dataclass(slots=True, eq=False)
class Topic:
    """A topic. ``configs`` is what was set for it, ``config`` all of it with the defaults.

    ``described`` is what Metadata says of its partitions; None when that has to be looked up again.
    """

    name: str
    id: uuid.UUID
    configs: dict[str, Any]
    config: TopicConfig
    partitions: list[Partition] = field(default_factory=list)
    traffic: TopicTraffic = field(default_factory=TopicTraffic)
    flush_times: Histogram = field(default_factory=Histogram)
    described: MetadataPartitions | None = None

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
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}
        self._folded: dict[str, str] = {}
        self._file = TopicsFile.load(Path(folder.path))
        self._logs = TopicLogs(folder, self._file, settings, now_ms)

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
        """Take in what is in the data folder, create ``__consumer_offsets``.

        After a stop that was not clean every log is read and made whole; else one is when it is asked for.
        """
        self._logs.take_in()
        for name, entry in self._file.topics.items():
            self._add(self._made(name, entry))
        if not self._logs.clean:
            for partition in self.partitions():
                partition.open()
        if OFFSETS_TOPIC not in self._by_name:
            count, configs = (
                self._settings.offsets_topic_num_partitions,
                self._logs.first_configs(OFFSETS_TOPIC),
            )
            self.carry_out([TopicPlan(OFFSETS_TOPIC, _new_id(), count, configs)])

    @property
    def lately_deleted(self) -> Collection[str]:
        """Topics whose deletion the last run may not have finished: offsets of groups may be left."""
        return self._logs.deleted

    def forget_deleted(self) -> None:
        """Those offsets are removed too. Raises OSError."""
        self._logs.forget_deleted()

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
            raise _too_like(name, beside)

    def check_configs(self, configs: Mapping[str, str]) -> dict[str, Any]:
        """Configs of a topic by field name, checked and typed. Raises SettingsError."""
        checked = read_settings(TopicConfig, configs)
        given = {name: getattr(checked, name) for name in (key.replace(".", "_") for key in configs)}
        lags = given.keys() & {"min_compaction_lag_ms", "max_compaction_lag_ms"}
        config = self._config(given)
        if lags and config.min_compaction_lag_ms > config.max_compaction_lag_ms:
            raise SettingsError(
                f"min.compaction.lag.ms is {config.min_compaction_lag_ms}, max.compaction.lag.ms "
                f"{config.max_compaction_lag_ms}: a record cannot be kept for longer than it may wait"
            )
        return given

    def create(self, name: str, partitions: int, configs: Mapping[str, str]) -> Topic:
        """Create a topic. Raises KafkaError, and SettingsError for the configs."""
        return self.carry_out([self.plan(name, partitions, configs)])[0]

    def refusals(self, plans: Sequence[TopicPlan]) -> dict[str, KafkaError]:
        """What speaks against carrying plans out together now, by name: others may have come meanwhile."""
        refused: dict[str, KafkaError] = {}
        seen: dict[str, str] = {}
        for plan in plans:
            beside = seen.setdefault(folded(plan.name), plan.name)
            try:
                self.check_free(plan.name)
                if beside != plan.name:
                    raise _too_like(plan.name, beside)
            except KafkaError as error:
                refused[plan.name] = error
        return refused

    def carry_out(self, plans: Sequence[TopicPlan]) -> list[Topic]:
        """Create what was planned: on disk as a whole before any of it is seen. Raises KafkaError
        KAFKA_STORAGE_ERROR; nothing is created then.
        """
        entries = {plan.name: TopicEntry(plan.id, plan.partitions, plan.configs) for plan in plans}
        made = [self._made(name, entry) for name, entry in entries.items()]
        with self._change():
            self._file.topics.update(entries)
        for topic in made:
            self._add(topic)
        return made

    def alter(self, changes: Mapping[Topic, dict[str, Any]]) -> None:
        """Let these be all that is set for topics: on disk, then in force. Raises KafkaError
        KAFKA_STORAGE_ERROR; nothing is changed then.
        """
        with self._change():
            for topic, configs in changes.items():
                self._file.topics[topic.name] = replace(self._file.topics[topic.name], configs=configs)
        for topic, configs in changes.items():
            topic.configs, topic.config = configs, self._config(configs)
            for partition in topic.partitions:
                partition.reconfigure()

    def settings_changed(self) -> None:
        """The defaults of the topics are others now."""
        for topic in self.all():
            topic.config = self._config(topic.configs)
            for partition in topic.partitions:
                partition.reconfigure()

    def add_partitions(self, counts: Mapping[Topic, int]) -> None:
        """Let topics have so many partitions, more than they have. Raises KafkaError KAFKA_STORAGE_ERROR;
        none is added then.
        """
        more = {topic: self._partitions(topic, count) for topic, count in counts.items()}
        with self._change():
            for topic, count in counts.items():
                self._file.topics[topic.name] = replace(self._file.topics[topic.name], partitions=count)
        for topic, partitions in more.items():
            topic.partitions += partitions
            topic.described = None

    def delete(self, topics: Collection[Topic]) -> None:
        """Delete topics; waiting Fetch requests are woken and find them gone. ``clear`` removes the files.

        Raises KafkaError KAFKA_STORAGE_ERROR; none is deleted then.
        """
        with self._change():
            for topic in topics:
                del self._file.topics[topic.name]
                self._file.deleted[topic.id] = topic.name
        for topic in topics:
            del self._by_name[topic.name], self._by_id[topic.id]
            self._folded.pop(folded(topic.name), None)
            self._logs.doom(topic.partitions)
            for partition in topic.partitions:
                partition.delete()

    async def clear(self) -> None:
        """Remove the files of deleted topics."""
        await self._logs.clear()

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
        return any(partition.damage for partition in self.partitions()) or any(
            found.is_damaged for found in logs if found is not None
        )

    def write_checkpoints(self) -> None:
        """Make recovery points and log starts durable. Raises KafkaError."""
        logs = (partition.log for partition in self.partitions())
        self._folder.write_checkpoints(log for log in logs if log is not None)

    def write_log_starts(self, partitions: Iterable[Partition]) -> None:
        """Make what DeleteRecords has moved durable. Raises KafkaError."""
        self._folder.write_log_starts(each.log for each in partitions if each.log is not None)

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

    # inside

    @contextmanager
    def _change(self) -> Iterator[None]:
        try:
            with self._file.change():
                yield
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"nothing is changed: {error}") from error

    def _config(self, configs: Mapping[str, Any]) -> TopicConfig:
        return TopicConfig(**{**topic_defaults(self._settings), **configs})

    def _made(self, name: str, entry: TopicEntry) -> Topic:
        config = self._config(entry.configs)
        topic = Topic(name, entry.id, entry.configs, config, flush_times=self._flush_times)
        topic.partitions = self._partitions(topic, entry.partitions)
        return topic

    def _partitions(self, topic: Topic, count: int) -> list[Partition]:
        """The partitions that a topic of ``count`` has more than it has now."""
        return [
            Partition(topic, index, self._logs, on_disk=self._logs.on_disk(TopicPartition(topic.name, index)))
            for index in range(len(topic.partitions), count)
        ]

    def _add(self, topic: Topic) -> None:
        self._by_name[topic.name] = topic
        self._by_id[topic.id] = topic
        self._folded[folded(topic.name)] = topic.name


def _too_like(name: str, beside: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        f"the topic name {name} differs from {beside} only in dots and underscores: take another",
    )


def _new_id() -> uuid.UUID:
    """A topic id; like Apache Kafka none whose text begins with a hyphen, which tools take for an option."""
    while True:
        made = uuid.uuid4()
        if made.bytes[0] >> 2 != _HYPHEN:
            return made


#: The six bits that base64url writes as a hyphen.
_HYPHEN = 62
