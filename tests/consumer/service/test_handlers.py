"""One handler: what it is called with, and what becomes of a record it cannot cope with."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import BaseModel

from kohort.consumer.record import Record
from kohort.consumer.service import HandlerFailedError, InvalidRecordError, Retry
from kohort.consumer.service._handlers import Handler, make_handler


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

    async def __call__(self, topic: str, record: Record, error: BaseException, attempts: int) -> None:
        self.letters.append((topic, record.offset, error, attempts))


async def tries(handler: Handler, records: list[Record], post: Post) -> int:
    """Run until finished; how many tries it took."""
    attempt = 1
    while (delay_s := await handler.run(records, attempt, None, post)) is not None:
        await asyncio.sleep(delay_s)
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

    with ThreadPoolExecutor(1, thread_name_prefix="orders") as threads:
        await handler(handle).run([record()], 1, threads, Post())
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


async def test_of_a_failed_batch_only_the_records_to_blame_become_dead_letters() -> None:
    handled: list[int] = []

    async def handle(records: list[Record]) -> None:
        if any(record.offset in (1, 3) for record in records):
            raise ValueError("poison")
        handled.extend(record.offset for record in records)

    post = Post()
    batch = handler(
        handle, batch=10, takes_batches=True, retry=Retry(2, backoff_ms=0), dead_letter="orders.dlt"
    )
    await tries(batch, [record(offset) for offset in range(5)], post)

    assert handled == [0, 2, 4]
    assert [(offset, attempts) for _, offset, _, attempts in post.letters] == [(1, 2), (3, 2)]


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

    lane_of = handler(handle, lanes=lanes).lane_of
    assert lane_of(same[0]) == lane_of(same[1])
    if other is not None:
        assert lane_of(other) != lane_of(same[0])


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
