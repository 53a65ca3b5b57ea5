"""A handler: the function, its parameters, and the treatment of records that it fails with."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from ...consumer.errors import ConsumerError, short_text
from ...consumer.reading.user_decoders import Decoder, InvalidRecordError
from ...consumer.record import Record
from ...producer import ProducerRecord
from ...producer.encoding import Encoders
from ..letters.deadletter import DeadLetterError, wall_ms
from ..letters.failed_records import RetryLetter, no_retry_letter, read_retry
from ..reporting.log import ServiceLog
from ..run.queues import ONE_BY_ONE, Outcome, Partly
from ..share.deliveries import Deliveries, LastDeliveryError, all_lost, reject, release
from .dependencies import SignatureError, Wanted
from .retry import ONCE, Retry

if TYPE_CHECKING:
    from ...client.threads import DaemonThreads
    from ..exactly_once.stored_offsets import Once
    from ..reporting.tracing import Tracing

#: Which records are handled one after another: those of one "partition", those of one "key" (records without
#: a key share a lane), or "none".
Lanes = Literal["partition", "key", "none"]
HandlerFunction = Callable[..., Any]

#: Values of a batch are validated on the event loop for this long at a stretch.
STRETCH_S = 0.005
#: In a share group: pause before a dead letter that could not be written is tried again.
LETTER_PAUSE_S = 1.0

_key_of: Callable[[Any], Hashable] = itemgetter(Record._fields.index("key"))
_offset_of: Callable[[Any], Hashable] = itemgetter(Record._fields.index("offset"))


#: A topic for all records, or topics by the class of the error: the first class that matches counts.
DeadLetterTopics = str | Mapping[type[Exception], str]


class SendDeadLetter(Protocol):
    """Sends a record to a dead-letter or, with ``due_ms``, to a retry topic; returns when it is stored."""

    async def __call__(
        self, topic: str, record: Record, error: BaseException, attempts: int, due_ms: int | None = None
    ) -> None: ...


class Middleware(Protocol):
    """Wraps the calls of a handler: gets its record, or a batch's records, and calls ``call_next(given)``."""

    def __call__(self, given: Any, call_next: Callable[[Any], Awaitable[Any]], /) -> Awaitable[Any]: ...


class HandlerCancelledError(ConsumerError):
    """A handler raised asyncio.CancelledError although it was not cancelled: something that it awaited was.

    It has failed like a handler that raises any other error. The cause is the CancelledError.
    """


class HandlerTimeoutError(ConsumerError, TimeoutError):
    """A handler took longer than its ``timeout_ms``. It was cancelled and counts as failed."""


_R = TypeVar("_R", bound=Record)


class FailedRecordsError(ConsumerError):
    """Raised by a batch handler that failed with only some of its records; the others count as done.

    ``failed`` has the error of each: the record is retried, and finally set aside, as if it had been alone.
    """

    def __init__(self, failed: Mapping[_R, Exception]) -> None:
        if not failed:
            raise ValueError("FailedRecordsError without a record: return, if none has failed")
        for record, error in failed.items():
            if not (isinstance(record, Record) and isinstance(error, BaseException)):
                raise TypeError(
                    f"FailedRecordsError takes exceptions by Record, not a {type(error).__name__} by a "
                    f"{type(record).__name__}"
                )
        self.failed: dict[Record, Exception] = dict(failed.items())
        first = next(iter(self.failed))
        super().__init__(
            f"{len(failed)} records, {place_of([first])} first: {short_text(self.failed[first])}"
        )


class HandlerFailedError(ConsumerError):
    """A handler failed on a record, has no attempts left and no dead-letter topic: the service stops.

    The record is not committed; the group continues with it at the next start. ``topic``, ``partition`` and
    ``offset`` say which it is; the cause is the handler's error.
    """

    def __init__(self, handler: str, record: Record, attempts: int, error: BaseException) -> None:
        self.topic, self.partition, self.offset = record.topic, record.partition, record.offset
        super().__init__(
            f"handler {handler} failed with {record.topic}-{record.partition} at offset {record.offset} "
            f"(try {attempts} of it was the last): {short_text(error)}. Fix the handler, or give it "
            "dead_letter='TOPIC' so that such records are set aside"
        )


@dataclass(slots=True, eq=False)
class Counters:
    """Counters of a handler, read when metrics are requested."""

    handled: int = 0
    failed: int = 0
    retried: int = 0
    released: int = 0
    archived: int = 0
    postponed: int = 0
    invalid: int = 0
    dead_letters: int = 0


@dataclass(slots=True, eq=False)
class Handler:
    """A registered handler; ``batch`` is the maximum number of records of a call."""

    function: HandlerFunction
    topics: tuple[str, ...]
    model: object = None
    decode: object = None
    key_decode: object = None
    lanes: Lanes = "partition"
    concurrency: int = 16
    retry: Retry = ONCE
    dead_letter: DeadLetterTopics | None = None
    timeout_ms: int | None = None
    batch: int = 1
    takes_batches: bool = False
    retry_after_ms: Sequence[int] = ()
    middlewares: tuple[Middleware, ...] = ()
    #: Whether this run reads its retry topics.
    reads_retries: bool = True
    #: Whether it is paused.
    held: bool = False
    counters: Counters = field(default_factory=Counters)
    #: Determined at registration; the parameters after the records are filled by type at a start.
    validate: Callable[[bytes], object] | None = None
    value_decoder: Decoder | None = None
    key_decoder: Decoder | None = None
    is_async: bool = False
    wants: tuple[Wanted, ...] = ()
    values: dict[str, object] = field(default_factory=dict)
    #: With their delays in ms.
    retry_topics: Mapping[str, int] = field(default_factory=dict)
    #: Set for the time of a run.
    group: str = ""
    tracing: Tracing | None = None
    once: Once | None = None
    #: Of a share group; None in a consumer group, where a record stays with the member until it is done.
    deliveries: Deliveries | None = None
    #: Takes the results of calls for these records.
    output: Callable[[list[Record], list[ProducerRecord]], None] | None = None
    #: Encoders of the results of calls.
    encoders: Encoders | None = None
    log: ServiceLog = field(default_factory=ServiceLog)
    #: Retry topics with records that are no letters.
    told_of: set[str] = field(default_factory=set)
    #: The parameter that gets the transaction's connection.
    connection: str = ""

    @property
    def name(self) -> str:
        """The function's name, for messages and metrics."""
        return getattr(self.function, "__qualname__", repr(self.function))

    @property
    def given(self) -> tuple[str, ...]:
        """The arguments of its calls, described in words."""
        key = () if self.key_decoder is None else ("the key",)
        value = () if self.value_decoder is None else ("the value",)
        return (*key, *(value if self.validate is None else ("the model",)), "the record")

    @property
    def decodes(self) -> bool:
        """Return whether it is called with more than the record."""
        return len(self.given) > 1

    @property
    def may_wait(self) -> bool:
        """Return whether decoding, or encoding, may have to wait for a schema registry."""
        decoders = (self.key_decoder, self.value_decoder)
        return any(each is not None and each.waits is not None for each in decoders) or (
            self.encoders is not None and self.encoders.may_wait
        )

    @property
    def all_topics(self) -> tuple[str, ...]:
        """All topics that it reads."""
        return (*self.topics, *self.retry_topics) if self.reads_retries else self.topics

    @property
    def key_of(self) -> Callable[[object], Hashable] | None:
        """Function from a record to its queue in the partition; None if the partition has a single queue."""
        if self.lanes == "partition":
            return None
        if self.batch > 1:
            return self._block_of  # of a share group: several batches of a partition at the same time
        return _key_of if self.lanes == "key" else _offset_of

    def _block_of(self, record: object) -> Hashable:
        assert isinstance(record, Record), "others are not handled"
        return record.offset // self.batch

    async def run(
        self, records: list[Record], attempt: int, threads: DaemonThreads | None, send: SendDeadLetter
    ) -> Outcome:
        """Handle the first records of a queue.

        Raises HandlerFailedError after the last attempt without a dead-letter topic, and DeadLetterError.
        """
        taken = given = records
        if records[0].topic in self.retry_topics:
            letters = [(record, letter) for record in records if (letter := self._own_letter(record))]
            records, given = [record for record, _ in letters], [letter.record for _, letter in letters]
        try:
            if not given:
                result = None  # letters of other groups, which a failure below separates from ours
            elif self.tracing is None:
                result = await self._start_call(records, given, threads)
            else:
                with self.tracing.span(self.name, given, attempt):
                    result = await self._start_call(records, given, threads)
            if self.output is not None:
                results = _as_given(self.name, result)
                if self.encoders is not None:
                    results = await self._encode_results(self.encoders, results, threads)
                self.output(taken, results)
        except FailedRecordsError as error:
            failed = {r: error.failed[g] for r, g in zip(records, given, strict=True) if g in error.failed}
            # a transaction has all of its records, or none
            whole = self.once is not None or self.output is not None or len(failed) < len(error.failed)
            if whole or not self.takes_batches:
                return await self._after_failure(taken, attempt, error, threads, send)
            return await self._after_some_failed(taken, failed, attempt, send)
        except Exception as error:
            return await self._after_failure(taken, attempt, error, threads, send)
        except BaseException as error:
            return await self._after_failure(taken, attempt, _handlers_own(error), threads, send)
        self.counters.handled += len(records)
        return None

    async def _encode_results(
        self, encoders: Encoders, given: list[ProducerRecord], threads: DaemonThreads | None
    ) -> list[ProducerRecord]:
        """The results with keys and values as bytes."""
        now = asyncio.get_running_loop().time
        encoded, until = [], now() + STRETCH_S
        for record in given:
            if encoders.must_wait(record.topic):
                assert threads is not None, "handlers whose encoders may wait have threads"
                encoded.append(await threads.call(functools.partial(encoders.record, record)))
                continue
            if now() > until:
                await asyncio.sleep(0)
                until = now() + STRETCH_S
            encoded.append(encoders.record(record))
        return encoded

    def _own_letter(self, record: Record) -> RetryLetter | None:
        """The letter of this group that a record of a retry topic is; others are for other groups."""
        letter = read_retry(record)
        if letter is None and record.topic not in self.told_of:
            self.told_of.add(record.topic)
            text = "handler %s: the record of %s is no letter of a service (%s): it is passed over, as all "
            text += "like it in this retry topic are"
            why = no_retry_letter(record)
            self.log.line((text, record.topic), logging.WARNING, text, self.name, place_of([record]), why)
        return letter if letter is not None and letter.letter.group == self.group else None

    def _start_call(
        self, records: list[Record], given: list[Record], threads: DaemonThreads | None
    ) -> Awaitable[object]:
        """The awaitable of a call; for an async function its own, since a wrapper costs time.

        ``given`` are the records as the handler sees them.
        """
        if self.middlewares:
            called = self._call_through(self.middlewares, records, given, threads)
        else:
            called = self._called_at_last(records, given, threads)
        return called if self.timeout_ms is None else self._in_time(called, self.timeout_ms)

    def _call_through(
        self,
        middlewares: tuple[Middleware, ...],
        records: list[Record],
        given: list[Record],
        threads: DaemonThreads | None,
    ) -> Awaitable[object]:
        if not middlewares:
            return self._called_at_last(records, given, threads)

        inner: list[object] = []

        async def call_next(changed: Any) -> object:
            passed = list(changed) if self.takes_batches else [changed]
            inner.append(await self._call_through(middlewares[1:], records, passed, threads))
            return inner[-1]

        async def call() -> object:
            result = await middlewares[0](given if self.takes_batches else given[0], call_next)
            if result is None and self.output is not None and inner and inner[-1]:
                name = getattr(middlewares[0], "__qualname__", repr(middlewares[0]))
                raise TypeError(
                    f"middleware {name} returned None where handler {self.name} gave out records: write "
                    "'return await call_next(record)', or return [] to drop them"
                )
            return result

        return call()

    def _called_at_last(
        self, records: list[Record], given: list[Record], threads: DaemonThreads | None
    ) -> Awaitable[object]:
        if self.is_async:
            if any(map(self._must_wait, given)):
                assert threads is not None, "handlers whose decoders may wait have threads"
                return self._with_arguments(threads.call(functools.partial(self._make_arguments, given)))
            if self.takes_batches and self.decodes:
                return self._with_arguments(self._arguments_in_turns(given))
            called = self.function(*self._make_arguments(given), **self.values)
            return _collect_results(called) if inspect.isasyncgen(called) else called
        assert threads is not None, "plain functions have threads"
        if self.once is not None:
            handle = functools.partial(self._in_transaction, records, given)
            return threads.call(functools.partial(self.once.run, records, handle))
        return threads.call(functools.partial(self._in_thread, given))

    async def _in_time(self, called: Awaitable[object], timeout_ms: int) -> object:
        # not asyncio.wait_for: a TimeoutError that the handler raises is not ours
        try:
            async with asyncio.timeout(timeout_ms / 1000) as bound:
                return await called
        except TimeoutError as error:
            if not bound.expired():
                raise
            text = f"handler {self.name} took longer than timeout_ms={timeout_ms}"
            raise HandlerTimeoutError(text) from error

    def _must_wait(self, record: Record) -> bool:
        key, value = self.key_decoder, self.value_decoder
        return (key is not None and key.must_wait(record.key)) or (
            value is not None and value.must_wait(record.value)
        )

    async def _with_arguments(self, arguments: Awaitable[tuple[object, ...]]) -> object:
        called = self.function(*await arguments, **self.values)
        return await (_collect_results(called) if inspect.isasyncgen(called) else called)

    def _in_thread(self, records: list[Record], **connection: Any) -> Any:
        result = self.function(*self._make_arguments(records), **self.values, **connection)
        if inspect.iscoroutine(result):
            result.close()
            raise SignatureError(
                f"handler {self.name} is a plain function that returned a coroutine, which nobody awaits: "
                "make it 'async def'"
            )
        return list(result) if inspect.isgenerator(result) else result

    def _in_transaction(
        self, records: list[Record], given: list[Record], left: list[Record], connection: object
    ) -> None:
        """Call with what is given for those that are ``left`` to do: a middleware may have dropped some."""
        if len(left) < len(records):
            stay = {_place_at_first(record) for record in left}
            given = [each for each in given if _place_at_first(each) in stay]
        if given:
            self._in_thread(given, **{self.connection: connection})

    def _make_arguments(self, records: list[Record]) -> tuple[object, ...]:
        if self.takes_batches:
            return self._make_columns([self._decode_record(record) for record in records], records)
        return (*self._decode_record(records[0]), records[0])

    def _make_columns(self, rows: list[tuple[object, ...]], records: list[Record]) -> tuple[object, ...]:
        """Lists of the decoded keys and values, and the records."""
        return (*map(list, zip(*rows, strict=True)), records)

    async def _arguments_in_turns(self, records: list[Record]) -> tuple[object, ...]:
        """The arguments, decoded on the event loop in short turns, because heartbeats share it."""
        now = asyncio.get_running_loop().time
        rows, until = [], now() + STRETCH_S
        for record in records:
            if now() > until:
                await asyncio.sleep(0)
                until = now() + STRETCH_S
            rows.append(self._decode_record(record))
        return self._make_columns(rows, records)

    def _decode_record(self, record: Record) -> tuple[object, ...]:
        """The record's key and value, decoded if the handler takes them."""
        key = () if self.key_decoder is None else (self.key_decoder(record.key),)
        if self.validate is not None:
            return (*key, self._validate_record(record))
        return key if self.value_decoder is None else (*key, self.value_decoder(record.value))

    def _validate_record(self, record: Record) -> object:
        assert self.validate is not None, "only called for handlers with a model"
        try:
            # a tombstone is JSON's null: a model such as "Order | None" takes it
            return self.validate(b"null" if record.value is None else record.value)
        except ValueError as error:
            name = getattr(self.model, "__name__", repr(self.model))
            if record.value is None:
                text = f"a null value is no {name}; model={name} | None takes such records as None"
            else:
                text = f"the value is no {name}: {error}"
            raise InvalidRecordError(text) from error

    async def _after_failure(
        self,
        records: list[Record],
        attempt: int,
        error: BaseException,
        threads: DaemonThreads | None,
        send: SendDeadLetter,
    ) -> Outcome:
        if self.deliveries is not None and all_lost(records):
            return None  # others have them
        # a value that does not fit the model never will: no retry
        invalid = isinstance(error, InvalidRecordError)
        if self.deliveries is not None:
            attempt += self.deliveries.tries_before(records)
        delay_ms = None if invalid else self.retry.delay_ms(attempt, error)
        self.counters.failed += not invalid
        if delay_ms is not None and self._can_wait(records, delay_ms):
            self.counters.retried += 1
            self._log_call(
                logging.WARNING,
                "handler %s failed with %s (try %d of %d), again in %.0f ms: %s",
                (self.name, place_of(records), attempt, self.retry.attempts, delay_ms),
                error,
            )
            return delay_ms / 1000
        if len(records) > 1:
            text = "handler %s failed with the %d records %s, which are now handled one by one: %s"
            self._log_call(logging.WARNING, text, (self.name, len(records), place_of(records)), error)
            return ONE_BY_ONE
        record = records[0]
        self.counters.invalid += invalid
        topic = due_ms = None
        if not invalid and isinstance(error, self.retry.retry_on):
            topic = self._next_retry_topic(record)
        if topic is not None:
            due_ms = wall_ms() + self.retry_topics[topic]
        else:
            topic = self._letter_topic(error)
        if self.deliveries is not None:
            again = self.deliveries.is_handled_again(record, with_letter=topic is not None)
            # a delay that is too long for a lock is kept by a retry topic, and by nothing else
            if topic is None or (delay_ms is not None and due_ms is None and again):
                self._release_record(record, attempt, error, again=again)
                return None
        if topic is None:
            raise HandlerFailedError(self.name, record, attempt, error) from error
        await self._set_aside(topic, record, error, attempt, due_ms, threads, send)
        return None

    async def _set_aside(
        self,
        topic: str,
        record: Record,
        error: BaseException,
        attempt: int,
        due_ms: int | None,
        threads: DaemonThreads | None,
        send: SendDeadLetter,
    ) -> None:
        """Write the record to a dead-letter or retry topic; then it is done."""
        place = place_of([record])
        while True:
            try:
                if self.deliveries is not None:
                    self.deliveries.keep(record)
                await send(topic, record, error, attempt, due_ms)
                break
            except Exception as refusal:
                text = "handler %s gave up %s after try %d, and it could not be set aside: %s"
                self._log_call(logging.ERROR, text, (self.name, place, attempt), error)
                if self.deliveries is None or not isinstance(refusal, DeadLetterError):
                    raise
                self._log_call(
                    logging.ERROR, "handler %s keeps %s locked for it: %s", (self.name, place), refusal
                )
                if all_lost([record]):
                    return
            # a stop, and the next start, would cost a delivery of each record that is locked
            await asyncio.sleep(LETTER_PAUSE_S)
        if self.once is not None and threads is not None:
            await threads.call(functools.partial(self.once.skip, record))
        if due_ms is not None:
            self.counters.postponed += 1
            text = "handler %s failed with %s (try %d), again in %d ms from the retry topic %s: %s"
            delay_ms = self.retry_topics[topic]
            self._log_call(logging.WARNING, text, (self.name, place, attempt, delay_ms, topic), error)
            return
        if self.deliveries is not None:
            reject(record)
        self.counters.dead_letters += 1
        text = "handler %s gave up %s after try %d; the record is in the dead-letter topic %s: %s"
        self._log_call(logging.ERROR, text, (self.name, place, attempt, topic), error)

    # -- share groups ---------------------------------------------------------------------------------------

    def is_for_letter(self, record: Record) -> bool:
        """Whether the group delivers it for the last time, which is for its dead letter."""
        if self.deliveries is None or not self.deliveries.is_last(record):
            return False
        return self._letter_topic(LastDeliveryError(self.deliveries.limit)) is not None

    async def bury(self, record: Record, send: SendDeadLetter) -> None:
        """Write the letter of a record that is for it."""
        assert self.deliveries is not None, "of a share group"
        error = LastDeliveryError(self.deliveries.limit)
        topic = self._letter_topic(error)
        assert topic is not None, "is_for_letter was asked"
        tries = self.deliveries.tries_before([record])
        await self._set_aside(topic, record, error, tries, None, None, send)

    def _can_wait(self, records: list[Record], delay_ms: float) -> bool:
        return self.deliveries is None or self.deliveries.can_wait(records, delay_ms)

    def _release_record(self, record: Record, attempt: int, error: BaseException, *, again: bool) -> None:
        """Give the record back to its group, which archives it after its last delivery."""
        release(record)
        values = (self.name, place_of([record]), attempt)
        if again:
            self.counters.released += 1
            text = "handler %s failed with %s (try %d); the record is released, to be delivered again: %s"
            self._log_call(logging.WARNING, text, values, error)
            return
        self.counters.archived += 1
        text = (
            "handler %s failed with %s (try %d) in its last delivery, and it has no dead-letter topic: the "
        )
        text += (
            "group archives the record, and nobody gets it again. Give the handler dead_letter='TOPIC': %s"
        )
        self._log_call(logging.ERROR, text, values, error)

    async def _after_some_failed(
        self, records: list[Record], failed: Mapping[Record, Exception], attempt: int, send: SendDeadLetter
    ) -> Outcome:
        """Treat each failed record as if it had failed alone; finish the others."""
        finished = set(records) - failed.keys()
        self.counters.handled += len(finished)
        waits: list[float] = []
        for record, reason in failed.items():
            try:
                outcome = await self._after_failure([record], attempt, reason, None, send)
            except ConsumerError as error:
                return Partly([record for record in records if record in finished], error)
            if outcome is None:
                finished.add(record)
            else:
                assert isinstance(outcome, float), "a single record is neither split nor finished in part"
                waits.append(outcome)
        return Partly([record for record in records if record in finished], max(waits, default=None))

    def _next_retry_topic(self, record: Record) -> str | None:
        """The retry topic for a record that this one has failed in; None after the last one."""
        origin, nth = record.topic, 0
        if origin in self.retry_topics:
            origin, _, stage = origin.rpartition(".retry.")
            nth = int(stage)
        topic = f"{origin}.retry.{nth + 1}"
        return topic if topic in self.retry_topics else None

    @property
    def letter_topics(self) -> tuple[str, ...]:
        """All topics that its dead letters may go to."""
        if self.dead_letter is None:
            return ()
        return (self.dead_letter,) if isinstance(self.dead_letter, str) else tuple(self.dead_letter.values())

    def _letter_topic(self, error: BaseException) -> str | None:
        if self.dead_letter is None or isinstance(self.dead_letter, str):
            return self.dead_letter
        return next((topic for kind, topic in self.dead_letter.items() if isinstance(error, kind)), None)

    def _log_call(self, level: int, text: str, values: tuple[object, ...], error: BaseException) -> None:
        # the stack of an invalid record is useless
        shown = None if isinstance(error, InvalidRecordError) else error
        self.log.line((self.name, text, type(error)), level, text, *values, short_text(error), error=shown)


def _handlers_own(error: BaseException) -> BaseException:
    """The error that counts as the handler's; raises errors that are not the handler's."""
    if isinstance(error, SystemExit | KeyboardInterrupt | GeneratorExit):
        raise error
    if not isinstance(error, asyncio.CancelledError):
        return error
    this = asyncio.current_task()
    if this is not None and this.cancelling():
        raise error  # its partition is revoked, or the loop ends
    cancelled = HandlerCancelledError("something that the handler awaited was cancelled")
    cancelled.__cause__ = error
    return cancelled


def _place_at_first(record: Record) -> tuple[str, int, int]:
    """Where a record, or that of a letter, was read first."""
    letter = read_retry(record)
    first = record if letter is None else letter.record
    return first.topic, first.partition, first.offset


def place_of(records: list[Record]) -> str:
    """Topic, partition and offsets of a call's records, as a text."""
    first, last = records[0], records[-1]
    offsets = f"at offset {first.offset}" + (f" to {last.offset}" if last is not first else "")
    return f"{first.topic}-{first.partition} {offsets}"


def _as_given(name: str, result: object) -> list[ProducerRecord]:
    """The records that a handler has returned: none, one or several. Raises TypeError."""
    if result is None:
        return []
    if isinstance(result, ProducerRecord):
        return [result]
    found: list[Any] = list(result) if isinstance(result, list | tuple | Iterator) else [result]
    for each in found:
        if not isinstance(each, ProducerRecord):
            raise TypeError(
                f"handler {name} gave out {type(each).__name__}: with exactly_once(KafkaOutput()) it returns "
                "or yields ProducerRecord(topic, value, key), several, or None"
            )
    return found


async def _collect_results(result: AsyncIterator[object]) -> list[object]:
    """Collect what an async generator yields."""
    return [each async for each in result]
