"""Results of handlers, written in one transaction with the offsets of the records that they were made from.

Handlers' calls that have ended wait here. A few times a second, those that do not have to wait for earlier
ones are taken: a transaction writes their results and commits their partitions' offsets. It is open for no
longer than that takes. An aborted one is started again with the same records, as long as this member still
owns the partitions: the group's coordinator refuses the offsets of a former generation (KIP-447), so a member
that was thought dead commits nothing, and one producer per process is enough.

A partition's offset says that everything before it is done. In a partition with several lanes, calls that end
out of order therefore wait for earlier ones.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...client.errors import BrokerConnectionError, ConfigError
from ...client.offsets import CommittedOffset
from ...client.waiting import Signal, now_ms
from ...consumer.done.committer import MEMBER_REPEAT_MS
from ...consumer.errors import ConsumerError, StaleRecordError, short_text
from ...consumer.run.assembly import make_cluster
from ...producer import (
    ApplicationRecoverableError,
    GroupMetadata,
    Producer,
    ProducerRecord,
    TransactionAbortableError,
)
from ...producer.accumulator import HELD_BYTES, record_size
from ...producer.encoding import Encoders
from ...protocol import ErrorCode, KafkaError, KohortError, TopicPartition
from ..letters.deadletter import TOO_LARGE, brief_letter, make_letter
from ..reporting.log import ServiceLog
from ..run.queues import Begins

if TYPE_CHECKING:
    from ...consumer.consumer import AsyncGroupConsumer
    from ...consumer.record import Record

log = logging.getLogger("kohort.service")

#: How long the transaction of a process that died may keep readers waiting: the same as in Kafka Streams.
TRANSACTION_TIMEOUT_MS = 10_000
#: Pause before a transaction is started again, or its end requested again.
AGAIN_S = 0.2
#: Offsets that moved without a call, behind records of aborted transactions, are committed at such intervals.
PASSED_S = 5.0
#: While this many times ``max_records`` wait to be committed, no further records are handled.
_FULL = 10

_E = ErrorCode
#: Causes of an abort after which the same records may be written in a new transaction.
_PASSING = frozenset(
    (
        _E.ILLEGAL_GENERATION,
        _E.UNKNOWN_MEMBER_ID,
        _E.REBALANCE_IN_PROGRESS,
        _E.STALE_MEMBER_EPOCH,
        _E.FENCED_MEMBER_EPOCH,
        _E.INVALID_TXN_STATE,
        _E.TRANSACTION_ABORTABLE,
        _E.INVALID_PRODUCER_EPOCH,
        _E.OUT_OF_ORDER_SEQUENCE_NUMBER,
        _E.UNKNOWN_PRODUCER_ID,
    )
)


class OutputError(ConsumerError):
    """Results of handlers cannot be written. None of them is committed, and the service stops."""


class KafkaOutput:
    """Topics as the place of results: what handlers return or yield is written exactly once.

    A transaction begins when ``max_records`` records were given out, or ``interval_ms`` after the first of
    them. ``transactional_id`` is by default a new one for each process. ``encode`` and ``key_encode`` make
    bytes of the results' values and keys, as those of a Producer; what they raise counts as the handler's.
    Other arguments are settings of :class:`~kohort.producer.Producer`; those of connections are the
    service's. Raises ConfigError.
    """

    def __init__(
        self,
        *,
        max_records: int = 1_000,
        interval_ms: int = 100,
        transactional_id: str | None = None,
        encode: object = None,
        key_encode: object = None,
        **settings: object,
    ) -> None:
        from ...client.config import ClientSettings
        from ...producer.config import producer_config

        for name, value, least in (("max_records", max_records, 1), ("interval_ms", interval_ms, 0)):
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigError(
                    f"KafkaOutput: {name}={value!r}, but it must be a whole number from {least}"
                )
        self.max_records = max_records
        self.interval_ms = interval_ms
        self.transactional_id = transactional_id
        self.encoders = Encoders.of(encode, key_encode)
        self.settings = {"transaction_timeout_ms": TRANSACTION_TIMEOUT_MS, **settings}
        if connection := ClientSettings.model_fields.keys() & settings:
            raise ConfigError(f"KafkaOutput: {min(connection)} is a setting of the service: give it there")
        checked = producer_config(
            bootstrap="unused", transactional_id=transactional_id or "unused", **self.settings
        )
        #: Most bytes of results that wait to be committed, besides those of calls that have begun.
        self.most_bytes = checked.buffer_memory


@dataclass(frozen=True, slots=True)
class _Call:
    """A handler's call that has ended: its records, all of one partition, and its results."""

    partition: TopicPartition
    session_id: int
    last: int
    given: Sequence[ProducerRecord]
    #: Approximate memory of the results.
    bytes: int
    is_letter: bool

    @property
    def count(self) -> int:
        """What it counts for towards ``max_records``."""
        return max(1, len(self.given))


class KafkaTransactions:
    """One run's use of a KafkaOutput, from ``start`` to ``close``.

    ``fail`` gets the error that ends it, and ``limit`` which calls of handlers may begin.
    """

    def __init__(
        self,
        output: KafkaOutput,
        consumer: AsyncGroupConsumer,
        *,
        fail: Callable[[Exception], None],
        limit: Callable[[Begins], None],
    ) -> None:
        self._output = output
        self._consumer = consumer
        self._fail = fail
        self._limit = limit
        self._begins = Begins.ALL
        self._cluster = make_cluster(consumer.config)
        self._name = output.transactional_id or f"{consumer.config.group}-{uuid.uuid4().hex}"
        self._producer = self._make_producer()
        self._ended: list[_Call] = []
        #: Number and bytes of results that are not committed, those in the transaction included.
        self._waiting = 0
        self._waiting_bytes = 0
        self._hurry = 0
        self._wake = asyncio.Event()
        self._committed = Signal()
        self._committing = False
        self._task: asyncio.Task[None] | None = None
        self._repeat_at = 0.0
        self._repeated = ServiceLog()

    def _make_producer(self) -> Producer:
        return Producer.on_cluster(self._cluster, transactional_id=self._name, **self._output.settings)

    async def start(self) -> None:
        """Connect, and fence an earlier producer of the same transactional id."""
        await self._producer.start()
        self._repeat_at = now_ms() + MEMBER_REPEAT_MS
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self, *, timeout_ms: float) -> None:
        """End. Uncommitted records are handled again by the next owner of their partitions.

        An open transaction that cannot be aborted in time holds readers up until its own timeout.
        """
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._producer.close(timeout_ms=timeout_ms)
        await self._cluster.close()

    # calls that have ended

    def add(
        self, records: Sequence[Record], given: Sequence[ProducerRecord], *, is_letter: bool = False
    ) -> None:
        """Add a call that has ended: its records, of one partition, and its results ``given``.

        Raises TypeError for results that are no bytes.
        """
        size = sum(map(_size_of, given))
        try:
            for record in records:
                self._consumer.done(record)
        except StaleRecordError as error:
            group = self._consumer.config.group
            self._repeated.line("stale", logging.INFO, "group %s: %s", group, error)
            return
        first, last = records[0], records[-1]
        call = _Call(first.topic_partition, first.session_id, last.offset, given, size, is_letter)
        self._ended.append(call)
        self._waiting += call.count
        self._waiting_bytes += call.bytes
        self._wake.set()
        if self.full:
            self._let_begin(Begins.NONE)

    async def dead_letter(
        self, topic: str, record: Record, error: BaseException, attempts: int, due_ms: int | None = None
    ) -> None:
        """As DeadLetters.send, within the transaction of the record."""
        try:
            count = await self._producer.partitions_for(topic)
        except KohortError as failure:
            kind = "dead-letter" if due_ms is None else "retry"
            raise OutputError(f"{kind} topic {topic!r} cannot be written to: {failure}") from failure
        group = self._consumer.config.group
        self.add(
            [record], [make_letter(topic, count, record, error, attempts, group, due_ms)], is_letter=True
        )

    @property
    def full(self) -> bool:
        """Return whether so many results wait that no further records should be handled."""
        most, most_bytes = _FULL * self._output.max_records, self._output.most_bytes
        return self._waiting > most or self._waiting_bytes > most_bytes

    async def room(self, timeout_ms: float) -> None:
        """Wait until fewer results wait, or the time is up."""
        self._wake.set()  # those of partitions that are gone are dropped then
        await self._committed.wait(timeout_ms)

    def _let_begin(self, begins: Begins) -> None:
        if begins is not self._begins:
            self._begins = begins
            self._limit(begins)

    async def settle(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Return when everything of these partitions (None: all) that can be committed is."""
        wanted = None if partitions is None else set(partitions)
        self._hurry += 1
        self._wake.set()
        try:
            while self._task is not None and not self._task.done():
                if not self._committing and not any(
                    self._is_next(call) for call in self._ended if wanted is None or call.partition in wanted
                ):
                    break
                await self._committed.wait()
        finally:
            self._hurry -= 1

    # transactions

    def _is_next(self, call: _Call) -> bool:
        """Return whether everything up to this call's last record is done, in a session that goes on."""
        session = self._consumer.parts.tracker.sessions.get(call.session_id)
        return session is not None and call.last < session.first

    def _take_calls(self) -> tuple[list[_Call], dict[int, CommittedOffset]]:
        """Calls for the next transaction, and the offset to commit of each of their sessions.

        Everything before that offset is in this transaction or an earlier one. Calls of partitions that are
        gone are dropped.
        """
        sessions = self._consumer.parts.tracker.sessions
        taken: list[_Call] = []
        left: list[_Call] = []
        for call in self._ended:
            if call.session_id in sessions:
                (taken if self._is_next(call) else left).append(call)
            else:
                self._forget_call(call)
        self._ended = left
        offsets: dict[int, CommittedOffset] = {}
        for call in taken:
            session = sessions[call.session_id]
            offsets[call.session_id] = CommittedOffset(session.first, session.leader_epoch)
        return taken, offsets

    def _forget_call(self, call: _Call) -> None:
        self._waiting -= call.count
        self._waiting_bytes -= call.bytes

    async def _run(self) -> None:
        try:
            while True:
                await self._wait_for_calls()
                if self._may_linger():
                    await self._linger_for_calls()
                self._wake.clear()
                self._committing = True
                calls, offsets = self._take_calls()
                while calls:
                    await self._commit_calls(calls, offsets)
                    for call in calls:
                        self._forget_call(call)
                    calls, offsets = self._take_calls()
                self._committing = False
                # what waits now waits for earlier records of its partition
                self._let_begin(Begins.FIRST if self.full else Begins.ALL)
                self._committed.fire()
        except Exception as error:
            self._fail(error)
        finally:
            self._committing = False
            self._committed.fire()

    async def _wait_for_calls(self) -> None:
        """Wait until calls have ended, or an offset has moved without one, or is to be committed again."""
        while not self._wake.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(PASSED_S):
                    await self._wake.wait()
                    return
            waiting = {call.session_id for call in self._ended}
            repeats = now_ms() >= self._repeat_at
            if repeats:
                self._repeat_at = now_ms() + MEMBER_REPEAT_MS
            for session in self._consumer.parts.tracker.sessions.values():
                known = -1 if session.committed is None or repeats else session.committed.offset
                if session.first > known and session.session_id not in waiting:
                    call = _Call(session.partition, session.session_id, session.first - 1, (), 0, False)
                    self._ended.append(call)
                    self._waiting += call.count
                    self._wake.set()

    def _may_linger(self) -> bool:
        return not (self._hurry or self._waiting >= self._output.max_records or self.full)

    async def _linger_for_calls(self) -> None:
        """Wait for more calls, until there are enough or ``settle`` is called."""
        until = asyncio.get_running_loop().time() + self._output.interval_ms / 1000
        try:
            async with asyncio.timeout_at(until):
                while self._may_linger():
                    self._wake.clear()
                    await self._wake.wait()
        except TimeoutError:
            pass

    async def _commit_calls(self, calls: list[_Call], offsets: dict[int, CommittedOffset]) -> None:
        """Write and commit; retry until it succeeds or is no longer needed."""
        sessions = self._consumer.parts.tracker.sessions
        while True:
            # in one step with the member: a later generation of it may not own these partitions
            calls = [call for call in calls if call.session_id in sessions]
            if not calls:
                return
            member = self._consumer.group_metadata()
            if member.generation < 0 or not member.member_id:
                await asyncio.sleep(AGAIN_S)  # it has lost them, or is about to get a generation
                continue
            try:
                await self._attempt_commit(calls, offsets, member)
                return
            except TransactionAbortableError as error:
                cause = error.__cause__
                if isinstance(cause, KafkaError) and cause.code in TOO_LARGE:
                    before, calls = calls, [_briefer_call(call) for call in calls]
                    if calls != before:
                        continue
                if isinstance(cause, KafkaError) and not cause.retriable and cause.code not in _PASSING:
                    raise OutputError(
                        f"what handlers gave out cannot be written: {short_text(cause)}"
                    ) from cause
                text = "group %s: a transaction was aborted and is begun anew: %s"
                self._repeated.line("aborted", logging.WARNING, text, member.group, error)
                await asyncio.sleep(AGAIN_S)
            except ApplicationRecoverableError as error:
                if self._output.transactional_id is not None:
                    # another process may use this id, and would be fenced in turn
                    raise OutputError(
                        f"what handlers gave out cannot be written: {short_text(error)}"
                    ) from error
                # no other process has this id: the transaction was open for too long, and was aborted
                text = "group %s: a transaction is begun anew, by a new producer: %s"
                self._repeated.line("fenced", logging.WARNING, text, member.group, short_text(error))
                await self._producer.close(timeout_ms=0)
                await self._until_told(self._start_anew)
            except KohortError as error:
                raise OutputError(f"what handlers gave out cannot be written: {short_text(error)}") from error

    async def _attempt_commit(
        self, calls: list[_Call], offsets: dict[int, CommittedOffset], member: GroupMetadata
    ) -> None:
        producer = self._producer
        producer.begin_transaction()
        try:
            for call in calls:
                for record in call.given:
                    # a letter may be as large as its record
                    await (producer.forward(record) if call.is_letter else producer.send(*record))
            done = {call.partition: offsets[call.session_id] for call in calls}
            await producer.send_offsets(done, member)
            await self._until_told(producer.commit_transaction)
            sessions = self._consumer.parts.tracker.sessions
            for session_id in sessions.keys() & {call.session_id for call in calls}:
                sessions[session_id].committed = offsets[session_id]
        except TransactionAbortableError:
            await self._until_told(producer.abort_transaction)
            raise

    async def _start_anew(self) -> None:
        self._producer = self._make_producer()
        await self._producer.start()

    async def _until_told(self, end: Callable[[], Any]) -> None:
        """Repeat the request to end the transaction until its outcome is known."""
        while True:
            try:
                await end()
                return
            except (BrokerConnectionError, KafkaError) as error:
                if isinstance(error, KafkaError) and not error.retriable:
                    raise
            await asyncio.sleep(AGAIN_S)


def _size_of(result: ProducerRecord) -> int:
    """Approximate memory of a result. Raises TypeError for what is no bytes."""
    for name, given in (("key", result.key), ("value", result.value)):
        if given is not None and not isinstance(given, bytes | bytearray | memoryview):
            raise TypeError(
                f"the {name} of a result is {type(given).__name__}: give bytes or None, or an encoder: "
                f"KafkaOutput({'key_' * (name == 'key')}encode=...)"
            )
    return HELD_BYTES + record_size(result.key, result.value, result.headers)


def _briefer_call(call: _Call) -> _Call:
    return replace(call, given=[brief_letter(each) for each in call.given]) if call.is_letter else call
