"""Middlewares: callables around handlers.

Covers: service/handlers/handler.py, service/handlers/registration.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kohort.consumer.record import Record
from kohort.service import HandlerFailedError, Retry, SignatureError
from tests.service.fakes import FakeConsumer, make_service, serving, until

Next = Callable[[Any], Awaitable[Any]]


pytestmark = pytest.mark.usefixtures("fake_consumer")


async def test_they_are_around_every_handler_the_first_one_outermost() -> None:
    service, log = make_service(), list[str]()

    def around(name: str) -> Callable[[Any, Next], Awaitable[Any]]:
        async def middleware(given: Any, call_next: Next) -> Any:
            log.append(f"{name} {len(given) if isinstance(given, list) else given.offset}")
            try:
                return await call_next(given)
            finally:
                log.append(f"{name} ends")

        return middleware

    service.middleware(around("first"))

    @service.handler("orders", middlewares=[around("own")])
    def bill(record: Record) -> None:
        log.append(f"bill {record.offset}")

    @service.batch_handler("refunds")
    async def refund(records: list[Record]) -> None:
        log.append(f"refund {len(records)}")

    service.middleware(around("second"))
    async with serving(service) as consumer:
        consumer.give(4)
        await until(lambda: len(consumer.done_offsets) == 1)
        consumer.give(0, 1, 2, topic="refunds")
        await until(lambda: len(consumer.done_offsets) == 4)
    assert log[:7] == ["first 4", "second 4", "own 4", "bill 4", "own ends", "second ends", "first ends"]
    assert log[7:] == ["first 3", "second 3", "refund 3", "second ends", "first ends"]


async def test_one_that_never_goes_on_has_dealt_with_the_record() -> None:
    service, seen = make_service(), list[int]()

    @service.middleware
    async def even_only(record: Record, call_next: Next) -> Any:
        return await call_next(record) if record.offset % 2 == 0 else None

    @service.handler("orders")
    async def bill(record: Record) -> None:
        seen.append(record.offset)

    async with serving(service) as consumer:
        consumer.give(0, 1, 2)
        await until(lambda: len(consumer.done_offsets) == 3)
    assert seen == [0, 2]


async def test_one_that_raises_fails_the_record_and_one_may_deal_with_the_handlers_error() -> None:
    service, tries = make_service(), list[int]()

    @service.middleware
    async def forgive(record: Record, call_next: Next) -> Any:
        try:
            return await call_next(record)
        except LookupError:
            return None

    @service.middleware
    async def fragile(record: Record, call_next: Next) -> Any:
        tries.append(record.offset)
        if record.offset == 1:
            raise OSError("no route")
        return await call_next(record)

    @service.handler("orders", retry=Retry(attempts=2, backoff_ms=0))
    async def bill(record: Record) -> None:
        raise LookupError(record.offset)

    task = asyncio.create_task(service.serve())
    await until(lambda: hasattr(FakeConsumer, "made"))
    consumer = FakeConsumer.made
    consumer.give(0, 1)
    with pytest.raises(HandlerFailedError, match=r"offset 1 .*no route"):
        await asyncio.wait_for(task, 30)
    assert tries == [0, 1, 1]
    assert consumer.done_offsets == [("orders", 0, 0)]


async def test_one_that_hangs_is_within_the_handlers_timeout() -> None:
    service = make_service()

    @service.middleware
    async def stuck(_: Record, __: Next) -> None:
        await asyncio.sleep(600)

    @service.handler("orders", timeout_ms=20)
    async def bill(record: Record) -> None: ...

    task = asyncio.create_task(service.serve())
    await until(lambda: hasattr(FakeConsumer, "made"))
    FakeConsumer.made.give(0)
    with pytest.raises(HandlerFailedError, match="longer than timeout_ms=20"):
        await asyncio.wait_for(task, 30)


async def test_it_may_go_on_with_a_changed_record() -> None:
    service, seen = make_service(), list[Any]()

    @service.middleware
    async def decrypt(record: Record, call_next: Next) -> Any:
        return await call_next(record._replace(value=(record.value or b"")[::-1]))

    @service.handler("orders", model=list[int])
    async def bill(model: list[int], record: Record) -> None:
        seen.append((model, record.value))

    async with serving(service) as consumer:
        consumer.give(0, value=b"]2,1[")
        await until(lambda: consumer.done_offsets == [("orders", 0, 0)])
    assert seen == [([1, 2], b"[1,2]")]


@pytest.mark.parametrize("wrong", [lambda _, __: None, "text"])
def test_it_must_be_async(wrong: Any) -> None:
    with pytest.raises(SignatureError, match="async def"):
        make_service().middleware(wrong)


def test_its_signature_is_checked() -> None:
    async def middleware(record: Record) -> None: ...

    with pytest.raises(SignatureError, match="call_next"):
        make_service().handler("orders", middlewares=[middleware])(print)  # type: ignore[list-item]
    with pytest.raises(SignatureError, match="call_next"):
        make_service().middleware(middleware)  # type: ignore[type-var]
