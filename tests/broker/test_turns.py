"""Work of one request that takes long is done between the turns of others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from kohort.broker import _turns
from kohort.broker._turns import LongWork
from kohort.log import Steps


def counting(steps: int) -> Steps[int]:
    for _ in range(steps):
        yield None
    return steps


async def test_short_work_is_done_before_anybody_else_has_a_turn() -> None:
    turns: list[str] = []
    asyncio.get_running_loop().call_soon(turns.append, "other")
    assert await LongWork().run(counting(3)) == 3
    assert turns == []


async def test_others_have_their_turn_between_two_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_turns, "WORK_SLICE_S", 0.0)
    turns: list[int] = []

    async def other() -> None:
        for number in range(5):
            turns.append(number)
            await asyncio.sleep(0)

    waiting = asyncio.create_task(other())
    assert await LongWork().run(counting(10)) == 10
    assert turns == [0, 1, 2, 3, 4]
    await waiting


async def test_what_needs_a_thread_is_done_one_at_a_time() -> None:
    running: list[threading.Thread] = []
    most = 0

    def work() -> threading.Thread:
        return threading.current_thread()

    def apart() -> Steps[bool]:
        nonlocal most
        thread = yield work
        running.append(thread)
        most = max(most, len(running))
        yield None
        running.remove(thread)
        return thread is not threading.current_thread()

    together = LongWork()
    assert await asyncio.gather(*(together.run(apart()) for _ in range(5))) == [True] * 5
    assert most == 1


async def test_an_error_of_the_thread_is_met_where_the_work_was_asked_for() -> None:
    def fails() -> None:
        raise ValueError("broken")

    def steps() -> Steps[str]:
        work: Callable[[], None] = fails
        try:
            yield work
        except ValueError as error:
            return str(error)
        return ""

    assert await LongWork().run(steps()) == "broken"
