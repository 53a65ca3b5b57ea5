"""A call that hangs is named in the log, in the probes and in the metrics, though other lanes go on."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest

from kohort.consumer.record import Record
from kohort.service.run import calls
from tests.service.fakes import FakeConsumer, make_service, serving, until
from tests.service.reporting.test_probes import ask


@pytest.fixture(autouse=True)
def _quick_looks(fake_consumer: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - it is put in place
    monkeypatch.setattr(calls, "LOOK_S", 0.01)


async def _answer(service: Any, path: str, wanted: str) -> tuple[int, str]:
    """The first answer with this text, which may come after others on a busy machine."""
    for offset in range(1_000):
        FakeConsumer.made.give(offset, partition=1)  # there is progress elsewhere
        status, body = await ask(service.health_port, f"GET {path} HTTP/1.1\r\n\r\n".encode())
        if wanted in body:
            return status, body
        await asyncio.sleep(0.01)
    pytest.fail(f"never answered {wanted!r}")


@pytest.mark.parametrize("fails", [False, True])
async def test_a_call_that_hangs_is_a_warning_again_and_again_and_in_the_probes(
    fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    service = make_service(health_port=0, stalled_after_ms=60, fail_probes_on_hanging_call=fails)
    answers = asyncio.Event()

    @service.handler("orders")
    async def bill(record: Record) -> None:
        if record.partition == 0:
            await answers.wait()

    async with serving(service) as consumer:
        consumer.give(5, 6)
        text = "bill has been handling orders-0 at offset 5 for 0 s"
        status, body = await _answer(service, "/healthz", text)
        assert "test_calls.py:" in body, "the line that it waits at"
        assert (status, body.startswith("ok\n")) == ((503, False) if fails else (200, True))
        await until(lambda: caplog.text.count("the records of its lane wait for it") >= 2)
        assert "WARNING" in caplog.text
        _, metrics = await _answer(service, "/metrics", "kohort_handler_oldest_call_seconds{")
        (line,) = [each for each in metrics.splitlines() if each.startswith("kohort_handler_oldest_call_s")]
        assert float(line.rpartition(" ")[2]) > 0.06
        _, metrics = await _answer(service, "/metrics", "kohort_handler_long_calls{")
        assert re.findall(r"^kohort_handler_long_calls\{.*\} (.*)$", metrics, re.MULTILINE) == ["1.0"]
        answers.set()
        await until(lambda: ("orders", 0, 6) in consumer.done_offsets)
        assert service._engine is not None
        assert service._engine.remarks() == []
        await until(lambda: "bill is through with orders-0 at offset 5, which it began" in caplog.text)
    assert caplog.text.count("is through with") == 1


async def test_a_plain_function_that_hangs_is_named_too(caplog: pytest.LogCaptureFixture) -> None:
    service = make_service(stalled_after_ms=20)
    answers = threading.Event()

    @service.batch_handler("orders")
    def book(_: list[Record]) -> None:
        answers.wait(60)

    async with serving(service) as consumer:
        consumer.give(5, 6)
        await until(lambda: "book has been handling orders-0 at offset 5 to 6 for" in caplog.text)
        answers.set()
