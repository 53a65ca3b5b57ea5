"""Assigning and revoking partitions: each step is a task of its own, in order for each partition.

A revocation, in order: stop delivery, wait until delivered records are done (bounded), call the user, commit,
forget. When the group has already gone on without this member, there is nothing to wait for and nothing to
commit: revocations in progress end at once, the partitions are lost, and the user is told so. A step that
hangs delays no other partitions, and no heartbeats, which are not sent here.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field

from ...client.waiting import Signal, now_ms
from ...protocol import TopicPartition
from ..config import ConsumerConfig
from ..done.committer import Committer
from ..done.tracker import Tracker
from ..events import (
    CallbackFailed,
    DrainTimedOut,
    Event,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    PartitionsRevoking,
)
from ..group.effects import Assign, Revoke
from ..reading.delivery import Delivery
from ..reading.positions import Positions

#: Called with the partitions concerned, sorted. May be async. Its errors are reported and not fatal.
PartitionsCallback = Callable[[tuple[TopicPartition, ...]], Awaitable[None] | None]


@dataclass(slots=True)
class Callbacks:
    """``revoking`` comes before the wait for undone records, ``revoked`` after it and before the commit.

    ``lost`` defaults to ``revoked``.
    """

    assigned: PartitionsCallback | None = None
    revoking: PartitionsCallback | None = None
    revoked: PartitionsCallback | None = None
    lost: PartitionsCallback | None = None


@dataclass(slots=True, eq=False)
class _CallbackCall:
    """A call of a callback; ``waited_for`` until it has returned or is abandoned."""

    waited_for: bool = True


#: The current call, in callbacks and in the threads and tasks that they start.
_call: ContextVar[_CallbackCall | None] = ContextVar("callback", default=None)


def in_callback() -> bool:
    """Return whether a handover waits for the caller, who then cannot wait until the consumer is closed."""
    call = _call.get()
    return call is not None and call.waited_for


#: A commit has at least this share of the time for a revocation, however long the rest took. At a close the
#: callbacks before it have as much more, however long records take to be done.
_COMMIT_SHARE = 0.1


@dataclass(slots=True, eq=False)
class _Revocation:
    """A revocation, by the membership (``asked``) or ``give_up_all``; ``left`` parts of it go on."""

    asked: bool
    left: int = 0


@dataclass(slots=True, eq=False)
class _Giving:
    """A part of a revocation: partitions given up together. ``lost``: why they are lost, if they are.

    ``told``: whether on_partitions_revoked has returned. ``work`` is what a loss cancels.
    """

    partitions: tuple[TopicPartition, ...]
    revocation: _Revocation
    drain_ms: float
    lost: str | None = None
    told: bool = False
    work: asyncio.Task[None] | None = None


@dataclass(slots=True, eq=False)
class Handover:
    """Carries out Assign and Revoke; calls ``revocation_done`` after each Revoke. Run ``run`` as a task.

    The rebalance timeout bounds a callback, and a whole revocation except for its commit, which has at least
    a tenth of it and at most ``default_api_timeout_ms``.
    """

    config: ConsumerConfig
    callbacks: Callbacks
    positions: Positions
    delivery: Delivery
    tracker: Tracker
    committer: Committer
    _: KW_ONLY
    announced: Callable[[], None]
    revocation_done: Callable[[], None]
    report: Callable[[Event], None]
    #: Called when partitions are assigned: their start offsets are looked up during the user's callback.
    came: Callable[[], None] = lambda: None
    #: Fires when records are done, or a wait for them may end otherwise.
    drained: Signal = field(default_factory=Signal)
    #: All steps in progress, and the last one of each partition, which its next one waits for.
    _steps: set[asyncio.Task[None]] = field(default_factory=set)
    _last: dict[TopicPartition, asyncio.Task[None]] = field(default_factory=dict)
    _giving: list[_Giving] = field(default_factory=list)
    _announcing: set[asyncio.Task[None]] = field(default_factory=set)
    _closing: bool = False
    #: When waits for records, and callbacks, end at the latest, and the callbacks that are waited for.
    _drained_by: float = math.inf
    _called_by: float = math.inf
    _calls: set[asyncio.Timeout] = field(default_factory=set)
    _failed: asyncio.Event = field(default_factory=asyncio.Event)
    _failure: BaseException | None = None

    def __repr__(self) -> str:
        return f"Handover({len(self._steps)} steps under way, {len(self._giving)} of them releases)"

    # from the membership, at once

    def assign(self, effect: Assign) -> None:
        """Give new partitions their positions; they are delivered once the user has been told."""
        self.positions.keep(effect.kept, effect.generation)
        if self._closing:
            return
        self.positions.add(effect.added, effect.generation, effect.starts)
        if self.callbacks.assigned is None and not any(p in self._last for p in effect.added):
            # nobody is waited for: no task, and the first Fetch goes out that much earlier
            self.report(PartitionsAssigned(effect.added, effect.generation))
            self._may_read(effect.added)
            return
        self._begin_step(effect.added, self._announce_partitions(effect))
        self.came()

    def revoke(self, effect: Revoke) -> None:
        """Stop delivery and revoke. A loss concerns everything, so it also cancels all steps in progress."""
        if effect.lost:
            for giving in self._giving:
                giving.lost = giving.lost or effect.reason
                if giving.work is not None:
                    giving.work.cancel()
            for announcing in self._announcing:
                announcing.cancel()
        lost = effect.reason if effect.lost else None
        self._give_partitions(effect.partitions, self.config.drain_ms, asked=True, lost=lost)

    def _give_partitions(
        self, partitions: Iterable[TopicPartition], drain_ms: float, *, asked: bool, lost: str | None = None
    ) -> None:
        """Give partitions up, apart from others that wait for another step."""
        partitions = tuple(partitions)
        self.positions.give_up(partitions)
        self.delivery.drop(partitions)
        apart: dict[asyncio.Task[None] | None, list[TopicPartition]] = defaultdict(list)
        for partition in partitions:
            apart[self._last.get(partition)].append(partition)
        revocation = _Revocation(asked, max(1, len(apart)))
        for together in apart.values() or [()]:
            giving = _Giving(tuple(together), revocation, drain_ms, lost)
            self._giving.append(giving)
            self._begin_step(together, self._give_up(giving))

    def _begin_step(
        self, partitions: Iterable[TopicPartition], work: Coroutine[object, object, None]
    ) -> None:
        """Start a step of these partitions, after their earlier ones."""
        before = {step for p in partitions if (step := self._last.get(p)) is not None}
        step = asyncio.create_task(_run_after(before, work), name="kohort handover")
        self._steps.add(step)
        self._last.update(dict.fromkeys(partitions, step))
        step.add_done_callback(self._on_step_end)

    def _on_step_end(self, step: asyncio.Task[None]) -> None:
        self._steps.discard(step)
        self._last = {partition: last for partition, last in self._last.items() if last is not step}
        if not step.cancelled() and (error := step.exception()) is not None:
            self._failure = self._failure or error
            self._failed.set()

    # from the user

    def record_done(self) -> None:
        """A record is done: a drain may be over."""
        self.drained.fire()

    async def drain(self, partitions: Iterable[TopicPartition], timeout_ms: float) -> bool:
        """Wait until the delivered records of these partitions are done; return whether that was in time."""
        wanted = tuple(partitions)
        deadline = now_ms() + timeout_ms
        while self.tracker.undone(wanted):
            if not await self._wait_for_done(deadline - now_ms()):
                return False
        return True

    async def _wait_for_done(self, timeout_ms: float) -> bool:
        """Wait for records to be done, or for something else that may end a drain."""
        self.tracker.awaited += 1
        try:
            return await self.drained.wait(timeout_ms)
        finally:
            self.tracker.awaited -= 1

    async def give_up_all(self, drain_ms: float, timeout_ms: float) -> bool:
        """Give up everything, to close, with shorter waits; return whether that was in time."""
        self._closing = True
        self.end_within(timeout_ms)
        leaving = {p for giving in self._giving for p in giving.partitions}
        self._give_partitions(sorted(self.positions.partitions() - leaving), drain_ms, asked=False)
        self.hurry(drain_ms)
        _, left = await asyncio.wait(self._steps, timeout=max(0.0, timeout_ms) / 1000)
        return not left

    def end_within(self, timeout_ms: float) -> None:
        """Bound the waits of all revocations, those in progress too, so that their commits have time."""
        now, loop = now_ms(), asyncio.get_running_loop()
        self._drained_by = min(self._drained_by, now + timeout_ms * (1 - 2 * _COMMIT_SHARE))
        self._called_by = min(self._called_by, now + timeout_ms * (1 - _COMMIT_SHARE))
        for waiting in self._calls:
            if waiting.expired():
                continue
            until = loop.time() + (self._called_by - now) / 1000
            waiting.reschedule(min(until, waiting.when() or until))
        self.drained.fire()

    def hurry(self, drain_ms: float = 0.0) -> None:
        """Let revocations in progress wait no longer than this for records to be done."""
        for giving in self._giving:
            giving.drain_ms = min(giving.drain_ms, drain_ms)
        self.drained.fire()

    # the steps

    async def run(self) -> None:
        """Run until cancelled, which cancels the steps; raises unexpected errors of steps."""
        try:
            await self._failed.wait()
            if self._failure is not None:
                raise self._failure
        finally:
            for step in self._steps:
                step.cancel()
            await asyncio.gather(*self._steps, return_exceptions=True)

    async def _announce_partitions(self, effect: Assign) -> None:
        self.report(PartitionsAssigned(effect.added, effect.generation))
        if self.callbacks.assigned is not None:
            telling = asyncio.create_task(
                self._call_user("on_partitions_assigned", self.callbacks.assigned, effect.added)
            )
            self._announcing.add(telling)
            telling.add_done_callback(self._announcing.discard)
            await _unless_called_off(telling)
        self._may_read(effect.added)

    def _may_read(self, added: Iterable[TopicPartition]) -> None:
        leaving = {p for giving in self._giving for p in giving.partitions}
        self.positions.hold_partitions((p for p in added if p not in leaving), held=False)
        self.announced()

    async def _give_up(self, giving: _Giving) -> None:
        partitions = giving.partitions
        if partitions and giving.lost is None:
            giving.work = asyncio.create_task(self._in_order(giving), name="kohort revocation")
            await _unless_called_off(giving.work)
        if partitions and giving.lost is not None:
            self.report(PartitionsLost(partitions, giving.lost))
            if not giving.told:
                callback = self.callbacks.lost or self.callbacks.revoked
                await self._call_user("on_partitions_lost", callback, partitions)
        elif partitions:
            self.report(PartitionsRevoked(partitions, self.tracker.undone_by_partition(partitions)))
        for partition in partitions:
            self.tracker.end_session(partition)
        self.positions.remove(partitions)
        self._giving.remove(giving)
        giving.revocation.left -= 1
        if giving.revocation.asked and not giving.revocation.left:
            self.revocation_done()

    async def _in_order(self, giving: _Giving) -> None:
        """The steps of an orderly revocation; a loss cancels them at any point."""
        partitions, began = giving.partitions, now_ms()
        await self._wait_until_done(giving)
        await self._call_user("on_partitions_revoked", self.callbacks.revoked, partitions)
        giving.told = True
        if self.config.commits:
            left_ms = self.config.rebalance_ms - (now_ms() - began)
            left_ms = max(left_ms, self.config.rebalance_ms * _COMMIT_SHARE)
            left_ms = min(left_ms, self.config.default_api_timeout_ms)
            await self.committer.commit_done(partitions, left_ms, giving=partitions)

    async def _wait_until_done(self, giving: _Giving) -> None:
        self.report(PartitionsRevoking(giving.partitions, self.tracker.undone(giving.partitions)))
        await self._call_user("on_partitions_revoking", self.callbacks.revoking, giving.partitions)
        began = now_ms()
        while undone := self.tracker.first_undone(giving.partitions):
            now = now_ms()
            left_ms = min(began + giving.drain_ms, self._drained_by) - now
            if left_ms <= 0:
                self.report(DrainTimedOut(undone, now - began))
                return
            await self._wait_for_done(left_ms)

    async def _call_user(
        self, name: str, callback: PartitionsCallback | None, partitions: tuple[TopicPartition, ...]
    ) -> None:
        if callback is None:
            return
        call, began = _CallbackCall(), now_ms()
        before = _call.set(call)
        waiting = asyncio.timeout(min(self.config.rebalance_ms, self._called_by - began) / 1000)
        try:
            async with waiting:
                self._calls.add(waiting)
                result = callback(partitions)
                if inspect.isawaitable(result):
                    await result
        except TimeoutError as error:
            late = TimeoutError(f"it had not come back after {now_ms() - began:.0f} ms")
            self.report(CallbackFailed(name, error if error.args else late))
        except asyncio.CancelledError as error:
            this = asyncio.current_task()
            if this is None or this.cancelling():
                raise
            # something that the callback awaited was cancelled: its error, not a cancellation of this task
            self.report(CallbackFailed(name, error))
        except Exception as error:
            self.report(CallbackFailed(name, error))
        finally:
            self._calls.discard(waiting)
            call.waited_for = False
            _call.reset(before)


async def _run_after(before: Iterable[asyncio.Task[None]], work: Coroutine[object, object, None]) -> None:
    try:
        if waiting := {step for step in before if not step.done()}:
            await asyncio.wait(waiting)
    except BaseException:
        work.close()
        raise
    await work


async def _unless_called_off(task: asyncio.Task[None]) -> None:
    """Wait until the task has ended or is cancelled; raises its error."""
    try:
        # not "await task", which could not tell the task's cancellation from ours
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
    if not task.cancelled():
        task.result()
