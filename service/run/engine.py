"""One run of a service: polls records, passes them to handlers, marks them done, drains at rebalances."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ...client.certificates import DAY_S
from ...client.security import security_of
from ...client.waiting import now_ms
from ...consumer.consumer import AsyncGroupConsumer
from ...consumer.errors import StaleRecordError, short_text
from ...consumer.event_lines import line_of
from ...consumer.events import Event
from ...consumer.run.closing import LEAVE_MS
from ...consumer.share.event_lines import line_of_share
from ...protocol import KohortError, TopicPartition
from ...statemachine import MemberState
from ..exactly_once.kafka_output import KafkaTransactions
from ..exactly_once.stored_offsets import StoredOffsets
from ..handlers.handler import Handler, HandlerFailedError, HandlerFunction, place_of
from ..letters.deadletter import DeadLetters
from ..letters.left_letters import tell_left_letters
from ..reporting.log import ServiceLog
from ..reporting.metrics import HandlerNumbers, ServiceCounters, Snapshot
from ..reporting.probes import HandlingProgress
from .calls import LongCalls
from .queues import Begins
from .running_handler import RunningHandler

if TYPE_CHECKING:
    from ...consumer.record import Record
    from ..exactly_once.kafka_output import KafkaOutput
    from ..exactly_once.stored_offsets import Once
    from ..reporting.tracing import Tracing
    from ..share.deliveries import LockedRecord
    from ..share.share_source import ShareSource

#: Most records, and most bytes, taken from the consumer at a time.
POLL_RECORDS = 2_000
POLL_BYTES = 8_388_608
#: How long a poll waits: a stop is noticed within this time.
POLL_TIMEOUT_MS = 100
#: Least time for the commit of records that were finished in time.
SETTLE_S = 2.0
#: How long everything after the drain may take: last commits, LeaveGroup, the end of the output's producer.
END_TIMEOUT_MS = 10_000

_partition_of = itemgetter(0, 1)

log = logging.getLogger("kohort.service")


class Engine:
    """One run of a service."""

    def __init__(
        self,
        handlers: Sequence[Handler],
        *,
        config: Mapping[str, object],
        drain_timeout_ms: int,
        backlog_max_bytes: int,
        progress: HandlingProgress,
        fail_probes_on_hanging_call: bool = False,
        once: Once | None = None,
        output: KafkaOutput | None = None,
        tracing: bool = False,
        hold_retries_ms: int | None = None,
        letters_of: str | None = None,
    ) -> None:
        self._consumed: dict[str, int] = dict.fromkeys((t for h in handlers for t in h.all_topics), 0)
        self._stored: StoredOffsets | None = None
        self._output: KafkaTransactions | None = None
        #: Records come from one of the two; hold_retries_ms is for share groups.
        self._consumer: AsyncGroupConsumer | None = None
        self._share: ShareSource | None = None
        self._source: AsyncGroupConsumer | ShareSource
        if hold_retries_ms is None:
            self._source = self._consumer = self._make_consumer(handlers, dict(config), once, output)
        else:
            self._source = self._share = self._make_share(handlers, config, hold_retries_ms)
        self.group = group = self._source.config.group
        self._counters = ServiceCounters()
        self._certificate = security_of(self._source.config).certificate_reminder(DAY_S)
        self._drain_timeout_ms = drain_timeout_ms
        self._backlog_max_bytes = backlog_max_bytes
        self._progress = progress
        self._stop_reason: str | None = None
        self.started = False
        #: Looks for letters that nobody reads.
        self._looking: asyncio.Task[None] | None = None
        #: The error that stops the service.
        self.failure: Exception | None = None
        #: Partitions revoked while a poll's records were being prepared.
        self._released: set[TopicPartition] = set()
        self._repeated = ServiceLog(line_of if self._share is None else line_of_share)
        letters_of = letters_of or group  # the group in their headers
        self._dead_letters = DeadLetters(lambda: self._source.config, letters_of)
        for handler in handlers:
            handler.output = None if self._output is None else self._output.add
            handler.encoders = None if output is None else output.encoders
            handler.deliveries = None if self._share is None else self._share.deliveries
        self._running = [self._make_running(handler) for handler in handlers]
        self._recent_s = progress.stalled_after_ms / 1000
        #: A lock that was lost while a handler was at the record, and when.
        self._told_lost, self._lost_at = "", 0.0
        self._long_calls = LongCalls(self._running, self._recent_s, self.group, self._repeated)
        self._fails_on_hanging_call = fail_probes_on_hanging_call
        self._by_topic = {topic: each for each in self._running for topic in each.handler.all_topics}
        self._source.events.listen(self._on_event)
        spans = self._make_tracing() if tracing else None
        for handler in handlers:
            handler.group, handler.tracing, handler.once = letters_of, spans, once

    def _make_consumer(
        self,
        handlers: Sequence[Handler],
        config: dict[str, Any],
        once: Once | None,
        output: KafkaOutput | None,
    ) -> AsyncGroupConsumer:
        if output is not None:
            # offsets are committed in transactions; of other transactions only committed records are read
            config = {"isolation_level": "read_committed", **config, "enable_auto_commit": False}
        consumer = AsyncGroupConsumer(
            *self._consumed,
            drain_timeout_ms=0,  # _revoking does it: it knows which records have not begun
            on_partitions_revoking=self._on_revoking,
            on_partitions_assigned=self._on_assigned,
            on_partitions_lost=self._on_lost,
            **config,
        )
        consumer.logged = False
        # a letter may be there before the group has committed anything of its partition
        consumer.parts.positions.policies = {t: "earliest" for h in handlers for t in h.retry_topics}
        consumer.parts.delivery.halting = self._halt_all
        if once is not None:
            self._stored = StoredOffsets(once, consumer, self._on_failure)
        if output is not None:
            self._output = KafkaTransactions(output, consumer, fail=self._on_failure, limit=self._limit_calls)
            consumer.parts.committer.keeps_starts = True  # whatever transactions commit later
        return consumer

    def _make_share(
        self, handlers: Sequence[Handler], config: Mapping[str, object], hold_ms: int
    ) -> ShareSource:
        from ..share.share_source import ShareSource

        return ShareSource(list(self._consumed), config, handlers, hold_ms=hold_ms, drop=self._on_lock_lost)

    def _make_running(self, handler: Handler) -> RunningHandler:
        source = self._consumer
        return RunningHandler(
            handler,
            done=self._on_done if self._output is None else lambda _: None,
            send=self._dead_letters.send if self._output is None else self._output.dead_letter,
            on_failure=self._on_failure,
            pause=self._pause_partition,
            resume=self._resume_partition,
            give_back=lambda record: None if source is None else source.parts.delivery.give_back(record),
            dropped=(lambda _: None) if self._share is None else self._share.give_back,
        )

    @property
    def ending(self) -> bool:
        """Return whether a stop was asked for, or a failure makes one necessary."""
        return self._stop_reason is not None or self.failure is not None

    def stop(self, reason: str) -> None:
        """Ask for a graceful end."""
        if self._stop_reason is None:
            log.info("group %s: stopping (%s)", self.group, reason)
            self._stop_reason = reason

    def hold(self, function: HandlerFunction, held: bool) -> None:
        """Pause the handler that is this function, or resume it."""
        for each in self._running:
            if each.handler.function == function:
                each.hold(held)
                self._hold_topics(each)

    def _hold_topics(self, each: RunningHandler) -> None:
        """Lock no records of a share group for a handler that is paused."""
        if self._share is not None:
            topics = each.handler.all_topics
            (self._share.pause if each.handler.held else self._share.resume)(*topics)

    def _limit_calls(self, begins: Begins) -> None:
        for each in self._running:
            each.queues.limit(begins)

    def _halt_all(self, halted: bool) -> None:
        owned = self._source.assignment()
        for each in self._running:
            each.halt(halted, owned)

    async def start(self) -> None:
        """Connect and join. When cancelled, it leaves nothing behind."""
        try:
            if self._output is not None:
                await self._output.start()
            for each in self._running:
                self._hold_topics(each)
            await self._source.start()
        except BaseException:
            if self._output is not None:
                await self._output.close(timeout_ms=0)
            raise
        self.started = True
        if self._consumer is not None:
            cluster = self._consumer.parts.cluster
            topics = [t for each in self._running for t in each.handler.topics]
            self._looking = asyncio.create_task(
                tell_left_letters(cluster, self.group, topics, self._by_topic)
            )

    async def run(self) -> None:
        """Handle records until a stop or a failure, drain, commit, leave. Raises the failure."""
        try:
            await self._poll_records()
        except Exception as error:
            self._on_failure(error)
        finally:
            await self._end_handlers()
        if self.failure is not None:
            raise self.failure

    async def _end_handlers(self) -> None:
        until_ms = now_ms() + self._drain_timeout_ms + END_TIMEOUT_MS
        if self._looking is not None:
            self._looking.cancel()
        try:
            if self._share is not None:
                await self._begin_no_more(self._share)
            await self._release_partitions(None, self._drain_timeout_ms)
        finally:
            try:
                await asyncio.gather(
                    # it takes LEAVE_MS more where LeaveGroup is not answered
                    self._source.close(timeout_ms=max(0.0, until_ms - LEAVE_MS - now_ms())),
                    *(each.close() for each in self._running),
                )
            finally:
                if self._output is not None:
                    await self._output.close(timeout_ms=max(0.0, until_ms - now_ms()))
                await self._dead_letters.close()
                if self._stored is not None:
                    self._stored.close()

    async def _begin_no_more(self, share: ShareSource) -> None:
        """Give back what has not begun, for others; but write the letters of what is delivered no more."""
        for each in self._running:
            each.queues.hold(True)
        with suppress(KohortError):
            await self._hand_over(await share.getmany(POLL_RECORDS, 0.0, POLL_BYTES))

    async def _poll_records(self) -> None:
        consumer, loop = self._source, asyncio.get_running_loop()
        announcing: asyncio.Task[None] | None = None
        most_bytes = min(POLL_BYTES, self._backlog_max_bytes)
        while self.failure is None and not (announcing is not None and announcing.done()):
            if self._stop_reason is not None and announcing is None:
                # handlers go on until the others are ready to take over
                announcing = asyncio.create_task(consumer.announce_leave())
                await asyncio.sleep(0)
                continue
            if self._output is not None and self._output.full:
                await self._output.room(POLL_TIMEOUT_MS)
                self._observe_progress(loop.time(), idle=False)
                continue
            records = await consumer.getmany(
                max_records=POLL_RECORDS, timeout_ms=POLL_TIMEOUT_MS, max_bytes=most_bytes
            )
            await self._hand_over(records)
            self._observe_progress(loop.time(), idle=not records)
            # a poll of a full buffer does not wait, so handlers would not run
            await asyncio.sleep(0)
        if announcing is not None:
            announcing.cancel()

    async def _hand_over(self, records: Sequence[Record]) -> None:
        if not records:
            return
        runs = [list(run) for _, run in groupby(records, key=_partition_of)]
        if self._stored is not None:
            self._released.clear()
            await self._stored.begin_sessions(run[0] for run in runs)
            runs = [run for run in runs if run[0].topic_partition not in self._released]
        if self.failure is not None:
            # without the stored offsets these may be the wrong records
            return
        # so that all of them together stay within the limit
        share = self._backlog_max_bytes // max(1, len(self._source.assignment()))
        for run in runs:
            partition = run[0].topic_partition
            self._consumed[partition.topic] += len(run)
            self._by_topic[partition.topic].hand_over(partition, run, share)

    def _observe_progress(self, now: float, *, idle: bool) -> None:
        self._long_calls.warn_of_long(now)
        self._certificate.remind()
        finished = self.finished
        waiting = sum(each.queues.backlog for each in self._running if not each.handler.held)
        if idle and not waiting and self._consumer is not None:
            waiting = self._count_unread(self._consumer)
        self._progress.observe(now, finished=finished, waiting=waiting)

    def _count_unread(self, consumer: AsyncGroupConsumer) -> int:
        if consumer.config.isolation_level != "read_uncommitted":
            # another client's open transaction may hold records back, which is no standstill of this service
            return 0
        paused = consumer.paused()
        return sum(
            behind
            for partition, behind in consumer.lag().items()
            if partition not in paused and not self._by_topic[partition.topic].handler.held
        )

    # -- the consumer's events and callbacks ----------------------------------------------------------------

    def _on_event(self, event: Event) -> None:
        self._repeated.event(self.group, event)
        self._counters.count_event(event)
        if self._stored is not None:
            self._stored.note_truncation(event)

    async def _on_revoking(self, partitions: Iterable[TopicPartition]) -> None:
        await self._release_partitions(partitions, self._drain_timeout_ms)

    async def _on_lost(self, partitions: Iterable[TopicPartition]) -> None:
        # they may have another owner: finishing would only cause more records to be handled twice
        await self._release_partitions(partitions, 0)

    async def _release_partitions(
        self, partitions: Iterable[TopicPartition] | None, timeout_ms: float
    ) -> None:
        """Finish partitions (None: all) within the time, and commit what is finished of them."""
        taken = None if partitions is None else list(partitions)
        self._released.update(taken or ())
        until = asyncio.get_running_loop().time() + timeout_ms / 1000
        await asyncio.gather(*(each.release(taken, timeout_ms) for each in self._running))
        if self._output is not None and timeout_ms:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(max(until, asyncio.get_running_loop().time() + SETTLE_S)):
                    await self._output.settle(taken)

    def _on_lock_lost(self, record: LockedRecord) -> None:
        each = self._by_topic[record.topic]
        if each.drop(record):
            self._told_lost = (
                f"handler {each.handler.name} was at {place_of([record])} when its lock ended, so it is "
                "delivered again"
            )
            self._lost_at = asyncio.get_running_loop().time()

    async def _on_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        if self._stored is not None:
            await self._stored.go_to(tuple(partitions))

    def _make_tracing(self) -> Tracing:
        from ..reporting.tracing import Tracing

        client_id = self._source.config.client_id
        return Tracing(self.group, client_id, lambda: self._source.state.member_id)

    # -- the handlers' callbacks ----------------------------------------------------------------------------

    def _on_done(self, record: Record) -> None:
        try:
            self._source.done(record)
        except StaleRecordError as error:
            self._repeated.line("stale", logging.INFO, "group %s: %s", self.group, error)

    def _pause_partition(self, partition: TopicPartition) -> None:
        with suppress(KeyError):  # on its way to another member
            self._source.pause(partition)

    def _resume_partition(self, partition: TopicPartition) -> None:
        with suppress(KeyError):
            self._source.resume(partition)

    def _on_failure(self, error: Exception) -> None:
        # the handler's traceback is enough
        shown = error.__cause__ if isinstance(error, HandlerFailedError) else error
        shown = None if isinstance(shown, KohortError) else shown
        if self.failure is None:
            self.failure = error
            log.error("group %s: stopping, because %s", self.group, short_text(error), exc_info=shown)
        else:
            self._repeated.line("failure", logging.ERROR, "group %s: %s", self.group, error, error=shown)

    @property
    def finished(self) -> int:
        """Number of records finished so far."""
        return sum(each.finished for each in self._running)

    @property
    def postponed(self) -> int:
        """How many of these were moved to a retry topic, or released: they come again."""
        counters = [each.handler.counters for each in self._running]
        return sum(each.postponed + each.released for each in counters)

    # -- for probes -----------------------------------------------------------------------------------------

    def unready(self) -> str | None:
        """Why no record can be handled now; None when the member has joined and is not stopping."""
        if self.ending:
            return "stopping"
        status = self._source.state
        return None if status.state is MemberState.STABLE else f"the member is {status.state.value}"

    def complaint(self) -> str | None:
        """What stands still; None while there is progress."""
        complaint = self._progress.complaint(asyncio.get_running_loop().time())
        if complaint is None and self._fails_on_hanging_call:
            complaint = next(iter(self.remarks()), None)
        return complaint

    def remarks(self) -> list[str]:
        """The calls that have run for longer than ``stalled_after_ms``, a line for each, and the lock that a
        call has lost within that time.
        """
        now = asyncio.get_running_loop().time()
        lost = [self._told_lost] if self._told_lost and now - self._lost_at < self._recent_s else []
        return [*self._long_calls.describe(now), *lost]

    def snapshot(self, live: bool) -> Snapshot:
        """Numbers for /metrics."""
        now = asyncio.get_running_loop().time()
        return Snapshot(
            group=self.group,
            state=self._source.state.state.value,
            assigned=len(self._source.assignment()),
            live=live,
            handlers=[
                HandlerNumbers(
                    each.handler,
                    each.queues.backlog,
                    each.queues.in_flight,
                    0.0 if (began := each.queues.oldest_call) is None else now - began,
                    self._long_calls.count(each, now),
                )
                for each in self._running
            ],
            counters=self._counters,
            consumed=self._consumed,
            lag=self._source.lag(),
            outage_s=self._source.outage_s,
            certificate_end_s=self._certificate.end_s,
            locks=None if self._share is None else self._share.lock_numbers,
        )
