"""``kohort.json``: what the folders of partitions cannot say, in one small durable file of the data folder.

Apache Kafka keeps these in its metadata quorum, of which we have none. The file says which topics exist,
with how many partitions and which configs, which are being deleted, and up to where producer ids are given
out. It is replaced as a whole (written beside, synced, renamed), so that creating or deleting a topic of
many folders happens or does not happen, whenever the broker dies. Topics whose folders stand there but not
in the file (a folder copied from Apache Kafka) are taken in as found.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from ..protocol import KohortError

NAME = "kohort.json"
_VERSION = 1


class TopicsFileError(KohortError):
    """``kohort.json`` cannot be read; the text says what to do."""


@dataclass(slots=True)
class TopicEntry:
    """One topic: ``configs`` holds only what was set for it, by field name of TopicConfig, typed."""

    id: UUID
    partitions: int
    configs: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class TopicsFile:
    """The file's content. ``save`` makes it durable."""

    path: Path
    topics: dict[str, TopicEntry] = field(default_factory=dict)
    deleted: set[UUID] = field(default_factory=set)
    next_producer_id: int = 0

    @classmethod
    def load(cls, folder: Path) -> TopicsFile:
        """What is there; empty if the file is missing. Raises TopicsFileError."""
        path = folder / NAME
        try:
            content = json.loads(path.read_bytes())
            if content["version"] != _VERSION:
                raise ValueError(f"its version is {content['version']}, this kohort knows {_VERSION}")
            return cls(
                path,
                {name: _entry(stored) for name, stored in content["topics"].items()},
                {UUID(text) for text in content["deleted"]},
                int(content["next_producer_id"]),
            )
        except FileNotFoundError:
            return cls(path)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TopicsFileError(
                f"{path} cannot be read ({error}): restore it from a copy; without it the topics are "
                "taken from their folders and lose their configs"
            ) from error

    def save(self) -> None:
        """Replace the file. Raises OSError; the old content then still stands."""
        content = {
            "version": _VERSION,
            "next_producer_id": self.next_producer_id,
            "deleted": sorted(str(topic_id) for topic_id in self.deleted),
            "topics": {
                name: {"id": str(entry.id), "partitions": entry.partitions, "configs": entry.configs}
                for name, entry in self.topics.items()
            },
        }
        beside = self.path.with_suffix(".json.tmp")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.path)
        _sync_folder(self.path.parent)


def _entry(stored: dict[str, Any]) -> TopicEntry:
    return TopicEntry(UUID(stored["id"]), int(stored["partitions"]), dict(stored["configs"]))


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
