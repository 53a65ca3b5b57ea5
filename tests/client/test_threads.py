"""Threads for plain functions: how many, what comes back, and that none keeps the process."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from concurrent.futures import CancelledError

import pytest

from kohort.client.threads import DaemonThreads, LoopThread

HANGS = """
import asyncio, threading
from kohort.client.threads import DaemonThreads

async def main():
    threads = DaemonThreads(2, "orders")
    calls = [asyncio.ensure_future(threads.call(threading.Event().wait)) for _ in range(4)]
    await asyncio.sleep(0.1)
    for call in calls:
        call.cancel()
    threads.close()

asyncio.run(main())
print("ended")
"""


async def test_there_are_no_more_of_them_than_calls_and_than_allowed() -> None:
    threads, go_on = DaemonThreads(2, "orders"), threading.Event()
    calls = [asyncio.create_task(threads.call(lambda: go_on.wait(60))) for _ in range(4)]
    await asyncio.sleep(0)
    assert len(threads._threads) == 2
    go_on.set()
    assert await asyncio.gather(*calls) == [True] * 4
    threads.close()

    one = DaemonThreads(9, "orders")
    for _ in range(3):
        await one.call(lambda: None)
    assert len(one._threads) == 1
    one.close()


async def test_the_function_sees_the_callers_context() -> None:
    name = contextvars.ContextVar("name", default="nobody")
    name.set("the caller")
    threads = DaemonThreads(1, "orders")
    assert await threads.call(name.get) == "the caller"
    threads.close()


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError()])
async def test_what_the_function_raises_comes_back(error: BaseException) -> None:
    def fail() -> None:
        raise error

    threads = DaemonThreads(1, "orders")
    with pytest.raises(type(error)):
        await threads.call(fail)
    assert await threads.call(lambda: 5) == 5, "the thread goes on"
    threads.close()


async def test_a_call_whose_caller_has_gone_is_not_begun() -> None:
    threads, go_on, called = DaemonThreads(1, "orders"), threading.Event(), []
    first = asyncio.create_task(threads.call(lambda: go_on.wait(60)))
    second = asyncio.create_task(threads.call(lambda: called.append("second")))
    await asyncio.sleep(0)
    second.cancel()
    go_on.set()
    await first
    await threads.call(lambda: called.append("third"))
    assert called == ["third"]
    threads.close()


def test_functions_that_hang_do_not_keep_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("ended\n", 0), done.stderr


# an event loop in a thread


async def _thread_id() -> int:
    return threading.get_ident()


def test_a_loop_runs_work_in_one_thread_and_gives_its_result_or_error_to_the_caller() -> None:
    loop = LoopThread("orders")

    async def fail() -> None:
        raise ValueError("no")

    assert loop.run(_thread_id()) == loop.run(_thread_id()) != threading.get_ident()
    with pytest.raises(ValueError, match="no"):
        loop.run(fail())
    loop.stop()
    assert not loop.is_alive


def test_what_runs_when_a_loop_stops_is_cancelled_and_whoever_waits_for_it_is_told() -> None:
    loop, begun, cancelled = LoopThread("orders"), threading.Event(), list[bool]()

    async def hang() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    future = loop.submit(hang())
    assert begun.wait(10)
    loop.stop()
    assert cancelled == [True]
    with pytest.raises(CancelledError):
        future.result(10)
    loop.stop()
    work = _thread_id()
    with pytest.raises(RuntimeError):
        loop.submit(work)


def test_work_that_is_asked_for_while_the_loop_ends_is_ended_too() -> None:
    loop, begun, late = LoopThread("orders"), threading.Event(), list[str]()

    async def work_late() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            late.append("ended")

    async def ask_at_the_end() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            loop.submit(work_late())
            for _ in range(3):
                await asyncio.sleep(0)

    loop.submit(ask_at_the_end())
    assert begun.wait(10)
    loop.stop()
    assert late == ["ended"]
