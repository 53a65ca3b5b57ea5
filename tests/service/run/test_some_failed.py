"""Batches of which some records failed.

Covers: service/handlers/handler.py, service/run/queues.py.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kohort.consumer.record import Record
from kohort.service import FailedRecordsError, HandlerFailedError, Retry
from kohort.service.letters import deadletter
from tests.service.fakes import ORDERS, FakeConsumer, make_service, serving, until

pytestmark = pytest.mark.usefixtures("fake_consumer")


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str, int]]:
    sent: list[tuple[str, int, str, int]] = []

    async def send(
        _: Any, topic: str, record: Record, error: BaseException, attempts: int, due_ms: None = None
    ) -> None:
        assert due_ms is None
        sent.append((topic, record.offset, str(error), attempts))

    monkeypatch.setattr(deadletter.DeadLetters, "send", send)
    return sent


def offsets(consumer: FakeConsumer) -> list[int]:
    return [offset for _, _, offset in consumer.done_offsets]


async def test_only_those_that_failed_are_tried_again_and_then_set_aside(
    letters: list[tuple[str, int, str, int]],
) -> None:
    service, calls = make_service(), list[list[int]]()

    @service.batch_handler("orders", retry=Retry(attempts=3, backoff_ms=0), dead_letter="orders.dlt")
    async def bill(records: list[Record]) -> None:
        calls.append([record.offset for record in records])
        bad = {record: OSError(f"no {record.offset}") for record in records if record.offset in (2, 4)}
        if len(calls) == 2:
            del bad[records[1]]
        if bad:
            raise FailedRecordsError(bad)

    async with serving(service) as consumer:
        consumer.give(*range(6))
        await until(lambda: len(consumer.done_offsets) == 6)
        consumer.give(6)
        await until(lambda: len(consumer.done_offsets) == 7)
    assert calls == [[0, 1, 2, 3, 4, 5], [2, 4], [2], [6]]
    assert offsets(consumer) == [0, 1, 3, 5, 4, 2, 6]
    assert letters == [("orders.dlt", 2, "no 2", 3)]


async def test_without_dead_letters_the_service_stops_and_what_is_beyond_the_failure_is_done() -> None:
    service = make_service()

    @service.batch_handler("orders")
    async def bill(records: list[Record]) -> None:
        raise FailedRecordsError({records[1]: OSError("full")})

    task = asyncio.create_task(service.serve())
    await until(lambda: hasattr(FakeConsumer, "made"))
    consumer = FakeConsumer.made
    consumer.give(*range(4))
    with pytest.raises(HandlerFailedError, match=r"orders-0 at offset 1 .*full"):
        await asyncio.wait_for(task, 30)
    assert offsets(consumer) == [0, 2, 3]


async def test_each_record_goes_by_its_own_error(letters: list[tuple[str, int, str, int]]) -> None:
    service, calls = make_service(), list[list[int]]()

    @service.batch_handler(
        "orders",
        retry=Retry(attempts=9, backoff_ms=0, retry_on=(OSError,)),
        dead_letter={ValueError: "orders.bad"},
    )
    def bill(records: list[Record]) -> None:
        calls.append([record.offset for record in records])
        if len(calls) == 1:
            raise FailedRecordsError({records[0]: ValueError("bad"), records[2]: OSError("full")})

    async with serving(service) as consumer:
        consumer.give(*range(4))
        await until(lambda: len(consumer.done_offsets) == 4)
    assert calls == [[0, 1, 2, 3], [2]]
    assert letters == [("orders.bad", 0, "bad", 1)]


async def test_records_of_another_batch_are_an_error_of_the_whole_batch(
    letters: list[tuple[str, int, str, int]],
) -> None:
    service = make_service()

    @service.batch_handler("orders", dead_letter="orders.dlt")
    async def bill(records: list[Record]) -> None:
        copies = [record._replace(key=b"x") for record in records]
        raise FailedRecordsError({copies[0]: OSError("full")})

    async with serving(service) as consumer:
        consumer.give(0, 1)
        await until(lambda: len(consumer.done_offsets) == 2)
    assert [(topic, offset) for topic, offset, _, _ in letters] == [("orders.dlt", 0), ("orders.dlt", 1)]


async def test_a_revocation_while_some_wait_for_their_next_try_leaves_these_undone() -> None:
    service = make_service()

    @service.batch_handler("orders", retry=Retry(attempts=3, backoff_ms=30_000, max_backoff_ms=30_000))
    async def bill(records: list[Record]) -> None:
        raise FailedRecordsError({records[1]: OSError("full")})

    async with serving(service) as consumer:
        consumer.give(*range(4))
        await until(lambda: len(consumer.done_offsets) == 3)
        await asyncio.wait_for(consumer.revoking([ORDERS[0]]), 10)
    assert offsets(consumer) == [0, 2, 3]


def test_it_has_an_exception_for_at_least_one_record() -> None:
    with pytest.raises(ValueError, match="without a record"):
        FailedRecordsError({})
    record: Any = Record("orders", 0, 1, 0, None, b"")
    wrong: tuple[Any, ...] = ({record: None}, {record: "bad"}, {record.offset: OSError()})
    for failed in wrong:
        with pytest.raises(TypeError, match="takes exceptions by Record, not a "):
            FailedRecordsError(failed)
