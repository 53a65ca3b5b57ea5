"""Watches the user's code: ``max_poll_interval_ms`` (KIP-62), a blocked event loop, and the line it is at."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FrameType

#: Records taken one by one are counted at this share of the interval; a breach may be noticed this much
#: later.
LOOK_SHARE = 1 / 32
#: The loop is checked this often in the time after which it counts as blocked.
_BEATS = 4


@dataclass(slots=True)
class PollWatch:
    """Notices when the user no longer polls: neither waits for records nor asked recently. Times are ms."""

    max_interval_ms: float
    #: Who polled last: a task, or the id of a thread.
    poller: asyncio.Task[object] | int | None = None
    #: Returns how many records were taken one by one, which are no polls.
    taken: Callable[[], int] = lambda: 0
    _seen: int = 0
    _taken_before: int = 0
    _waiting: int = 0
    _last: float = 0.0
    _look_at: float = 0.0

    def polling(self, now: float) -> None:
        """A poll has begun to wait; ``now`` in seconds."""
        self._waiting += 1
        self._last = now

    def on_poll(self, now: float) -> None:
        """A poll that waited has ended."""
        self._waiting -= 1
        self._last = now

    def note_poll(self, now: float) -> None:
        """A poll began and ended at once, or the user did something else that counts as one."""
        self._last = now

    def read_by_another(self, who: asyncio.Task[object] | int | None) -> bool:
        """Return whether the last poll was by another task or thread than this one, which is still alive."""
        if isinstance(self.poller, int):
            return self.poller != who and any(t.ident == self.poller for t in threading.enumerate())
        return self.poller is not None and self.poller is not who and not self.poller.done()

    def idle(self, now: float, limit_ms: float) -> bool:
        """Return whether nobody waits for records, and nobody has taken any for this long."""
        if (taken := self.taken()) != self._taken_before:
            self._taken_before = taken
            self._last = max(self._last, now)
        return not self._waiting and now >= self._last + limit_ms

    def busy_with(self) -> str:
        """Activity of the last poller, as a text; empty if that is unknown."""
        if isinstance(self.poller, int):
            return activity_of_thread(self.poller)
        if self.poller is not None:
            return "nothing: its task has ended" if self.poller.done() else activity_of_task(self.poller)
        return ""

    def deadline(self) -> float | None:
        """Time at which to call ``expired``; None while a poll waits."""
        if self._waiting:
            return None
        over = self._last + self.max_interval_ms
        return over if self.taken() == self._seen else min(over, self._look_at)

    def age(self, now: float) -> float:
        """Time since the last poll."""
        return 0.0 if self._waiting else now - self._last

    def is_expired(self, now: float) -> bool:
        """Return whether nobody has polled for ``max_poll_interval_ms``; taking records counts as polling."""
        if now >= self._look_at and (taken := self.taken()) != self._seen:
            # some were taken since the last check, at an unknown time
            self._seen = taken
            self._last = max(self._last, now)
            self._look_at = now + self.max_interval_ms * LOOK_SHARE
        return not self._waiting and now >= self._last + self.max_interval_ms


class LoopWatch:
    """Notices when something blocks the event loop; a thread looks meanwhile at what that is.

    Calls ``blocking(milliseconds, activity)`` in that thread while it lasts, after ``late_ms`` and whenever
    the time has doubled since, and ``blocked(milliseconds, activity)`` on the loop afterwards.
    """

    def __init__(
        self, late_ms: float, blocked: Callable[[float, str], None], blocking: Callable[[float, str], None]
    ) -> None:
        self._late_s = late_ms / 1000
        self._beat_s = self._late_s / _BEATS
        self._blocked = blocked
        self._blocking = blocking
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
            target=self._look_at_loop, args=(threading.get_ident(),), name="kohort loop watch", daemon=True
        )
        watcher.start()
        try:
            while True:
                await asyncio.sleep(self._beat_s)
                late = loop.time() - last - self._beat_s
                last = loop.time()
                # not the loop's clock, which may stand still while the loop is blocked
                self._last = time.monotonic()
                if late > self._late_s:
                    self._blocked(late * 1000, self._seen)
                self._seen = ""
        finally:
            self._ended.set()

    def _look_at_loop(self, loop_thread: int) -> None:
        told_s = 0.0
        while not self._ended.wait(self._beat_s):
            late_s = time.monotonic() - self._last
            if late_s <= self._late_s:
                told_s = 0.0
            elif late_s > 2 * told_s:
                told_s = late_s
                activity = activity_of_thread(loop_thread)
                self._seen = self._seen or activity
                self._blocking(late_s * 1000, activity)


def activity_of_thread(ident: int) -> str:
    """The line of user code that a thread is at."""
    frame = sys._current_frames().get(ident)
    frames: list[FrameType] = []
    while frame is not None:
        if not _runs_things(frame):
            frames.append(frame)
        elif frames:
            break
        frame = frame.f_back
    return _name_frames(reversed(frames))


def activity_of_task(task: asyncio.Task[object]) -> str:
    """The line of user code that a task waits at."""
    frames: list[FrameType] = []
    coroutine: object = task.get_coro()
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None)
        if frame is not None and not _runs_things(frame):
            frames.append(frame)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)
    return _name_frames(frames) or task.get_name()


def _name_frames(frames: Iterable[FrameType]) -> str:
    """``bill (billing.py:31)``, and the innermost line if that is another. Outermost frames come first."""
    ours = list(frames)
    theirs = [frame for frame in ours if not _module_of(frame).startswith("kohort.")] or ours
    if not theirs:
        return ""
    handler, innermost = theirs[0], theirs[-1]
    text = _line_of(handler)
    return text if handler is innermost else f"{text}, in {_line_of(innermost)}"


def _runs_things(frame: FrameType) -> bool:
    return _module_of(frame).partition(".")[0] in ("asyncio", "concurrent", "threading")


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _line_of(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_qualname} ({code.co_filename.rpartition('/')[2]}:{frame.f_lineno})"
