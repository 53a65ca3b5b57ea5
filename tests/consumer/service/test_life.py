"""What is around a service's membership: lifespans, values by type, probes that want progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kohort.consumer.record import Record
from kohort.consumer.service import ConsumerService, _engine
from tests.consumer.service.fakes import ORDERS, FakeConsumer, make_service, serving, until


@pytest.fixture(autouse=True)
def _fake_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_engine, "AsyncGroupConsumer", FakeConsumer)


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
        async with asyncio.timeout(60):
            while "503" not in (answer := await _get(service, "/readyz")):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
        assert "7 records wait and none has been finished" in answer
        assert "503" in await _get(service, "/healthz")
        lag = 'kafka_consumer_fetch_manager_records_lag{group="billing",partition="0",topic="orders"} 7.0'
        assert lag in await _get(service, "/metrics")


async def _get(service: ConsumerService, path: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", service.health_port)
    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer
