"""Stops: no broker, brokers that do not answer, and handlers that hang."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from kohort.consumer import Record
from kohort.consumer.run.closing import LEAVE_MS
from kohort.service import KafkaOutput
from kohort.service.run import engine
from tests.consumer.virtual_time import run_in_virtual_time
from tests.service.fakes import FakeConsumer, make_service

PROGRAM = """
import logging, threading
from kohort.service import ConsumerService

logging.basicConfig(level="INFO")
service = ConsumerService(
    bootstrap={bootstrap!r}, group={group!r}, auto_offset_reset="earliest", drain_timeout_ms=300,
    leave_notice_ms=0,
)

@service.handler({topic!r})
def handle(record):
    print("handling", flush=True)
    threading.Event().wait()

service.run()
print("ended", flush=True)
"""


def _start(bootstrap: str, group: str, topic: str) -> subprocess.Popen[str]:
    text = PROGRAM.format(bootstrap=bootstrap, group=group, topic=topic)
    return subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_without_a_broker_there_is_a_warning_and_sigterm_ends_it() -> None:
    process = _start("127.0.0.1:1", "billing", "orders")
    lines: list[str] = []
    assert process.stderr is not None
    watchdog = threading.Timer(90, process.kill)
    watchdog.start()
    try:
        while not any("has had no success" in line for line in lines):
            lines.append(process.stderr.readline())
            assert lines[-1], f"it has ended: {lines}"
        process.send_signal(signal.SIGTERM)
        # far less than the minute for which it would go on
        out, err = process.communicate(timeout=30)
    finally:
        watchdog.cancel()
        process.kill()
    assert (process.returncode, out) == (0, "ended\n"), err


@pytest.mark.kafka
def test_a_plain_handler_that_hangs_does_not_keep_the_process(
    bootstrap: str, filled_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic = filled_topic(3)
    process = _start(bootstrap, group("billing"), topic)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "handling\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, "ended\n"), err
    assert "had not finished" in err


class SilentConsumer(FakeConsumer):
    """Its broker does not answer: closing takes all of its time, and LeaveGroup some more."""

    async def close(self, *, timeout_ms: float) -> None:
        await asyncio.sleep((timeout_ms + LEAVE_MS) / 1000)


class SilentOutput:
    """Nothing is committed, and its producer ends when its time is over."""

    full = False

    def __init__(self, *_: Any, **__: Any) -> None:
        """As KafkaTransactions."""

    def add(self, *_: Any) -> None: ...

    async def start(self) -> None: ...

    async def settle(self, _: Any) -> None:
        await asyncio.Event().wait()

    async def dead_letter(self, *_: Any) -> None: ...

    async def close(self, *, timeout_ms: float) -> None:
        await asyncio.sleep(timeout_ms / 1000)


@pytest.mark.parametrize("exactly_once", [False, True])
def test_a_stop_ends_in_time_though_handlers_hang_and_no_broker_answers(
    exactly_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "AsyncGroupConsumer", SilentConsumer)
    monkeypatch.setattr(engine, "KafkaTransactions", SilentOutput)
    service = make_service(drain_timeout_ms=20_000)
    if exactly_once:
        service.exactly_once(KafkaOutput())

    @service.handler("orders")
    async def hang(_: Record) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.sleep(60)

    async def stop() -> float:
        serving = asyncio.create_task(service.serve())
        await asyncio.sleep(1)
        FakeConsumer.made.give(1, 2)
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        service.stop()
        await serving
        return asyncio.get_running_loop().time() - began

    assert run_in_virtual_time(stop()) < 30.5, "the drain and ten seconds"
