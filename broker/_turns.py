"""How much one connection may have under way, and how long its turn is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from ._stopwatch import clock

T = TypeVar("T")

#: Requests of one connection that may wait; over it its reading pauses.
MAX_WAITING_REQUESTS = 32

#: Bytes of one connection's waiting requests; over it its reading pauses.
MAX_WAITING_BYTES = 1_048_576

#: Requests of one connection that the coordinator may hold at once, their answers waiting for a write, unless
#: they have MAX_WAITING_BYTES before.
MAX_AHEAD = 1_024

#: A connection whose requests are all answered at once lets others go on after this long, in seconds. They
#: wait for a turn and for the writes that come of it: of a client with many groups, one in every partition.
TURN_S = 0.002

#: Of requests that are taken one behind the other one in so many looks at the clock (less one: the bits of a
#: count that are 0 then): whether the turn is over, and how much a limited client has used by now.
LOOK = 15

#: A connection that holds no more than this may read on while others, who hold more, have to wait.
SMALL_BYTES = 16_384

#: A request about very many things lets others go on after this long, in seconds.
SLICE_S = 0.01


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """The items, letting others go on now and then."""
    begun_s = clock()
    for item in items:
        yield item
        if clock() - begun_s > SLICE_S:
            await asyncio.sleep(0)
            begun_s = clock()
