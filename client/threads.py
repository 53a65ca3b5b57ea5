"""Threads for plain functions, and for an event loop, that do not keep the process from ending.

At exit Python waits for the threads of a ThreadPoolExecutor, so user code that hangs would keep the process
from ending. These threads are daemons instead. Each kind of user code has threads of its own, so that a call
that hangs takes none from others.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from .surroundings import SURROUNDINGS

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _ThreadCall:
    """A function to be called in a thread, for a task that waits for ``future``.

    The future's result is the pair of result and error, because a future cannot raise StopIteration.
    """

    function: Callable[[], object]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[tuple[object, BaseException | None]]
    context: contextvars.Context = field(default_factory=contextvars.copy_context)


class DaemonThreads:
    """At most ``most`` threads, started as needed. Use it from one event loop."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._calls: queue.SimpleQueue[_ThreadCall | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        #: Calls that wait or run, those whose caller has gone included.
        self._under_way = 0

    async def call(self, function: Callable[[], Any]) -> Any:
        """Run the function in a thread, with the caller's context variables; return or raise what it does.

        If the caller is cancelled, a function that has started runs on, in its thread.
        """
        if (elsewhere := SURROUNDINGS.get().in_thread) is not None:
            return await elsewhere(self, self._most, partial(contextvars.copy_context().run, function))
        loop = asyncio.get_running_loop()
        call = _ThreadCall(function, loop, loop.create_future())
        self._under_way += 1
        if len(self._threads) < min(self._under_way, self._most):
            name = f"{self._name}_{len(self._threads)}"
            thread = threading.Thread(target=self._work_off, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._calls.put(call)
        result, error = await call.future
        if error is None:
            return result
        try:
            raise error
        finally:
            del error, call  # the error's traceback has this frame: they would keep each other

    def close(self) -> None:
        """Let the threads end when they have nothing left to do."""
        for _ in self._threads:
            self._calls.put(None)

    def _work_off(self) -> None:
        while (call := self._calls.get()) is not None:
            result, error = None, None
            if not call.future.cancelled():
                try:
                    result = call.context.run(call.function)
                except BaseException as raised:
                    error = raised
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                call.loop.call_soon_threadsafe(self._on_end, call, result, error)
            del call, result, error

    def _on_end(self, call: _ThreadCall, result: object, error: BaseException | None) -> None:
        self._under_way -= 1
        if not call.future.done():
            call.future.set_result((result, error))


class LoopThread:
    """An event loop in a daemon thread of its own. Any thread may ask it for work."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name=name, daemon=True)
        #: What threads wait for: after the end of the loop none of it is done.
        self._asked: set[Future[Any]] = set()
        self._over = False
        #: Nothing is asked for between the last look at what is and the end. A signal's handler may ask, too.
        self._gate = threading.RLock()
        self._ending: asyncio.Task[None] | None = None
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the loop runs."""
        return self._thread.is_alive()

    @property
    def is_over(self) -> bool:
        """Whether the loop takes no work any more."""
        return self._over

    @property
    def is_current(self) -> bool:
        """Whether this is called in the loop's thread, which must not wait for itself."""
        return threading.current_thread() is self._thread

    def submit(self, work: Coroutine[object, None, T]) -> Future[T]:
        """Start ``work`` on the loop; return its future. Raises RuntimeError after ``stop``."""
        with self._gate:
            if self._over:
                work.close()
                raise RuntimeError("this loop has ended")
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
        self._asked.add(future)
        future.add_done_callback(self._asked.discard)
        if self.is_over:
            # the loop may have ended without beginning it
            future.cancel()
        return future

    def run(self, work: Coroutine[object, None, T]) -> T:
        """Return the result of ``work``, or raise its error. An interrupted wait cancels it.

        Raises concurrent.futures.CancelledError if the loop ends before it is done.
        """
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Cancel what still runs, and end the loop and its thread. Safe to call again."""
        with suppress(RuntimeError):  # closed already
            self.loop.call_soon_threadsafe(self._begin_end)
        self._thread.join()

    def _run_loop(self) -> None:
        try:
            self.loop.run_forever()
        finally:
            with self._gate:
                self._over = True
            for future in list(self._asked):
                future.cancel()
            self.loop.run_until_complete(self._cancel_others())
            self.loop.close()

    def _begin_end(self) -> None:
        if self._ending is None:
            self._ending = self.loop.create_task(self._cancel_all())

    async def _cancel_all(self) -> None:
        await self._cancel_others()
        self.loop.call_soon(self.loop.stop)

    async def _cancel_others(self) -> None:
        # what was asked for just now begins first
        await asyncio.sleep(0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
