"""Closing of a consumer: it happens once, however often and by whomever it is requested."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field

from ...client.waiting import now_ms
from .assembly import ConsumerAssembly
from .handover import in_callback

#: The task, or the id of the thread, that closes.
Caller = asyncio.Task[object] | int | None

#: Time for the last commit and callbacks.
CLOSE_TIMEOUT_MS = 30_000
#: LeaveGroup has at least this long, however long the rest took: without it the group waits for the session
#: timeout.
LEAVE_MS = 2_000.0
#: ``close`` stops waiting for the other members when nobody has read records for this long.
NOT_READ_MS = 300.0
#: Time for the last commit when ``close`` is cancelled; it waits for no records then.
CANCELLED_S = 2.0
CLOSED = "the consumer was closed"


@dataclass(slots=True, eq=False)
class Closing:
    """Closes a consumer. ``silenced`` is called when no more records may be delivered, ``over`` at the end.

    ``tasks`` returns the tasks of a consumer that has started, None before.
    """

    parts: ConsumerAssembly
    notice_ms: float
    _: KW_ONLY
    tasks: Callable[[], Sequence[asyncio.Task[None]] | None]
    silenced: Callable[[], None]
    over: Callable[[], None]
    _work: asyncio.Task[None] | None = None
    _drain_ms: float = 0.0
    #: The task that leaves the group, once it has begun.
    _leaving: list[asyncio.Task[None]] = field(default_factory=list)

    def __repr__(self) -> str:
        state = "not asked for" if self._work is None else "over" if self._work.done() else "under way"
        return f"Closing({state})"

    async def close(
        self, caller: Caller, drain_timeout_ms: float, timeout_ms: float, *, hurry: bool = True
    ) -> None:
        """Close, or ``hurry`` a close in progress; return when it has ended.

        When cancelled, it hurries as well, and nothing is left running when it raises. In a callback, for
        which closing waits, it returns at once.
        """
        if self._work is None:
            self._drain_ms = drain_timeout_ms
            self._work = asyncio.create_task(self._close(caller, timeout_ms), name="kohort closing")
        elif hurry:
            self._hurry_drain(drain_timeout_ms)
        if in_callback():
            return
        try:
            await asyncio.wait({self._work})
        except asyncio.CancelledError:
            await self._end_soon(self._work)
            raise
        if not self._work.cancelled():  # by another caller that was cancelled
            self._work.result()

    async def _end_soon(self, work: asyncio.Task[None]) -> None:
        self._hurry_drain(0.0)
        self.parts.handover.end_within(CANCELLED_S * 1000)
        try:
            await asyncio.wait({work}, timeout=CANCELLED_S)
        finally:
            work.cancel()
            await asyncio.wait({work})

    def _hurry_drain(self, drain_ms: float) -> None:
        self._drain_ms = min(self._drain_ms, drain_ms)
        self.parts.driver.leave_now()
        self.parts.handover.hurry(self._drain_ms)

    async def _close(self, caller: Caller, timeout_ms: float) -> None:
        parts, deadline = self.parts, now_ms() + timeout_ms

        def left_ms() -> float:
            return max(0.0, deadline - now_ms())

        try:
            if self.tasks() is not None:
                await self._give_up(caller, timeout_ms, left_ms)
                await self._leave_group(max(left_ms(), LEAVE_MS))
        except asyncio.CancelledError:
            if self.tasks() is not None:
                await self._leave_group(LEAVE_MS)
            raise
        finally:
            self.silenced()
            for task in (tasks := [*(self.tasks() or ()), *self._leaving]):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await parts.close()
            self.over()

    async def _leave_group(self, timeout_ms: float) -> None:
        """Leave the group, or wait for that if it has begun: a cancelled close may be at it."""
        if not self._leaving:
            leaving = self.parts.driver.leave(CLOSED, timeout_ms)
            self._leaving.append(asyncio.create_task(leaving, name="kohort leaving"))
        await asyncio.wait(self._leaving, timeout=timeout_ms / 1000)

    async def _give_up(self, caller: Caller, timeout_ms: float, left_ms: Callable[[], float]) -> None:
        parts = self.parts
        if parts.watch.read_by_another(caller):
            notice_ms = min(self.notice_ms, timeout_ms)
            await parts.driver.announce_leave(CLOSED, notice_ms, NOT_READ_MS)
        self.silenced()
        await parts.handover.give_up_all(self._drain_ms, left_ms())
