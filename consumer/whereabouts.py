"""What somebody's code is busy with, in words: which handler, at which line. For events that name it."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

#: Most times that the loop's pulse is felt in the time after which it counts as blocked.
_BEATS = 4


def of_thread(ident: int) -> str:
    """What a thread is doing."""
    frame = sys._current_frames().get(ident)
    frames: list[FrameType] = []
    while frame is not None:
        if not _runs_things(frame):
            frames.append(frame)
        elif frames:
            break
        frame = frame.f_back
    return _named(reversed(frames))


def of_task(task: asyncio.Task[Any]) -> str:
    """What a task waits for."""
    frames: list[FrameType] = []
    coroutine: Any = task.get_coro()
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None)
        if frame is not None and not _runs_things(frame):
            frames.append(frame)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)
    return _named(frames) or task.get_name()


def _named(frames: Iterable[FrameType]) -> str:
    """``bill (billing.py:31)`` and, when that is deep in something else, where. Outermost frames first."""
    ours = list(frames)
    theirs = [frame for frame in ours if not _module(frame).startswith("kohort.")] or ours
    if not theirs:
        return ""
    handler, innermost = theirs[0], theirs[-1]
    text = _line(handler)
    return text if handler is innermost else f"{text}, in {_line(innermost)}"


def _runs_things(frame: FrameType) -> bool:
    return _module(frame).partition(".")[0] in ("asyncio", "concurrent", "threading")


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _line(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_qualname} ({code.co_filename.rpartition('/')[2]}:{frame.f_lineno})"


class LoopWatch:
    """Notices that something holds up an event loop, and looks at what it is while it does.

    ``blocked(milliseconds, what)`` is called on the loop when that is over. The look is taken by a thread.
    """

    def __init__(self, late_ms: float, blocked: Callable[[float, str], None]) -> None:
        self._late_s = late_ms / 1000
        self._beat_s = self._late_s / _BEATS
        self._blocked = blocked
        self._ended = threading.Event()
        self._last = 0.0
        self._seen = ""

    def __repr__(self) -> str:
        return f"LoopWatch(more than {self._late_s * 1000:.0f} ms late)"

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        last = loop.time()
        self._last = time.monotonic()
        watcher = threading.Thread(
            target=self._look, args=(threading.get_ident(),), name="kohort loop watch", daemon=True
        )
        watcher.start()
        try:
            while True:
                await asyncio.sleep(self._beat_s)
                late = loop.time() - last - self._beat_s
                last = loop.time()
                # another clock for the thread: that of a loop may stand still while the loop is held up
                self._last = time.monotonic()
                if late > self._late_s:
                    self._blocked(late * 1000, self._seen)
                self._seen = ""
        finally:
            self._ended.set()

    def _look(self, loop_thread: int) -> None:
        while not self._ended.wait(self._beat_s):
            if not self._seen and time.monotonic() - self._last > self._late_s:
                self._seen = of_thread(loop_thread)
