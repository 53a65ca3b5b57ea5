"""The partitions whose logs are on this broker, and their files in the data folder.

Files are opened when they are first read, and removed with their topic. A deletion is durable once it is in
the metadata store; then the folders are renamed, some at a time, and removed in a thread. Folders that a
crash or a failing disk leaves behind are removed when the partition is created again, in the next pass, or at
the next start.

In a cluster only a deletion, or a reassignment that this broker sees, removes files. Those of a topic that
the metadata merely lack are strays: their folders are renamed, and served again when the metadata have the
topic again.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final
from uuid import UUID

from ...cluster import INTERNAL
from ...log import DataFolder, DataFolderError, PartitionLog, Stray, is_full
from ...protocol import CorruptBatchError, ErrorCode, KafkaError, TopicPartition
from ..event_loop.time_slices import in_slices
from ..metrics import Histogram
from ..settings import BrokerSettings
from .disk_watch import DiskWatch
from .partition import LocalTopic, Partition
from .topic_config import TopicConfig
from .topic_names import OFFSETS_TOPIC

log = logging.getLogger("kohort.broker")

#: Partitions named in a line of the log.
_MAX_NAMED: Final = 20


class LocalLogs:
    """Partitions by topic and number, and the source of their files (``Files``). ``on_damage`` is called with
    each partition that cannot be served. ``replicated``: other brokers may have replicas.
    """

    def __init__(
        self,
        folder: DataFolder,
        settings: BrokerSettings,
        now_ms: Callable[[], int],
        flush_times: Histogram,
        on_damage: Callable[[Partition], None],
        *,
        replicated: bool = False,
    ) -> None:
        #: See Files.
        self.disk = DiskWatch(
            folder.path,
            low_percent=lambda: settings.kohort_log_dir_low_space_percent,
            hang_ms=lambda: settings.kohort_log_dir_hang_ms,
        )
        self._folder = folder
        self._settings = settings
        self._now_ms = now_ms
        self._flush_times = flush_times
        self._on_damage = on_damage
        self._replicated = replicated
        self._topics: dict[str, LocalTopic] = {}
        # partitions with files of the last run
        self._found: set[TopicPartition] = set()
        # in a cluster: partitions on the disk that no image has assigned here so far, with their topic's id
        self._unclaimed: dict[TopicPartition, UUID | None] = {}
        # partitions of deleted topics that may still have a folder, with the topic's id; strays whose name
        # another topic has taken
        self._to_delete: dict[TopicPartition, UUID] = {}
        self._strays: set[TopicPartition] = set()
        # partitions that a thread reads
        self._kept: set[TopicPartition] = set()
        # partitions that were put aside, in case that the image assigns them here again
        self._aside: dict[tuple[TopicPartition, UUID | None], Stray] = {}
        #: Set when there are folders to rename or remove.
        self.has_leftovers = asyncio.Event()
        # their folders that have already been renamed
        self._trees: list[str] = []

    def __repr__(self) -> str:
        return f"LocalLogs({self._folder.path}, {len(self._topics)} topics, {len(self._to_delete)} to remove)"

    # -- looking ---------------------------------------------------------------------------------------------

    @property
    def folder(self) -> str:
        """Path of the data folder: a partition's files are in ``TOPIC-NUMBER`` below it."""
        return str(self._folder.path)

    def topic(self, name: str) -> LocalTopic | None:
        """Find a topic with logs here."""
        return self._topics.get(name)

    def topics(self) -> list[LocalTopic]:
        """Return the topics with logs here, as they are now."""
        return list(self._topics.values())

    def partition(self, topic: str, index: int) -> Partition:
        """Return a partition that is known to be here. Raises KeyError and IndexError."""
        return self._topics[topic].partitions[index]

    def led(self, topic: str, index: int) -> Partition | None:
        """The partition, if this broker leads it; None otherwise."""
        found = self._topics.get(topic)
        partition = None if found is None else found.partitions.get(index)
        return partition if partition is not None and partition.is_led else None

    def partitions(self) -> Iterator[Partition]:
        """Every partition; a snapshot of the topics, so that they may change meanwhile."""
        for topic in self.topics():
            yield from list(topic.partitions.values())

    @property
    def clean(self) -> bool:
        """Return whether the last stop was clean, so that the files can be trusted without reading them."""
        return self._folder.clean_start

    @property
    def has_damage(self) -> bool:
        """Return whether a partition was left damaged, or unread after a stop that was not clean: then the
        next start must read the files again.
        """
        if any(self.is_read_first(partition) for partition in self.partitions()):
            return True
        logs = (partition.log for partition in self.partitions() if partition.topic.name != OFFSETS_TOPIC)
        return any(partition.damage for partition in self.partitions()) or any(
            found.is_damaged for found in logs if found is not None
        )

    def newest_producer_id(self, topic: str) -> int:
        """The largest producer id known to have written to a topic; -1 if none has."""
        partitions = self._topics[topic].partitions.values()
        return max((self._newest_producer_id(each) for each in partitions), default=-1)

    # -- changing --------------------------------------------------------------------------------------------

    def take_in(
        self, topics: Collection[str], deleted: Mapping[UUID, str | None]
    ) -> dict[str, tuple[UUID, int]]:
        """Find the partitions on the disk, and finish interrupted deletions.

        Returns those of topics that are not among ``topics``: the topic's id and the number of partitions,
        by name.
        """
        names = set(deleted.values())
        unknown: dict[str, tuple[UUID, int]] = {}
        for key in self._folder.partitions():
            name, index = key
            if name in topics and name not in names and None not in names:
                self._found.add(key)
                continue
            try:
                topic_id = self._folder.topic_id(name, index)
            except (DataFolderError, OSError) as error:
                topic_id, why = None, str(error)
            else:
                why = "it has no partition.metadata that says whose it is"
            if topic_id is not None and topic_id in deleted:
                self._to_delete[key] = topic_id
            elif name in topics:
                self._found.add(key)
            elif topic_id is not None:
                first_id, count = unknown.get(name, (topic_id, 0))
                unknown[name] = first_id, max(count, index + 1)
                self._found.add(key)
            else:
                log.error("%s-%d is not served, its files are left as they are: %s", name, index, why)
        for key in list(self._to_delete):
            self._rename_folder(key)
        return unknown

    def take_in_replicas(self) -> None:
        """Find the partitions on the disk, for a broker of a cluster, whose image says which ones it has."""
        for key in self._folder.partitions():
            try:
                found = self._folder.topic_id(*key)
            except (DataFolderError, OSError):
                found = None
            self._unclaimed[key] = found
        self._aside = {
            (TopicPartition(each.topic, each.partition), each.topic_id): each
            for each in self._folder.strays()
        }

    def sort_unclaimed(self, deleted: Collection[UUID]) -> None:
        """Have ``Topics.clear`` remove the partitions of deleted topics on the disk, and put all others aside
        that the image does not assign to this broker: metadata that are older than the files look the same as
        a replica that was given to others.
        """
        gone = []
        for key, found in list(self._unclaimed.items()):
            # files that do not say whose they are stay in place, for a topic of their name
            if found is not None:
                self._doom_partition(key, found, is_stray=found not in deleted)
                del self._unclaimed[key]
                if found in deleted:
                    gone.append(key)
        if gone:
            log.warning("%d partitions were deleted, and their files go: %s", len(gone), _name_first(gone))
        if strays := sorted({*self._unclaimed, *self._strays, *(key for key, _ in self._aside)}):
            log.error(
                "%d partitions in the data folder are strays, which this broker keeps and does not serve: "
                "the metadata do not have their topics, or give them to other brokers ('kohort log strays' "
                "lists and removes them): %s",
                len(strays),
                _name_first(strays),
            )

    def _claim_files(self, topic: LocalTopic, index: int) -> bool:
        """Return whether a partition has files; those of another topic with its name are put aside."""
        key = TopicPartition(topic.name, index)
        if key in self._strays and self._to_delete[key] == topic.id:
            self._strays.discard(key)
            del self._to_delete[key]
            self._found.add(key)
        elif key in self._unclaimed:
            found = self._unclaimed.pop(key)
            if found in (None, topic.id):
                self._found.add(key)
            else:
                self._doom_partition(key, found, is_stray=True)
        if key not in self._found and (stray := self._aside.pop((key, topic.id), None)) is not None:
            self._take_back(key, stray)
        return key in self._found

    def _take_back(self, key: TopicPartition, stray: Stray) -> None:
        """Serve a stray again, now that the image assigns it to this broker."""
        self._rename_folder(key)
        try:
            self._folder.take_back(stray)
        except OSError as error:
            log.error("%s-%d: the stray %s cannot be taken back: %s", *key, stray.folder, error)
            return
        log.warning("%s-%d is served again: %s was put aside", *key, stray.folder)
        self._found.add(key)

    def _doom_partition(self, key: TopicPartition, topic_id: UUID, *, is_stray: bool = False) -> None:
        self._to_delete[key] = topic_id
        if is_stray:
            self._strays.add(key)
        self.has_leftovers.set()

    def recover(self) -> None:
        """Open every log, if the last stop was not clean. Raises KafkaError."""
        for partition in () if self.clean else self.partitions():
            try:
                partition.open()
            except KafkaError as error:
                if not is_full(error):
                    raise
                # it is read when it is asked for and there is room
                self.disk.on_refused(error)

    def add(self, name: str, topic_id: UUID, config: TopicConfig, indexes: Iterable[int]) -> None:
        """Create these partitions of a new topic."""
        self._topics[name] = LocalTopic(
            name, topic_id, config, name in INTERNAL, flush_times=self._flush_times
        )
        self.grow(name, indexes)

    def grow(self, name: str, indexes: Iterable[int]) -> None:
        """Add these partitions of a topic."""
        topic = self._topics[name]
        for index in indexes:
            topic.partitions[index] = Partition(
                topic, index, self, on_disk=self._claim_files(topic, index), replicated=self._replicated
            )

    def reconfigure(self, name: str, config: TopicConfig) -> None:
        """Put a changed config of a topic in force."""
        topic = self._topics[name]
        topic.config = config
        for partition in topic.partitions.values():
            partition.reconfigure()

    def delete(self, name: str, *, is_stray: bool = False) -> None:
        """Have ``Topics.clear`` remove a topic's partitions, or put them aside as strays; requests that wait
        for its records find it gone.
        """
        topic = self._topics[name]
        self.remove(topic, list(topic.partitions), is_stray=is_stray)
        del self._topics[name]

    def remove(self, topic: LocalTopic, indexes: Iterable[int], *, is_stray: bool = False) -> None:
        """Have ``Topics.clear`` remove the files of some partitions of a topic, or put them aside."""
        gone = [topic.partitions.pop(index) for index in indexes]
        for partition in gone:
            key = TopicPartition(topic.name, partition.index)
            self._doom_partition(key, topic.id, is_stray=is_stray)
            self._found.discard(key)
        for partition in gone:
            partition.delete()

    async def clear(self) -> Collection[UUID] | None:
        """Remove the files of deleted topics, yielding to other tasks in between. Files that cannot be
        removed are logged, and retried later.

        Returns the topics with remaining files; None if there was nothing to rename, or the renames are not
        durable.
        """
        left = None
        if self._to_delete:
            async for key in in_slices(list(self._to_delete)):
                self._rename_folder(key)
            left = self.settle()
        if self._trees:
            trees, self._trees = self._trees, []
            await asyncio.to_thread(self._remove_trees, trees)
        return left

    def settle(self) -> Collection[UUID] | None:
        """Make the new names of deleted partitions durable; return the topics of which some are not renamed,
        None if the disk fails.
        """
        try:
            self._folder.sync()
        except OSError as error:
            log.error("the removal of deleted partitions is not on the disk yet: %s", error)
            return None
        return set(self._to_delete.values())

    def write_checkpoints(self) -> None:
        """Make recovery points and log starts durable. Raises KafkaError."""
        logs = (partition.log for partition in self.partitions())
        self._folder.write_checkpoints(log for log in logs if log is not None)

    def write_log_starts(self, partitions: Iterable[Partition]) -> None:
        """Make the log starts that DeleteRecords has moved durable. Raises KafkaError."""
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

    # -- for the partitions ----------------------------------------------------------------------------------

    def make_opener(self, partition: Partition) -> Callable[[], PartitionLog]:
        """See Files."""
        topic, now_ms = partition.topic, self._now_ms()
        if self._topics.get(topic.name) is not topic or partition.index not in topic.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name} was deleted")
        key = TopicPartition(topic.name, partition.index)
        if key in self._to_delete:
            # it belongs to an earlier topic of that name
            self._rename_folder(key)
            if key in self._to_delete:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"files of a deleted topic are in the way of {key.topic}-{key.partition}: see the log",
                )
        # clients get an error for a damaged batch; the coordinator skips unreadable records of its own topic
        keep_damage = key.topic != OFFSETS_TOPIC or not self._settings.kohort_offsets_load_strict
        former = partition.log
        if former is not None:
            read: Callable[[], PartitionLog] = partial(former.reopen, now_ms=now_ms)
        else:
            read = self._folder.reading(
                *key,
                topic.config.log_config(),
                now_ms=now_ms,
                topic_id=topic.id,
                keep_damage=keep_damage,
            )

        def opened() -> PartitionLog:
            log = read()
            _tell_recovery(log)
            return log

        return opened

    @contextmanager
    def kept_in_place(self, partition: Partition) -> Iterator[None]:
        """See Files."""
        key = TopicPartition(partition.topic.name, partition.index)
        self._kept.add(key)
        try:
            yield
        finally:
            self._kept.discard(key)
            if key in self._to_delete:
                self.has_leftovers.set()

    def is_read_first(self, partition: Partition) -> bool:
        """Return whether opening a partition means to verify its newest files, however large they are."""
        return partition.is_unread and (not self.clean or partition.log is not None)

    def noted_end(self, partition: Partition) -> int | None:
        """See Files."""
        key = TopicPartition(partition.topic.name, partition.index)
        return None if partition.log is not None or key in self._to_delete else self._folder.noted_end(*key)

    def leader_epoch(self, partition: Partition) -> int:
        """See Files. It rises with each start, so that clients notice that the log may have been
        truncated.
        """
        log = partition.log
        if log is None:
            return self._folder.newest_epoch(partition.topic.name, partition.index) + 1
        return log.leader_epoch + 1 if log.log_end_offset else 0

    def damaged_partition(self, partition: Partition) -> None:
        """See Files."""
        self._on_damage(partition)

    def _newest_producer_id(self, partition: Partition) -> int:
        if partition.log is not None:
            return partition.log.newest_producer_id
        key = TopicPartition(partition.topic.name, partition.index)
        if key not in self._found:
            return -1
        try:
            return self._folder.newest_producer_id(*key)
        except (CorruptBatchError, OSError) as error:
            log.warning("the producers of %s-%d cannot be read: %s", *key, error)
            return -1

    # -- removing --------------------------------------------------------------------------------------------

    def _rename_folder(self, key: TopicPartition) -> None:
        if key not in self._to_delete or key in self._kept:
            return
        is_stray = key in self._strays
        try:
            path = self._folder.put_aside(*key) if is_stray else self._folder.mark_deleted(*key)
        except OSError as error:
            log.error("%s-%d is gone, its files cannot be moved out of the way yet: %s", *key, error)
            return
        topic_id = self._to_delete.pop(key)
        self._strays.discard(key)
        if path is None:
            return
        if is_stray:
            stray = Stray(*key, topic_id, os.path.basename(path))
            log.warning("%s-%d is a stray: its files are in %s", *key, stray.folder)
            self._aside[key, topic_id] = stray
        else:
            self._trees.append(path)

    def _remove_trees(self, trees: list[str]) -> None:
        for path in trees:
            try:
                self._folder.remove_deleted(path)
            except OSError as error:
                log.error("%s cannot be removed, the next start tries again: %s", path, error)


def _name_first(keys: Sequence[TopicPartition]) -> str:
    """The first of these partitions, for the log."""
    return ", ".join(f"{topic}-{index}" for topic, index in keys[:_MAX_NAMED])


def _tell_recovery(opened: PartitionLog) -> None:
    for cut in opened.recovery.cuts:
        log.warning("%s: cut %d bytes at %d: %s", cut.path, cut.bytes_cut, cut.position, cut.reason)
    if lost := opened.recovery.lost_offsets:
        log.error(
            "%s-%d ends at offset %d: %d offsets behind it were on the disk and are gone, restore the "
            "files from a copy, or expect committed offsets behind the end",
            opened.topic,
            opened.partition,
            opened.log_end_offset,
            lost,
        )
    for damage in opened.recovery.damaged:
        log.error("%s: damaged at %d, left as it is: %s", damage.path, damage.position, damage.reason)
