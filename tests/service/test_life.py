"""What is around a service's membership: lifespans, values by type, probes that want progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kohort.consumer.record import Record
from kohort.service import ConsumerService
from kohort.service.run import engine
from tests.service.fakes import ORDERS, FakeConsumer, make_service, serving, until

pytestmark = pytest.mark.usefixtures("fake_consumer")


class Database:
    """Something that handlers work with."""

    def __init__(self) -> None:
        self.rows: list[int] = []


async def test_a_lifespan_is_around_the_membership_and_handlers_get_its_value() -> None:
    service = make_service()
    database = Database()
    log: list[str] = []
    service.provide(log)

    @service.lifespan
    async def open_database(log: list) -> AsyncIterator[Database]:  # type: ignore[type-arg]
        log.append("open")
        yield database
        log.append(f"close after {FakeConsumer.made.log[-1]!r}")

    @service.handler("orders")
    async def bill(record: Record, db: Database, *, factor: int = 10) -> None:
        db.rows.append(record.offset * factor)

    async with serving(service) as consumer:
        assert log == ["open"]
        consumer.give(1, 2)
        await until(lambda: len(consumer.done_offsets) == 2)
    assert database.rows == [10, 20]
    assert log == ["open", "close after 'committed 2 and left'"]


async def test_a_lifespan_that_fails_keeps_the_service_from_joining() -> None:
    service = make_service()

    @service.lifespan
    async def open_database() -> AsyncIterator[Database]:
        if service.group:
            raise OSError("no database")
        yield Database()

    @service.handler("orders")
    async def bill(record: Record, db: Database) -> None:
        raise AssertionError(f"never called: {record} {db}")

    with pytest.raises(OSError, match="no database"):
        await service.serve()
    assert FakeConsumer.made.log == []


async def test_readyz_is_red_when_a_joined_member_makes_no_progress_although_there_is_lag(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FakeConsumer, "lag", lambda _: {ORDERS[0]: 7})
    service = make_service(health_port=0, stalled_after_ms=50)

    @service.handler("orders")
    async def bill(record: Record) -> None:
        raise AssertionError(f"nothing is delivered: {record}")

    async with serving(service):
        answer, wanted = "", "7 records wait and none has been finished"
        async with asyncio.timeout(60):
            # on a busy machine it is red before for the poll that is late
            while wanted not in answer:
                await asyncio.sleep(0.05)
                answer = await _get(service, "/readyz")
        assert "503" in answer
        assert "503" in await _get(service, "/healthz")
        lag = 'kafka_consumer_fetch_manager_records_lag{group="billing",partition="0",topic="orders"} 7.0'
        assert lag in await _get(service, "/metrics")


async def test_a_stop_while_no_broker_answers_ends_the_service_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = _unreachable(monkeypatch)
    log: list[str] = []

    @service.lifespan
    async def around() -> AsyncIterator[None]:
        log.append("open")
        yield
        log.append("close")

    task = asyncio.create_task(service.serve())
    await until(lambda: log == ["open"])
    service.stop()
    await asyncio.wait_for(task, 30)
    assert log == ["open", "close"]
    assert FakeConsumer.made.log == [], "it has never joined, so there is nothing to leave"


async def test_a_stop_that_comes_after_the_end_is_none_of_the_next_run() -> None:
    service = make_service()
    handled: list[int] = []

    @service.handler("orders")
    async def bill(record: Record) -> None:
        handled.append(record.offset)

    async with serving(service):
        """It is stopped at the end."""
    service.stop()
    async with serving(service) as consumer:
        consumer.give(1)
        await until(lambda: handled == [1])


async def test_a_stop_before_the_first_run_ends_it_at_once() -> None:
    service = make_service()
    service.handler("orders")(lambda _: None)
    service.stop()
    await asyncio.wait_for(service.serve(), 30)


async def test_a_stop_ends_a_lifespan_that_waits_for_its_database() -> None:
    service = make_service()
    opening = asyncio.Event()

    @service.lifespan
    async def database() -> AsyncIterator[None]:
        opening.set()
        await asyncio.sleep(600)
        yield

    @service.handler("orders")
    async def bill(_: Record) -> None: ...

    task = asyncio.create_task(service.serve())
    await opening.wait()
    service.stop()
    await asyncio.wait_for(task, 30)
    assert FakeConsumer.made.log == []


async def test_a_timeout_of_the_lifespan_itself_is_its_own_error() -> None:
    service = make_service()

    @service.lifespan
    async def database() -> AsyncIterator[None]:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(600)
        yield

    @service.handler("orders")
    async def bill(_: Record) -> None: ...

    with pytest.raises(TimeoutError):
        await service.serve()


async def test_a_lifespan_that_fails_is_a_line_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    service = make_service()

    @service.lifespan
    async def database() -> AsyncIterator[None]:
        int("not a number")
        yield

    @service.handler("orders")
    async def bill(_: Record) -> None: ...

    with pytest.raises(ValueError, match="invalid literal"):
        await service.serve()
    (line,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert line.exc_info is not None
    assert isinstance(line.exc_info[1], ValueError)


async def test_the_address_of_the_probes_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "kohort")
    service = make_service(health_port=0)

    @service.handler("orders")
    async def bill(_: Record) -> None: ...

    async with serving(service):
        assert f"http://127.0.0.1:{service.health_port}" in caplog.text


def test_the_settings_may_have_kafka_pythons_names() -> None:
    service = ConsumerService(bootstrap_servers="localhost:9092", group_id="billing")
    assert service.group == "billing"


def _unreachable(monkeypatch: pytest.MonkeyPatch) -> ConsumerService:
    class Unreachable(FakeConsumer):
        def __init__(self, *topics: str, **config: Any) -> None:
            super().__init__(*topics, **config)
            self.reachable.clear()

    monkeypatch.setattr(engine, "AsyncGroupConsumer", Unreachable)
    service = make_service()

    @service.handler("orders")
    async def bill(_: Record) -> None: ...

    return service


async def _get(service: ConsumerService, path: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", service.health_port)
    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer
