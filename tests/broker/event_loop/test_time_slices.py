"""Work of one request that takes long is done between the turns of others."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kohort.broker.event_loop import time_slices as _turns
from kohort.broker.event_loop.time_slices import LongWork
from kohort.log import Steps, ThreadWork


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


@pytest.mark.parametrize(("held_bytes", "at_once"), [(1 << 30, 1), (64 << 20, 1), (8 << 20, 8), (1, 8)])
async def test_what_needs_a_thread_and_memory_is_limited_in_number(held_bytes: int, at_once: int) -> None:
    running: list[threading.Thread] = []
    most = 0

    def apart() -> Steps[bool]:
        nonlocal most
        thread = yield ThreadWork(threading.current_thread, held_bytes)
        running.append(thread)
        most = max(most, len(running))
        for _ in range(100):
            yield None
        running.remove(thread)
        return thread is not threading.current_thread()

    together = LongWork()
    assert await asyncio.gather(*(together.run(apart()) for _ in range(20))) == [True] * 20
    assert 1 <= most <= at_once


async def test_work_that_grows_gives_back_its_room_before_it_waits_for_a_larger_one() -> None:
    def growing() -> Steps[bool]:
        yield ThreadWork(threading.current_thread, 8 << 20)
        yield ThreadWork(threading.current_thread, 64 << 20)
        return True

    together = LongWork()
    assert await asyncio.gather(*(together.run(growing()) for _ in range(20))) == [True] * 20


async def test_large_work_holds_up_large_work_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_turns, "WORK_SLICE_S", 0.0)
    ended: list[str] = []

    def work(name: str, held_bytes: int, turns: int) -> Steps[None]:
        yield ThreadWork(threading.current_thread, held_bytes)
        for _ in range(turns):
            yield None
            if name == "large" and "small" in ended:
                break
        ended.append(name)

    together = LongWork()
    large = asyncio.create_task(together.run(work("large", 64 << 20, turns=1_000_000)))
    behind = asyncio.create_task(together.run(work("behind", 64 << 20, turns=1)))
    await together.run(work("small", 8 << 20, turns=100))
    await asyncio.gather(large, behind)
    assert ended == ["small", "large", "behind"]


async def test_an_error_of_the_thread_is_met_where_the_work_was_asked_for() -> None:
    def fails() -> None:
        raise ValueError("broken")

    def steps() -> Steps[str]:
        try:
            yield ThreadWork(fails, 1)
        except ValueError as error:
            return str(error)
        return ""

    assert await LongWork().run(steps()) == "broken"
