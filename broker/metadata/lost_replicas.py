"""Replicas that count as in sync, and that are not in the data folder, since it is a new one."""

from __future__ import annotations

import json
import logging
from typing import Final
from uuid import UUID

from ...cluster import ClusterImage, Registration
from ...log import DataFolder

log = logging.getLogger("kohort.broker")

_ENCODING: Final = "ascii"


class LostReplicas:
    """The lost replicas of a broker whose disk was wiped or replaced.

    The controller takes a broker that is away out of the in-sync replicas, as long as another is there. When
    all were away at once, this one still counts as in sync when it comes back, and if it comes first it would
    lead with nothing. So it tells in its registration what it has lost, until others are in sync without it.
    The folder knows of them, too: the next process has to tell them again.
    """

    def __init__(self, folder: DataFolder, registration: Registration, node_id: int) -> None:
        self._folder = folder
        self._registration = registration
        self._node_id = node_id
        self._replicas: frozenset[tuple[UUID, int]] = frozenset()

    def begin(self, image: ClusterImage) -> None:
        """Find them, before the broker registers. Raises OSError."""
        noted = self._folder.newness
        if noted is None:
            return
        found = frozenset(
            (topic.id, number)
            for topic in image.topics()
            for number, state in enumerate(topic.partitions)
            if self._node_id in state.isr
        )
        if noted:
            found &= {(UUID(topic), number) for topic, number in json.loads(noted)}
        if found:
            log.warning("the data folder is new: %d replicas that count as in sync are not there", len(found))
        self._announce_lost(found)

    def follow(self, image: ClusterImage) -> None:
        """Forget those that are not in sync any more, or lead since nobody has anything of them."""
        left = frozenset(each for each in self._replicas if self._is_lost(image, *each))
        if left != self._replicas:
            try:
                self._announce_lost(left)
            except OSError as error:
                log.warning("what a new data folder does not have cannot be noted: %s", error)

    def _is_lost(self, image: ClusterImage, topic_id: UUID, partition: int) -> bool:
        topic = image.topic_by_id(topic_id)
        if topic is None:
            return False
        state = topic.partitions[partition]
        return self._node_id in state.isr and state.leader != self._node_id

    def _announce_lost(self, replicas: frozenset[tuple[UUID, int]]) -> None:
        rows = sorted((str(topic), number) for topic, number in replicas)
        self._folder.note_newness(json.dumps(rows).encode(_ENCODING) if rows else None)
        self._replicas = replicas
        self._registration.announce_lost(replicas)
