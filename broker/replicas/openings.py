"""Reading of partitions beside the event loop, before they are served: after a stop that was not clean, and
after a cut that a full disk has interrupted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ...client.surroundings import SURROUNDINGS
from ...protocol import KafkaError
from ..partitions.partition import Partition
from ..reporting.log_lines import RateLimitedLog

log = logging.getLogger("kohort.broker")
_failed = RateLimitedLog(logging.ERROR)

#: Partitions that are read side by side.
SIDE_BY_SIDE: Final = 4

#: Least time between two lines about what is left to read, in seconds.
REPEAT_S: Final = 5.0


class Openings:
    """Opens partitions in threads, in the order in which they come. ``then`` is called with each, and the
    error if it could not be opened now.
    """

    def __init__(self, then: Callable[[Partition, Exception | None], None]) -> None:
        self._then = then
        self._waiting: dict[Partition, None] = {}
        self._read: set[Partition] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._done = 0
        self._clock = SURROUNDINGS.get().work_clock
        self._told_s = 0.0

    def __repr__(self) -> str:
        return f"Openings({len(self._read)} under way, {len(self._waiting)} waiting)"

    def begin_opening(self, partition: Partition) -> None:
        """Open a partition, unless that is under way."""
        if partition in self._read:
            return
        self._waiting[partition] = None
        if not self._tasks:
            self._done, self._told_s = 0, self._clock()
        if len(self._tasks) < SIDE_BY_SIDE:
            self._tasks.add(asyncio.get_running_loop().create_task(self._open_waiting()))

    async def stop(self) -> None:
        """Begin no more, and wait for those under way."""
        self._waiting.clear()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _open_waiting(self) -> None:
        this = asyncio.current_task()
        assert this is not None, "it is a task"
        try:
            while self._waiting:
                partition = next(iter(self._waiting))
                del self._waiting[partition]
                if not partition.gone:
                    await self._open_partition(partition)
        finally:
            # in the same step as the look that found none waiting, or one could miss its reader
            self._tasks.discard(this)

    async def _open_partition(self, partition: Partition) -> None:
        self._read.add(partition)
        failure: Exception | None = None
        try:
            await partition.open_in_thread()
        except KafkaError as error:
            _failed.say("%s-%d cannot be read now: %s", partition.topic.name, partition.index, error)
            failure = error
        except Exception as error:
            # whatever the error: read the others, and this one later
            log.exception("%s-%d could not be read", partition.topic.name, partition.index)
            failure = error
        finally:
            self._read.discard(partition)
        self._done += 1
        self._report_progress()
        self._then(partition, failure)

    def _report_progress(self) -> None:
        left = len(self._waiting) + len(self._read)
        now_s = self._clock()
        if left and now_s - self._told_s >= REPEAT_S:
            self._told_s = now_s
            log.info("%d partitions are read after a stop that was not clean, %d are left", self._done, left)
