"""The loop of a simulated process keeps asyncio's promises, on the heap of a schedule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest

from kohort.testing.simulation.engine._heap import Heap
from kohort.testing.simulation.engine._loop import MOST_STEPS, Caught, ProcessLoop


class Machine:
    """A heap, loops on it, and what went wrong on them."""

    touched = False

    def __init__(self) -> None:
        self.heap = Heap(Random(1))
        self.errors: list[Any] = []

    def look(self) -> None:
        raise AssertionError("nothing is watched here")

    def loop(self, delay_ms: Callable[[Any], int] = lambda _: 10) -> ProcessLoop:
        return ProcessLoop(  # type: ignore[abstract]
            self.heap, failed=lambda context: self.errors.append(context["exception"]), delay_ms=delay_ms
        )

    def run(self, loop: ProcessLoop, work: Coroutine[Any, Any, Any], until_ms: int = 100_000) -> Any:
        task = loop.create_task(work)
        self.heap.run(until_ms, self)
        return task.result()


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_time_is_that_of_the_heap_and_never_early(machine: Machine) -> None:
    async def work() -> list[float]:
        loop = asyncio.get_running_loop()
        times = []
        for delay in (0.0, 0.0001, 0.1, 0.1 + 0.2):
            before = loop.time()
            await asyncio.sleep(delay)
            assert loop.time() >= before + delay
            times.append(loop.time())
        return times

    assert machine.run(machine.loop(), work()) == [0.0, 0.001, 0.101, 0.401]


def test_what_is_ready_runs_in_its_order(machine: Machine) -> None:
    said: list[int] = []

    async def say(number: int) -> None:
        said.append(number)
        await asyncio.sleep(0)
        said.append(number + 10)

    async def work() -> None:
        await asyncio.gather(*(say(number) for number in range(3)))

    machine.run(machine.loop(), work())
    assert said == [0, 1, 2, 10, 11, 12]


def test_time_outs_queues_and_locks_are_asyncios_own(machine: Machine) -> None:
    async def work() -> str:
        queue: asyncio.Queue[str] = asyncio.Queue()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await queue.get()
        asyncio.get_running_loop().call_later(1.0, queue.put_nowait, "there")
        async with asyncio.Lock():
            return await asyncio.wait_for(queue.get(), 2.0)

    assert machine.run(machine.loop(), work()) == "there"
    assert machine.heap.now == 100_000


def test_a_frozen_process_goes_on_later_and_another_meanwhile(machine: Machine) -> None:
    ends: dict[str, int] = {}

    async def work(name: str) -> None:
        await asyncio.sleep(0.05)
        ends[name] = machine.heap.now

    frozen, other = machine.loop(), machine.loop()
    for name, loop in (("frozen", frozen), ("other", other)):
        loop.create_task(work(name))
    machine.heap.run(10, machine)
    frozen.freeze(500)
    machine.heap.run(1_000, machine)
    assert ends == {"other": 50, "frozen": 500}


def test_nothing_of_a_killed_process_runs_any_more_and_what_it_was_at_is_thrown_away(
    machine: Machine,
) -> None:
    ran: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1)
            ran.append("on")
        finally:
            await asyncio.gather(asyncio.sleep(1))

    loop = machine.loop()
    loop.create_task(work())
    machine.heap.run(10, machine)
    loop.kill()
    machine.heap.run(5_000, machine)
    loop.clear()
    assert ran == []
    assert not loop.tasks
    assert machine.errors == []


def test_a_function_in_a_thread_ends_after_its_time_whether_anybody_waits_or_not(machine: Machine) -> None:
    ended: list[tuple[str, int]] = []
    loop = machine.loop(delay_ms=lambda _: 30)

    def slow(name: str) -> str:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        ended.append((name, machine.heap.now))
        return name

    async def work() -> str:
        with ThreadPoolExecutor(1) as executor:
            first = loop.run_in_executor(executor, slow, "first")
            second = loop.run_in_executor(executor, slow, "second")
            third = loop.run_in_executor(executor, slow, "third")
            await asyncio.sleep(0.01)
            first.cancel()  # a thread cannot be stopped
            third.cancel()  # what has not begun does not begin
            ended_by: str = await second
            return ended_by

    assert machine.run(loop, work()) == "second"
    assert ended == [("first", 30), ("second", 60)]


def test_an_error_that_nobody_waits_for_is_told(machine: Machine) -> None:
    async def work() -> None:
        asyncio.get_running_loop().call_soon(int, "five")

    machine.run(machine.loop(), work())
    assert [type(error) for error in machine.errors] == [ValueError]


def test_a_process_that_never_waits_is_caught(machine: Machine) -> None:
    async def work() -> None:
        asyncio.get_running_loop().call_soon(again)

    def again() -> None:
        asyncio.get_running_loop().call_soon(again)

    loop = machine.loop()
    loop.create_task(work())
    machine.heap.run(10, machine)
    assert [type(error) for error in machine.errors] == [Caught]
    assert not loop.alive
    assert MOST_STEPS < 1_000_000
    loop.clear()
