"""Leader epochs that this broker's logs have and the metadata do not: those are an older copy."""

from __future__ import annotations

import logging
from uuid import UUID

from ...cluster import UNKNOWN_EPOCH, ClusterImage, Registration
from ...log import DataFolder, DataFolderError
from ...protocol import KafkaError

log = logging.getLogger("kohort.broker")


class NewerEpochs:
    """Leader epochs of logs that are newer than those of their partitions in the metadata.

    Replicas find by leader epochs where their logs diverge, so no epoch may be used twice. Where ZooKeeper's
    data were restored from an older copy, its next epochs have been used. So a broker tells in its
    registration which newer ones its logs have, until the controller has raised them.
    """

    def __init__(self, folder: DataFolder, registration: Registration, node_id: int) -> None:
        self._folder = folder
        self._registration = registration
        self._node_id = node_id
        self._epochs: dict[tuple[UUID, int], int] = {}

    def begin(self, image: ClusterImage) -> None:
        """Find them, before the broker registers."""
        without_state = 0
        for topic in image.topics():
            for number, state in enumerate(topic.partitions):
                if self._node_id not in state.replicas:
                    continue
                try:
                    newest = self._folder.newest_epoch(topic.name, number)
                except (DataFolderError, KafkaError):
                    continue  # whoever opens the log reports what is wrong with it
                if newest > state.leader_epoch:
                    self._epochs[topic.id, number] = newest
                    without_state += state.leader_epoch == UNKNOWN_EPOCH
        if self._epochs:
            log.error(
                "the metadata are older than the logs of %d partitions: their leader epochs are raised; what "
                "else was changed since that copy was made is lost",
                len(self._epochs),
            )
            self._registration.newer_epochs(self._epochs)
        if without_state:
            log.error(
                "the metadata have lost the states of %d partitions with records: they get no leaders, as "
                "nobody knows which replicas have all of them; restore a copy of ZooKeeper's data, or elect "
                "those with the newest leader epochs ('kohort cluster elect TOPIC --unclean')",
                without_state,
            )

    def follow(self, image: ClusterImage) -> None:
        """Forget those that have been raised."""
        left = {key: epoch for key, epoch in self._epochs.items() if self._is_newer(image, *key, epoch)}
        if left != self._epochs:
            self._epochs = left
            self._registration.newer_epochs(left)

    @staticmethod
    def _is_newer(image: ClusterImage, topic_id: UUID, partition: int, epoch: int) -> bool:
        topic = image.topic_by_id(topic_id)
        # an even older copy may have fewer partitions
        if topic is None or partition >= len(topic.partitions):
            return False
        return topic.partitions[partition].leader_epoch <= epoch
