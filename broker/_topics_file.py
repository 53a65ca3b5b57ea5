"""``kohort.json``: what the folders of partitions cannot say, in one small durable file of the data folder.

Apache Kafka keeps these in its metadata quorum, of which we have none. The file says which topics exist,
with how many partitions and which configs, which are being deleted, and up to where producer ids are given
out. It is replaced as a whole (written beside, synced, renamed), so that creating or deleting a topic of
many folders happens or does not happen, whenever the broker dies. Topics whose folders stand there but not
in the file (a folder copied from Apache Kafka) are taken in as found.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from ._state_file import StateFile

NAME = "kohort.json"
_WITHOUT = "the topics are taken from their folders and lose their configs"


@dataclass(frozen=True, slots=True)
class TopicEntry:
    """One topic: ``configs`` holds only what was set for it, by field name of TopicConfig, typed."""

    id: UUID
    partitions: int
    configs: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class TopicsFile:
    """The file's content. ``save`` makes it durable.

    ``deleted`` are topics of which there may be files yet, by id; the name is None in files of before it was
    kept.
    """

    file: StateFile
    topics: dict[str, TopicEntry] = field(default_factory=dict)
    deleted: dict[UUID, str | None] = field(default_factory=dict)
    next_producer_id: int = 0

    @classmethod
    def load(cls, folder: Path) -> TopicsFile:
        """What is there; empty if the file is missing. Raises StateFileError."""
        file = StateFile(folder / NAME, _WITHOUT)

        def parse(content: dict[str, Any]) -> TopicsFile:
            return cls(
                file,
                {name: _entry(stored) for name, stored in content["topics"].items()},
                _deleted(content["deleted"]),
                int(content["next_producer_id"]),
            )

        return file.load(parse) or cls(file)

    @contextmanager
    def change(self) -> Iterator[None]:
        """The topics are changed within, saved once at the end, and as before if that raises (OSError)."""
        topics, deleted = dict(self.topics), dict(self.deleted)
        try:
            yield
            self.save()
        except BaseException:
            self.topics, self.deleted = topics, deleted
            raise

    def save(self) -> None:
        """Replace the file. Raises OSError; the old content then still stands."""
        self.file.save(
            {
                "next_producer_id": self.next_producer_id,
                "deleted": {str(topic_id): name for topic_id, name in self.deleted.items()},
                "topics": {
                    name: {"id": str(entry.id), "partitions": entry.partitions, "configs": entry.configs}
                    for name, entry in self.topics.items()
                },
            }
        )


def _deleted(stored: dict[str, str] | list[str]) -> dict[UUID, str | None]:
    names = stored if isinstance(stored, dict) else dict.fromkeys(stored)
    return {UUID(text): name for text, name in names.items()}


def _entry(stored: dict[str, Any]) -> TopicEntry:
    return TopicEntry(UUID(stored["id"]), int(stored["partitions"]), dict(stored["configs"]))
