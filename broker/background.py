"""Background work of a broker: retention, recovery points, compaction, and looks at what it runs on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ..client.surroundings import SURROUNDINGS
from ..protocol import KafkaError
from .metadata.cluster_watch import ClusterWatch
from .metadata.topics import Topics
from .partitions.cleaner import LogCleaner
from .partitions.late_transactions import LateTransactions
from .reporting.descriptor_watch import DescriptorWatch
from .settings import BrokerSettings

log = logging.getLogger("kohort.broker")

#: Least time between two writes of the recovery points, in seconds.
_SHORTEST_S = 0.05

#: Time between two looks at the disk's space, leaders and replicas, in seconds.
LOOK_S = 30.0


class Background:
    """Runs four loops over the partitions, and the log cleaner. A partition whose disk fails is retried in
    the next pass.
    """

    def __init__(self, topics: Topics, settings: BrokerSettings, now_ms: Callable[[], int]) -> None:
        self._topics = topics
        self._settings = settings
        self._now_ms = now_ms
        self._cleaner = LogCleaner(topics.logs, settings, now_ms)
        self._descriptors = DescriptorWatch()
        self._late = LateTransactions()
        self._cluster = ClusterWatch(topics, settings.node_id)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin the tasks that run at intervals."""
        settings = self._settings
        self._tasks = [
            asyncio.create_task(self._apply_retention(settings.log_retention_check_interval_ms / 1000)),
            asyncio.create_task(
                self._write_checkpoints(settings.log_flush_offset_checkpoint_interval_ms / 1000)
            ),
            asyncio.create_task(self._clear_deleted()),
        ]
        if not SURROUNDINGS.get().in_virtual_time:
            self._tasks.append(asyncio.create_task(self._look_around()))
            self._topics.logs.disk.hangs.start()
        self._cleaner.start()

    async def stop(self) -> None:
        """Stop them; one that is at work ends first where it cannot be interrupted."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._cleaner.stop()
        self._topics.logs.disk.hangs.stop()

    async def _apply_retention(self, interval_s: float) -> None:
        while True:
            await asyncio.sleep(interval_s)
            for partition in self._topics.logs.partitions():
                try:
                    partition.apply_retention(self._now_ms())
                except Exception:
                    # whatever the error: go on with all other partitions, and with the next pass
                    log.exception("retention failed for %s-%d", partition.topic.name, partition.index)
                await asyncio.sleep(0)  # requests are served between two partitions

    async def _write_checkpoints(self, interval_s: float) -> None:
        while True:
            await asyncio.sleep(max(interval_s, _SHORTEST_S))
            try:
                self._topics.logs.write_checkpoints()
            except KafkaError as error:
                log.error("the recovery points could not be written, which is tried again: %s", error)
            # what could not be removed is tried again
            self._topics.logs.has_leftovers.set()
            await asyncio.to_thread(self._descriptors.count_descriptors)

    async def _look_around(self) -> None:
        """Tell when the disk fills, which transactions do not end, and what the cluster lacks."""
        while True:
            logs = self._topics.logs
            logs.disk.look_at_space()
            self._late.look(logs.partitions(), self._settings.transaction_max_timeout_ms, self._now_ms())
            await self._cluster.look()
            await asyncio.sleep(LOOK_S)

    async def _clear_deleted(self) -> None:
        """Remove what deleted topics leave, as soon as there is something."""
        while True:
            await self._topics.logs.has_leftovers.wait()
            self._topics.logs.has_leftovers.clear()
            await self._topics.clear()
