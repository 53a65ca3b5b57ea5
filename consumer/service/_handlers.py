"""A handler: the function, what it wants to be given, and what happens to records it cannot cope with."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from ..errors import ConfigError, ConsumerError
from ._dependencies import Wanted, wanted
from ._retry import ONCE, Retry

if TYPE_CHECKING:
    from ..record import Record
    from ._exactly_once import Once, Sink
    from ._tracing import Tracing

#: "key": one record of a key at a time (records without a key share a lane); "partition": one record of a
#: partition at a time; "none": no order at all.
Lanes = Literal["partition", "key", "none"]
HandlerFunction = Callable[..., Any]

#: Limits on handlers, with the reason for each.
MAX_CONCURRENCY = 10_000  # each running handler is a task or a thread
MAX_BATCH = 1_000_000  # all of it is in memory, and done or failed as one


class SendDeadLetter(Protocol):
    """Sends a record to a dead-letter topic and returns when it is safely there."""

    async def __call__(self, topic: str, record: Record, error: BaseException, attempts: int) -> None: ...


class InvalidRecordError(ConsumerError):
    """A record's value does not fit the handler's model. Its cause is the model's own error."""


class HandlerFailedError(ConsumerError):
    """A handler failed with a record, was out of tries, and has no dead-letter topic: the service stops.

    The record is not committed; the group continues with it at the next start. ``topic``, ``partition`` and
    ``offset`` say which it is; the cause is the handler's error.
    """

    def __init__(self, handler: str, record: Record, attempts: int) -> None:
        self.topic, self.partition, self.offset = record.topic, record.partition, record.offset
        super().__init__(
            f"handler {handler} failed with {record.topic}-{record.partition} at offset {record.offset} "
            f"(try {attempts} of it was the last). Mend the handler, or give it dead_letter='TOPIC' so that "
            "such records are set aside"
        )


@dataclass(slots=True, eq=False)
class Counters:
    """What a handler did so far; plain numbers, read when metrics are asked for."""

    handled: int = 0
    failed: int = 0
    retried: int = 0
    invalid: int = 0
    dead_letters: int = 0


@dataclass(slots=True, eq=False)
class Handler:
    """One registered handler; ``batch`` is the most records it takes at once."""

    function: HandlerFunction
    topics: tuple[str, ...]
    model: Any
    lanes: Lanes
    concurrency: int
    retry: Retry
    dead_letter: str | None
    batch: int
    takes_batches: bool
    validate: Callable[[bytes], Any] | None
    is_async: bool
    counters: Counters
    #: Parameters behind the records, filled by type when the service starts.
    wants: tuple[Wanted, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    #: Set for the time of a run.
    tracing: Tracing | None = None
    once: Once | None = None
    #: The parameter that gets the transaction's connection.
    connection: str = ""

    @property
    def name(self) -> str:
        """The function's name, for messages and metrics."""
        return getattr(self.function, "__qualname__", repr(self.function))

    def lane_of(self, record: Record) -> Hashable:
        """Which lane of its partition a record belongs to."""
        if self.lanes == "partition":
            return None
        return record.key if self.lanes == "key" else record.offset

    async def run(
        self, records: list[Record], attempt: int, executor: Executor | None, send: SendDeadLetter
    ) -> float | None:
        """Handle records that stand first in their lane; None when finished, else seconds until the next try.

        Raises HandlerFailedError when there is no try left and no dead-letter topic.
        """
        try:
            await self._call(records, attempt, executor)
        except Exception as error:
            return await self._after_failure(records, attempt, error, executor, send)
        self.counters.handled += len(records)
        return None

    async def _call(self, records: list[Record], attempt: int, executor: Executor | None) -> None:
        if self.tracing is None:
            await self._called(records, executor)
            return
        with self.tracing.span(self.name, records, attempt):
            await self._called(records, executor)

    async def _called(self, records: list[Record], executor: Executor | None) -> None:
        if self.once is not None:
            await _in_thread(executor, self.once.run, records, self._in_transaction)
        elif self.is_async:
            await self.function(*self._arguments(records), **self.values)
        else:
            await _in_thread(executor, self.function, *self._arguments(records), **self.values)

    def _in_transaction(self, records: list[Record], connection: Any) -> None:
        self.function(*self._arguments(records), **self.values, **{self.connection: connection})

    def _arguments(self, records: list[Record]) -> tuple[Any, ...]:
        if self.takes_batches:
            if self.validate is not None:
                return [self._validated(record) for record in records], records
            return (records,)
        if self.validate is not None:
            return self._validated(records[0]), records[0]
        return (records[0],)

    def _validated(self, record: Record) -> Any:
        assert self.validate is not None, "only called for handlers with a model"
        if record.value is None:
            raise InvalidRecordError(f"a null value is no {_name_of(self.model)}")
        try:
            return self.validate(record.value)
        except ValueError as error:
            raise InvalidRecordError(f"the value is no {_name_of(self.model)}: {error}") from error

    async def _after_failure(
        self,
        records: list[Record],
        attempt: int,
        error: Exception,
        executor: Executor | None,
        send: SendDeadLetter,
    ) -> float | None:
        if isinstance(error, InvalidRecordError):
            delay_ms = None  # it will not fit any better the next time
        else:
            self.counters.failed += 1
            delay_ms = self.retry.delay_ms(attempt, error)
        if delay_ms is not None:
            self.counters.retried += 1
            return delay_ms / 1000
        if len(records) > 1:
            await self._one_by_one(records, executor, send)
            return None
        if isinstance(error, InvalidRecordError):
            self.counters.invalid += 1
        if self.dead_letter is None:
            raise HandlerFailedError(self.name, records[0], attempt) from error
        await send(self.dead_letter, records[0], error, attempt)
        if self.once is not None:
            await _in_thread(executor, self.once.skip, records[0])
        self.counters.dead_letters += 1
        return None

    async def _one_by_one(
        self, records: Sequence[Record], executor: Executor | None, send: SendDeadLetter
    ) -> None:
        # the whole batch is out of tries: find the records that are to blame, each with tries of its own
        for record in records:
            attempt = 1
            while (delay_s := await self.run([record], attempt, executor, send)) is not None:
                attempt += 1
                await asyncio.sleep(delay_s)


def make_handler(
    function: HandlerFunction,
    topics: tuple[str, ...],
    *,
    model: Any,
    lanes: Lanes,
    concurrency: int,
    retry: Retry | None,
    dead_letter: str | None,
    batch: int,
    takes_batches: bool,
) -> Handler:
    """Check what was asked for and build the handler. Raises ConfigError, and TypeError for its signature."""
    name = getattr(function, "__qualname__", repr(function))
    if not callable(function):
        raise ConfigError(f"handler {name}: it cannot be called; @service.handler goes over a function")
    _check_topics(name, topics, dead_letter)
    _check_numbers(name, concurrency, batch)
    if lanes not in get_args(Lanes):
        allowed = ", ".join(get_args(Lanes))
        raise ConfigError(f"handler {name}: lanes={lanes!r}, but it must be one of {allowed}")
    if retry is not None and not isinstance(retry, Retry):
        raise ConfigError(f"handler {name}: retry={retry!r}, but it must be a Retry: Retry(attempts=5)")
    validate = None if model is None else _validator(model)
    wants = _check_signature(name, function, 1 if model is None else 2)
    return Handler(
        function=function,
        topics=topics,
        model=model,
        lanes=lanes,
        concurrency=concurrency,
        retry=retry or ONCE,
        dead_letter=dead_letter,
        batch=batch,
        takes_batches=takes_batches,
        validate=validate,
        is_async=inspect.iscoroutinefunction(function)
        or inspect.iscoroutinefunction(type(function).__call__),
        counters=Counters(),
        wants=wants,
    )


def _check_topics(name: str, topics: tuple[str, ...], dead_letter: str | None) -> None:
    if not topics or not all(isinstance(topic, str) and topic for topic in topics):
        raise ConfigError(
            f"handler {name}: its topics are {topics!r}; name at least one: @service.handler('orders')"
        )
    if len(set(topics)) < len(topics):
        raise ConfigError(f"handler {name}: a topic is named twice: {', '.join(topics)}")
    if dead_letter is not None and (not isinstance(dead_letter, str) or not dead_letter):
        raise ConfigError(f"handler {name}: dead_letter={dead_letter!r}, but it must be the name of a topic")
    if dead_letter is not None and dead_letter in topics:
        raise ConfigError(f"handler {name}: its dead-letter topic {dead_letter!r} is one it reads: a loop")


def _check_numbers(name: str, concurrency: int, batch: int) -> None:
    for option, value, most in (
        ("concurrency", concurrency, MAX_CONCURRENCY),
        ("max_records", batch, MAX_BATCH),
    ):
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            raise ConfigError(f"handler {name}: {option}={value!r}, but it must be in 1..{most}")


def bind_connection(handler: Handler, sink: Sink) -> None:
    """Give the transaction's connection to the handler's parameter of its type. Raises ConfigError."""
    name, kind = handler.name, sink.connection_type
    if handler.is_async:
        raise ConfigError(
            f"handler {name}: with exactly_once it must be a plain function: it runs in a thread"
        )
    if handler.lanes != "partition":
        raise ConfigError(
            f"handler {name}: exactly_once keeps one offset for each partition, so it needs "
            f'lanes="partition", not {handler.lanes!r}'
        )
    mine = [want for want in handler.wants if issubclass(kind, want.type)]
    if len(mine) != 1:
        raise ConfigError(
            f"handler {name}: with exactly_once it takes the transaction's connection: give it one parameter "
            f"annotated {kind.__module__}.{kind.__qualname__}"
        )
    handler.connection = mine[0].parameter
    handler.wants = tuple(want for want in handler.wants if want not in mine)


def _check_signature(name: str, function: HandlerFunction, arguments: int) -> tuple[Wanted, ...]:
    wants = wanted(f"handler {name}", function, arguments)
    try:
        inspect.signature(function).bind(*[None] * arguments, **{want.parameter: None for want in wants})
    except TypeError as error:
        given = "the record" if arguments == 1 else "the model and the record"
        text = f"handler {name} is called with {given}, but its signature does not take that: {error}"
        raise TypeError(text) from None
    return wants


async def _in_thread(
    executor: Executor | None, function: Callable[..., Any], *args: Any, **values: Any
) -> None:
    context = contextvars.copy_context()
    call = functools.partial(context.run, function, *args, **values)
    await asyncio.get_running_loop().run_in_executor(executor, call)


def _validator(model: Any) -> Callable[[bytes], Any]:
    validate = getattr(model, "model_validate_json", None)
    if validate is None:
        # any type pydantic understands; imported here so that services without models do not pay for it
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticSchemaGenerationError

        try:
            validate = TypeAdapter(model).validate_json
        except PydanticSchemaGenerationError as error:
            first = str(error).splitlines()[0]
            raise ConfigError(
                f"model={model!r} is nothing that pydantic can read JSON into: {first}"
            ) from None
    checked: Callable[[bytes], Any] = validate
    return checked


def _name_of(model: Any) -> str:
    return getattr(model, "__name__", repr(model))
