"""A data folder: its lock, its identity, its checkpoints, and its partitions."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterable
from functools import partial

from ..protocol import TopicPartition
from ..protocol.named_tuples import NamedTuple
from ._checkpoints import (
    LeaderEpochs,
    encode_uuid,
    read_offsets,
    read_properties,
    read_topic_id,
    write_offsets,
    write_properties,
)
from ._config import LogConfig
from ._errors import DataFolderError, DataFolderInUseError, storage_errors
from ._files import OS_FILES, FileSystem, Lock, make_durable_dirs, read_whole, write_whole
from ._names import (
    LEADER_EPOCHS,
    SNAPSHOT,
    deleted_folder,
    file_name,
    is_deleted_folder,
    offsets_of,
    parse_partition_folder,
    parse_stray_folder,
    partition_folder,
    stray_folder,
)
from ._partition import PartitionLog
from ._producers import read_snapshot

META_PROPERTIES = "meta.properties"
LOCK_FILE = ".lock"
NEW_FOLDER = "kohort-new-folder"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"

#: Topic of Apache Kafka's own metadata log; its folder is left alone.
_METADATA_TOPIC = "__cluster_metadata"
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)
_CLEAN_SHUTDOWN_TEXT = b'{"version":0,"brokerEpoch":-1}'


def known_cluster_id(path: str | os.PathLike[str]) -> str | None:
    """The id of a data folder's cluster; None if the folder is new. Raises DataFolderError."""
    properties = read_properties(OS_FILES, os.path.join(os.fspath(path), META_PROPERTIES))
    return None if properties is None else properties.get("cluster.id")


class Stray(NamedTuple):
    """A partition that a broker has put aside, since the cluster's metadata do not assign it to the broker.

    ``topic_id`` is None if its files do not say it; ``folder`` is the name in the data folder. ``partition``
    is -1 if the name of the topic is so long that only its beginning is known.
    """

    topic: str
    partition: int
    topic_id: uuid.UUID | None
    folder: str


def strays_of(path: str, fs: FileSystem = OS_FILES) -> list[Stray]:
    """Return the strays of a data folder, sorted by the names of their folders. Raises OSError."""
    found = []
    for name in sorted(fs.list(path)):
        parsed = parse_stray_folder(name)
        if parsed is not None:
            try:
                topic_id = read_topic_id(fs, os.path.join(path, name))
            except DataFolderError:
                topic_id = None
            found.append(Stray(*parsed, topic_id, name))
    return found


def remove_stray(path: str, stray: Stray, fs: FileSystem = OS_FILES) -> None:
    """Remove a stray, in a data folder that may be in use: a broker that takes it back at the same moment has
    it, or does not find it any more. Raises OSError.
    """
    deleted = os.path.join(path, deleted_folder(stray.folder, uuid.uuid4().hex))
    fs.rename(os.path.join(path, stray.folder), deleted)
    fs.remove_tree(deleted)


class DataFolder:
    """One broker's data folder, locked while it is open.

    Open the logs with ``open_log``. To stop: close the logs, call ``write_checkpoints``, then ``close``.
    """

    def __init__(self, path: str, lock: Lock, fs: FileSystem) -> None:
        self.path = path
        #: Whether the last stop was clean, so that nothing needs to be verified.
        self.clean_start = False
        self.cluster_id = ""
        self.node_id = 0
        #: Folders of partitions that were being deleted when the last run stopped, removed at the open.
        self.removed_folders: list[str] = []
        self._fs = fs
        self._lock = lock
        self._recovery_points: dict[TopicPartition, int] = {}
        self._log_starts: dict[TopicPartition, int] = {}
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._cleaner_offsets: dict[TopicPartition, int] = {}
        # removed partitions that the checkpoint files may still list
        self._stale: set[TopicPartition] = set()

    def __repr__(self) -> str:
        return f"DataFolder({self.path!r}, cluster {self.cluster_id}, node {self.node_id})"

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        node_id: int = 1,
        cluster_id: str | None = None,
        fs: FileSystem = OS_FILES,
    ) -> DataFolder:
        """Lock the folder, creating it if necessary, and read its metadata. A new folder gets ``cluster_id``,
        or a cluster id of its own if that is None.

        Raises DataFolderInUseError while somebody else has it, DataFolderError if it is another node's or
        cannot be read, and KafkaError KAFKA_STORAGE_ERROR.
        """
        folder_path = os.path.abspath(os.fspath(path))
        try:
            make_durable_dirs(fs, folder_path)
            lock = fs.lock(os.path.join(folder_path, LOCK_FILE))
            if lock is None:
                raise DataFolderInUseError(
                    f"{folder_path} is in use by another broker: stop it, or choose another data folder"
                )
            folder = cls(folder_path, lock, fs)
            try:
                folder._load_meta(node_id, cluster_id)
            except BaseException:
                lock.release()
                raise
        except OSError as error:
            raise DataFolderError(
                f"{folder_path} cannot be used as a data folder ({error.strerror or error}): "
                "choose a folder that this user may make and write to"
            ) from error
        return folder

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that have a folder, sorted, except Kafka's own log."""
        parsed = map(parse_partition_folder, self._fs.list(self.path))
        return sorted(TopicPartition(*each) for each in parsed if each and each[0] != _METADATA_TOPIC)

    def strays(self) -> list[Stray]:
        """Return the partitions that were put aside, sorted by the names of their folders."""
        return strays_of(self.path, self._fs)

    def partition_path(self, topic: str, partition: int) -> str:
        """Return the path of a partition's folder. Raises DataFolderError for an illegal topic name."""
        if _TOPIC_NAME.fullmatch(topic) is None or topic in (".", ".."):
            raise DataFolderError(f"{topic!r} is no topic name: 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-'")
        return os.path.join(self.path, partition_folder(topic, partition))

    def open_log(
        self,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        now_ms: int,
        topic_id: uuid.UUID | None = None,
        keep_damage: bool = False,
    ) -> PartitionLog:
        """Open or create a partition, with its checkpoints; see ``PartitionLog.open``."""
        return self.reading(
            topic, partition, config, now_ms=now_ms, topic_id=topic_id, keep_damage=keep_damage
        )()

    def reading(
        self,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        now_ms: int,
        topic_id: uuid.UUID | None = None,
        keep_damage: bool = False,
    ) -> Callable[[], PartitionLog]:
        """Return what opens a partition, in any thread. Raises KafkaError."""
        key = TopicPartition(topic, partition)
        if key in self._stale:
            # checkpoints of an earlier partition of that name must not apply to the new one after a crash
            self._write_checkpoints()
        read = partial(
            PartitionLog.open,
            self.partition_path(topic, partition),
            config,
            now_ms=now_ms,
            clean=self.clean_start,
            recovery_point=self._recovery_points.get(key, 0),
            log_start_offset=self._log_starts.get(key, 0),
            high_watermark=self._high_watermarks.get(key, 0),
            topic_id=topic_id,
            keep_damage=keep_damage,
            fs=self._fs,
        )
        cleaner_offset = self._cleaner_offsets.get(key, 0)

        def opened() -> PartitionLog:
            log = read()
            log.cleaner_offset = min(cleaner_offset, log.log_end_offset)
            return log

        return opened

    def topic_id(self, topic: str, partition: int) -> uuid.UUID | None:
        """Return the topic id of a partition's folder, or None. Raises DataFolderError, OSError."""
        return read_topic_id(self._fs, self.partition_path(topic, partition))

    def noted_end(self, topic: str, partition: int) -> int | None:
        """Return where a partition that is not open ends, which a clean stop has noted; None if none has, or
        if the folder lacks the snapshot that was written there: then it is a copy of another time.
        """
        end = self._recovery_points.get(TopicPartition(topic, partition)) if self.clean_start else None
        if end is None:
            return None
        snapshot = os.path.join(self.partition_path(topic, partition), file_name(end, SNAPSHOT))
        return end if self._fs.exists(snapshot) else None

    def newest_epoch(self, topic: str, partition: int) -> int:
        """Return the newest leader epoch of a partition that is not open; -1 if it has none.

        Raises DataFolderError, and KafkaError KAFKA_STORAGE_ERROR.
        """
        path = os.path.join(self.partition_path(topic, partition), LEADER_EPOCHS)
        with storage_errors(path):
            return LeaderEpochs(self._fs, path).latest

    def newest_producer_id(self, topic: str, partition: int) -> int:
        """Return the largest producer id in the newest snapshot of a partition that is not open; -1 if none.

        Raises DataFolderError, CorruptBatchError and OSError.
        """
        path = self.partition_path(topic, partition)
        offsets = offsets_of(self._fs.list(path), SNAPSHOT)
        producers = read_snapshot(self._fs, path, offsets[-1]) if offsets else ()
        return max((each.producer_id for each in producers), default=-1)

    def mark_deleted(self, topic: str, partition: int) -> str | None:
        """Begin to remove a partition that is not open: rename its folder, drop its checkpoints.

        Returns the path for ``remove_deleted``, None if there is no folder. After ``sync`` a crash does not
        bring the partition back. Raises OSError.
        """
        return self._rename_partition(topic, partition, deleted_folder)

    def put_aside(self, topic: str, partition: int) -> str | None:
        """As ``mark_deleted``, under a name that keeps the folder: a stray, which no broker serves."""
        return self._rename_partition(topic, partition, stray_folder)

    def take_back(self, stray: Stray) -> None:
        """Give a stray its partition's name again. Raises OSError."""
        self._fs.rename(
            os.path.join(self.path, stray.folder), self.partition_path(stray.topic, stray.partition)
        )

    def _rename_partition(self, topic: str, partition: int, named: Callable[[str, str], str]) -> str | None:
        path = self.partition_path(topic, partition)
        renamed = None
        if self._fs.exists(path):
            renamed = os.path.join(self.path, named(os.path.basename(path), uuid.uuid4().hex))
            self._fs.rename(path, renamed)
        self._forget_partitions([TopicPartition(topic, partition)])
        return renamed

    @property
    def newness(self) -> bytes | None:
        """Return the content of the mark on a folder that was created for a broker of a cluster.

        The mark says that the folder lacks the replicas that this broker may have had before. It is empty at
        first; None for a folder without the mark. Raises OSError.
        """
        return read_whole(self._fs, os.path.join(self.path, NEW_FOLDER))

    def note_newness(self, noted: bytes | None) -> None:
        """Replace the content of the mark; None removes the mark. Raises OSError."""
        path = os.path.join(self.path, NEW_FOLDER)
        if noted is None:
            self._fs.remove(path)
            self._fs.sync_dir(self.path)
        else:
            write_whole(self._fs, path, noted)

    def read_note(self, name: str) -> bytes | None:
        """The content of a file of the folder's owner; None if there is none. Raises OSError."""
        return read_whole(self._fs, os.path.join(self.path, name))

    def write_note(self, name: str, content: bytes) -> None:
        """Replace a file of the folder's owner durably. Raises OSError."""
        write_whole(self._fs, os.path.join(self.path, name), content)

    def sync(self) -> None:
        """Make the names in the folder durable. Raises OSError."""
        self._fs.sync_dir(self.path)

    def remove_deleted(self, path: str) -> None:
        """Remove a deleted folder, in any thread. Raises OSError."""
        self._fs.remove_tree(path)

    def write_checkpoints(self, logs: Iterable[PartitionLog]) -> None:
        """Write the recovery points, log starts, high watermarks and cleaner offsets of ``logs`` durably.

        Entries of partitions that are on the disk but not among ``logs`` stay. Call it about every minute,
        and at the stop. Raises KafkaError KAFKA_STORAGE_ERROR.
        """
        for log in logs:
            key = TopicPartition(log.topic, log.partition)
            self._recovery_points[key] = log.recovery_point
            self._log_starts[key] = log.log_start_offset
            self._high_watermarks[key] = log.high_watermark
            if log.cleaner_offset:
                self._cleaner_offsets[key] = log.cleaner_offset
            else:
                self._cleaner_offsets.pop(key, None)
        self._write_checkpoints()

    def write_log_starts(self, logs: Iterable[PartitionLog]) -> None:
        """Write the log starts that DeleteRecords moved durably. Raises KafkaError KAFKA_STORAGE_ERROR."""
        for log in logs:
            self._log_starts[TopicPartition(log.topic, log.partition)] = log.log_start_offset
        with storage_errors(self.path):
            write_offsets(self._fs, os.path.join(self.path, LOG_STARTS), self._log_starts)

    def _write_checkpoints(self) -> None:
        with storage_errors(self.path):
            self._forget_absent()
            for name, offsets in self._checkpoint_files():
                write_offsets(self._fs, os.path.join(self.path, name), offsets)
        self._stale.clear()

    def _forget_absent(self) -> None:
        """Drop the checkpoints of partitions that are not on the disk."""
        present = set(self.partitions())
        self._forget_partitions(
            {key for _, offsets in self._checkpoint_files() for key in offsets.keys() - present}
        )

    def _forget_partitions(self, keys: Iterable[TopicPartition]) -> None:
        for key in keys:
            for _, offsets in self._checkpoint_files():
                if offsets.pop(key, None) is not None:
                    self._stale.add(key)

    def close(self, clean: bool = True) -> None:
        """Unlock the folder. Pass ``clean`` if every log closed without an error and the checkpoints are
        written.
        """
        try:
            if clean:
                with storage_errors(self.path):
                    write_whole(self._fs, os.path.join(self.path, CLEAN_SHUTDOWN), _CLEAN_SHUTDOWN_TEXT)
        finally:
            self._lock.release()

    def _checkpoint_files(self) -> list[tuple[str, dict[TopicPartition, int]]]:
        return [
            (RECOVERY_POINTS, self._recovery_points),
            (LOG_STARTS, self._log_starts),
            (HIGH_WATERMARKS, self._high_watermarks),
            (CLEANER_OFFSETS, self._cleaner_offsets),
        ]

    def _load_meta(self, node_id: int, cluster_id: str | None) -> None:
        self._identify_folder(node_id, cluster_id)
        for name, offsets in self._checkpoint_files():
            offsets.update(read_offsets(self._fs, os.path.join(self.path, name)))
        for name in self._fs.list(self.path):
            if is_deleted_folder(name):
                self._fs.remove_tree(os.path.join(self.path, name))
                self.removed_folders.append(name)
        self._forget_absent()
        marker = os.path.join(self.path, CLEAN_SHUTDOWN)
        self.clean_start = self._fs.exists(marker)
        if self.clean_start:
            # from here on only a clean stop makes the files trustworthy again
            self._fs.remove(marker)
            self._fs.sync_dir(self.path)

    def _identify_folder(self, node_id: int, cluster_id: str | None) -> None:
        path = os.path.join(self.path, META_PROPERTIES)
        properties = read_properties(self._fs, path)
        if properties is None:
            if cluster_id is not None:
                self.note_newness(b"")
            properties = {
                "version": "1",
                "cluster.id": cluster_id or encode_uuid(uuid.uuid4()),
                "node.id": str(node_id),
                "directory.id": encode_uuid(uuid.uuid4()),
            }
            write_properties(self._fs, path, properties)
        if (layout := properties.get("version", "1")) not in ("0", "1"):
            raise DataFolderError(
                f"{path} has version {layout}, and this broker knows versions 0 and 1: use the broker that "
                "wrote the folder, or choose another one"
            )
        owner = properties.get("node.id", str(node_id))
        if owner != str(node_id):
            raise DataFolderError(
                f"{self.path} belongs to node {owner}, this is node {node_id}: start with node.id={owner}, "
                "or choose another data folder"
            )
        if not properties.get("cluster.id"):
            raise DataFolderError(
                f"{path} has no cluster.id: put it back, or remove the file to get a new one"
            )
        self.node_id = node_id
        self.cluster_id = properties["cluster.id"]
