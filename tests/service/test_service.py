"""The service as a group member, over a consumer that does what the test says.

Covers: service/run/engine.py, service/run/running_handler.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import Any

import pytest

from kohort.client.errors import ConfigError
from kohort.consumer.events import OffsetReset
from kohort.consumer.record import Record
from kohort.service import HandlerFailedError, Retry
from kohort.statemachine import MemberState
from tests.service.fakes import ORDERS, FakeConsumer, make_service, serving, until

pytestmark = pytest.mark.usefixtures("fake_consumer")


async def test_records_go_to_the_handler_of_their_topic_and_are_done_after_it() -> None:
    service = make_service()
    seen: list[tuple[str, int]] = []

    @service.handler("orders")
    async def bill(record: Record) -> None:
        seen.append(("bill", record.offset))

    @service.batch_handler("refunds")
    async def refund(records: list[Record]) -> None:
        seen.extend(("refund", record.offset) for record in records)

    async with serving(service) as consumer:
        consumer.give(0, 1)
        consumer.give(7, topic="refunds")
        await until(lambda: len(consumer.done_offsets) == 3)

    assert sorted(seen) == [("bill", 0), ("bill", 1), ("refund", 7)]
    assert set(consumer.topics) == {"orders", "refunds"}


async def test_a_stop_finishes_what_has_begun_then_commits_then_leaves() -> None:
    service = make_service()
    go_on = asyncio.Event()

    @service.handler("orders")
    async def bill(_: Record) -> None:
        await go_on.wait()
        FakeConsumer.made.log.append("handled")

    async with serving(service) as consumer:
        consumer.give(0, 1)
        await until(lambda: consumer.waiting.empty())
        await asyncio.sleep(0.02)
        service.stop()
        asyncio.get_running_loop().call_later(0.05, go_on.set)

    assert consumer.log == ["joined", "told the group", "handled", "committed 1 and left"]
    assert consumer.done_offsets == [("orders", 0, 0)]


async def test_what_may_need_a_person_is_a_warning_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    service = make_service()

    @service.handler("orders")
    async def bill(_: Record) -> None: ...

    async with serving(service) as consumer:
        consumer.events.publish(OffsetReset(ORDERS[0], 500, "out of range", "earliest", 800))

    (line,) = [each for each in caplog.records if "starts at offset 800" in each.getMessage()]
    assert line.levelname == "WARNING"
    assert line.getMessage() == (
        "group billing: orders-0 starts at offset 800 instead of 500: out of range "
        "(auto_offset_reset: earliest)"
    )


async def test_lanes_by_key_say_once_that_a_record_has_no_key(caplog: pytest.LogCaptureFixture) -> None:
    service = make_service()
    seen: list[int] = []

    @service.handler("orders", lanes="key")
    async def bill(record: Record) -> None:
        seen.append(record.offset)

    async with serving(service) as consumer:
        consumer.give(4, 5, 6)
        await until(lambda: seen == [4, 5, 6])
    (line,) = [each.getMessage() for each in caplog.records if 'lanes="key"' in each.getMessage()]
    assert "bill" in line
    assert "orders-0 at offset 4" in line


async def test_revoked_partitions_are_given_up_when_their_handlers_have_finished() -> None:
    service = make_service()
    gates = {0: asyncio.Event(), 1: asyncio.Event()}

    @service.handler("orders")
    async def bill(record: Record) -> None:
        await gates[record.partition].wait()

    async with serving(service) as consumer:
        consumer.give(0, 1, partition=0)
        consumer.give(0, 1, partition=1)
        await until(lambda: consumer.waiting.empty())
        await asyncio.sleep(0.02)
        revoked = asyncio.create_task(consumer.revoking([ORDERS[0]]))
        await asyncio.sleep(0.02)
        assert not revoked.done()

        gates[0].set()
        await revoked
        assert consumer.done_offsets == [("orders", 0, 0)]

        gates[1].set()
        await until(lambda: ("orders", 1, 1) in consumer.done_offsets)


async def test_a_handler_that_does_not_finish_in_time_is_cancelled_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = make_service(drain_timeout_ms=20)

    @service.handler("orders")
    async def bill(_: Record) -> None:
        await asyncio.sleep(60)

    async with serving(service) as consumer:
        consumer.give(4)
        await until(lambda: consumer.waiting.empty())
        await asyncio.sleep(0.02)
        await consumer.revoking([ORDERS[0]])

    assert consumer.done_offsets == []
    assert "had not finished orders-0 at offset 4" in caplog.text
    assert "bill" in caplog.text


async def test_handlers_of_lost_partitions_are_cancelled_at_once() -> None:
    service = make_service()
    cancelled = asyncio.Event()

    @service.handler("orders")
    async def bill(_: Record) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with serving(service) as consumer:
        consumer.give(4)
        await until(lambda: consumer.waiting.empty())
        await asyncio.sleep(0.02)
        await consumer.lost([ORDERS[0]])
        await asyncio.wait_for(cancelled.wait(), 30)


async def test_a_failure_without_dead_letters_stops_the_service_in_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = make_service()

    @service.handler("orders")
    async def bill(record: Record) -> None:
        if record.offset == 1:
            raise ValueError("poison")

    task = asyncio.create_task(service.serve())
    await until(lambda: hasattr(FakeConsumer, "made"))
    consumer = FakeConsumer.made
    consumer.give(0, 1, 2)
    with pytest.raises(HandlerFailedError, match="orders-0 at offset 1"):
        await asyncio.wait_for(task, 30)

    assert consumer.done_offsets == [("orders", 0, 0)]
    assert consumer.log == ["joined", "committed 1 and left"]
    (line,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert "orders-0 at offset 1" in line.getMessage()
    assert line.exc_info is not None
    assert isinstance(line.exc_info[1], ValueError), "the handler's own traceback"


async def test_a_partition_that_falls_behind_pauses_until_it_has_caught_up() -> None:
    service = make_service()
    go_on = threading.Event()

    @service.handler("orders", concurrency=1)
    def bill(_: Record) -> None:
        go_on.wait(60)

    async with serving(service) as consumer:
        consumer.give(*range(3_000))
        await until(lambda: consumer.now_paused == {ORDERS[0]})
        go_on.set()
        await until(lambda: not consumer.now_paused)
        await until(lambda: len(consumer.done_offsets) == 3_000)


async def test_a_partition_that_hangs_stops_no_other() -> None:
    service = make_service(drain_timeout_ms=0)

    @service.handler("orders")
    async def bill(record: Record) -> None:
        if record.partition == 0:
            await asyncio.sleep(600)

    async with serving(service) as consumer:
        consumer.give(*range(3_000))
        await until(lambda: consumer.now_paused == {ORDERS[0]})
        for first in range(0, 10_000, 2_000):
            consumer.give(*range(first, first + 2_000), partition=1)
        await until(lambda: len(consumer.done_offsets) == 10_000)
        assert consumer.now_paused == {ORDERS[0]}


async def test_a_partition_that_waits_for_a_next_try_stops_no_other_and_holds_no_slot() -> None:
    service = make_service(drain_timeout_ms=0)

    @service.handler("orders", concurrency=1, retry=Retry(attempts=9, backoff_ms=30_000))
    async def bill(record: Record) -> None:
        if record.partition == 0:
            raise ConnectionError("the bank is closed")

    async with serving(service) as consumer:
        consumer.give(*range(3_000))
        consumer.give(*range(3_000), partition=1)
        await until(lambda: len(consumer.done_offsets) == 3_000)
        assert {partition for _, partition, _ in consumer.done_offsets} == {1}


async def test_a_few_large_records_pause_their_partition_too() -> None:
    service = make_service(backlog_max_bytes=2_000_000, drain_timeout_ms=0)
    gates = {partition: asyncio.Semaphore(0) for partition in (0, 1)}

    @service.handler("orders")
    async def bill(record: Record) -> None:
        await gates[record.partition].acquire()

    async with serving(service) as consumer:
        consumer.give(0, 1, 2, 3, value=b"x" * 300_000)
        await until(lambda: consumer.now_paused == {ORDERS[0]})  # one of two: its share is 1 MB
        consumer.give(0, value=b"x" * 600_000, partition=1)
        gates[1].release()
        await until(lambda: ("orders", 1, 0) in consumer.done_offsets)
        assert consumer.now_paused == {ORDERS[0]}

        gates[0].release()
        gates[0].release()
        await until(lambda: len(consumer.done_offsets) == 3)
        assert consumer.now_paused == {ORDERS[0]}, "more than half of its share is left"
        gates[0].release()
        await until(lambda: not consumer.now_paused)


async def test_of_a_batch_without_dead_letters_what_is_before_the_one_to_blame_is_committed() -> None:
    service = make_service()

    @service.batch_handler("orders")
    async def bill(records: list[Record]) -> None:
        if any(record.offset == 300 for record in records):
            raise ValueError("poison")

    task = asyncio.create_task(service.serve())
    await until(lambda: hasattr(FakeConsumer, "made"))
    consumer = FakeConsumer.made
    consumer.give(*range(400))
    with pytest.raises(HandlerFailedError, match="orders-0 at offset 300"):
        await asyncio.wait_for(task, 30)
    assert [offset for _, _, offset in consumer.done_offsets] == list(range(300))


async def test_the_drain_is_the_services_own() -> None:
    service = make_service(drain_timeout_ms=1_234, session_timeout_ms=6_000)

    @service.handler("orders")
    async def bill(_: Record) -> None: ...

    async with serving(service) as consumer:
        assert consumer.config.session_timeout_ms == 6_000
        assert consumer.config.drain_timeout_ms == 0


async def test_probes_answer_while_it_serves() -> None:
    service = make_service(health_port=0)

    @service.handler("orders")
    async def bill(_: Record) -> None: ...

    async def get(path: str) -> str:
        assert service.health_port
        reader, writer = await asyncio.open_connection("127.0.0.1", service.health_port)
        writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        return answer.decode()

    async with serving(service) as consumer:
        consumer.give(0, 1, 2)
        await until(lambda: len(consumer.done_offsets) == 3)
        assert "200 OK" in await get("/healthz")
        assert "200 OK" in await get("/readyz")
        metrics = await get("/metrics")
        assert 'kohort_handler_records_total{group="billing",handler="' in metrics
        assert metrics.split("kohort_handler_records_total{")[1].split("\n")[0].endswith("} 3.0")
        assert 'kafka_consumer_coordinator_assigned_partitions{group="billing"} 2.0' in metrics
        consumed = 'kafka_consumer_fetch_manager_records_consumed_total{group="billing",topic="orders"} 3.0'
        assert consumed in metrics

        consumer.member_state = MemberState.PREPARING
        assert "503" in await get("/readyz")


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"session_timeout": 6_000}, "did you mean session_timeout_ms"),
        ({"enable_auto_commit": False}, "leave it on"),
        ({"drain_timeout_ms": -1}, "drain_timeout_ms=-1 is not allowed: it must be a whole number from 0"),
    ],
)
def test_a_wrong_setting_is_refused_when_the_service_is_made(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make_service(**wrong)


async def test_a_service_without_handlers_says_so() -> None:
    with pytest.raises(ValueError, match="no handler"):
        await make_service().serve()


async def test_it_runs_once_at_a_time_and_again_afterwards() -> None:
    service = make_service()

    @service.handler("orders")
    async def bill(_: Record) -> None: ...

    for _ in range(2):
        async with serving(service) as consumer:
            with pytest.raises(RuntimeError, match="runs already"):
                await service.serve()
            consumer.give(1)
            await until(lambda: service.finished == 1)
    assert service.finished == 0


async def test_handlers_go_on_until_the_others_are_ready_to_take_over() -> None:
    service = make_service()

    @service.handler("orders")
    async def bill(_: Record) -> None: ...

    async with serving(service) as consumer:
        consumer.noticed.clear()
        service.stop()
        await until(lambda: "told the group" in consumer.log)
        consumer.give(0, 1)
        await until(lambda: len(consumer.done_offsets) == 2)
        consumer.noticed.set()

    assert consumer.log == ["joined", "told the group", "committed 2 and left"]


def test_a_topic_has_one_handler() -> None:
    service = make_service()

    @service.handler("orders")
    async def bill(_: Record) -> None: ...

    with pytest.raises(ValueError, match=r"'orders' has a handler already \(.*bill\)"):
        service.handler("payments", "orders")(bill)


def test_run_returns_after_sigterm() -> None:
    service = make_service()

    @service.handler("orders")
    async def bill(_: Record) -> None: ...

    killer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM))
    killer.start()
    service.run()

    assert FakeConsumer.made.log == ["joined", "told the group", "committed 0 and left"]
