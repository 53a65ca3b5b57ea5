"""The topics that the members of a group subscribe to, followed one by one: thousands of members may join and
leave at once, with thousands of names each.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from ...protocol.named_tuples import NamedTuple
from .groups import TopicDirectory


class Topic(NamedTuple):
    """An existing topic."""

    id: UUID
    partition_count: int


@dataclass(slots=True, eq=False)
class SubscribedTopics:
    """``names`` counts who subscribes to each topic. Of those that exist, as of the last look, it has the
    number of partitions and the bytes of their names; ``found_count`` is how many were found since it began.
    """

    directory: TopicDirectory
    names: Counter[str] = field(default_factory=Counter)
    partition_count: int = 0
    name_bytes: int = 0
    found_count: int = 0
    _found: dict[str, Topic] = field(default_factory=dict)
    # names that are still to be looked up, and the version of the topics in which the others were
    _unfound: set[str] = field(default_factory=set)
    _seen: object = None
    _hash: int = 0

    def count(self, names: Iterable[str], step: int) -> None:
        """Count one subscriber more of these topics, or one less: 1 or -1."""
        for name in names:
            count = self.names[name] + step
            if count:
                if not self.names[name]:
                    self._unfound.add(name)
                self.names[name] = count
                continue
            del self.names[name]
            self._unfound.discard(name)
            if (topic := self._found.pop(name, None)) is not None:
                self._count_found(name, topic, -1)

    def look_up(self) -> bool:
        """Look up what is new, all of it if topics have changed; return whether they have."""
        version = self.directory.version()
        has_changed = self._seen is not version
        if has_changed:
            self._seen, self._found, self._unfound = version, {}, set(self.names)
            self._hash = self.partition_count = self.name_bytes = 0
        for name in self._unfound:
            topic_id, count = self.directory.id_of_topic(name), self.directory.partition_count_of(name)
            if topic_id is not None and count is not None:
                topic = self._found[name] = Topic(topic_id, count)
                self._count_found(name, topic, 1)
                self.found_count += 1
        self._unfound.clear()
        return has_changed

    @property
    def found(self) -> Mapping[str, Topic]:
        """Those that exist, by name in no order."""
        return self._found

    @property
    def hash(self) -> int:
        """The hash of those that exist, as a record keeps it; 0 for none."""
        return (self._hash + 2**63) % 2**64 - 2**63

    def let_go(self) -> None:
        """Keep no version of the topics alive: all are looked up again."""
        self._seen = None

    def _count_found(self, name: str, topic: Topic, step: int) -> None:
        self._hash += step * _hash_topic(name, topic)
        self.partition_count += step * topic.partition_count
        self.name_bytes += step * len(name.encode())


def _hash_topic(name: str, topic: Topic) -> int:
    """Hash a topic as it is now. A group's hash is the sum, so that it can follow each of its topics."""
    told = f"{name}\0{topic.id}\0{topic.partition_count}"
    return int.from_bytes(hashlib.blake2b(told.encode(), digest_size=8).digest(), "big")
