"""What ``async for`` reads: a consumer's records, one by one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from typing import Self

from .record import Record
from .run import Run

#: Whether others must have their turn is looked at after so many records at most.
LOOK_EVERY = 64


class OneByOne:
    """No async generator: CPython makes an exception for each tuple that one of those gives.

    ``give_way`` lets others have their turn if they are due one, and says so; ``run_now`` gives records if
    there are any; ``one`` waits for one, and gives none at the end.
    """

    __slots__ = ("_few", "_give_way", "_many", "_one", "_run", "_run_now")

    def __init__(
        self,
        give_way: Callable[[], Awaitable[bool]],
        run_now: Callable[[], Run | None],
        one: Callable[[], Awaitable[list[Record]]],
    ) -> None:
        self._give_way, self._run_now, self._one = give_way, run_now, one
        self._run: Run | None = None
        self._few: Iterator[Record] = iter(())
        self._many = 1

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        for record in self._few:
            return record
        return await self._next()

    async def _next(self) -> Record:
        """The first one of the next few. While there is time they are twice as many, so that a turn becomes
        twice as long at most.
        """
        while True:
            self._many = 1 if await self._give_way() else min(2 * self._many, LOOK_EVERY)
            if self._run is None or self._run.over:
                self._run = self._run_now()
            if self._run is not None:
                self._few = islice(self._run, self._many)
            elif one := await self._one():
                self._few = iter(one)
            else:
                raise StopAsyncIteration
            for record in self._few:
                return record
