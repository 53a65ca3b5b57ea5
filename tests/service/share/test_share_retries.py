"""A service of a share group with retry topics: two runs as one, without a broker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kohort.consumer.config import consumer_config
from kohort.service._options import drain_ms, longest_drain_ms
from kohort.service.handlers.handler import Handler
from kohort.service.handlers.registration import make_handler
from kohort.service.reporting.metrics import HandlerNumbers, ServiceCounters, Snapshot
from kohort.service.share.share_retries import SharedAndRetries, retries_config, split_handlers


def handle(_: object) -> None: ...


def with_retries(**options: Any) -> Handler:
    options = {"retry_after_ms": [100], "dead_letter": "graves", **options}
    return make_handler(handle, ("orders",), in_share=True, **options)


class Run:
    """As an engine that runs until it is stopped, or fails."""

    def __init__(self, group: str, handlers: list[Handler]) -> None:
        self.group, self.handlers = group, handlers
        self.log: list[str] = []
        self.ended = asyncio.Event()
        self.failure: Exception | None = None
        self.refusal: Exception | None = None
        self.started = False
        self.why: str | None = None

    async def start(self) -> None:
        self.log.append("start")
        if self.refusal is not None:
            raise self.refusal
        self.started = True

    async def run(self) -> None:
        try:
            await self.ended.wait()
        finally:
            self.log.append("end")
        if self.failure is not None:
            raise self.failure

    def stop(self, reason: str) -> None:
        self.log.append(f"stop: {reason}")
        self.ended.set()

    def complaint(self) -> str | None:
        return self.why

    def snapshot(self, live: bool) -> Snapshot:
        numbers = [HandlerNumbers(each, 3, 2, 1.0, 1) for each in self.handlers]
        consumed = {topic: 5 for each in self.handlers for topic in each.all_topics}
        return Snapshot(
            self.group, "Stable", 1, live, numbers, ServiceCounters(), consumed, {}, outage_s=len(self.group)
        )


def both(*handlers: Handler) -> tuple[Any, Any, SharedAndRetries]:
    shared, retries = split_handlers(handlers)
    runs: tuple[Any, Any] = Run("queue", shared), Run("queue.retry", retries)
    return *runs, SharedAndRetries(*runs)


async def test_each_run_reads_its_topics_and_both_count_together() -> None:
    shared, retries, run = both(with_retries(), make_handler(print, ("bills",), in_share=True))
    assert [each.all_topics for each in shared.handlers] == [("orders",), ("bills",)]
    assert [each.all_topics for each in retries.handlers] == [("orders.retry.1",)]
    assert shared.handlers[0].counters is retries.handlers[0].counters
    now = run.snapshot(True)
    assert now.group == "queue"
    assert now.consumed == {"orders": 5, "bills": 5, "orders.retry.1": 5}
    assert [each[1:] for each in now.handlers] == [(6, 4, 1.0, 2), (3, 2, 1.0, 1)]
    assert now.outage_s == len("queue.retry")


async def test_when_one_fails_the_other_ends_in_good_order() -> None:
    for failing in (0, 1):
        *parts, run = both(with_retries())
        await run.start()
        running = asyncio.create_task(run.run())
        parts[failing].failure = OSError("gone")
        parts[failing].ended.set()
        with pytest.raises(OSError, match="gone"):
            await running
        assert run.failure is parts[failing].failure
        assert parts[1 - failing].log[-1] == "end"


async def test_a_share_group_that_cannot_be_joined_leaves_nothing_behind() -> None:
    shared, retries, run = both(with_retries())
    shared.refusal = OSError("no broker")
    with pytest.raises(OSError, match="no broker"):
        await run.start()
    assert retries.log[-1] == "end"
    assert not run.started


async def test_a_run_that_is_cancelled_ends_both() -> None:
    shared, retries, run = both(with_retries())
    running = asyncio.create_task(run.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert shared.log == retries.log == ["end"]


async def test_a_standstill_of_either_is_told() -> None:
    shared, retries, run = both(with_retries())
    assert run.complaint() is None
    retries.why = "letters wait"
    assert run.complaint() == "letters wait"
    shared.why = "records wait"
    assert run.complaint() == "records wait"


def test_the_consumer_group_has_the_settings_that_both_kinds_have() -> None:
    given = {
        "bootstrap_servers": "localhost:9092",
        "group_id": "queue",
        "client_rack": "r1",
        "max_locked_records": 5,
        "max_processing_ms": 1_000,
    }
    config = consumer_config(**retries_config(given, "queue", 20_000))
    assert (config.bootstrap, config.group, config.client_rack) == ("localhost:9092", "queue.retry", "r1")
    assert config.rebalance_ms == consumer_config(bootstrap="localhost", group="any").rebalance_ms


@pytest.mark.parametrize("wanted", [270_000, 270_001, 600_000, 1_799_999])
def test_a_rebalance_of_the_retry_topics_waits_for_the_drain_of_the_service(wanted: int) -> None:
    config = consumer_config(**retries_config({"bootstrap": "localhost"}, "queue", wanted))
    assert drain_ms(wanted, config.rebalance_ms) == wanted
    assert wanted >= longest_drain_ms(config.rebalance_ms - 1), "no longer than needed"
