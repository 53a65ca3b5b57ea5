"""The service's work as a group member: records in, handlers, done; and what happens at a rebalance."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ...statemachine import MemberState
from ..consumer import AsyncGroupConsumer
from ..errors import StaleRecordError
from ._deadletter import DeadLetters
from ._event_log import log_event
from ._group_counters import GroupCounters
from ._handlers import Handler
from ._metrics import Snapshot
from ._progress import Progress
from ._running import RunningHandler

if TYPE_CHECKING:
    from ...protocol import TopicPartition
    from ..record import Record
    from ._exactly_once import Once
    from ._tracing import Tracing

#: How many records are taken from the consumer at a time, and how long is waited for them: the time within
#: which a stop is noticed.
POLL_RECORDS = 2_000
POLL_TIMEOUT_MS = 100
#: How long the last commit and LeaveGroup may take after the drain.
CLOSE_TIMEOUT_MS = 8_000

log = logging.getLogger("kohort.consumer.service")


class Engine:
    """One run of a service."""

    def __init__(
        self,
        handlers: Sequence[Handler],
        *,
        group: str,
        config: dict[str, Any],
        drain_timeout_ms: int,
        progress: Progress,
        once: Once | None = None,
        tracing: bool = False,
    ) -> None:
        self.group = group
        self._once = once
        self._counters = GroupCounters()
        self._consumed: dict[str, int] = dict.fromkeys((t for h in handlers for t in h.topics), 0)
        self._drain_timeout_ms = drain_timeout_ms
        self._progress = progress
        self._stop_reason: str | None = None
        self._failure: Exception | None = None
        self._dead_letters = DeadLetters(lambda: self._consumer.config, group)
        self._running = [
            RunningHandler(
                handler,
                done=self._done,
                send=self._dead_letters.send,
                on_failure=self._fail,
                brake=self._brake,
            )
            for handler in handlers
        ]
        self._by_topic = {topic: each for each in self._running for topic in each.handler.topics}
        self._consumer = AsyncGroupConsumer(
            *self._by_topic,
            drain_timeout_ms=0,  # _revoking does it: it knows which records have not begun
            on_partitions_revoking=self._revoking,
            on_partitions_assigned=self._assigned,
            on_partitions_lost=self._lost,
            **config,
        )
        self._consumer.logged = False
        self._consumer.events.listen(partial(log_event, group))
        self._consumer.events.listen(self._counters.see)
        spans = self._tracing() if tracing else None
        for handler in handlers:
            handler.tracing, handler.once = spans, once

    @property
    def ending(self) -> bool:
        """A stop was asked for, or a failure makes one necessary."""
        return self._stop_reason is not None or self._failure is not None

    def stop(self, reason: str) -> None:
        """Ask for a graceful end."""
        if self._stop_reason is None:
            log.info("group %s: stopping (%s)", self.group, reason)
            self._stop_reason = reason

    async def run(self) -> None:
        """Join, handle records until a stop or a failure, drain, commit, leave. Raises the failure."""
        await self._consumer.start()
        try:
            await self._poll()
        finally:
            await asyncio.gather(*(each.release(None, self._drain_timeout_ms) for each in self._running))
            await self._consumer.close(timeout_ms=CLOSE_TIMEOUT_MS)
            for each in self._running:
                await each.close()
            await self._dead_letters.close()
        if self._failure is not None:
            raise self._failure

    async def _poll(self) -> None:
        consumer, loop = self._consumer, asyncio.get_running_loop()
        announcing: asyncio.Task[None] | None = None
        while self._failure is None and not (announcing is not None and announcing.done()):
            if self._stop_reason is not None and announcing is None:
                # handlers go on until the others are ready to take over
                announcing = asyncio.create_task(consumer.announce_leave())
                await asyncio.sleep(0)
                continue
            records = await consumer.getmany(max_records=POLL_RECORDS, timeout_ms=POLL_TIMEOUT_MS)
            self._hand_over(records)
            self._observe(loop.time(), idle=not records)
            # a full buffer answers without ever letting the handlers run
            await asyncio.sleep(0)
        if announcing is not None:
            announcing.cancel()

    def _hand_over(self, records: Iterable[Record]) -> None:
        for topic, run in groupby(records, key=lambda record: record.topic):
            self._consumed[topic] += self._by_topic[topic].hand_over(run)

    def _observe(self, now: float, *, idle: bool) -> None:
        finished = self.finished
        waiting = sum(each.lanes.backlog for each in self._running)
        if idle and not waiting and self._consumer.config.isolation_level == "read_uncommitted":
            # under read_committed an open transaction of somebody else holds records back: not our standstill
            waiting = sum(self._consumer.lag().values())
        self._progress.observe(now, finished=finished, waiting=waiting)

    # -- the consumer's callbacks ---------------------------------------------------------------------------

    async def _revoking(self, partitions: Iterable[TopicPartition]) -> None:
        await self._release(partitions, self._drain_timeout_ms)

    async def _lost(self, partitions: Iterable[TopicPartition]) -> None:
        # they have another owner already: finishing would only make more records be handled twice
        await self._release(partitions, 0)

    async def _release(self, partitions: Iterable[TopicPartition], timeout_ms: float) -> None:
        taken = list(partitions)
        await asyncio.gather(*(each.release(taken, timeout_ms) for each in self._running))

    async def _assigned(self, partitions: Iterable[TopicPartition]) -> None:
        if self._once is not None:
            await self._go_to_stored(self._once, tuple(partitions))
        for each in self._running:
            if each.braked:
                self._pause(each, partitions)

    async def _go_to_stored(self, once: Once, partitions: tuple[TopicPartition, ...]) -> None:
        try:
            positions = await asyncio.to_thread(once.positions, partitions)
        except Exception as error:  # whatever the user's database raises
            # what the group has committed may be behind or ahead: without the sink nothing can be handled
            self._fail(error)
            return
        for partition, offset in positions.items():
            with suppress(KeyError):  # on its way to another member
                self._consumer.seek(partition, offset)

    def _tracing(self) -> Tracing:
        from ._tracing import Tracing

        client_id = self._consumer.config.client_id
        return Tracing(self.group, client_id, lambda: self._consumer.state.member_id)

    # -- the handlers' callbacks ----------------------------------------------------------------------------

    def _done(self, record: Record) -> None:
        try:
            self._consumer.done(record)
        except StaleRecordError as error:
            log.info("group %s: %s", self.group, error)

    def _brake(self, running: RunningHandler, on: bool) -> None:
        if on:
            self._pause(running, self._consumer.assignment())
            return
        for partition in self._consumer.paused():
            if partition.topic in running.handler.topics:
                self._consumer.resume(partition)

    def _pause(self, running: RunningHandler, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if partition.topic in running.handler.topics:
                with suppress(KeyError):  # on its way to another member
                    self._consumer.pause(partition)

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            log.error("group %s: stopping, because %s", self.group, error)
            self._failure = error

    @property
    def finished(self) -> int:
        """Records dealt with so far."""
        return sum(each.finished for each in self._running)

    # -- what probes see ------------------------------------------------------------------------------------

    def unready(self) -> str | None:
        """Why no record can be handled just now; None when the member has joined and is not ending."""
        if self.ending:
            return "stopping"
        status = self._consumer.state
        return None if status.state is MemberState.STABLE else f"the member is {status.state.value}"

    def snapshot(self, live: bool) -> Snapshot:
        """Numbers for /metrics."""
        return Snapshot(
            group=self.group,
            state=self._consumer.state.state.value,
            assigned=len(self._consumer.assignment()),
            live=live,
            handlers=[(each.handler, each.lanes.backlog, each.lanes.in_flight) for each in self._running],
            counters=self._counters,
            consumed=self._consumed,
            lag=self._consumer.lag(),
        )
