"""The layout of a metadata store: paths, and the values of their entries.

Paths are those of Apache Kafka's own ZooKeeper layout where it has one for the thing.

- ``/brokers/topics/NAME``: a topic, a ``TopicRecord``;
- ``/admin/delete_topics/ID``: a topic whose files or committed offsets may not all be gone; its name, or None
  where a former version did not keep it;
- ``/latest_producer_id_block``: the end of the last block of producer ids that was taken;
- ``/config/settings``, ``/kafka-acl``, ``/config/users``, ``/config/quotas``: settings that were changed
  while the broker ran, access rules, SCRAM users and client quotas, each a document that its owner reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

TOPICS: Final = "/brokers/topics"
DELETED_TOPICS: Final = "/admin/delete_topics"
PRODUCER_IDS: Final = "/latest_producer_id_block"

#: Documents of one entry: where it stands, by the kind in the file's name.
DOCUMENTS: Final = {
    "settings": "/config/settings",
    "acls": "/kafka-acl",
    "scram-users": "/config/users",
    "client-quotas": "/config/quotas",
    "groups": "/config/groups",
    "features": "/feature",
}


def topic_path(name: str) -> str:
    return f"{TOPICS}/{name}"


def deleted_topic_path(topic_id: UUID) -> str:
    return f"{DELETED_TOPICS}/{topic_id}"


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """One topic: ``configs`` holds only what was set for it, by name with underscores, typed."""

    id: UUID
    partitions: int
    configs: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, value: dict[str, Any]) -> TopicRecord:
        """Raises ValueError, KeyError or TypeError for what is no topic."""
        return cls(UUID(value["id"]), int(value["partitions"]), dict(value["configs"]))

    def stored(self) -> dict[str, Any]:
        return {"id": str(self.id), "partitions": self.partitions, "configs": self.configs}
