"""Slicing of long requests, so that other work runs in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Final, TypeVar

from ...client.surroundings import SURROUNDINGS
from ...log import Result, Steps
from ...protocol import MAX_DECOMPRESSED_BYTES

T = TypeVar("T")

#: Time after which a request about very many items lets other work run, in seconds.
SLICE_S = 0.01

#: Time after which work in steps lets other work run, in seconds.
WORK_SLICE_S = 0.001


class Slices:
    """The slices of one request about very many items."""

    def __init__(self, slice_s: float | None = None) -> None:
        self._slice_s = SLICE_S if slice_s is None else slice_s
        self._clock = SURROUNDINGS.get().work_clock
        self._begun_s = self._clock()
        #: Whether other work has run meanwhile.
        self.paused = False

    async def end_if_due(self) -> None:
        """Between two items: let other work run if it is time for that."""
        if self._clock() - self._begun_s > self._slice_s:
            self.paused = True
            await asyncio.sleep(0)
            self._begun_s = self._clock()


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """The items; other work runs between them if they take long."""
    slices = Slices()
    for item in items:
        yield item
        await slices.end_if_due()


#: How many works may hold memory at once, by the bytes that each holds at most. Large work waits for large
#: work alone, and shares the turns of the loop with all other.
MOST_HELD: Final = {8 << 20: 8, MAX_DECOMPRESSED_BYTES: 1}


class LongWork:
    """Runs long work in steps. Work that needs a thread is limited in number, since it also needs memory."""

    def __init__(self) -> None:
        self._rooms = [(most_bytes, asyncio.Semaphore(count)) for most_bytes, count in MOST_HELD.items()]

    async def run(self, steps: Steps[Result]) -> Result:
        """Run the steps and return the result. Work that takes less than a slice is done without a pause."""
        clock = SURROUNDINGS.get().work_clock
        begun_s = clock()
        try:
            work = next(steps)
        except StopIteration as done:
            # most work is a single step
            at_once: Result = done.value
            return at_once
        held = -1
        async with AsyncExitStack() as room:
            try:
                while True:
                    if work is None:
                        begun_s = await _give_way(begun_s, clock)
                        work = next(steps)
                        continue
                    needed = self._room_for(work.most_bytes)
                    if needed > held:
                        # given back first: nobody holds one room and waits for another
                        await room.aclose()
                        await room.enter_async_context(self._rooms[needed][1])
                        held = needed
                    try:
                        found = await asyncio.get_running_loop().run_in_executor(None, work.call)
                    except Exception as error:
                        work = steps.throw(error)
                    else:
                        work = steps.send(found)
            except StopIteration as done:
                result: Result = done.value
                return result

    def _room_for(self, size: int) -> int:
        """The smallest room for ``size`` bytes; the largest for more."""
        last = len(self._rooms) - 1
        return next((at for at, (most_bytes, _) in enumerate(self._rooms) if size <= most_bytes), last)


async def _give_way(begun_s: float, clock: Callable[[], float]) -> float:
    """Let other work run if it is time for that; return when the current slice began."""
    if clock() - begun_s < WORK_SLICE_S:
        return begun_s
    await asyncio.sleep(0)
    return clock()
