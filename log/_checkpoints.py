"""Kafka's small text files: offset checkpoints, leader epochs, a partition's topic id, properties.

===========================  ================================================================================
file                         lines
===========================  ================================================================================
``*-offset-checkpoint``      ``0``, the number of the others, and in each of these ``TOPIC PARTITION OFFSET``
``leader-epoch-checkpoint``  the same with ``EPOCH FIRST_OFFSET``, both in rising order
``partition.metadata``       ``version: 0`` and ``topic_id:`` with base64url of its 16 bytes, without padding
``meta.properties``          ``KEY=VALUE``; lines that begin with ``#`` or ``!`` are comments
===========================  ================================================================================
"""

from __future__ import annotations

import base64
import os
import re
import uuid
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from ..protocol import TopicPartition
from ._errors import DataFolderError
from ._files import FileSystem, read_whole, write_whole
from ._names import PARTITION_METADATA

_VERSION = "0"
_INT_AND_LONG = re.compile(r"(0|[1-9]\d*) (0|[1-9]\d*)", re.ASCII)
_TOPIC_INT_AND_LONG = re.compile(rf"([^ ]*) {_INT_AND_LONG.pattern}", re.ASCII)
_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1


def read_offsets(fs: FileSystem, path: str) -> dict[TopicPartition, int]:
    """Read a checkpoint file: offsets by partition, {} without a file. Raises DataFolderError."""
    offsets: dict[TopicPartition, int] = {}
    for line in _read_entries(fs, path):
        found = _TOPIC_INT_AND_LONG.fullmatch(line)
        if found is None or (partition := int(found[2])) > _MAX_INT or (offset := int(found[3])) > _MAX_LONG:
            raise _malformed_line(path, line, "topic partition offset")
        offsets[TopicPartition(found[1], partition)] = offset
    return offsets


def write_offsets(fs: FileSystem, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Write a checkpoint of offsets by partition, in Apache Kafka's format."""
    _write_entries(fs, path, [f"{topic} {partition} {o}" for (topic, partition), o in offsets.items()])


def read_epochs(fs: FileSystem, path: str) -> list[tuple[int, int]]:
    """Read a leader-epoch-checkpoint: (epoch, its first offset), oldest first. Raises DataFolderError."""
    epochs: list[tuple[int, int]] = []
    for line in _read_entries(fs, path):
        found = _INT_AND_LONG.fullmatch(line)
        if found is None or int(found[1]) > _MAX_INT or int(found[2]) > _MAX_LONG:
            raise _malformed_line(path, line, "epoch offset")
        epochs.append((int(found[1]), int(found[2])))
        if len(epochs) > 1 and (epochs[-1][0] <= epochs[-2][0] or epochs[-1][1] < epochs[-2][1]):
            raise _unreadable_error(path, f"the line {line!r} is not in rising order")
    return epochs


def write_epochs(
    fs: FileSystem, path: str, epochs: Sequence[tuple[int, int]], *, durable: bool = True
) -> None:
    """Write the checkpoint of leader epochs; ``durable`` syncs it."""
    _write_entries(fs, path, [f"{epoch} {start}" for epoch, start in epochs], durable=durable)


def read_topic_id(fs: FileSystem, folder: str) -> uuid.UUID | None:
    """Return the topic id in a partition folder's partition.metadata, or None if there is no such file."""
    path = os.path.join(folder, PARTITION_METADATA)
    data = read_whole(fs, path)
    if data is None:
        return None
    fields = dict(line.partition(": ")[::2] for line in data.decode("utf-8", "replace").splitlines())
    try:
        return uuid.UUID(bytes=base64.urlsafe_b64decode(fields["topic_id"].strip() + "=="))
    except (KeyError, ValueError):
        raise _unreadable_error(path, "it has no topic_id of 22 characters") from None


def write_topic_id(fs: FileSystem, folder: str, topic_id: uuid.UUID) -> None:
    """Write ``partition.metadata``, which has the topic's id."""
    text = f"version: 0\ntopic_id: {encode_uuid(topic_id)}"
    write_whole(fs, os.path.join(folder, PARTITION_METADATA), text.encode(), sync_folder=False)


def claim_folder(fs: FileSystem, folder: str, topic_id: uuid.UUID | None) -> uuid.UUID:
    """Return the topic id of a partition's folder, which is created for ``topic_id`` if it is missing.

    A new folder is durable after the first flush. Raises OSError, and DataFolderError if the folder belongs
    to another topic, or if it is missing and no id is given.
    """
    known = read_topic_id(fs, folder)
    if known is not None:
        if topic_id is not None and topic_id != known:
            raise DataFolderError(
                f"{folder} belongs to topic id {known}, not {topic_id}: it is another topic's of that name, "
                "move it away"
            )
        return known
    if topic_id is None:
        raise DataFolderError(f"{folder} has no {PARTITION_METADATA}: pass the topic's id")
    fs.make_dirs(folder)
    write_topic_id(fs, folder, topic_id)
    return topic_id


def encode_uuid(value: uuid.UUID) -> str:
    """Return a UUID in Kafka's text form: base64url of its 16 bytes, without padding."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def read_properties(fs: FileSystem, path: str) -> dict[str, str] | None:
    """Read a Java properties file of plain ``key=value`` lines; None if there is no file."""
    data = read_whole(fs, path)
    if data is None:
        return None
    lines = (line.strip() for line in data.decode("utf-8", "replace").splitlines())
    return {
        key.strip(): value.strip()
        for key, _, value in (line.partition("=") for line in lines if line and line[0] not in "#!")
    }


def write_properties(fs: FileSystem, path: str, properties: Mapping[str, str]) -> None:
    """Write ``meta.properties`` or another file of keys and values."""
    text = "".join(f"{key}={value}\n" for key, value in properties.items())
    write_whole(fs, path, text.encode())


def _malformed_line(path: str, line: str, what: str) -> DataFolderError:
    return _unreadable_error(path, f"the line {line!r} is not {what!r}")


def _read_entries(fs: FileSystem, path: str) -> list[str]:
    data = read_whole(fs, path)
    if not data:
        return []
    lines = data.decode("utf-8", "replace").splitlines()
    if lines[0] != _VERSION:
        raise _unreadable_error(path, f"its version is {lines[0]!r}, only 0 is known")
    entries = [line for line in lines[2:] if line]
    if len(lines) < 2 or lines[1] != str(len(entries)):
        raise _unreadable_error(path, f"its second line does not say that {len(entries)} lines follow")
    return entries


def _write_entries(fs: FileSystem, path: str, entries: Sequence[str], *, durable: bool = True) -> None:
    lines = [_VERSION, str(len(entries)), *entries]
    write_whole(fs, path, ("\n".join(lines) + "\n").encode(), sync=durable, sync_folder=durable)


def _unreadable_error(path: str, why: str) -> DataFolderError:
    return DataFolderError(
        f"{path} cannot be read: {why}. Restore it from a copy, or remove it: then the logs are read whole"
    )


#: Epoch and offset of a response if neither is known.
UNDEFINED = -1


class LeaderEpochs:
    """The epochs in memory and in leader-epoch-checkpoint, which is written at every change."""

    __slots__ = ("_entries", "_fs", "_is_new", "_path")

    def __init__(self, fs: FileSystem, path: str, entries: list[tuple[int, int]] | None = None) -> None:
        self._fs = fs
        self._path = path
        self._entries = entries if entries is not None else read_epochs(fs, path)
        self._is_new = not self._entries

    def __repr__(self) -> str:
        return f"LeaderEpochs({self._entries})"

    @property
    def latest(self) -> int:
        """The newest epoch; UNDEFINED before the first."""
        return self._entries[-1][0] if self._entries else UNDEFINED

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that ``epoch`` begins at ``start_offset``, unless it is not newer. Raises OSError."""
        if epoch > self.latest:
            self._replace_entries([*(e for e in self._entries if e[1] < start_offset), (epoch, start_offset)])

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the newest epoch up to ``epoch``, and the offset after its last record (KIP-101, KIP-320).

        (UNDEFINED, UNDEFINED) for an epoch that is newer than all of this log.
        """
        if epoch == self.latest != UNDEFINED:
            return epoch, log_end_offset
        after = bisect_right(self._entries, epoch, key=lambda entry: entry[0])
        if epoch < 0 or after == len(self._entries):
            return UNDEFINED, UNDEFINED
        floor = self._entries[after - 1][0] if after else epoch
        return floor, self._entries[after][1]

    def epoch_at(self, offset: int) -> int:
        """Return the epoch in which ``offset`` was written; UNDEFINED before the first epoch."""
        after = bisect_right(self._entries, offset, key=lambda entry: entry[1])
        return self._entries[after - 1][0] if after else UNDEFINED

    def may_have_written(self, epoch: int, offset: int) -> bool:
        """Return whether a batch at ``offset`` can have ``epoch``: the epoch recorded for that offset, or the
        one after the newest, which is not recorded yet.
        """
        due = self.epoch_at(offset)
        return due in (UNDEFINED, epoch) or (due == self.latest and epoch == due + 1)

    def cut_start(self, log_start_offset: int) -> None:
        """Forget epochs that end at or before ``log_start_offset``. Raises OSError."""
        after = bisect_right(self._entries, log_start_offset, key=lambda entry: entry[1])
        if not after:
            return
        oldest = (self._entries[after - 1][0], log_start_offset)
        if self._entries[0] != oldest:
            self._replace_entries([oldest, *self._entries[after:]])

    def cut_end(self, log_end_offset: int) -> None:
        """Forget epochs that begin after the log's end. Raises OSError."""
        kept = [entry for entry in self._entries if entry[1] <= log_end_offset]
        if len(kept) < len(self._entries):
            self._replace_entries(kept)

    def _replace_entries(self, entries: list[tuple[int, int]]) -> None:
        # opening a new log must not wait for the disk: the first flush makes the first file durable
        write_epochs(self._fs, self._path, entries, durable=not self._is_new)
        self._entries, self._is_new = entries, False
