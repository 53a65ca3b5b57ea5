"""Running is not waiting."""

from __future__ import annotations

import asyncio
import time

import pytest

from kohort.broker.event_loop.stopwatch import Stopwatch


def spend(seconds: float) -> None:
    """Run for so long."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


async def test_only_the_time_that_a_coroutine_runs_is_counted() -> None:
    async def work() -> str:
        spend(0.01)
        await asyncio.sleep(0.3)
        spend(0.01)
        return "done"

    watch = Stopwatch(work())
    begun = time.perf_counter()
    assert await watch == "done"
    waited = time.perf_counter() - begun - watch.running_s
    assert watch.running_s >= 0.02
    assert waited >= 0.25


async def test_errors_pass_in_both_directions() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise ValueError("own") from None

    async def watched() -> None:
        await Stopwatch(work())

    task = asyncio.create_task(watched())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(ValueError, match="own"):
        await task
    assert seen == ["cancelled"]
