"""Events that name what somebody's code is busy with."""

from __future__ import annotations

import asyncio
import threading
import time

from kohort.consumer.run.watchdogs import LoopWatch, PollWatch, activity_of_task, activity_of_thread
from tests.waiting import until


def _sums_for_ever(seconds: float) -> None:
    time.sleep(seconds)


async def _bill(seconds: float) -> None:
    _sums_for_ever(seconds)


async def _wait_patiently(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), 60)


async def test_what_blocks_the_loop_is_named_with_its_line_once_it_is_over() -> None:
    told: list[tuple[float, str]] = []
    watching = asyncio.create_task(
        LoopWatch(60, lambda ms, what: told.append((ms, what)), lambda *_: None).run()
    )
    await asyncio.sleep(0.05)
    await asyncio.create_task(_bill(0.3))
    await until(lambda: any("_bill" in what for _, what in told))
    watching.cancel()
    # a busy machine may have held the loop up besides
    ((late_ms, what),) = [row for row in told if "_bill" in row[1]]
    assert late_ms > 200
    assert what.startswith("_bill (test_activity.py:")
    assert ", in _sums_for_ever (test_activity.py:" in what


async def test_what_blocks_the_loop_is_named_while_it_lasts_now_and_then() -> None:
    named = threading.Semaphore(0)
    told: list[tuple[float, str]] = []

    def tell(late_ms: float, what: str) -> None:
        told.append((late_ms, what))
        named.release()

    async def sum_up() -> None:
        """Block the loop until it was named twice."""
        assert named.acquire(timeout=60)
        assert named.acquire(timeout=60)

    watching = asyncio.create_task(LoopWatch(20, lambda *_: None, tell).run())
    await asyncio.sleep(0.05)
    await asyncio.create_task(sum_up())
    watching.cancel()
    first, second = [late_ms for late_ms, what in told if "sum_up" in what]
    assert second > 2 * first > 40


async def test_a_loop_that_is_not_held_up_is_not_reported() -> None:
    told: list[tuple[float, str]] = []
    watching = asyncio.create_task(
        LoopWatch(2_000, lambda *late: told.append(late), lambda *late: told.append(late)).run()
    )
    for _ in range(20):
        await asyncio.sleep(0.01)
    watching.cancel()
    assert told == []


async def test_a_task_is_named_by_the_coroutine_that_waits() -> None:
    event = asyncio.Event()

    async def service() -> None:
        await _wait_patiently(event)

    task = asyncio.create_task(service())
    await asyncio.sleep(0.01)
    text = activity_of_task(task)
    assert "service (test_activity.py:" in text
    assert ", in _wait_patiently (test_activity.py:" in text
    event.set()
    await task


def test_a_thread_is_named_by_what_it_runs() -> None:
    event = threading.Event()

    def handle_slowly() -> None:
        begun.set()
        event.wait(60)

    begun = threading.Event()
    thread = threading.Thread(target=handle_slowly)
    thread.start()
    assert begun.wait(60)
    assert thread.ident is not None
    watch = PollWatch(100, poller=thread.ident)
    text = watch.busy_with()
    event.set()
    thread.join()
    assert "handle_slowly (test_activity.py:" in text
    assert activity_of_thread(thread.ident) == "", "it has ended"


async def test_whoever_polled_and_has_ended_does_nothing() -> None:
    async def poll() -> None:
        """Once."""

    task = asyncio.create_task(poll())
    await task
    assert PollWatch(100, poller=task).busy_with() == "nothing: its task has ended"
    assert PollWatch(100).busy_with() == ""
