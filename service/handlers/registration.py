"""Registration of handlers: checks the arguments and builds a Handler."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from ...client.errors import ConfigError
from ...consumer.reading.user_decoders import json_validator, make_decoder
from ...settings import MAX_INT
from .dependencies import SignatureError, Wanted, wanted_parameters
from .handler import (
    DeadLetterTopics,
    Handler,
    HandlerFunction,
    Lanes,
    Middleware,
)
from .retry import ONCE, Retry

if TYPE_CHECKING:
    from ..exactly_once.sinks import Sink

#: Limits on handlers, with the reason for each.
MAX_CONCURRENCY = 10_000  # each running handler is a task or a thread
MAX_BATCH = 1_000_000  # a whole batch is in memory, and is done or fails as one


def make_handler(
    function: HandlerFunction,
    topics: tuple[str, ...],
    *,
    may_yield: bool = False,
    in_share: bool = False,
    **options: Any,
) -> Handler:
    """A handler with these options, checked; ``may_yield``: there is a KafkaOutput for its results.

    Raises ConfigError, SignatureError included.
    """
    if options.get("lanes") is None:
        options["lanes"] = "none" if in_share else "partition"
    handler = Handler(function, topics, **options)
    name = handler.name
    if not callable(function):
        raise ConfigError(f"handler {name}: it cannot be called; @service.handler goes over a function")
    if in_share:
        _check_shared(handler)
    yields_async = inspect.isasyncgenfunction(function)
    if not may_yield and (yields_async or inspect.isgeneratorfunction(function)):
        raise SignatureError(
            f"handler {name} is a generator: nothing of it would run; leave out the 'yield', or call "
            "service.exactly_once(KafkaOutput()) before it"
        )
    handler.retry_topics = _retry_topics(name, topics, handler.retry_after_ms)
    _check_letters(name, handler.all_topics, handler.dead_letter)
    handler.middlewares = tuple(check_middleware(each) for each in handler.middlewares)
    _check_numbers(name, handler.concurrency, handler.batch)
    if handler.lanes not in get_args(Lanes):
        allowed = ", ".join(get_args(Lanes))
        raise ConfigError(f"handler {name}: lanes={handler.lanes!r}, but it must be one of {allowed}")
    handler.retry = retry = handler.retry or ONCE
    if not isinstance(retry, Retry):
        raise ConfigError(f"handler {name}: retry={retry!r}, but it must be a Retry: Retry(attempts=5)")
    if handler.model is not None and handler.decode is not None:
        raise ConfigError(f"handler {name}: model and decode are both for the value: give one of them")
    handler.validate = None if handler.model is None else json_validator(handler.model)
    handler.value_decoder = make_decoder(handler.decode, "value")
    handler.key_decoder = make_decoder(handler.key_decode, "key")
    handler.wants = _check_signature(name, function, handler.given)
    call = type(function).__call__
    handler.is_async = (
        yields_async or inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
    )
    if handler.timeout_ms is not None:
        _check_timeout(name, handler.timeout_ms, handler.is_async)
    return handler


def _check_shared(handler: Handler) -> None:
    """Refuse what a share group cannot do."""
    if handler.lanes in ("partition", "key"):
        raise ConfigError(
            f"handler {handler.name}: lanes={handler.lanes!r} promises an order that a share group has not: "
            "records of one partition, and of one key, go to several members at the same time. Leave lanes "
            "out, or take a consumer group"
        )
    if handler.retry_after_ms and handler.dead_letter is None:
        raise ConfigError(
            f"handler {handler.name}: retry_after_ms needs a dead_letter in a share group: retry topics are "
            "read in order by a consumer group, which would stop at a record that has no try left"
        )


def _check_timeout(name: str, timeout_ms: object, is_async: bool) -> None:
    if not isinstance(timeout_ms, int) or isinstance(timeout_ms, bool) or timeout_ms < 1:
        raise ConfigError(
            f"handler {name}: timeout_ms={timeout_ms!r}, but it must be a whole number, at least 1"
        )
    if not is_async:
        raise ConfigError(
            f"handler {name}: timeout_ms is for async functions; nobody can end what runs in a thread"
        )


def _retry_topics(name: str, topics: tuple[str, ...], delays_ms: object) -> dict[str, int]:
    delays: list[Any] = list(delays_ms) if isinstance(delays_ms, list | tuple) else [None]
    if not all(isinstance(ms, int) and not isinstance(ms, bool) and 0 < ms <= MAX_INT for ms in delays):
        raise ConfigError(
            f"handler {name}: retry_after_ms={delays_ms!r}, but it must be a list of delays, whole numbers "
            "from 1"
        )
    found = {f"{topic}.retry.{nth}": ms for nth, ms in enumerate(delays, start=1) for topic in topics}
    if clash := found.keys() & set(topics):
        raise ConfigError(f"handler {name}: {min(clash)!r} is the name of one of its retry topics")
    return found


def check_middleware(middleware: Any) -> Middleware:
    """A middleware, which must be async. Raises SignatureError."""
    name = getattr(middleware, "__qualname__", repr(middleware))
    if not inspect.iscoroutinefunction(middleware) and not inspect.iscoroutinefunction(
        getattr(type(middleware), "__call__", None)  # noqa: B004 - whether it is async
    ):
        raise SignatureError(f"middleware {name}: it must be 'async def {name}(record, call_next)'")
    try:
        inspect.signature(middleware).bind(None, None)
    except TypeError as error:
        text = f"middleware {name} is called with the record (or records) and call_next: {error}"
        raise SignatureError(text) from None
    checked: Middleware = middleware
    return checked


def check_topics(topics: tuple[Any, ...]) -> None:
    """Raise ConfigError for topics that a handler cannot have."""
    if topics and not isinstance(topics[0], str) and callable(topics[0]):
        name = getattr(topics[0], "__qualname__", repr(topics[0]))
        raise ConfigError(f"handler {name} names no topic: write @service.handler('orders') over it")
    if not topics or not all(isinstance(topic, str) and topic for topic in topics):
        raise ConfigError(f"a handler's topics are {topics!r}; name at least one: @service.handler('orders')")
    if len(set(topics)) < len(topics):
        raise ConfigError(f"a handler's topic is named twice: {', '.join(topics)}")


def _check_letters(name: str, topics: tuple[str, ...], dead_letter: DeadLetterTopics | None) -> None:
    if dead_letter is None:
        return
    routes = dead_letter if isinstance(dead_letter, Mapping) else {Exception: dead_letter}
    for kind, topic in routes.items():
        if not (isinstance(kind, type) and issubclass(kind, Exception) and isinstance(topic, str) and topic):
            raise ConfigError(
                f"handler {name}: dead_letter={dead_letter!r}, but it must be the name of a topic, or names "
                "of topics by classes of exceptions"
            )
        if topic in topics:
            raise ConfigError(f"handler {name}: its dead-letter topic {topic!r} is one it reads: a loop")


def _check_numbers(name: str, concurrency: int, batch: int) -> None:
    for option, value, most in (
        ("concurrency", concurrency, MAX_CONCURRENCY),
        ("max_records", batch, MAX_BATCH),
    ):
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            raise ConfigError(f"handler {name}: {option}={value!r}, but it must be in 1..{most}")


def bind_connection(handler: Handler, sink: Sink) -> None:
    """Bind the transaction's connection to the handler's parameter of its type. Raises ConfigError."""
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


def _check_signature(name: str, function: HandlerFunction, given: Sequence[str]) -> tuple[Wanted, ...]:
    arguments = len(given)
    wants = wanted_parameters(f"handler {name}", function, arguments)
    try:
        inspect.signature(function).bind(*[None] * arguments, **{want.parameter: None for want in wants})
    except TypeError as error:
        called = f"handler {name} is called with {' and '.join(given)}"
        raise SignatureError(f"{called}, but its signature does not take that: {error}") from None
    return wants
