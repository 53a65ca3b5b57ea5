"""Kafka's small text files: offset checkpoints, leader epochs, a partition's topic id, properties."""

from __future__ import annotations

import base64
import os
import uuid
from collections.abc import Mapping, Sequence

from ..protocol import TopicPartition
from ._errors import DataFolderError
from ._files import FileSystem, read_whole, write_whole
from ._names import PARTITION_METADATA

_VERSION = "0"
_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1


def read_offsets(fs: FileSystem, path: str) -> dict[TopicPartition, int]:
    """A checkpoint file: an offset for each partition. Empty if there is none. Raises DataFolderError."""
    offsets: dict[TopicPartition, int] = {}
    for line in _read_entries(fs, path):
        try:
            topic, partition, offset = line.split(" ")
            key = TopicPartition(topic, _number(partition, _MAX_INT))
            offsets[key] = _number(offset, _MAX_LONG)
        except ValueError:
            raise _unreadable(path, f"the line {line!r} is not 'topic partition offset'") from None
    return offsets


def write_offsets(fs: FileSystem, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    _write_entries(fs, path, [f"{topic} {partition} {o}" for (topic, partition), o in offsets.items()])


def read_epochs(fs: FileSystem, path: str) -> list[tuple[int, int]]:
    """A leader-epoch-checkpoint: (epoch, its first offset), oldest first. Raises DataFolderError."""
    epochs: list[tuple[int, int]] = []
    for line in _read_entries(fs, path):
        try:
            epoch, start = line.split(" ")
            epochs.append((_number(epoch, _MAX_INT), _number(start, _MAX_LONG)))
        except ValueError:
            raise _unreadable(path, f"the line {line!r} is not 'epoch offset'") from None
        if len(epochs) > 1 and (epochs[-1][0] <= epochs[-2][0] or epochs[-1][1] < epochs[-2][1]):
            raise _unreadable(path, f"the line {line!r} does not rise")
    return epochs


def write_epochs(fs: FileSystem, path: str, epochs: Sequence[tuple[int, int]]) -> None:
    _write_entries(fs, path, [f"{epoch} {start}" for epoch, start in epochs])


def read_topic_id(fs: FileSystem, folder: str) -> uuid.UUID | None:
    """The topic id in a partition folder's partition.metadata, or None if there is no such file."""
    path = os.path.join(folder, PARTITION_METADATA)
    data = read_whole(fs, path)
    if data is None:
        return None
    fields = dict(line.partition(": ")[::2] for line in data.decode("utf-8", "replace").splitlines())
    try:
        return uuid.UUID(bytes=base64.urlsafe_b64decode(fields["topic_id"].strip() + "=="))
    except (KeyError, ValueError):
        raise _unreadable(path, "it has no topic_id of 22 characters") from None


def write_topic_id(fs: FileSystem, folder: str, topic_id: uuid.UUID) -> None:
    text = f"version: 0\ntopic_id: {encode_uuid(topic_id)}"
    write_whole(fs, os.path.join(folder, PARTITION_METADATA), text.encode(), sync_folder=False)


def claim_folder(fs: FileSystem, folder: str, topic_id: uuid.UUID | None) -> uuid.UUID:
    """The topic id of a partition's folder, which is made for ``topic_id`` if it is not there.

    Raises DataFolderError if it is another topic's, or is not there and no id is given, and OSError.
    """
    known = read_topic_id(fs, folder) if fs.exists(folder) else None
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
    fs.sync_dir(folder)
    fs.sync_dir(os.path.dirname(folder))
    return topic_id


def encode_uuid(value: uuid.UUID) -> str:
    """Kafka's text form of a UUID: base64url of its 16 bytes, without padding."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def read_properties(fs: FileSystem, path: str) -> dict[str, str] | None:
    """A Java properties file of plain ``key=value`` lines, or None if there is none."""
    data = read_whole(fs, path)
    if data is None:
        return None
    lines = (line.strip() for line in data.decode("utf-8", "replace").splitlines())
    return {
        key.strip(): value.strip()
        for key, _, value in (line.partition("=") for line in lines if line and line[0] not in "#!")
    }


def write_properties(fs: FileSystem, path: str, properties: Mapping[str, str]) -> None:
    text = "".join(f"{key}={value}\n" for key, value in properties.items())
    write_whole(fs, path, text.encode())


def _number(text: str, most: int) -> int:
    """A number as Kafka writes it. Raises ValueError."""
    number = int(text)
    if text != str(number) or not 0 <= number <= most:
        raise ValueError(text)
    return number


def _read_entries(fs: FileSystem, path: str) -> list[str]:
    data = read_whole(fs, path)
    if not data:
        return []
    lines = data.decode("utf-8", "replace").splitlines()
    if lines[0] != _VERSION:
        raise _unreadable(path, f"its version is {lines[0]!r}, only 0 is known")
    entries = [line for line in lines[2:] if line]
    if len(lines) < 2 or lines[1] != str(len(entries)):
        raise _unreadable(path, f"its second line does not say that {len(entries)} lines follow")
    return entries


def _write_entries(fs: FileSystem, path: str, entries: Sequence[str]) -> None:
    lines = [_VERSION, str(len(entries)), *entries]
    write_whole(fs, path, ("\n".join(lines) + "\n").encode())


def _unreadable(path: str, why: str) -> DataFolderError:
    return DataFolderError(
        f"{path} cannot be read: {why}. Restore it from a copy, or remove it: then the logs are read whole"
    )
