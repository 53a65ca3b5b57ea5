"""Group commit: one flush at a time for each partition, in a worker thread, shared by all waiting appends;
and snapshots of many producers, beside serving.

A flush covers all records that were appended before it began. An append during a flush waits for the next
one: however many producers there are, the disk does one sync after another, and the event loop never waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from ...log import NoDescriptorsError, PartitionLog
from ...protocol import ErrorCode, KafkaError
from ..event_loop.stopwatch import clock
from ..event_loop.time_slices import LongWork
from ..metrics import Histogram

log = logging.getLogger("kohort.broker")

#: Seconds before a flush for which no file could be opened is retried.
AGAIN_S = 1.0


@dataclass(slots=True, eq=False, repr=False)
class Flusher:
    """Flushes and snapshots of one log. ``on_flushed`` is called after each flush, ``on_failed`` when the log
    went offline; ``times`` records how long each flush took.
    """

    _log: PartitionLog
    _on_flushed: Callable[[], None]
    _on_failed: Callable[[KafkaError], None]
    _times: Histogram
    _wanted: bool = field(default=False, init=False)
    _waiting: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list, init=False)
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)
    _saver: asyncio.Task[None] | None = field(default=None, init=False)

    def __repr__(self) -> str:
        return f"Flusher({self._log}, {len(self._waiting)} waiting)"

    def start(self) -> None:
        """Flush all records so far, and those of the requests that are ready now."""
        self._wanted = True
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def start_within(self, delay_s: float) -> None:
        """Flush all records so far after ``delay_s`` seconds at the latest."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(delay_s, self.start)

    def save(self) -> None:
        """Write the log's snapshot of its producers, between other work."""
        if self._saver is None:
            self._saver = asyncio.get_running_loop().create_task(self._save_producers())

    def wait_flushed(self, end_offset: int) -> asyncio.Future[None]:
        """A future that ends when all records below ``end_offset`` are on the disk; starts a flush for them.

        It raises KafkaError: KAFKA_STORAGE_ERROR if the flush failed, UNKNOWN_TOPIC_OR_PARTITION if the topic
        was deleted meanwhile.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((end_offset, done))
        self.start()
        return done

    def close(self, error: KafkaError) -> None:
        """Stop: waiting appends get the error. A sync that is running in its thread ends by itself."""
        self._stop_timer()
        for task in (self._task, self._saver):
            if task is not None:
                task.cancel()
        self._release_waiting(error)

    async def _run(self) -> None:
        try:
            while self._wanted:
                self._wanted = False
                self._stop_timer()
                flush = self._log.begin_flush()
                begun_s = clock()
                await asyncio.get_running_loop().run_in_executor(None, flush.run)
                self._times.record(clock() - begun_s)
                self._log.end_flush(flush)
                self._release_waiting()
                self._on_flushed()
        except NoDescriptorsError as error:
            self._release_waiting(error)
            self.start_within(AGAIN_S)
        except KafkaError as error:
            self._release_waiting(error)
            self._on_failed(error)
        finally:
            self._task = None

    async def _save_producers(self) -> None:
        try:
            while self._log.has_snapshot_to_write:
                await LongWork().run(self._log.write_snapshot())
        except KafkaError as error:
            log.warning("%s: the next start reads more of it, since a snapshot failed: %s", self._log, error)
        finally:
            self._saver = None

    def _release_waiting(self, error: KafkaError | None = None) -> None:
        waiting, self._waiting = self._waiting, []
        for end_offset, done in waiting:
            if done.done():
                continue
            if error is not None:
                done.set_exception(error)
            elif end_offset <= self._log.recovery_point:
                done.set_result(None)
            else:
                self._waiting.append((end_offset, done))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def deletion_error(name: str) -> KafkaError:
    """The error for waiting appends of a partition that is deleted."""
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} was deleted")
