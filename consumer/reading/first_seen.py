"""What a member first saw of its topics: those that came later have only records written since. No I/O."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from ...client.metadata import ClusterMetadata
from ...protocol import ErrorCode, TopicPartition


class FirstSeen:
    """Ids of topics and numbers of their partitions, as they were when this member began to watch them."""

    def __init__(self) -> None:
        #: A topic that did not exist has no id, and no partitions.
        self._topics: dict[str, tuple[uuid.UUID | None, int]] = {}

    def look_at(self, topics: Collection[str], known: ClusterMetadata) -> None:
        """Metadata of the topics that are subscribed to by name; others are forgotten."""
        self._topics = {name: seen for name, seen in self._topics.items() if name in topics}
        for name in topics:
            if (topic := known.topics.get(name)) is not None:
                self._topics.setdefault(name, (topic.topic_id, len(topic.partitions)))
            elif known.errors.get(name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not self._has_id(name):
                # a topic that may not be read yet has another error, and may have older records
                self._topics[name] = (None, 0)

    def _has_id(self, name: str) -> bool:
        """Return whether a topic made anew will have another id: the one that was seen may come again.

        A broker that lags does not know it.
        """
        return self._topics.get(name, (None, 0))[0] is not None

    def is_newer(self, partition: TopicPartition, topic_id: uuid.UUID | None) -> bool:
        """Return whether a partition, of the topic with this id, did not exist when its topic was first seen.

        Such are partitions that were added, and those of a topic that was made since, or made anew.
        """
        seen = self._topics.get(partition.topic)
        if seen is None:
            return False
        first_id, count = seen
        return partition.partition >= count or (None not in (topic_id, first_id) and topic_id != first_id)
