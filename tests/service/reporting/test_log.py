"""Lines about what happens a thousand times a second."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kohort.service.reporting.log import INTERVAL_S, LINES, ServiceLog
from tests.consumer.virtual_time import run_in_virtual_time


def test_each_kind_has_a_few_lines_and_then_their_number(caplog: pytest.LogCaptureFixture) -> None:
    repeated = ServiceLog()

    async def run() -> None:
        for number in range(100):
            repeated.line("failed", logging.WARNING, "failed %d", number)
        repeated.line("slow", logging.WARNING, "slow")
        await asyncio.sleep(INTERVAL_S)
        repeated.line("failed", logging.WARNING, "failed %d", 100)

    run_in_virtual_time(run())
    lines = [each.getMessage() for each in caplog.records]
    assert lines[: LINES + 1] == [*(f"failed {number}" for number in range(LINES)), "slow"]
    assert lines[LINES + 1 :] == [f"failed 100 ({100 - LINES} more of these were not written)"]


def test_the_traceback_is_with_the_first(caplog: pytest.LogCaptureFixture) -> None:
    repeated, error = ServiceLog(), ValueError("poison")

    async def run() -> None:
        for _ in range(2):
            repeated.line("failed", logging.WARNING, "failed", error=error)

    run_in_virtual_time(run())
    assert [bool(each.exc_info) for each in caplog.records] == [True, False]
