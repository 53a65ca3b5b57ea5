"""The controller of a broker that is alone: it decides without an election, and writes to the data folder.

The folder keeps what is decided of topics, not the states of partitions: this broker leads all, under leader
epochs that their logs tell when they are opened.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

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
from ...cluster.controller import Decision, Rules, create_topics
from ..event_loop.time_slices import in_slices
from ..partitions.partition import Partition
from ..partitions.topic_names import OFFSETS_TOPIC
from ..settings import BrokerSettings
from .controller_requests import ControllerRequests, first_configs, internal_topic, refusals_in
from .topics import Topics, metadata_unsaved

A = TypeVar("A")

#: New topics that get their logs in one go: about a millisecond.
_ADDED_AT_ONCE = 200

#: The first producer id given out in a folder that another broker wrote.
_FAR_PRODUCER_ID = 1_000_000_000


class LoneControl(ControllerRequests):
    """Decides on ``topics``, whose metadata are in ``store``. A decision is one step of the store, durable
    before any of it is visible.
    """

    def __init__(self, topics: Topics, store: FolderStore, settings: BrokerSettings) -> None:
        super().__init__(settings)
        self._topics = topics
        self._store = store
        self._node_id = settings.node_id
        #: Topics whose deletion the last run may not have finished: groups may still have offsets of them.
        self.lately_deleted: Collection[str] = ()
        # the groups are not loaded yet: they may have offsets of deleted topics
        self._loading = True
        # deleted topics of which nothing remains: the next step forgets them
        self._settled: set[uuid.UUID] = set()
        topics.control = self
        topics.on_damage = self._on_damage

    def __repr__(self) -> str:
        return f"LoneControl({self.image})"

    @property
    def is_active(self) -> bool:
        """True: a broker that is alone is its own controller."""
        return True

    @property
    def image(self) -> ClusterImage:
        """The image as it is in memory, which is what was written."""
        return self._topics.image

    def stored_configs(self, configs: Mapping[str, object]) -> Mapping[str, object]:
        """Return a topic's configs as the folder has them: typed."""
        return configs

    # -- starting --------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Load the data folder, and create ``__consumer_offsets`` if it is missing.

        After an unclean stop every log is recovered; otherwise a log is opened when it is needed. Raises
        StateFileError, and KafkaError.
        """
        logs = self._topics.logs
        records = {name: self._topic_record(name) for name in self._store.children(TOPICS)}
        deleted = self._deleted_topics()
        self.lately_deleted = {name for name in deleted.values() if name is not None and name not in records}
        unknown = logs.take_in(records.keys(), deleted)
        found = {
            name: TopicRecord(topic_id, count, first_configs(self._settings, name))
            for name, (topic_id, count) in unknown.items()
        }
        topics = [self._stored_topic(*item) for item in (records | found).items()]
        here = {self._node_id: BrokerRegistration(self._node_id)}
        image = self.image.with_changes(topics, brokers=here, controller_id=self._node_id)
        image.deletions = dict.fromkeys(deleted, frozenset(here))
        self._topics.become(image, topics)
        logs.recover()
        if found:
            newest = max(map(logs.newest_producer_id, found))
            added = [topic for topic in topics if topic.name in found]
            self._store.commit_now(*self._topic_changes(added), *self._ids_behind(newest))
        if image.topic(OFFSETS_TOPIC) is None:
            wanted = self._with_configs([internal_topic(self._settings, OFFSETS_TOPIC, 1)])
            made = self._write_decision(create_topics(self.image, wanted))
            for error in refusals_in(made.answer).values():
                raise error
            self._topics.become(self.image.with_changes(made.topics), made.topics)

    async def forget_deleted(self) -> None:
        """Forget the topics that were being deleted when the last run stopped: all groups are loaded, and
        have no offsets of them any more. Raises OSError.
        """
        self._loading = False
        if deleted := self.image.deletions:
            left = self._topics.logs.settle()
            if left is not None:
                await self.report_removed([each for each in deleted if each not in left])
            self._commit_changes()

    # -- deciding --------------------------------------------------------------------------------------------

    async def decide(self, decision: Callable[[ClusterImage, Rules], Decision[A]]) -> A:
        """See ControllerRequests. Raises OSError if the change cannot be written; then nothing changes."""
        before = self.image
        made = decision(before, Rules())
        if not made.topics and not made.deleted:
            # nothing is to be written; and an image for each refusal would live as long as the error does
            return made.answer
        made = self._write_decision(made)
        new = [topic for topic in made.topics if before.topic(topic.name) is None]
        changed = [topic for topic in made.topics if before.topic(topic.name) is not None]
        image = before.with_changes(changed, deleted=made.deleted)
        here = frozenset({self._node_id})
        image.deletions = {**before.deletions, **{topic.id: here for topic in made.deleted}}
        self._topics.become(image, changed, made.deleted)
        # created in one step, visible in slices: requests need not wait until all of them have their logs
        self._topics.reserve([topic.name for topic in new])
        async for start in in_slices(range(0, len(new), _ADDED_AT_ONCE)):
            some = new[start : start + _ADDED_AT_ONCE]
            self._topics.become(self.image.with_changes(some), some)
        return made.answer

    async def report_removed(self, topic_ids: Collection[uuid.UUID]) -> None:
        """Forget deleted topics of which nothing remains."""
        if not self._loading:
            self._settled.update(topic_ids)
            self.image.deletions = {
                each: brokers for each, brokers in self.image.deletions.items() if each not in self._settled
            }

    def _write_decision(self, decision: Decision[A]) -> Decision[A]:
        """Write what is decided; return it with the states that partitions have here. Raises KafkaError
        KAFKA_STORAGE_ERROR.
        """
        topics = [self._with_states(topic) for topic in decision.topics]
        changes = self._topic_changes(topics)
        for topic in decision.deleted:
            changes += [Delete(topic_path(topic.name)), Create(deleted_topic_path(topic.id), topic.name)]
        try:
            self._commit_changes(*changes)
        except OSError as error:
            self._topics.logs.disk.on_refused(error)
            raise metadata_unsaved(error) from error
        return decision._replace(topics=topics)

    def _commit_changes(self, *changes: Change) -> None:
        """Commit changes, and forget the deleted topics of which nothing remains."""
        self._store.commit_now(*changes, *(Delete(deleted_topic_path(each)) for each in self._settled))
        self._settled = set()

    def _topic_changes(self, topics: Iterable[TopicImage]) -> list[Change]:
        changes: list[Change] = []
        for topic in topics:
            path = topic_path(topic.name)
            record = TopicRecord(topic.id, len(topic.partitions), dict(topic.configs)).to_document()
            entry = self._store.get(path)
            changes.append(Create(path, record) if entry is None else Put(path, {**entry.value, **record}))
        return changes

    def _with_states(self, topic: TopicImage) -> TopicImage:
        """A topic that is decided on: no decision moves a partition that is there, and one that is added may
        have files already.
        """
        before = self.image.topic(topic.name)
        if before is None:
            return topic
        added = topic.partitions[len(before.partitions) :]
        unread = [state._replace(leader_epoch=UNKNOWN_EPOCH) for state in added]
        return topic.having(partitions=[*before.partitions, *unread])

    def _ids_behind(self, newest: int) -> list[Change]:
        """Return the change that makes producer ids begin after those of another broker, and far above those
        that it will give out if it gets the folder back, since it cannot know the ids given out here.
        """
        entry = self._store.get(PRODUCER_IDS)
        first = max((newest // BLOCK_SIZE + 1) * BLOCK_SIZE, _FAR_PRODUCER_ID)
        if entry is None:
            return [Create(PRODUCER_IDS, first)]
        return [Put(PRODUCER_IDS, first)] if entry.value < first else []

    # -- looking ---------------------------------------------------------------------------------------------

    def _topic_record(self, name: str) -> TopicRecord:
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

    def _stored_topic(self, name: str, record: TopicRecord) -> TopicImage:
        """A topic as its record has it: the leader epochs are read when they are asked for."""
        here = (self._node_id,)
        states = [PartitionState(self._node_id, UNKNOWN_EPOCH, here, here)] * record.partitions
        return TopicImage(name, record.id, record.configs, states)

    def _on_damage(self, partition: Partition) -> None:
        """Show a partition whose files cannot be served without a leader."""
        image = self.image
        found = image.topic(partition.topic.name)
        if found is None or found.id != partition.topic.id:
            return
        states = list(found.partitions)
        state = states[partition.index]
        states[partition.index] = state._replace(leader=NO_LEADER, isr=(), offline=state.replicas)
        here = image.brokers[self._node_id]
        here = here._replace(damaged=here.damaged | {(found.id, partition.index)})
        self._topics.image = image.with_changes(
            [found.having(partitions=states)], brokers={self._node_id: here}
        )
