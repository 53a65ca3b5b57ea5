"""One handler: what it is called with, and what becomes of a record it cannot cope with.

Covers: service/handlers/registration.py.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pydantic import BaseModel

from kohort.client.errors import ConfigError
from kohort.client.threads import DaemonThreads
from kohort.consumer.record import Record
from kohort.service import (
    HandlerCancelledError,
    HandlerFailedError,
    InvalidRecordError,
    Retry,
)
from kohort.service.handlers import handler as _handlers
from kohort.service.handlers.handler import Handler
from kohort.service.handlers.registration import make_handler
from kohort.service.reporting.log import LINES
from kohort.service.run.queues import ONE_BY_ONE


class Order(BaseModel):
    id: int


def record(offset: int = 0, value: bytes | None = b'{"id": 7}', key: bytes | None = b"k") -> Record:
    return Record("orders", 0, offset, 0, key, value)


def handler(function: Callable[..., Any], **options: Any) -> Handler:
    given: dict[str, Any] = {
        "model": None,
        "lanes": "partition",
        "concurrency": 4,
        "retry": None,
        "dead_letter": None,
        "batch": 1,
        "takes_batches": False,
    }
    return make_handler(function, ("orders",), **{**given, **options})


class Post:
    """A dead-letter topic."""

    def __init__(self) -> None:
        self.letters: list[tuple[str, int, BaseException, int]] = []
        self.due_ms: list[int | None] = []

    async def __call__(
        self, topic: str, record: Record, error: BaseException, attempts: int, due_ms: int | None = None
    ) -> None:
        self.letters.append((topic, record.offset, error, attempts))
        self.due_ms.append(due_ms)


async def tries(handler: Handler, records: list[Record], post: Post) -> int:
    """Run until finished; how many tries it took."""
    attempt = 1
    while (outcome := await handler.run(records, attempt, None, post)) is not None:
        assert isinstance(outcome, float)
        await asyncio.sleep(outcome)
        attempt += 1
    return attempt


async def test_without_a_model_it_gets_the_record() -> None:
    seen: list[Record] = []

    async def handle(record: Record) -> None:
        seen.append(record)

    one = record()
    assert await handler(handle).run([one], 1, None, Post()) is None
    assert seen == [one]


async def test_with_a_model_it_gets_the_model_and_the_record() -> None:
    seen: list[tuple[Order, int]] = []

    async def handle(order: Order, record: Record) -> None:
        seen.append((order, record.offset))

    await handler(handle, model=Order).run([record(3)], 1, None, Post())
    assert seen == [(Order(id=7), 3)]


async def test_any_type_that_pydantic_knows_may_be_the_model() -> None:
    seen: list[object] = []

    async def handle(value: list[int], _: Record) -> None:
        seen.append(value)

    await handler(handle, model=list[int]).run([record(value=b"[1, 2]")], 1, None, Post())
    assert seen == [[1, 2]]


async def test_a_plain_function_runs_in_a_thread() -> None:
    names: list[str] = []

    def handle(_: Record) -> None:
        names.append(threading.current_thread().name)

    threads = DaemonThreads(1, "orders")
    await handler(handle).run([record()], 1, threads, Post())
    threads.close()
    assert names == ["orders_0"]


async def test_a_batch_handler_gets_lists() -> None:
    seen: list[object] = []

    async def handle(orders: list[Order], records: list[Record]) -> None:
        seen.append(([order.id for order in orders], [record.offset for record in records]))

    batch = handler(handle, model=Order, batch=10, takes_batches=True)
    await batch.run([record(0), record(1)], 1, None, Post())
    assert seen == [([7, 7], [0, 1])]


async def test_it_is_tried_again_until_it_succeeds() -> None:
    calls: list[int] = []

    async def handle(_: Record) -> None:
        calls.append(1)
        if len(calls) < 3:
            raise ConnectionError("the bank is closed")

    assert await tries(handler(handle, retry=Retry(attempts=5, backoff_ms=0)), [record()], Post()) == 3


async def test_out_of_tries_a_record_goes_to_the_dead_letters() -> None:
    async def handle(_: Record) -> None:
        raise ConnectionError("the bank is closed")

    post = Post()
    unlucky = handler(handle, retry=Retry(attempts=3, backoff_ms=0), dead_letter="orders.dlt")
    assert await tries(unlucky, [record(5)], post) == 3

    ((topic, offset, error, attempts),) = post.letters
    assert (topic, offset, str(error), attempts) == ("orders.dlt", 5, "the bank is closed", 3)
    assert unlucky.counters.dead_letters == 1
    assert unlucky.counters.failed == 3


async def test_without_dead_letters_the_failure_names_the_record_and_the_way_out() -> None:
    async def handle(_: Record) -> None:
        raise ConnectionError("the bank is closed")

    with pytest.raises(HandlerFailedError, match=r"orders-0 at offset 5 .* dead_letter='TOPIC'") as caught:
        await handler(handle).run([record(5)], 1, None, Post())
    assert isinstance(caught.value.__cause__, ConnectionError)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"not json", "no Order"),
        (b'{"id": "x"}', "no Order"),
        (None, "a null value is no Order"),
    ],
)
async def test_a_value_that_does_not_fit_the_model_is_not_tried_again(value: bytes | None, text: str) -> None:
    async def handle(_: Order, __: Record) -> None:
        pytest.fail("called with a value that does not fit")

    post = Post()
    strict = handler(handle, model=Order, retry=Retry(attempts=9), dead_letter="orders.dlt")
    assert await strict.run([record(value=value)], 1, None, post) is None

    ((_, _, error, attempts),) = post.letters
    assert isinstance(error, InvalidRecordError)
    assert text in str(error)
    assert attempts == 1
    assert strict.counters.invalid == 1


async def test_a_batch_that_is_out_of_tries_is_to_be_handled_one_by_one() -> None:
    async def handle(_: list[Record]) -> None:
        raise ValueError("poison")

    post = Post()
    batch = handler(
        handle, batch=10, takes_batches=True, retry=Retry(2, backoff_ms=0), dead_letter="orders.dlt"
    )
    records = [record(offset) for offset in range(5)]
    assert await batch.run(records, 1, None, post) == 0.0
    assert await batch.run(records, 2, None, post) == ONE_BY_ONE
    assert post.letters == []


async def test_a_tombstone_is_none_for_a_model_that_takes_none() -> None:
    seen: list[Order | None] = []

    async def handle(order: Order | None, _: Record) -> None:
        seen.append(order)

    optional = handler(handle, model=Order | None)
    await optional.run([record(value=None)], 1, None, Post())
    await optional.run([record()], 1, None, Post())
    assert seen == [None, Order(id=7)]


async def test_the_cancellation_of_something_awaited_is_a_failure_like_others() -> None:
    async def handle(_: Record) -> None:
        other = asyncio.ensure_future(asyncio.sleep(60))
        other.cancel()
        await other

    post = Post()
    unlucky = handler(handle, retry=Retry(2, backoff_ms=0), dead_letter="orders.dlt")
    assert await tries(unlucky, [record(5)], post) == 2
    ((_, offset, error, attempts),) = post.letters
    assert (offset, attempts) == (5, 2)
    assert isinstance(error, HandlerCancelledError)
    assert isinstance(error.__cause__, asyncio.CancelledError)


async def test_a_plain_function_that_returns_a_coroutine_has_not_handled_the_record() -> None:
    async def really(_: Record) -> None: ...

    def handle(record: Record) -> object:
        return really(record)

    threads = DaemonThreads(1, "orders")
    with pytest.raises(HandlerFailedError, match="make it 'async def'"):
        await handler(handle).run([record()], 1, threads, Post())
    threads.close()


def test_a_generator_is_refused() -> None:
    async def handle(_: Record) -> AsyncIterator[None]:
        yield

    with pytest.raises(ConfigError, match="is a generator"):
        handler(handle)


async def test_stop_iteration_in_a_thread_is_a_failure_like_others() -> None:
    def handle(_: Record) -> None:
        next(iter(()))

    threads, post = DaemonThreads(1, "orders"), Post()
    await handler(handle, dead_letter="orders.dlt").run([record(5)], 1, threads, post)
    threads.close()
    assert len(post.letters) == 1


async def test_the_model_of_a_plain_function_is_validated_in_its_thread() -> None:
    names: list[str] = []

    class Traced(BaseModel):
        def model_post_init(self, _: object) -> None:
            names.append(threading.current_thread().name)

    def handle(_: list[Traced], __: list[Record]) -> None:
        names.append(threading.current_thread().name)

    threads = DaemonThreads(1, "orders")
    batch = handler(handle, model=Traced, batch=10, takes_batches=True)
    await batch.run([record(0), record(1)], 1, threads, Post())
    threads.close()
    assert names == ["orders_0"] * 3


async def test_the_models_of_an_async_batch_let_others_run_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_handlers, "STRETCH_S", -1.0)
    log: list[str] = []

    class Traced(BaseModel):
        def model_post_init(self, _: object) -> None:
            log.append("model")

    async def handle(_: list[Traced], __: list[Record]) -> None:
        log.append("handler")

    async def heart() -> None:
        for _ in range(2):
            log.append("heartbeat")
            await asyncio.sleep(0)

    beating = asyncio.create_task(heart())
    batch = handler(handle, model=Traced, batch=10, takes_batches=True)
    await batch.run([record(n) for n in range(3)], 1, None, Post())
    await beating
    assert log.index("heartbeat") < log.index("handler")
    assert log.count("model") == 3


async def test_each_failed_try_is_a_line_with_the_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def bill(_: Record) -> None:
        raise ConnectionError("the bank is closed")

    unlucky = handler(bill, retry=Retry(2, backoff_ms=0), dead_letter="orders.dlt")
    await tries(unlucky, [record(5)], Post())
    retried, given_up = caplog.records
    for line in (retried, given_up):
        assert "orders-0 at offset 5" in line.getMessage()
        assert "ConnectionError: the bank is closed" in line.getMessage()
        assert line.exc_info is not None and isinstance(line.exc_info[1], ConnectionError)  # noqa: PT018
    assert (retried.levelname, given_up.levelname) == ("WARNING", "ERROR")
    assert "try 1 of 2" in retried.getMessage()
    assert "orders.dlt" in given_up.getMessage()


async def test_failures_without_end_are_a_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    async def bill(_: Record) -> None:
        raise ConnectionError("the bank is closed")

    unlucky = handler(bill, dead_letter="orders.dlt")
    for offset in range(1_000):
        await unlucky.run([record(offset)], 1, None, Post())
    assert len(caplog.records) == LINES


async def test_an_error_whose_text_cannot_be_made_is_a_failure_like_others() -> None:
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    async def bill(_: Record) -> None:
        raise BrokenError

    post = Post()
    await handler(bill, dead_letter="orders.dlt").run([record()], 1, None, post)
    assert len(post.letters) == 1


@pytest.mark.parametrize(
    ("lanes", "same", "other"),
    [
        ("partition", (record(0, key=b"a"), record(1, key=b"b")), None),
        ("key", (record(0, key=b"a"), record(1, key=b"a")), record(2, key=b"b")),
        ("key", (record(0, key=None), record(1, key=None)), record(2, key=b"b")),
        ("none", (record(0), record(0)), record(1)),
    ],
)
def test_lanes(lanes: str, same: tuple[Record, Record], other: Record | None) -> None:
    async def handle(_: Record) -> None: ...

    key_of = handler(handle, lanes=lanes).key_of
    if other is None:
        assert key_of is None, "there is one queue for all"
        return
    assert key_of is not None
    assert key_of(same[0]) == key_of(same[1]) != key_of(other)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"lanes": "topic"}, ValueError, "lanes='topic'.*partition, key, none"),
        ({"concurrency": 0}, ValueError, "concurrency=0"),
        ({"batch": 0}, ValueError, "max_records=0"),
        ({"dead_letter": "orders"}, ValueError, "a loop"),
        ({"model": Order}, TypeError, "the model and the record"),
    ],
)
def test_a_bad_option_is_refused_when_the_handler_is_registered(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    async def handle(_: Record) -> None: ...

    with pytest.raises(error, match=text):
        handler(handle, **options)


async def test_letters_are_routed_by_the_class_of_the_error() -> None:
    errors: list[Exception] = [KeyError("k"), ConnectionError("c"), ValueError("v")]

    async def handle(_: Record) -> None:
        raise errors[0]

    routes = {KeyError: "keys", OSError: "network"}
    made, post = handler(handle, dead_letter=routes), Post()
    assert made.letter_topics == ("keys", "network")
    for _ in range(2):
        assert await tries(made, [record()], post) == 1
        errors.pop(0)
    assert [topic for topic, *_ in post.letters] == ["keys", "network"]
    with pytest.raises(HandlerFailedError):
        await tries(made, [record()], post)

    async def take(order: Order, _: Record) -> None: ...

    invalid = handler(take, model=Order, dead_letter={InvalidRecordError: "invalid", Exception: "rest"})
    await tries(invalid, [record(value=b"?")], post)
    assert post.letters[-1][0] == "invalid"


async def test_a_call_that_takes_too_long_is_cancelled_and_tried_again() -> None:
    cancelled: list[int] = []

    async def handle(record: Record) -> None:
        try:
            await asyncio.sleep(60 if len(cancelled) < 2 else 0)
        except asyncio.CancelledError:
            cancelled.append(record.offset)
            raise

    made = handler(handle, timeout_ms=5, retry=Retry(attempts=3, backoff_ms=0))
    assert await tries(made, [record(4)], Post()) == 3
    assert cancelled == [4, 4]


async def test_a_timeout_of_the_handlers_own_is_not_taken_for_ours() -> None:
    async def handle(_: Record) -> None:
        raise TimeoutError("the database's")

    post = Post()
    await tries(handler(handle, timeout_ms=60_000, dead_letter="dlt"), [record()], post)
    assert str(post.letters[0][2]) == "the database's"


async def test_a_batch_that_takes_too_long_is_handled_one_by_one() -> None:
    async def handle(records: list[Record]) -> None:
        await asyncio.sleep(60 * (len(records) - 1))

    made = handler(handle, timeout_ms=5, batch=10, takes_batches=True, dead_letter="dlt")
    assert await made.run([record(0), record(1)], 1, None, Post()) == ONE_BY_ONE
    assert await made.run([record(0)], 1, None, Post()) is None
