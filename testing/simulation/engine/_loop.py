"""The event loop of one simulated process: asyncio without sockets, threads or a clock of its own.

Tasks, futures and time-outs are asyncio's own; what they ask of a loop is here, on the heap of the schedule.
What is ready runs in the order in which it became ready, as asyncio has it; processes take turns as drawn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from math import ceil
from typing import Any, Final, TypeAlias, TypeVar

from ._heap import Heap

T = TypeVar("T")

#: A future of anything.
AnyFuture: TypeAlias = asyncio.Future[Any]

#: Steps without progress of time after which a process counts as caught in an endless loop.
MOST_STEPS: Final = 20_000
#: After this many steps at one moment the clock goes on, by so little for each.
_STEPS_OF_A_MOMENT: Final = 2_000
_STEP_S: Final = 1e-9
_TASKS: Final = 100
#: How often a discarded coroutine may await something else.
_MOST_CLOSES: Final = 50


class Caught(Exception):  # noqa: N818
    """A process runs step after step and never waits."""


class ProcessLoop(asyncio.AbstractEventLoop):
    """The loop of one process, which can be suspended and killed. ``failed`` gets errors that nobody waited
    for.

    ``delay_ms`` tells how long a function takes in a thread: it runs in one step at the end of that time.
    ``ran`` is called when the process has done something.
    """

    def __init__(
        self,
        heap: Heap,
        *,
        failed: Callable[[dict[str, object]], None],
        delay_ms: Callable[[Callable[..., object]], int],
        ran: Callable[[], None] = lambda: None,
    ) -> None:
        self.alive = True
        # also some that have ended: looking now and then is cheaper than a callback of each
        self._tasks: list[asyncio.Task[object]] = []
        self._most_tasks = _TASKS
        self._heap = heap
        self._failed = failed
        self._delay_ms = delay_ms
        self._ran = ran
        self._ready: deque[asyncio.Handle] = deque()
        self._due = False
        self._moment = self._steps = 0
        self._frozen_until = 0
        self._threads: dict[object, _Threads] = {}
        #: Functions running in threads, and what ends them.
        self.in_threads: dict[AnyFuture, tuple[Callable[..., object], Callable[[], None]]] = {}

    def __repr__(self) -> str:
        return f"ProcessLoop({len(self._ready)} ready, {len(self.tasks)} tasks)"

    @property
    def tasks(self) -> list[asyncio.Task[object]]:
        """Tasks that have not ended."""
        return [task for task in self._tasks if not task.done()]

    # --- the life of a process ----------------------------------------------------------------------------

    def freeze(self, until_ms: int) -> None:
        self._frozen_until = until_ms

    @property
    def frozen(self) -> bool:
        return self._heap.now < self._frozen_until

    def kill(self) -> None:
        self.alive = False
        self._ready.clear()

    def clear(self) -> None:
        """Discard everything a killed process was doing."""
        self.kill()
        tasks, self._tasks = self.tasks, []
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            for task in tasks:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _throw_away(task.get_coro())
        finally:
            asyncio._set_running_loop(before)
        self.in_threads.clear()
        self._threads.clear()

    # --- what asyncio asks of a loop ----------------------------------------------------------------------

    def time(self) -> float:
        # a loop that waits for the rounding error of a time-out gets out of it, as with a clock that goes on
        late = self._steps - _STEPS_OF_A_MOMENT if self._heap.now == self._moment else 0
        return self._heap.now / 1_000 + (late * _STEP_S if late > 0 else 0.0)

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if self.alive:
            self._ready.append(handle)
            if not self._due:
                self._due = True
                self._heap.at(max(self._heap.now, self._frozen_until), self._run)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if self.alive:
            due = max(ceil(when * 1_000), self._heap.now)
            # never early, not even by a rounding error: the waiter would wait again, and no time would pass
            self._heap.at(due if due / 1_000 >= when else due + 1, self._fire, handle)
        return handle

    def _timer_handle_cancelled(self, _handle: asyncio.TimerHandle) -> None:
        """Called by asyncio; the heap drops cancelled actions when they are due."""

    def _fire(self, handle: asyncio.TimerHandle) -> None:
        if not self.alive or handle.cancelled():
            return
        if self.frozen:
            self._heap.at(self._frozen_until, self._fire, handle)
            return
        self._ready.append(handle)
        if not self._due:
            self._run()

    def _run(self) -> None:
        """Run everything that is ready, and what becomes ready meanwhile."""
        if not self.alive:
            return
        if self.frozen:
            self._heap.at(self._frozen_until, self._run)
            return
        self._due = True
        ready = self._ready
        if self._heap.now != self._moment:
            self._moment, self._steps = self._heap.now, 0
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            while ready and self.alive:
                handle = ready.popleft()
                if not handle.cancelled():
                    handle._run()
                self._steps += 1
                if self._steps > MOST_STEPS:
                    self.call_exception_handler({"message": "circle", "exception": Caught(repr(handle))})
                    self.kill()
        finally:
            asyncio._set_running_loop(before)
            self._due = False
            self._ran()

    def create_future(self) -> AnyFuture:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[object, None, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        if not self.alive:
            # created in the ``finally`` of a discarded coroutine
            coro.close()
            return _Nothing(loop=self)  # type: ignore[return-value]
        task = asyncio.Task(
            coro, loop=self, name=name or getattr(coro, "__qualname__", "task"), context=context
        )
        self._tasks.append(task)
        if len(self._tasks) > self._most_tasks:
            self._tasks = self.tasks
            self._most_tasks = 2 * len(self._tasks) + _TASKS
        return task

    def call_exception_handler(self, context: dict[str, object]) -> None:
        if self.alive:
            self._failed(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return asyncio._get_running_loop() is self

    def is_closed(self) -> bool:
        return not self.alive

    # --- threads ------------------------------------------------------------------------------------------

    def run_in_executor(self, executor: object, func: Callable[..., object], *args: object) -> AnyFuture:
        return self.in_thread(executor, getattr(executor, "_max_workers", None) or 32, func, *args)

    def in_thread(self, pool: object, size: int, func: Callable[..., object], *args: object) -> AnyFuture:
        """Run a function as in one of ``size`` threads of ``pool``: it ends after the time that it takes."""
        future = self.create_future()
        threads = self._threads.get(pool)
        if threads is None:
            threads = self._threads[pool] = _Threads(self, size)
        threads.begin(future, func, args)
        return future

    def release_threads(self) -> None:
        """End the functions that were to take long."""
        for _, end in list(self.in_threads.values()):
            self._heap.at(self._heap.now, end)


class _Nothing(asyncio.Future[object]):
    """A task of a dead process: it is cancelled."""

    def __init__(self, loop: ProcessLoop) -> None:
        super().__init__(loop=loop)
        self.cancel()

    def set_name(self, name: object) -> None:
        """Nobody will ask for it."""


def _throw_away(coroutine: Coroutine[object, None, object] | Generator[object, None, object]) -> None:
    for _ in range(_MOST_CLOSES):
        try:
            coroutine.close()
            return
        except RuntimeError:
            continue  # it awaits something in a ``finally``: ignored
        except BaseException:
            return


class _Threads:
    """The threads of one executor."""

    def __init__(self, loop: ProcessLoop, most: int) -> None:
        self._loop = loop
        self._free = most
        self._waiting: deque[tuple[AnyFuture, Callable[..., object], tuple[object, ...]]] = deque()

    def begin(self, future: AnyFuture, call: Callable[..., object], args: tuple[object, ...]) -> None:
        if self._free == 0:
            self._waiting.append((future, call, args))
            return
        self._free -= 1
        loop = self._loop

        def end() -> None:
            if not loop.alive or loop.in_threads.pop(future, None) is None:
                return
            if loop.frozen:
                loop.in_threads[future] = call, end
                loop._heap.at(loop._frozen_until, end)
                return
            self._end(future, call, args)

        loop.in_threads[future] = call, end
        loop._heap.at(loop._heap.now + loop._delay_ms(call), end)

    def _end(self, future: AnyFuture, call: Callable[..., object], args: tuple[object, ...]) -> None:
        """Run the function even if nobody waits for it any more, as a thread does."""
        # a thread has no running loop
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        result, error = None, None
        try:
            result = call(*args)
        except Exception as failure:
            error = failure
        finally:
            asyncio._set_running_loop(before)
            self._loop._ran()
        # reported a little later: the process may be killed in between
        self._loop._heap.at(self._loop._heap.now + 1, self._tell, future, result, error)
        self._free += 1
        while self._free and self._waiting:
            waiting = self._waiting.popleft()
            if not waiting[0].cancelled():
                self.begin(*waiting)

    def _tell(self, future: AnyFuture, result: object, error: Exception | None) -> None:
        if not self._loop.alive or future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
