"""The topics of the cluster: created, changed and deleted.

A change of many topics is one step of the metadata store, durable before any of it is visible; then the image
is replaced, and this broker's logs follow.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ...cluster import (
    BLOCK_SIZE,
    DELETED_TOPICS,
    NO_LEADER,
    PRODUCER_IDS,
    TOPICS,
    UNKNOWN_EPOCH,
    BrokerRegistration,
    Change,
    ClusterImage,
    Create,
    Delete,
    FolderStore,
    PartitionState,
    Put,
    TopicImage,
    TopicRecord,
    deleted_topic_path,
    topic_path,
)
from ...log import DataFolder, is_full
from ...protocol import ErrorCode, KafkaError
from ...settings import SettingsError, read_settings
from ..event_loop.time_slices import in_slices
from ..metrics import Histogram
from ..partitions.local_logs import LocalLogs
from ..partitions.partition import Partition
from ..partitions.topic_config import TopicConfig, topic_defaults
from ..partitions.topic_names import INTERNAL, OFFSETS_TOPIC, TRANSACTIONS_TOPIC, check_name, fold_name
from ..settings import BrokerSettings

#: New topics that get their logs in one go: about a millisecond.
_ADDED_AT_ONCE = 200

#: The first producer id given out in a folder that another broker wrote.
_FAR_PRODUCER_ID = 1_000_000_000

#: Replicas that a client chose for new partitions, by topic.
Placed: TypeAlias = Mapping[str, Sequence[Sequence[int]]]

#: The id that stands for no topic.
NO_TOPIC_ID = uuid.UUID(int=0)


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic that may be created."""

    name: str
    partitions: int
    configs: dict[str, Any]
    replication_factor: int = 1
    #: Replicas of each partition, if the client chose them.
    assignments: Sequence[Sequence[int]] | None = None
    id: uuid.UUID = field(default_factory=lambda: _new_id())


class Topics(ABC):
    """All topics, in ``image``, and their logs on this broker, in ``logs``. Subclasses know how topics
    change.
    """

    def __init__(self, image: ClusterImage, logs: LocalLogs, settings: BrokerSettings) -> None:
        #: The cluster as it is now; replaced as a whole.
        self.image = image
        self.logs = logs
        self._settings = settings
        self._folded: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.image})"

    # -- looking ---------------------------------------------------------------------------------------------

    def get(self, name: str) -> TopicImage | None:
        return self.image.topic(name)

    def by_id(self, topic_id: uuid.UUID | None) -> TopicImage | None:
        return self.image.topic_by_id(topic_id)

    def all(self) -> Sequence[TopicImage]:
        return self.image.topics()

    def count_of(self, name: str) -> int | None:
        """Partitions of a topic, None if there is no such topic."""
        found = self.image.topic(name)
        return None if found is None else len(found.partitions)

    def names(self) -> list[str]:
        """Names of all topics."""
        return [topic.name for topic in self.image.topics()]

    def id_of(self, name: str) -> uuid.UUID | None:
        found = self.image.topic(name)
        return None if found is None else found.id

    def name_of(self, topic_id: uuid.UUID | None) -> str | None:
        found = self.image.topic_by_id(topic_id)
        return None if found is None else found.name

    @abstractmethod
    def with_epochs(self, topic: TopicImage) -> TopicImage:
        """The topic with all leader epochs. Raises KafkaError if a file with one cannot be opened."""

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

    def refusals(self, plans: Sequence[TopicPlan]) -> dict[str, KafkaError]:
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

    async def create(self, name: str, partitions: int, configs: Mapping[str, str]) -> TopicImage:
        """Create a topic. Raises KafkaError, and SettingsError for the configs."""
        self.check_free(name)
        await self.carry_out([TopicPlan(name, partitions, self.check_configs(configs))])
        made = self.image.topic(name)
        assert made is not None, "it was just made"
        return made

    @abstractmethod
    async def carry_out(self, plans: Sequence[TopicPlan]) -> dict[str, KafkaError]:
        """Create planned topics; return the errors of those that turned out to be impossible. Raises
        KafkaError, and then creates none.
        """

    @abstractmethod
    async def alter(self, changes: Mapping[TopicImage, dict[str, Any]]) -> None:
        """Replace the configs of topics, durably. Raises KafkaError, and then changes nothing."""

    @abstractmethod
    async def add_partitions(
        self, counts: Mapping[TopicImage, int], placed: Placed | None = None
    ) -> dict[str, KafkaError]:
        """Increase topics to these numbers of partitions; return the errors of those for which that turned
        out to be impossible. Raises KafkaError, and then adds none.
        """

    @abstractmethod
    async def delete(self, topics: Collection[TopicImage]) -> None:
        """Delete topics; ``clear`` removes their files. Raises KafkaError, and then deletes none."""

    @abstractmethod
    async def clear(self) -> None:
        """Remove the files of deleted topics."""

    def settings_changed(self) -> None:
        """Apply changed defaults of topics."""
        for each in self.all():
            # in a cluster this broker may have no partition of a topic
            if self.logs.topic(each.name) is not None:
                self.logs.reconfigure(each.name, self.config(each.configs))

    # -- for the homes ---------------------------------------------------------------------------------------

    def config(self, configs: Mapping[str, Any]) -> TopicConfig:
        return TopicConfig(**{**topic_defaults(self._settings), **configs})


class FolderTopics(Topics):
    """Topics of a single broker, in its data folder."""

    def __init__(
        self,
        folder: DataFolder,
        store: FolderStore,
        settings: BrokerSettings,
        now_ms: Callable[[], int],
        flush_times: Histogram | None = None,
    ) -> None:
        node_id = settings.node_id
        image = ClusterImage(folder.cluster_id, node_id, {node_id: BrokerRegistration(node_id)})
        logs = LocalLogs(folder, settings, now_ms, flush_times or Histogram(), self._damaged)
        super().__init__(image, logs, settings)
        self._store = store
        self._here = (node_id,)
        #: Topics whose deletion the last run may not have finished: groups may still have offsets of them.
        self.lately_deleted: Collection[str] = ()
        # the groups are not loaded yet: they may have offsets of deleted topics
        self._loading = True
        # deleted topics of which nothing remains: the next step forgets them
        self._settled: set[str] = set()

    def with_epochs(self, topic: TopicImage) -> TopicImage:
        """The topic with all leader epochs. Raises KafkaError if a file with one cannot be opened."""
        if all(state.leader_epoch != UNKNOWN_EPOCH for state in topic.partitions):
            return topic
        epochs = [self.logs.partition(topic.name, n).leader_epoch for n in range(len(topic.partitions))]
        # the image shows by now which partitions were found to be damaged
        found = self.image.topic(topic.name)
        assert found is not None, "nothing is deleted meanwhile"
        states = [
            state._replace(leader_epoch=epoch) for state, epoch in zip(found.partitions, epochs, strict=True)
        ]
        topic = found.having(partitions=states)
        self.image = self.image.changed([topic])
        return topic

    # -- starting --------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Load the data folder, and create ``__consumer_offsets`` if it is missing.

        After an unclean stop every log is recovered; otherwise a log is opened when it is needed. Raises
        StateFileError, and KafkaError.
        """
        records = {name: self._record(name) for name in self._store.children(TOPICS)}
        deleted = self._deleted_topics()
        self.lately_deleted = {name for name in deleted.values() if name is not None and name not in records}
        unknown = self.logs.take_in(records.keys(), deleted)
        found = {
            name: TopicRecord(topic_id, count, first_configs(self._settings, name))
            for name, (topic_id, count) in unknown.items()
        }
        records |= found
        self._add(records)
        if not self.logs.clean:
            for partition in self.logs.partitions():
                try:
                    partition.open()
                except KafkaError as error:
                    if not is_full(error):
                        raise
                    # it is read when it is asked for and there is room
                    self.logs.disk.on_refused(error)
        if found:
            newest = max(map(self.logs.newest_producer_id, found))
            self._store.commit_now(*self._creations(found), *self._ids_behind(newest))
        if OFFSETS_TOPIC not in records:
            self.create_internal(OFFSETS_TOPIC, self._settings.offsets_topic_num_partitions)

    def create_internal(self, name: str, partitions: int) -> None:
        """Create a topic of a coordinator. Raises KafkaError KAFKA_STORAGE_ERROR."""
        made = {name: TopicRecord(_new_id(), partitions, first_configs(self._settings, name))}
        try:
            self._store.commit_now(*self._creations(made))
        except OSError as error:
            raise self._nothing_changes(error) from error
        self._add(made)

    async def forget_deleted(self) -> None:
        """Forget the topics that were being deleted when the last run stopped: all groups are loaded, and
        have no offsets of them any more. Raises OSError.
        """
        self._loading = False
        if self._store.children(DELETED_TOPICS):
            self._settle(self.logs.settle())
            await self._commit()

    # -- changing --------------------------------------------------------------------------------------------

    async def carry_out(self, plans: Sequence[TopicPlan]) -> dict[str, KafkaError]:
        """Create planned topics. Raises KafkaError KAFKA_STORAGE_ERROR, and then creates none."""
        made = {
            plan.name: TopicRecord(
                plan.id, plan.partitions, {**first_configs(self._settings, plan.name), **plan.configs}
            )
            for plan in plans
        }
        await self._change(self._creations(made))
        # created in one step, visible in slices: requests need not wait until all of them have their logs
        self._folded.update((fold_name(name), name) for name in made)
        records = list(made.items())
        async for start in in_slices(range(0, len(records), _ADDED_AT_ONCE)):
            self._add(dict(records[start : start + _ADDED_AT_ONCE]))
        return {}

    async def alter(self, changes: Mapping[TopicImage, dict[str, Any]]) -> None:
        """Replace the configs of topics, durably. Raises KafkaError, and then changes nothing."""
        await self._change(self._puts({each: {"configs": configs} for each, configs in changes.items()}))
        self.image = self.image.changed(
            [self._now(each).having(configs=configs) for each, configs in changes.items()]
        )
        for each, configs in changes.items():
            self.logs.reconfigure(each.name, self.config(configs))

    async def add_partitions(
        self, counts: Mapping[TopicImage, int], _placed: Placed | None = None
    ) -> dict[str, KafkaError]:
        """Increase topics to these numbers. Raises KafkaError KAFKA_STORAGE_ERROR, and then adds none."""
        await self._change(self._puts({each: {"partitions": count} for each, count in counts.items()}))
        grown = []
        for each, count in counts.items():
            now = self._now(each)
            more = self._states(self.logs.grow(each.name, range(len(now.partitions), count)))
            grown.append(now.having(partitions=[*now.partitions, *more]))
        self.image = self.image.changed(grown)
        return {}

    async def delete(self, topics: Collection[TopicImage]) -> None:
        """Delete topics; ``clear`` removes their files. Raises KafkaError, and then deletes none."""
        changes: list[Change] = []
        for each in topics:
            changes += [Delete(topic_path(each.name)), Create(deleted_topic_path(each.id), each.name)]
        await self._change(changes)
        self.image = self.image.changed(deleted=topics)
        for each in topics:
            self._folded.pop(fold_name(each.name), None)
        for each in topics:
            self.logs.delete(each.name)

    async def clear(self) -> None:
        """Remove the files of deleted topics."""
        self._settle(await self.logs.clear())

    # -- inside ----------------------------------------------------------------------------------------------

    async def _change(self, changes: Sequence[Change]) -> None:
        try:
            await self._commit(*changes)
        except OSError as error:
            raise self._nothing_changes(error) from error

    def _nothing_changes(self, error: OSError) -> KafkaError:
        self.logs.disk.on_refused(error)
        return unchanged(error)

    async def _commit(self, *changes: Change) -> None:
        """Commit changes, and forget the deleted topics of which nothing remains."""
        settled = self._settled
        await self._store.commit(*changes, *(Delete(f"{DELETED_TOPICS}/{each}") for each in settled))
        self._settled = self._settled - settled

    def _creations(self, made: Mapping[str, TopicRecord]) -> list[Change]:
        return [Create(topic_path(name), record.stored()) for name, record in made.items()]

    def _puts(self, changes: Mapping[TopicImage, Mapping[str, object]]) -> list[Change]:
        puts: list[Change] = []
        for each, fields in changes.items():
            entry = self._store.get(topic_path(each.name))
            if entry is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {each.name!r}")
            puts.append(Put(topic_path(each.name), {**entry.value, **fields}, entry.version))
        return puts

    def _ids_behind(self, newest: int) -> list[Change]:
        """Return the change that makes producer ids begin after those of another broker, and far above those
        that it will give out if it gets the folder back, since it cannot know the ids given out here.
        """
        entry = self._store.get(PRODUCER_IDS)
        first = max((newest // BLOCK_SIZE + 1) * BLOCK_SIZE, _FAR_PRODUCER_ID)
        if entry is None:
            return [Create(PRODUCER_IDS, first)]
        return [Put(PRODUCER_IDS, first)] if entry.value < first else []

    def _settle(self, left: Collection[uuid.UUID] | None) -> None:
        """Note that nothing remains of deleted topics except these: the others can be forgotten."""
        if left is None or self._loading:
            return
        kept = {str(topic_id) for topic_id in left}
        self._settled = {each for each in self._store.children(DELETED_TOPICS) if each not in kept}

    def _record(self, name: str) -> TopicRecord:
        entry = self._store.get(topic_path(name))
        assert entry is not None, "it is among the children"
        try:
            return TopicRecord.parse(entry.value)
        except (ValueError, KeyError, TypeError) as error:
            raise self._store.unreadable(topic_path(name), error) from error

    def _deleted_topics(self) -> dict[uuid.UUID, str | None]:
        found = {}
        for topic_id in self._store.children(DELETED_TOPICS):
            entry = self._store.get(f"{DELETED_TOPICS}/{topic_id}")
            assert entry is not None, "it is among the children"
            found[uuid.UUID(topic_id)] = entry.value
        return found

    def _add(self, records: Mapping[str, TopicRecord]) -> None:
        """Add topics that are in the store."""
        made = []
        usual = self.config({})
        for name, record in records.items():
            config = replace(usual, **record.configs) if record.configs else usual
            local = self.logs.add(name, record.id, config, range(record.partitions))
            states = self._states(local)
            made.append(TopicImage(name, record.id, record.configs, states, internal=name in INTERNAL))
            self._folded[fold_name(name)] = name
        self.image = self.image.changed(made)

    def _states(self, partitions: Iterable[Partition]) -> list[PartitionState]:
        """The states of new partitions, led by this broker."""
        new = PartitionState(self.image.controller_id, 0, self._here, self._here)
        unread = new._replace(leader_epoch=UNKNOWN_EPOCH)
        return [new if each.epoch_is_known else unread for each in partitions]

    def _now(self, topic: TopicImage) -> TopicImage:
        """The current state of a topic."""
        found = self.image.topic(topic.name)
        return topic if found is None else found

    def _damaged(self, partition: Partition) -> None:
        """Show a partition whose files cannot be served without a leader."""
        found = self.image.topic(partition.topic.name)
        if found is None or found.id != partition.topic.id:
            return
        states = list(found.partitions)
        states[partition.index] = states[partition.index]._replace(
            leader=NO_LEADER, isr=(), offline=states[partition.index].replicas
        )
        self.image = self.image.changed([found.having(partitions=states)])


def first_configs(settings: BrokerSettings, name: str) -> dict[str, object]:
    """The first configs of a topic that came without any: coordinators' topics are compacted."""
    sizes = {
        OFFSETS_TOPIC: settings.offsets_topic_segment_bytes,
        TRANSACTIONS_TOPIC: settings.transaction_state_log_segment_bytes,
    }
    if name not in sizes:
        return {}
    configs = {"cleanup_policy": "compact", "segment_bytes": sizes[name], "compression_type": "producer"}
    if name == TRANSACTIONS_TOPIC:
        # with a larger min.insync.replicas than there are replicas nothing could be written
        least = min(settings.transaction_state_log_min_isr, settings.transaction_state_log_replication_factor)
        configs |= {
            "compression_type": "uncompressed",
            "min_insync_replicas": least,
            "unclean_leader_election_enable": False,
        }
    return configs


def unchanged(error: OSError) -> KafkaError:
    """KAFKA_STORAGE_ERROR, for metadata that cannot be saved."""
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"nothing is changed: {error}")


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
