"""The log cleaner: compacts the dirtiest log, then the next, and checks again after a while.

Reading and writing run in a thread that yields about every millisecond; changes to a log run on the event
loop and take microseconds. A log that cannot be compacted is left alone until the next start.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakSet

from ...log import Cleaning, CleanReport, PartitionLog
from ...protocol import KohortError
from ..settings import BrokerSettings
from .local_logs import LocalLogs
from .topic_names import COORDINATORS

log = logging.getLogger("kohort.broker")

#: Seconds for which the thread releases the interpreter at a time, so that the event loop can run.
_REST_S = 0.0001

#: Most seconds that a stop spends on compacting ``__consumer_offsets``, which the next start reads whole.
STOP_BUDGET_S = 3.0

#: Dirty bytes in a partition of ``__consumer_offsets`` from which a start or a stop rolls a new segment:
#: fewer are read in a few milliseconds.
ROLL_BYTES = 1 << 20


class _StoppedError(Exception):
    """The broker is stopping, or the time is up."""


class LogCleaner:
    """Compacts the logs of topics whose cleanup.policy asks for it, one at a time."""

    def __init__(self, logs: LocalLogs, settings: BrokerSettings, now_ms: Callable[[], int]) -> None:
        self._local = logs
        self._settings = settings
        self._now_ms = now_ms
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kohort-log-cleaner")
        self._wake = asyncio.Event()
        self._stop_at: float | None = None
        self._uncleanable: WeakSet[PartitionLog] = WeakSet()

    def start(self) -> None:
        """Start with the coordinators' topics, where the last run may have left work."""
        if self._settings.log_cleaner_enable:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Abandon the current compaction, then compact the coordinators' topics for a short time."""
        if self._task is None:
            return
        self._stop_at = 0.0
        self._wake.set()
        await self._task
        self._stop_at = time.monotonic() + STOP_BUDGET_S
        self._roll_coordinators()
        while time.monotonic() < self._stop_at and await self._clean_next(only=COORDINATORS):
            pass
        self._thread.shutdown()

    async def _run(self) -> None:
        self._roll_coordinators()
        while self._stop_at is None:
            if not await self._clean_next():
                try:
                    await asyncio.wait_for(self._wake.wait(), self._settings.log_cleaner_backoff_ms / 1000)
                except TimeoutError:
                    continue

    def _roll_coordinators(self) -> None:
        for candidate in self._logs_to_clean(COORDINATORS):
            try:
                candidate.roll_for_cleaning(self._now_ms(), ROLL_BYTES)
            except KohortError as error:
                self._give_up(candidate, error)

    async def _clean_next(self, only: frozenset[str] | None = None) -> bool:
        """Compact the dirtiest log that is due; False if none is."""
        dirtiest, most = None, 0.0
        for candidate in self._logs_to_clean(only):
            try:
                cleanable = candidate.cleanable(self._now_ms())
            except (KohortError, OSError) as error:
                self._give_up(candidate, error)
                continue
            if cleanable.is_due(candidate.config.min_cleanable_dirty_ratio) and cleanable.ratio > most:
                dirtiest, most = candidate, cleanable.ratio
        return dirtiest is not None and await self._clean_log(dirtiest)

    def _logs_to_clean(self, only: frozenset[str] | None) -> Iterator[PartitionLog]:
        for partition in self._local.partitions():
            found = partition.log
            if found is None or found.offline or partition.damage is not None or found in self._uncleanable:
                continue
            if found.config.compacts and (only is None or found.topic in only):
                yield found

    async def _clean_log(self, target: PartitionLog) -> bool:
        """Compact one log; returns whether it is worth looking for more."""
        started = time.monotonic()
        try:
            cleaning = target.begin_cleaning(
                self._now_ms(),
                memory_bytes=self._settings.log_cleaner_dedupe_buffer_size,
                breathe=self._yield_to_others,
            )
        except (KohortError, OSError) as error:
            self._give_up(target, error)
            return True
        failure = await self._run_stages(cleaning)
        done = target.end_cleaning(cleaning)
        if done:
            self._log_report(target, cleaning.report, time.monotonic() - started)
        elif failure is not None and not cleaning.overtaken:
            self._give_up(target, failure)
        return self._stop_at is None or done

    async def _run_stages(self, cleaning: Cleaning) -> Exception | None:
        """Run a compaction; returns the error that ended it early."""
        loop = asyncio.get_running_loop()
        try:
            for stage in cleaning.stages():
                if stage.apart:
                    await loop.run_in_executor(self._thread, stage.run)
                else:
                    stage.run()
        except _StoppedError:
            return None
        except Exception as error:
            # whatever the error: it must not end the compaction of all other logs
            return error
        return None

    def _log_report(self, target: PartitionLog, report: CleanReport, took_s: float) -> None:
        log.info(
            "compacted %s-%d up to offset %d in %.1f s: %d keys in %d records, %d bytes became %d, "
            "%d segments %d",
            target.topic,
            target.partition,
            report.end_offset,
            took_s,
            report.keys,
            report.records,
            report.bytes_before,
            report.bytes_after,
            report.segments_before,
            report.segments_after,
        )

    def _give_up(self, target: PartitionLog, error: Exception) -> None:
        self._uncleanable.add(target)
        log.error(
            "%s-%d is not compacted until the next start, its files stay as they are: %s",
            target.topic,
            target.partition,
            error,
        )

    def _yield_to_others(self) -> None:
        if self._stop_at is not None and time.monotonic() >= self._stop_at:
            raise _StoppedError
        time.sleep(_REST_S)
