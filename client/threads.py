"""Threads for plain functions that do not keep the process from ending.

At exit Python waits for the threads of a ThreadPoolExecutor, so user code that hangs would keep the process
from ending. These threads are daemons instead. Each kind of user code has threads of its own, so that a call
that hangs takes none from others.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .pool import SURROUNDINGS


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
