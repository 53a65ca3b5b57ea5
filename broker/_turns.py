"""Slicing of long requests, so that other work runs in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar

from ..client.pool import SURROUNDINGS
from ..log import Result, Steps

T = TypeVar("T")

#: Time after which a request about very many items lets other work run, in seconds.
SLICE_S = 0.01

#: Time after which work in steps lets other work run, in seconds.
WORK_SLICE_S = 0.001


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    clock = SURROUNDINGS.get().work_clock
    begun_s = clock()
    for item in items:
        yield item
        if clock() - begun_s > SLICE_S:
            await asyncio.sleep(0)
            begun_s = clock()


class LongWork:
    """Runs long work in steps. Work that needs a thread, and memory, is done one at a time."""

    def __init__(self) -> None:
        self._alone = asyncio.Lock()

    async def run(self, steps: Steps[Result]) -> Result:
        """Run the steps and return the result. Work that takes less than a slice is done without a pause."""
        clock = SURROUNDINGS.get().work_clock
        begun_s = clock()
        try:
            work = next(steps)
            while work is None:
                begun_s = await _give_way(begun_s, clock)
                work = next(steps)
            async with self._alone:
                while True:
                    if work is None:
                        begun_s = await _give_way(begun_s, clock)
                        work = next(steps)
                        continue
                    try:
                        found = await asyncio.get_running_loop().run_in_executor(None, work)
                    except Exception as error:
                        work = steps.throw(error)
                    else:
                        work = steps.send(found)
        except StopIteration as done:
            result: Result = done.value
            return result


async def _give_way(begun_s: float, clock: Callable[[], float]) -> float:
    """Let other work run if it is time for that; return when the current slice began."""
    if clock() - begun_s < WORK_SLICE_S:
        return begun_s
    await asyncio.sleep(0)
    return clock()
