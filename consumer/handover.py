"""Taking partitions over and giving them up, one step after the other and apart from everything else.

To give up, in order: stop delivery, wait until what was delivered is done (bounded), tell the user, commit,
forget. When the group has already gone on without this member there is nothing to wait for and nothing to
commit: the partitions are lost, and the user is told so. Heartbeats go on meanwhile; they are not run here.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from ..protocol import TopicPartition
from .committer import Committer
from .delivery import Delivery
from .effects import Adopt, Release
from .events import (
    CallbackFailed,
    DrainTimedOut,
    Event,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    PartitionsRevoking,
)
from .positions import Positions
from .signal import Signal
from .tracker import Tracker

#: Called with the partitions concerned, sorted. May be async; what it raises is reported and not fatal.
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


@dataclass(slots=True)
class HandoverSettings:
    drain_ms: float
    #: Limit of a callback and of the commit.
    step_ms: float
    auto_commit: bool


@dataclass(slots=True, eq=False)
class _Giving:
    """A Release on its way; ``asked`` by membership, which waits for its end."""

    partitions: tuple[TopicPartition, ...]
    reason: str
    drain_ms: float
    asked: bool = True
    lost: str | None = None
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)


class Handover:
    """Give it the effects as they come; ``released`` is called after each Release. Run ``run`` as a task."""

    def __init__(
        self,
        settings: HandoverSettings,
        callbacks: Callbacks,
        positions: Positions,
        delivery: Delivery,
        tracker: Tracker,
        committer: Committer,
        *,
        announced: Callable[[], None],
        released: Callable[[], None],
        report: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._callbacks = callbacks
        self._positions = positions
        self._delivery = delivery
        self._tracker = tracker
        self._committer = committer
        self._announced = announced
        self._released = released
        self._report = report
        self._steps: asyncio.Queue[Adopt | _Giving] = asyncio.Queue()
        self._giving: list[_Giving] = []
        #: Waited for by whatever waits for records to be done.
        self.drained = Signal()
        self._closing = False

    def __repr__(self) -> str:
        return f"Handover({self._steps.qsize()} steps waiting, {len(self._giving)} releases)"

    # from membership, at once

    def adopt(self, effect: Adopt) -> None:
        """New partitions get their positions, and are delivered once the user has been told."""
        self._positions.kept(effect.kept, effect.generation)
        if self._closing:
            return
        self._positions.add(effect.added, effect.generation)
        self._steps.put_nowait(effect)

    def release(self, effect: Release) -> None:
        """Delivery stops now; the rest follows in turn. A loss also ends the releases that still wait."""
        partitions = effect.partitions
        if effect.lost:
            for other in self._giving:
                other.lost = other.lost or effect.reason
                other.gone.set()
            self.drained.fire()
        giving = _Giving(partitions, effect.reason, self._settings.drain_ms)
        giving.lost = effect.reason if effect.lost else None
        self._give(giving)

    def _give(self, giving: _Giving) -> None:
        self._positions.hold(giving.partitions)
        self._delivery.drop(giving.partitions)
        self._giving.append(giving)
        self._steps.put_nowait(giving)

    # from the user

    def record_done(self) -> None:
        """Some record is done: a drain may be over."""
        self.drained.fire()

    async def drain(self, partitions: Iterable[TopicPartition], timeout_ms: float) -> bool:
        """Wait until what was delivered of these partitions is done; whether it was in time."""
        wanted = tuple(partitions)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while self._tracker.undone(wanted):
            if not await self._wait((deadline - loop.time()) * 1000):
                return False
        return True

    async def _wait(self, timeout_ms: float) -> bool:
        """For records to be done, or for something else that may end a drain."""
        self._tracker.awaited += 1
        try:
            return await self.drained.wait(timeout_ms)
        finally:
            self._tracker.awaited -= 1

    async def give_up_all(self, drain_ms: float, timeout_ms: float) -> bool:
        """For closing: give up everything, cutting short what waits; whether it was in time."""
        self._closing = True
        for waiting in self._giving:
            waiting.drain_ms = min(waiting.drain_ms, drain_ms)
        self.drained.fire()
        leaving = {p for giving in self._giving for p in giving.partitions}
        rest = tuple(sorted(self._positions.partitions() - leaving))
        giving = _Giving(rest, "the consumer closes", drain_ms, asked=False)
        self._give(giving)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await giving.finished.wait()
        except TimeoutError:
            return False
        return True

    # the steps

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            step = await self._steps.get()
            if isinstance(step, Adopt):
                await self._announce(step)
            else:
                await self._give_up(step)

    async def _announce(self, effect: Adopt) -> None:
        self._report(PartitionsAssigned(effect.added, effect.generation))
        await self._call("on_partitions_assigned", self._callbacks.assigned, effect.added)
        leaving = {p for giving in self._giving for p in giving.partitions}
        self._positions.hold((p for p in effect.added if p not in leaving), held=False)
        self._announced()

    async def _give_up(self, giving: _Giving) -> None:
        partitions = giving.partitions
        if partitions and giving.lost is None:
            await self._wait_until_done(giving)
        if partitions and giving.lost is None:
            await self._call("on_partitions_revoked", self._callbacks.revoked, partitions)
        if partitions and giving.lost is None:
            lost = await self._commit_unless_lost(giving) if self._settings.auto_commit else None
            if lost is None:
                self._report(PartitionsRevoked(partitions, self._tracker.undone_by_partition(partitions)))
            else:
                self._report(PartitionsLost(partitions, lost))
        elif partitions:
            self._report(PartitionsLost(partitions, giving.lost or ""))
            callback = self._callbacks.lost or self._callbacks.revoked
            await self._call("on_partitions_lost", callback, partitions)
        for partition in partitions:
            self._tracker.end(partition)
        self._positions.remove(partitions)
        self._giving.remove(giving)
        giving.finished.set()
        if giving.asked:
            self._released()

    async def _commit_unless_lost(self, giving: _Giving) -> str | None:
        """A commit waits for a generation, and a member that is out gets none before this step has ended.

        Why the partitions were lost meanwhile; None where they were not.
        """
        done = self._committer.commit_done(giving.partitions, self._settings.step_ms)
        commit, gone = asyncio.ensure_future(done), asyncio.ensure_future(giving.gone.wait())
        try:
            await asyncio.wait({commit, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not commit.done():
                commit.cancel()
        # not "await commit", which could not be told from a cancellation of this task
        await asyncio.wait({commit})
        if not commit.cancelled():
            commit.result()
        return giving.lost

    async def _wait_until_done(self, giving: _Giving) -> None:
        self._report(PartitionsRevoking(giving.partitions, self._tracker.undone(giving.partitions)))
        await self._call("on_partitions_revoking", self._callbacks.revoking, giving.partitions)
        loop = asyncio.get_running_loop()
        began = loop.time()
        while (undone := self._tracker.first_undone(giving.partitions)) and giving.lost is None:
            waited_ms = (loop.time() - began) * 1000
            if waited_ms >= giving.drain_ms:
                self._report(DrainTimedOut(undone, waited_ms))
                return
            await self._wait(giving.drain_ms - waited_ms)

    async def _call(
        self, name: str, callback: PartitionsCallback | None, partitions: tuple[TopicPartition, ...]
    ) -> None:
        if callback is None:
            return
        try:
            async with asyncio.timeout(self._settings.step_ms / 1000):
                result = callback(partitions)
                if inspect.isawaitable(result):
                    await result
        except Exception as error:
            self._report(CallbackFailed(name, error))
