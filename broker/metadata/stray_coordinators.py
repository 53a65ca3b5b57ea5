"""Topics of coordinators that are on the disk and not in the metadata: no new ones take their place."""

from __future__ import annotations

import logging
from typing import Final

from ...cluster import ClusterImage, Registration
from ...log import DataFolder
from ...protocol import ErrorCode, KafkaError
from ..partitions.topic_names import COORDINATORS

log = logging.getLogger("kohort.broker")

_WORDS: Final = (
    "broker %d has files of %s that the metadata do not have: they are an older copy, and a new topic would "
    "begin without offsets and transactions; restore a copy that has the topic, or remove these strays from "
    "its data folder ('kohort log strays')"
)


class StrayCoordinators:
    """Which coordinators' topics a broker has as strays.

    The first request for a coordinator creates its topic. Where ZooKeeper's data were restored from a copy
    that is older than the topic, every group would silently begin anew. So brokers tell in their registration
    what they have, and as long as one does, none creates it.
    """

    def __init__(self, folder: DataFolder, registration: Registration, node_id: int) -> None:
        self._folder = folder
        self._registration = registration
        self._node_id = node_id
        self._names: frozenset[str] = frozenset()

    def begin(self, image: ClusterImage) -> None:
        """Find them, before the broker registers. Raises OSError."""
        self._names = self._find_strays(image)
        for name in self._names:
            log.error(_WORDS, self._node_id, name)
        self._registration.announce_strays(self._names)

    def follow(self, image: ClusterImage) -> None:
        """Forget those that the metadata have again, and those whose files somebody has removed. Raises
        OSError.
        """
        if self._names and (left := self._names & self._find_strays(image)) != self._names:
            self._names = left
            self._registration.announce_strays(left)

    def check(self, image: ClusterImage, name: str) -> None:
        """Raises KafkaError COORDINATOR_NOT_AVAILABLE if a broker has files of a topic that is to be made."""
        self.follow(image)
        having = [self._node_id] if name in self._names else []
        having += [
            node_id
            for node_id, broker in image.brokers.items()
            if name in broker.strays and node_id != self._node_id
        ]
        if having:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, _WORDS % (having[0], name))

    def _find_strays(self, image: ClusterImage) -> frozenset[str]:
        there = {name for name, _ in self._folder.partitions()}
        there |= {each.topic for each in self._folder.strays()}
        return frozenset(name for name in COORDINATORS & there if image.topic(name) is None)
