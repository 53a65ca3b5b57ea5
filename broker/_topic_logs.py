"""The files of topics in the data folder: opened when somebody asks for them, removed with their topic.

A deletion is durable once ``kohort.json`` says so. The folders are renamed after that, a while at a time, and
removed in a thread; what a crash or a failing disk leaves of them is removed when the partition is made anew,
by the next pass over all partitions, or at the next start.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ..log import DataFolder, DataFolderError, LogConfig, PartitionLog
from ..protocol import ErrorCode, KafkaError, TopicPartition
from ._names import OFFSETS_TOPIC
from ._partition import Partition
from ._settings import BrokerSettings
from ._topics_file import TopicEntry, TopicsFile
from ._turns import in_slices

log = logging.getLogger("kohort.broker")


class TopicLogs:
    """The partitions' files of one data folder; ``Files`` of its partitions."""

    def __init__(
        self, folder: DataFolder, file: TopicsFile, settings: BrokerSettings, now_ms: Callable[[], int]
    ) -> None:
        self._folder = folder
        self._file = file
        self._settings = settings
        self._now_ms = now_ms
        #: Topics that were deleted so shortly before the last stop that their offsets may be there yet.
        self.deleted: set[str] = set()
        self._found: set[TopicPartition] = set()
        # partitions of deleted topics that may have a folder yet, with the topic's id
        self._doomed: dict[TopicPartition, uuid.UUID] = {}
        # their folders that were renamed already
        self._trees: list[str] = []
        # the groups are not loaded yet: offsets of deleted topics may be among theirs
        self._loading = True

    def __repr__(self) -> str:
        return f"TopicLogs({self._folder.path}, {len(self._doomed)} to remove)"

    def take_in(self) -> None:
        """Look which partitions are on the disk: topics that the file does not know are added to it, and
        deletions that were cut short are finished.
        """
        names = set(self._file.deleted.values())
        self.deleted = {name for name in names if name is not None and name not in self._file.topics}
        known = set(self._file.topics)
        for name, index, _ in self._folder.partitions():
            key = TopicPartition(name, index)
            if name in known and name not in names and None not in names:
                self._found.add(key)
                continue
            try:
                topic_id = self._folder.topic_id(name, index)
            except (DataFolderError, OSError) as error:
                topic_id, why = None, str(error)
            else:
                why = "it has no partition.metadata that says whose it is"
            if topic_id in self._file.deleted:
                self._doomed[key] = topic_id
            elif name in known:
                self._found.add(key)
            elif topic_id is not None:
                self._add_unknown(key, topic_id)
            else:
                log.error("%s-%d is not served, its files are left as they are: %s", name, index, why)
        for key in list(self._doomed):
            self._rename(key)
        if self._file.topics.keys() - known:
            self._file.save()

    def _add_unknown(self, key: TopicPartition, topic_id: uuid.UUID) -> None:
        """A partition of a topic that the file does not know."""
        entry = self._file.topics.get(key.topic)
        if entry is None:
            entry = TopicEntry(topic_id, 0, self.first_configs(key.topic))
        count = max(entry.partitions, key.partition + 1)
        self._file.topics[key.topic] = replace(entry, partitions=count)
        self._found.add(key)

    def forget_deleted(self) -> None:
        """Nothing is left of the topics that were being deleted when the last run stopped, nor will be of
        those that are deleted from now on. Raises OSError.
        """
        self._loading = False
        if self._file.deleted:
            self._settle()
            self._file.save()

    def first_configs(self, name: str) -> dict[str, Any]:
        """What is set for a topic that came without settings: offsets are compacted, not deleted by age."""
        if name != OFFSETS_TOPIC:
            return {}
        return {"cleanup_policy": "compact", "segment_bytes": self._settings.offsets_topic_segment_bytes}

    @property
    def clean(self) -> bool:
        """Whether the last stop was clean: what is on the disk can be trusted unread."""
        return self._folder.clean_start

    def on_disk(self, key: TopicPartition) -> bool:
        """Whether the last run has left files of a partition."""
        return key in self._found

    # for the partitions

    def open(self, partition: Partition) -> PartitionLog:
        """See Files."""
        topic = partition.topic
        entry = self._file.topics.get(topic.name)
        if entry is None or entry.id != topic.id:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name} was deleted")
        key = TopicPartition(topic.name, partition.index)
        if key in self._doomed:
            # of the former topic of that name
            self._rename(key)
            if key in self._doomed:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"files of a deleted topic are in the way of {key.topic}-{key.partition}: see the log",
                )
        return self._open(key, topic.config.log_config(), entry.id)

    def newest_epoch(self, partition: Partition) -> int:
        """See Files."""
        return self._folder.newest_epoch(partition.topic.name, partition.index)

    def _open(self, key: TopicPartition, config: LogConfig, topic_id: uuid.UUID) -> PartitionLog:
        # a damaged batch is answered as such; the coordinator steps over what cannot be read of its own topic
        keep_damage = key.topic != OFFSETS_TOPIC or not self._settings.kohort_offsets_load_strict
        opened = self._folder.open_log(
            *key, config, now_ms=self._now_ms(), topic_id=topic_id, keep_damage=keep_damage
        )
        for cut in opened.recovery.cuts:
            log.warning("%s: cut %d bytes at %d: %s", cut.path, cut.bytes_cut, cut.position, cut.reason)
        if lost := opened.recovery.lost_offsets:
            log.error(
                "%s-%d ends at offset %d: %d offsets behind it were on the disk and are gone, restore the "
                "files from a copy, or expect committed offsets behind the end",
                *(*key, opened.log_end_offset, lost),
            )
        for damage in opened.recovery.damaged:
            log.error("%s: damaged at %d, left as it is: %s", damage.path, damage.position, damage.reason)
        return opened

    # removing

    def doom(self, partitions: Iterable[Partition]) -> None:
        """Let ``clear`` remove what there is of these partitions; their topic is deleted."""
        for partition in partitions:
            key = TopicPartition(partition.topic.name, partition.index)
            self._doomed[key] = partition.topic.id
            self._found.discard(key)

    async def clear(self) -> None:
        """Remove the files of deleted topics, giving way to others now and then. What cannot be removed is
        told in the log, and tried again another time.
        """
        if self._doomed:
            async for key in in_slices(list(self._doomed)):
                self._rename(key)
            self._settle()
        if self._trees:
            trees, self._trees = self._trees, []
            await asyncio.to_thread(self._remove_trees, trees)

    def _rename(self, key: TopicPartition) -> None:
        """Take a partition's folder out of the way."""
        if key not in self._doomed:
            return
        try:
            path = self._folder.doom(*key)
        except OSError as error:
            log.error("%s-%d is deleted, its files cannot be removed yet: %s", *key, error)
            return
        del self._doomed[key]
        if path is not None:
            self._trees.append(path)

    def _settle(self) -> None:
        """Make the new names durable: what has one need not be remembered as deleted."""
        try:
            self._folder.sync()
        except OSError as error:
            log.error("the removal of deleted partitions is not on the disk yet: %s", error)
            return
        if self._loading:
            return
        left = set(self._doomed.values())
        self._file.deleted = {each: name for each, name in self._file.deleted.items() if each in left}

    def _remove_trees(self, trees: list[str]) -> None:
        for path in trees:
            try:
                self._folder.remove_doomed(path)
            except OSError as error:
                log.error("%s cannot be removed, the next start tries again: %s", path, error)
