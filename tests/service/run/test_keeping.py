"""A service within an application: it begins again when it has failed, and ends with the application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kohort.consumer import ConfigError, Record
from kohort.service import Services
from kohort.service.handlers.retry import Retry
from kohort.service.run import keeping
from tests.service.fakes import FakeConsumer, make_service, until

pytestmark = pytest.mark.usefixtures("fake_consumer")


@pytest.mark.parametrize("several", [False, True])
async def test_it_begins_again_after_an_error_and_says_what_is_wrong_meanwhile(
    several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "PAUSES", Retry(backoff_ms=20, max_backoff_ms=20))
    service = make_service()
    handled: list[int] = []

    @service.handler("orders")
    async def bill(record: Record) -> None:
        if record.offset == 1 and not handled:
            handled.append(record.offset)
            raise ConnectionError("the bank is closed")
        handled.append(record.offset)

    application = Services(service) if several else service
    assert "does not run" in (application.complaint() or "")
    async with application.keep_serving():
        await until(lambda: service.ready)
        assert application.complaint() is None
        first = FakeConsumer.made
        first.give(1)
        await until(lambda: "the bank is closed" in (application.complaint() or ""))
        assert not service.ready
        await until(lambda: FakeConsumer.made is not first and service.ready)
        assert application.complaint() is None
        FakeConsumer.made.give(1)
        await until(lambda: handled == [1, 1])
    assert FakeConsumer.made.log[-1] == "committed 1 and left"
    assert not service.ready


@pytest.mark.parametrize("several", [False, True])
async def test_an_application_that_ends_at_once_can_begin_again(several: bool) -> None:
    service = make_service()

    @service.handler("orders")
    async def bill(_: Record) -> None: ...

    application = Services(service) if several else service
    async with application.keep_serving():
        pass
    async with application.keep_serving():
        await until(lambda: service.ready)


async def test_the_end_of_the_application_does_not_wait_for_the_next_beginning() -> None:
    service = make_service()

    @service.lifespan
    async def database() -> AsyncIterator[None]:
        if service.group:
            raise OSError("no database")
        yield

    service.handler("orders")(lambda _: None)
    async with asyncio.timeout(20), service.keep_serving():
        await until(lambda: "no database" in (service.complaint() or ""))


async def test_a_wrong_configuration_is_an_error_at_once_or_at_the_end() -> None:
    service = make_service()
    with pytest.raises(ConfigError, match="no handler"):
        async with service.keep_serving():
            pytest.fail("it has begun")

    @service.lifespan
    async def database() -> AsyncIterator[None]:
        if service.group:
            raise ConfigError("database=None: name one")
        yield

    service.handler("orders")(lambda _: None)
    with pytest.raises(ConfigError, match="name one"):
        async with service.keep_serving():
            await until(lambda: "name one" in (service.complaint() or ""))
