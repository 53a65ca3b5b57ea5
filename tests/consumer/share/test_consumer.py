"""The share consumer without a broker: what is delivered, and what is refused.

Covers: consumer/share/consumer.py.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from threading import get_ident
from typing import Any

import pytest

from kohort.client import ConfigError, ConsumerClosedError
from kohort.client.waiting import now_ms
from kohort.consumer import ShareConsumer
from kohort.consumer.errors import ForkedError
from kohort.consumer.events import LoopBlocked
from kohort.consumer.share.records import RecordLock, ShareRecord, WrongConsumerError
from kohort.protocol import AcknowledgeType
from tests.consumer.share.records import PLACE
from tests.consumer.virtual_time import run_in_virtual_time
from tests.waiting import until


def consumer_of(*topics: str, **config: Any) -> ShareConsumer:
    return ShareConsumer(*topics, bootstrap="localhost:9092", group="billing", **config)


async def test_a_record_whose_lock_ended_while_it_waited_is_given_back_and_not_delivered() -> None:
    consumer = consumer_of("orders")
    ends = (now_ms() - 1, now_ms() + 60_000)
    late, fresh = (
        ShareRecord(consumer, PLACE, RecordLock(0, end), "orders", offset, 0, None, b"", (), 1)
        for offset, end in enumerate(ends)
    )
    consumer._locks.take(PLACE, [late, fresh], (), now_ms())
    consumer._on_records([late, fresh], 0)
    consumer._started = True
    assert await consumer.getmany(timeout_ms=0) == [fresh]
    assert late.verdict is AcknowledgeType.RELEASE
    assert (consumer.state.locked, consumer.state.unanswered) == (1, 1)


async def test_what_blocks_the_event_loop_is_named_while_it_lasts_and_an_event_afterwards(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kohort.consumer.share.consumer._LATE_MS", 20.0)
    consumer = ShareConsumer("orders", bootstrap="localhost:1", group="billing")

    async def connect() -> None: ...

    async def hold_up() -> None:
        """Block the loop until that is told, and for a little longer: what is over by then is no event."""
        ends = time.monotonic() + 60
        while "hold_up (test_consumer.py:" not in caplog.text and time.monotonic() < ends:
            time.sleep(0.001)  # noqa: ASYNC251 - this is the fault
        time.sleep(0.1)  # noqa: ASYNC251 - and this is

    monkeypatch.setattr(consumer.cluster, "connect", connect)
    told: list[object] = []
    consumer.events.listen(told.append)
    await consumer.start()
    try:
        await asyncio.sleep(0.05)
        await asyncio.create_task(hold_up())
        await until(lambda: any(isinstance(each, LoopBlocked) and "hold_up" in each.by for each in told))
    finally:
        await consumer.close(timeout_ms=1)
    assert "group billing: the event loop has been blocked by " in caplog.text


def record_of(consumer: ShareConsumer, offset: int = 0) -> ShareRecord:
    lock = RecordLock(now_ms(), now_ms() + 60_000)
    record = ShareRecord(consumer, PLACE, lock, "orders", offset, 0, None, b"", (), 1)
    consumer._locks.take(PLACE, [record], (), now_ms())
    return record


async def test_what_is_said_beside_the_event_loop_is_refused_in_words_and_can_be_said_on_it() -> None:
    consumer = consumer_of("orders")
    consumer._loop = asyncio.get_running_loop()
    record = record_of(consumer)

    def on_another_loop() -> None:
        async def accept() -> None:
            record.accept()

        asyncio.run(accept())

    for call in (record.accept, record.renew, lambda: consumer.release([record]), on_another_loop):
        with pytest.raises(WrongConsumerError, match=r"call_soon_threadsafe.*BlockingShareConsumer"):
            await asyncio.to_thread(call)
    for work in (consumer.close, consumer.flush):
        with pytest.raises(WrongConsumerError, match="used on its event loop"):
            await asyncio.to_thread(asyncio.run, work())
    record.accept()
    assert consumer.state.unanswered == 1


def test_in_a_forked_child_the_fork_is_named() -> None:
    consumer = consumer_of("orders")
    consumer._process -= 1
    with pytest.raises(ForkedError):
        consumer.accept([])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_what_a_record_says_in_a_forked_child_is_refused_also_when_something_was_noted_just_before() -> None:
    consumer = consumer_of("orders")

    async def fork() -> int:
        consumer._loop, consumer._thread_id = asyncio.get_running_loop(), get_ident()
        first, second = record_of(consumer, 0), record_of(consumer, 1)
        first.accept()
        child = os.fork()
        if not child:
            with suppress(BaseException):
                try:
                    second.accept()
                except ForkedError:
                    os._exit(0)
            os._exit(1)
        second.accept()
        assert consumer.state.unanswered == 2
        return child

    assert os.waitpid(asyncio.run(fork()), 0)[1] == 0


async def test_what_headers_have_counts_among_the_bytes_that_wait() -> None:
    consumer = consumer_of("orders", fetch_max_bytes=1_000)
    records = [record_of(consumer, offset) for offset in range(3)]
    for record in records:
        record.headers = [("trace", b"x" * 500)]
    consumer._on_records(records, 5_000)
    assert consumer._count_buffered() == (3, 3 * 505)


async def test_records_of_another_consumer_are_refused_before_anything_is_said() -> None:
    consumer, other = consumer_of("orders"), consumer_of("orders")
    own, foreign = record_of(consumer), record_of(other)
    for call in (consumer.accept, consumer.renew):
        with pytest.raises(WrongConsumerError, match="orders-0@0 was delivered by another consumer"):
            call([own, foreign])
    nothing: list[Any] = ["orders"]
    with pytest.raises(TypeError, match="'orders' is no record of a share consumer"):
        consumer.accept([own, *nothing])
    assert (own.verdict, foreign.verdict) == (None, None)


async def test_a_second_close_waits_for_the_first_and_records_are_lost_then() -> None:
    consumer = consumer_of("orders")
    consumer._started = True
    record = record_of(consumer)
    first = asyncio.create_task(consumer.close(drain_timeout_ms=60_000))
    second = asyncio.create_task(consumer.close())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not second.done()
    first.cancel()
    await second
    assert record.lost
    record.accept()


async def test_several_tasks_may_iterate_and_leave_off_and_each_record_comes_once() -> None:
    consumer = consumer_of("orders")
    consumer._started = True
    records = [record_of(consumer, offset) for offset in range(400)]
    consumer._on_records(records, 0)
    got: list[ShareRecord] = []

    async def read(most: int) -> None:
        async for record in consumer:
            got.append(record)
            record.accept()
            if (most := most - 1) == 0:
                break
            if record.offset % 3 == 0:
                await asyncio.sleep(0)

    await asyncio.gather(*(read(40) for _ in range(5)))
    waits = asyncio.create_task(read(201))
    await until(lambda: len(got) == 400)
    waits.cancel()
    await asyncio.gather(waits, return_exceptions=True)
    assert sorted(record.offset for record in got) == list(range(400))
    consumer._on_records([last := record_of(consumer, 400)], 0)
    assert await anext(consumer) is last


async def test_records_that_come_while_a_close_drains_are_given_back_and_not_waited_for() -> None:
    consumer = consumer_of("orders")
    consumer._started = True
    work = record_of(consumer)
    closing = asyncio.create_task(consumer.close(drain_timeout_ms=60_000))
    await asyncio.sleep(0)
    late = record_of(consumer, 1)
    consumer._on_records([late], 0)
    assert late.verdict is AcknowledgeType.RELEASE
    work.accept()
    await asyncio.wait_for(closing, 30)
    assert (consumer.state.locked, consumer.state.buffered) == (0, 0)


def test_a_close_waits_for_no_coordinator_that_cannot_be_found() -> None:
    async def close() -> float:
        consumer = consumer_of("orders")
        consumer._started, consumer._member.epoch = True, 3
        began = now_ms()
        await consumer.close()
        return now_ms() - began

    assert run_in_virtual_time(close()) == pytest.approx(2_000, abs=200)


async def test_calls_are_refused_before_the_start_and_after_the_end() -> None:
    consumer = consumer_of("orders")
    with pytest.raises(ConsumerClosedError, match="was not started"):
        await consumer.getmany()
    await consumer.close()
    with pytest.raises(ConsumerClosedError, match="has been closed"):
        await consumer.getmany()
    with pytest.raises(ConsumerClosedError, match="starts once"):
        await consumer.start()


@pytest.mark.parametrize("topics", [(), ("",), (None,)])
def test_topics_have_names(topics: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="give the names of one or more"):
        consumer_of(*topics)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"group": ""}, "group"),
        ({"max_locked_records": 0}, "max_locked_records"),
        ({"fetch_max_wait_ms": 30_000}, "fetch_max_wait_ms"),
        ({"auto_offset_reset": "earliest"}, "auto_offset_reset"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ShareConsumer("orders", **{"bootstrap": "localhost:9092", "group": "billing", **settings})
