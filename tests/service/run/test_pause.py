"""Pause and resume of one handler.

Covers: service/_service.py, service/run/queues.py.
"""

from __future__ import annotations

import asyncio

import pytest

from kohort.client.errors import ConfigError
from kohort.consumer.record import Record
from kohort.service import ConsumerService, Retry
from tests.service.fakes import ORDERS, make_service, serving, until

pytestmark = pytest.mark.usefixtures("fake_consumer")


class Orders:
    """A service whose calls the test lets end, one by one."""

    def __init__(self, **options: object) -> None:
        self.service: ConsumerService = make_service(drain_timeout_ms=5_000)
        self.begun: list[int] = []
        self.gate = asyncio.Semaphore(0)

        @self.service.handler("orders", concurrency=1, **options)  # type: ignore[arg-type]
        async def bill(record: Record) -> None:
            self.begun.append(record.offset)
            await self.gate.acquire()

        @self.service.handler("refunds")
        async def refund(record: Record) -> None: ...

        self.bill = bill


async def test_a_paused_handler_begins_no_call_and_others_go_on() -> None:
    orders = Orders()
    async with serving(orders.service) as consumer:
        consumer.give(0, 1, 2)
        await until(lambda: orders.begun == [0])
        orders.service.pause(orders.bill)
        assert orders.service.paused == [orders.bill.__qualname__]
        orders.gate.release()
        consumer.give(5, topic="refunds")
        await until(lambda: sorted(consumer.done_offsets) == [("orders", 0, 0), ("refunds", 0, 5)])
        await asyncio.sleep(0.01)
        assert orders.begun == [0]
        orders.service.resume(orders.bill.__qualname__)
        orders.gate.release()
        orders.gate.release()
        await until(lambda: len(consumer.done_offsets) == 4)
    assert orders.service.paused == []


async def test_while_its_session_is_in_doubt_a_service_begins_nothing() -> None:
    orders = Orders()
    async with serving(orders.service) as consumer:
        consumer.give(0, 1)
        await until(lambda: orders.begun == [0])
        consumer.parts.delivery.halting(True)
        orders.service.pause(orders.bill)
        orders.service.resume(orders.bill)
        orders.gate.release()
        await until(lambda: consumer.done_offsets == [("orders", 0, 0)])
        await asyncio.sleep(0.01)
        assert orders.begun == [0]
        consumer.parts.delivery.halting(False)
        orders.gate.release()
        await until(lambda: orders.begun == [0, 1])


async def test_what_was_lost_in_doubt_is_not_begun_at_its_end() -> None:
    orders = Orders()
    async with serving(orders.service) as consumer:
        consumer.give(0, 1)
        await until(lambda: orders.begun == [0])
        consumer.parts.delivery.halting(True)
        orders.gate.release()
        await until(lambda: consumer.done_offsets == [("orders", 0, 0)])
        consumer.owned = []
        consumer.parts.delivery.halting(False)
        await asyncio.sleep(0.01)
        assert orders.begun == [0]


async def test_a_handler_that_is_paused_stays_so_when_the_session_goes_on() -> None:
    orders = Orders()
    orders.service.pause(orders.bill)
    async with serving(orders.service) as consumer:
        consumer.give(0)
        consumer.parts.delivery.halting(True)
        consumer.parts.delivery.halting(False)
        await asyncio.sleep(0.01)
        assert orders.begun == []


async def test_while_it_is_paused_no_more_than_the_backlog_is_taken() -> None:
    orders = Orders()
    orders.service.pause(orders.bill)
    async with serving(orders.service) as consumer:
        consumer.give(*range(3_000))
        await until(lambda: consumer.now_paused == {ORDERS[0]})
        orders.gate = asyncio.Semaphore(3_000)
        orders.service.resume(orders.bill)
        await until(lambda: not consumer.now_paused)
        await until(lambda: len(consumer.done_offsets) == 3_000)


async def test_a_paused_handler_is_no_standstill() -> None:
    orders = Orders()
    orders.service.pause(orders.bill)
    async with serving(orders.service) as consumer:
        consumer.lag = lambda: {ORDERS[0]: 5}  # type: ignore[method-assign]
        consumer.give(0)
        engine = orders.service._engine
        assert engine is not None
        await until(lambda: engine.snapshot(True).handlers[0][1] == 1)
        for idle in (True, False):
            engine._observe_progress(1.0, idle=idle)
            assert engine._progress.waiting == 0


@pytest.mark.parametrize("lanes", ["partition", "none"])
async def test_a_revocation_does_not_wait_for_what_a_paused_handler_has_not_begun(lanes: str) -> None:
    orders = Orders(lanes=lanes)
    async with serving(orders.service) as consumer:
        consumer.give(0, 1, 2)
        await until(lambda: orders.begun == [0])
        orders.service.pause(orders.bill)
        await asyncio.sleep(0)
        revoked = asyncio.create_task(consumer.revoking([ORDERS[0]]))
        orders.gate.release()
        await asyncio.wait_for(revoked, 4)
        assert consumer.done_offsets == [("orders", 0, 0)]
        consumer.give(7, partition=1)
        orders.service.resume(orders.bill)
        orders.gate.release()
        await until(lambda: ("orders", 1, 7) in consumer.done_offsets)
    assert orders.begun == [0, 7]


async def test_a_pause_during_a_drain_ends_the_wait_for_records_before_one_that_began() -> None:
    orders = Orders(lanes="key")
    async with serving(orders.service) as consumer:
        # two keys: the second record of the first one is before one that has begun
        consumer.waiting.put_nowait(
            [Record("orders", 0, n, 0, key, b"") for n, key in enumerate((b"a", b"a", b"b"))]
        )
        await until(lambda: orders.begun == [0])
        orders.gate.release()
        await until(lambda: len(orders.begun) == 2)
        revoked = asyncio.create_task(consumer.revoking([ORDERS[0]]))
        await asyncio.sleep(0)
        orders.service.pause(orders.bill)
        await asyncio.sleep(0.01)
        orders.gate.release()
        await asyncio.wait_for(revoked, 4)
        assert len(orders.begun) == 2
        orders.service.resume(orders.bill)


async def test_a_pause_during_shutdown_and_what_waits_for_another_try() -> None:
    service = make_service(drain_timeout_ms=60_000)
    tries = 0

    @service.handler("orders", retry=Retry(attempts=3, backoff_ms=1_000, jitter=0))
    async def bill(_: Record) -> None:
        nonlocal tries
        tries += 1
        raise ConnectionError("the bank is closed")

    async with asyncio.timeout(20):
        async with serving(service) as consumer:
            consumer.give(0)
            await until(lambda: tries == 1)
            service.pause(bill)
    assert tries == 1
    assert consumer.done_offsets == []


def test_only_handlers_of_the_service_are_paused() -> None:
    with pytest.raises(ConfigError, match="no handler 'bill': it has none"):
        make_service().pause("bill")
