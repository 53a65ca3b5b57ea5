"""Probes: the HTTP listener, and what counts as progress."""

from __future__ import annotations

import asyncio

import pytest

from kohort.service.reporting.metrics import Answer
from kohort.service.reporting.probes import HandlingProgress, HealthListener


async def ask(port: int, request: bytes) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split(" ")[1]), body


@pytest.mark.parametrize(
    ("request_line", "status", "body"),
    [
        (b"GET /healthz HTTP/1.1", 200, "fine\n"),
        (b"GET /healthz?verbose=1 HTTP/1.0", 200, "fine\n"),
        (b"HEAD /healthz HTTP/1.1", 200, ""),
        (b"GET /nothing HTTP/1.1", 404, "there is /healthz\n"),
        (b"POST /healthz HTTP/1.1", 405, "only GET and HEAD\n"),
        (b"\x16\x03\x01 garbage", 400, "not an HTTP request\n"),
    ],
)
async def test_the_listener_answers(request_line: bytes, status: int, body: str) -> None:
    listener = HealthListener({"/healthz": lambda: Answer(200, "fine\n")}, host="127.0.0.1", port=0)
    await listener.start()
    try:
        assert await ask(listener.port, request_line + b"\r\nHost: x\r\n\r\n") == (status, body)
    finally:
        await listener.stop()


async def test_a_client_that_hangs_up_or_sends_too_much_harms_nobody() -> None:
    listener = HealthListener({"/healthz": lambda: Answer(200, "fine\n")}, host="127.0.0.1", port=0)
    await listener.start()
    try:
        for rubbish in (b"GET", b"x" * 100_000):
            _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(rubbish)
            writer.close()
        assert await ask(listener.port, b"GET /healthz HTTP/1.1\r\n\r\n") == (200, "fine\n")
    finally:
        await listener.stop()


async def test_a_port_in_use_is_refused_with_its_address() -> None:
    first = HealthListener({}, host="127.0.0.1", port=0)
    await first.start()
    try:
        with pytest.raises(OSError, match=rf"127\.0\.0\.1:{first.port}.*health_port"):
            await HealthListener({}, host="127.0.0.1", port=first.port).start()
    finally:
        await first.stop()


def test_work_that_moves_is_healthy() -> None:
    progress = HandlingProgress(stalled_after_ms=1_000)
    for second in range(10):
        progress.observe(float(second), finished=second, waiting=5)
        assert progress.complaint(second + 0.5) is None


def test_no_work_is_healthy_for_ever() -> None:
    progress = HandlingProgress(stalled_after_ms=1_000)
    for second in range(10):
        progress.observe(float(second), finished=3, waiting=0)
    assert progress.complaint(9.5) is None


def test_work_that_stands_still_is_not() -> None:
    progress = HandlingProgress(stalled_after_ms=1_000)
    for second in range(3):
        progress.observe(float(second), finished=3, waiting=7)
    assert progress.complaint(2.5) == "7 records wait and none has been finished for 2 s"


def test_waiting_time_counts_from_the_arrival_of_work() -> None:
    progress = HandlingProgress(stalled_after_ms=1_000)
    progress.observe(0.0, finished=0, waiting=0)
    progress.observe(100.0, finished=0, waiting=0)
    progress.observe(100.1, finished=0, waiting=4)
    assert progress.complaint(100.9) is None


def test_a_poll_loop_that_stays_away_is_not_healthy() -> None:
    progress = HandlingProgress(stalled_after_ms=1_000)
    progress.observe(0.0, finished=0, waiting=0)
    assert progress.complaint(5.0) == "the consumer has not been asked for records for 5 s"
