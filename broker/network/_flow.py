"""Flow of one connection's requests: their queue, how many may be under way, and pauses."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from ...protocol import ProtocolError
from .._stopwatch import clock

#: Requests of one connection that may wait; over it its reading pauses.
MAX_WAITING_REQUESTS = 32

#: Bytes of one connection's waiting requests; over it its reading pauses.
MAX_WAITING_BYTES = 1_048_576

#: Requests of one connection that the coordinator may hold at once, their answers waiting for a write, unless
#: they have MAX_WAITING_BYTES before.
MAX_AHEAD = 1_024

#: A connection whose requests are all answered at once lets other work run after this long, in seconds. They
#: wait for a turn and for the writes that come of it: of a client with many groups, one in every partition.
TURN_S = 0.002

#: Of consecutive requests, one in this many looks at the clock (less one, as a bit mask of their count), to
#: see whether the turn is over and how much a limited client has used.
LOOK = 15

#: Once connections have been at work for this long, in seconds, each takes one request in a turn of the loop:
#: of thousands that come at once, few are before that of a quiet connection. Where none worked for _REST_S
#: they have rested.
CROWD_S = 0.008
_REST_S = 50e-6

#: How often others are let in while connections are at work, in seconds.
_LET_IN_S = 0.001

#: A connection that holds no more than this may read on while others, who hold more, have to wait.
SMALL_BYTES = 16_384


class Turn:
    """A turn of the loop: the time for which connections have been at work in it, one after the other.

    ``let_in`` is called now and then in a long one: who connects need not wait for the loop to come round.
    """

    __slots__ = ("_began", "_ended", "_let_in", "_let_in_at", "_loop", "_over", "number")

    def __init__(self, loop: asyncio.AbstractEventLoop, let_in: Callable[[], None]) -> None:
        self._loop = loop
        self._let_in = let_in
        self._let_in_at = 0.0
        self._began = self._ended = 0.0
        self._over = False
        self.number = 0

    def is_over(self, last: int = -1) -> bool:
        """Return whether a connection that has work is to leave it for the loop's next turn. ``last`` is the
        number of the turn in which it read before: it reads once in each.
        """
        now = clock()
        if last == self.number or now - self._ended > _REST_S:
            self.number += 1
            self._began = now
            self._let_in_at = now + _LET_IN_S
            return self._over
        if now > self._let_in_at:
            self._let_in_at = now + _LET_IN_S
            self._let_in()
        if not self._over and now - self._began > CROWD_S:
            self._over = True
            # not before those that wait have had one request each
            self._loop.call_soon(self._loop.call_soon, self._next)
        return self._over

    def pause(self) -> None:
        """Called when a connection has done some work."""
        self._ended = clock()

    def _next(self) -> None:
        self._over = False
        self.number += 1
        self._began = clock()


class RequestQueue:
    """Frames of one connection that have arrived, in order; the last may be the error that ends them."""

    __slots__ = ("_arrivals", "ended", "frames", "held_bytes")

    def __init__(self) -> None:
        #: To be looked at.
        self.frames: deque[bytes | ProtocolError] = deque()
        self._arrivals: deque[float] = deque()
        #: Bytes of the frames that are here, or taken and not released.
        self.held_bytes = 0
        #: Whether nothing that comes now can be trusted.
        self.ended = False

    @property
    def full(self) -> bool:
        return len(self.frames) >= MAX_WAITING_REQUESTS or self.held_bytes >= MAX_WAITING_BYTES

    def add(self, frame: bytes) -> None:
        self.frames.append(frame)
        self._arrivals.append(clock())
        self.held_bytes += len(frame)

    def end(self, error: ProtocolError) -> None:
        """End the stream with an error: nothing that follows is a frame."""
        self.frames.append(error)
        self.ended = True

    def take(self) -> tuple[bytes | ProtocolError, float]:
        """The first, and how many seconds it has waited. Its bytes are held until they are released."""
        frame = self.frames.popleft()
        return frame, clock() - self._arrivals.popleft() if self._arrivals else 0.0

    def close(self) -> None:
        """Drop every frame, and all that still come."""
        self.ended = True
        self.frames.clear()
        self._arrivals.clear()
        self.held_bytes = 0


class Pause:
    """A pause of a client that is over a quota: true while it lasts; ``over`` is called at its end."""

    __slots__ = ("_loop", "_over", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, over: Callable[[], None]) -> None:
        self._loop = loop
        self._over = over
        self._timer: asyncio.TimerHandle | None = None

    def __bool__(self) -> bool:
        return self._timer is not None

    def begin(self, seconds: float) -> None:
        """Pause for this long from now on, or until the end of a longer pause."""
        if self._timer is not None:
            if self._timer.when() >= self._loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self.end)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._over()


def wake(waiter: asyncio.Future[None] | None) -> None:
    """Complete a future that a coroutine may wait for."""
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
