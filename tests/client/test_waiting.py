"""Signals and clocks that tasks wait with."""

from __future__ import annotations

import asyncio
import time

import pytest

from kohort.client.waiting import Signal, clock_of
from tests.consumer.virtual_time import VirtualTimeLoop


def test_a_loop_that_has_a_clock_of_its_own_is_asked_for_the_time() -> None:
    usual, virtual = asyncio.SelectorEventLoop(), VirtualTimeLoop()
    try:
        assert clock_of(usual) is time.monotonic
        assert clock_of(virtual) == virtual.time
    finally:
        usual.close()
        virtual.close()


@pytest.mark.parametrize("limit_ms", [None, 60_000])
async def test_a_signal_wakes_who_waits_and_nobody_who_has_gone(limit_ms: float | None) -> None:
    signal = Signal()
    waiting, gone = (asyncio.create_task(signal.wait(limit_ms)) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    assert len(signal.waiters) == 1
    signal.fire()
    assert await waiting is True
    assert not signal.waiters


async def test_a_wait_ends_at_its_limit() -> None:
    signal = Signal()
    assert await signal.wait(0) is False
    assert not signal.waiters
