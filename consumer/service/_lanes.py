"""Lanes: what may run at the same time, and what must wait for its predecessor.

Records of one lane are handled one after the other, in the order of their offsets; lanes run side by side, up
to a bound. A lane belongs to one partition, so a partition that is taken away takes whole lanes with it.
Nothing here knows what handling is: the owner passes a coroutine function that gets the records and the
number of the try, and answers None when they are finished (then ``done`` is called for each) or the seconds
after which they are to be tried again.

Releasing a partition (it moves to another member) drops what has not begun, but for records *before* one that
has: were they left undone, the next owner would have to begin before them and do the later ones twice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

#: What a lane runs: (records, number of the try from 1) -> None, or seconds until the next try.
Run = Callable[[list[Any], int], Awaitable[float | None]]
#: Topic and partition.
Partition = tuple[str, int]


class HasOffset(Protocol):
    """All that lanes know about a record."""

    @property
    def offset(self) -> int: ...


@dataclass(slots=True, eq=False)
class _Lane:
    work: _PartitionWork
    key: Hashable
    waiting: deque[Any] = field(default_factory=deque)
    taken: list[Any] = field(default_factory=list)
    attempt: int = 0
    #: The worker that runs this lane just now.
    worker: asyncio.Task[None] | None = None
    #: Set while the lane waits before its next try.
    timer: asyncio.TimerHandle | None = None
    abandoned: bool = False


@dataclass(slots=True, eq=False)
class _PartitionWork:
    partition: Partition
    lanes: dict[Hashable, _Lane] = field(default_factory=dict)
    #: Highest offset any lane has begun with.
    begun: int = -1
    releasing: bool = False
    idle: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A record whose handler did not finish in time and was cancelled."""

    partition: Partition
    offset: int


class LaneScheduler:
    """Runs lanes on at most ``concurrency`` workers; each turn of a lane takes up to ``batch`` records.

    ``on_failure`` gets an exception that ``run`` let escape: what that lane held is dropped, never done.
    """

    def __init__(
        self,
        run: Run,
        *,
        concurrency: int,
        batch: int,
        done: Callable[[Any], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._run = run
        self._done = done
        self._concurrency = concurrency
        self._batch = batch
        self._on_failure = on_failure
        self._partitions: dict[Partition, _PartitionWork] = {}
        self._ready: deque[_Lane] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        #: Records added and not finished, those being handled included.
        self.backlog = 0

    @property
    def in_flight(self) -> int:
        """Records being handled or waiting for their next try: counted when asked for, which is seldom."""
        works = self._partitions.values()
        return sum(len(lane.taken) for work in works for lane in work.lanes.values())

    def add(self, partition: Partition, key: Hashable, record: HasOffset) -> None:
        """Put a record at the end of its lane. Records of a partition that is being released are dropped."""
        work = self._partitions.get(partition)
        if work is None:
            work = self._partitions[partition] = _PartitionWork(partition)
        elif work.releasing:
            return
        lane = work.lanes.get(key)
        if lane is None:
            lane = work.lanes[key] = _Lane(work, key)
            self._ready.append(lane)
        lane.waiting.append(record)
        self.backlog += 1
        if len(self._workers) < self._concurrency and self._ready:
            self._start_worker()

    async def release(self, partitions: Iterable[Partition], timeout_s: float) -> list[Unfinished]:
        """Finish or drop all of these partitions, in at most ``timeout_s``; what had to be cancelled."""
        works = [self._partitions[p] for p in partitions if p in self._partitions]
        for work in works:
            work.releasing = True
            self._drop_what_has_not_begun(work)
        waits = [asyncio.ensure_future(work.idle.wait()) for work in works if work.lanes]
        if waits:
            _, late = await asyncio.wait(waits, timeout=timeout_s)
            for wait in late:
                wait.cancel()
        unfinished = [each for work in works for each in self._abandon(work)]
        for work in works:
            self._partitions.pop(work.partition, None)
        return unfinished

    async def release_all(self, timeout_s: float) -> list[Unfinished]:
        """Release every partition."""
        return await self.release(list(self._partitions), timeout_s)

    async def close(self) -> None:
        """Cancel the workers; nothing may be added afterwards."""
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    def _start_worker(self) -> None:
        self._workers.add(asyncio.get_running_loop().create_task(self._work()))

    async def _work(self) -> None:
        this = asyncio.current_task()
        assert this is not None, "a worker is a task"
        try:
            await self._run_lanes(this)
        except Exception as error:
            self._on_failure(error)  # of done: nothing may end in silence
        finally:
            # in the same step as the look that found nothing ready, or a lane could miss its worker
            self._workers.discard(this)

    async def _run_lanes(self, this: asyncio.Task[None]) -> None:
        while self._ready:
            lane = self._ready.popleft()
            if not lane.taken:
                self._take(lane)
            lane.attempt += 1
            lane.worker = this
            try:
                delay = await self._run(lane.taken, lane.attempt)
            except asyncio.CancelledError:
                if not lane.abandoned:
                    raise  # the whole scheduler closes
            except Exception as error:
                if not lane.abandoned:
                    self._fail(lane)
                    self._on_failure(error)
            else:
                if not lane.abandoned:
                    self._after_run(lane, delay)
            if lane.abandoned:
                this.uncancel()

    def _take(self, lane: _Lane) -> None:
        waiting = lane.waiting
        if self._batch == 1:
            lane.taken = [waiting.popleft()]
        else:
            lane.taken = [waiting.popleft() for _ in range(min(self._batch, len(waiting)))]
        lane.attempt = 0
        lane.work.begun = max(lane.work.begun, lane.taken[-1].offset)

    def _after_run(self, lane: _Lane, delay: float | None) -> None:
        lane.worker = None
        if delay is not None:
            lane.timer = asyncio.get_running_loop().call_later(delay, self._try_again, lane)
            return
        for record in lane.taken:
            self._done(record)
        self._forget_taken(lane)
        if lane.waiting:
            self._ready.append(lane)
        else:
            self._end_lane(lane)

    def _forget_taken(self, lane: _Lane) -> None:
        self.backlog -= len(lane.taken)
        lane.taken = []

    def _end_lane(self, lane: _Lane) -> None:
        work = lane.work
        work.lanes.pop(lane.key, None)
        if not work.lanes:
            work.idle.set()

    def _try_again(self, lane: _Lane) -> None:
        lane.timer = None
        self._ready.append(lane)
        if len(self._workers) < self._concurrency:
            self._start_worker()

    def _fail(self, lane: _Lane) -> None:
        self._forget_taken(lane)
        self._drop_waiting(lane)
        self._end_lane(lane)

    def _drop_waiting(self, lane: _Lane) -> None:
        self.backlog -= len(lane.waiting)
        lane.waiting.clear()

    def _drop_what_has_not_begun(self, work: _PartitionWork) -> None:
        for lane in list(work.lanes.values()):
            kept = deque(record for record in lane.waiting if record.offset < work.begun)
            self.backlog -= len(lane.waiting) - len(kept)
            lane.waiting = kept
            if not kept and not lane.taken:
                if lane in self._ready:
                    self._ready.remove(lane)
                self._end_lane(lane)

    def _abandon(self, work: _PartitionWork) -> list[Unfinished]:
        unfinished = []
        for lane in list(work.lanes.values()):
            lane.abandoned = True
            unfinished += [
                Unfinished(work.partition, record.offset) for record in (*lane.taken, *lane.waiting)
            ]
            if lane.timer is not None:
                lane.timer.cancel()
            if lane in self._ready:
                self._ready.remove(lane)
            if lane.worker is not None:
                lane.worker.cancel()
            self._forget_taken(lane)
            self._drop_waiting(lane)
            self._end_lane(lane)
        return unfinished
