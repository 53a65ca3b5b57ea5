"""Flow control of one connection's requests: their queue, limits of requests in progress, and pauses."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from ...protocol import ProtocolError
from ..event_loop.stopwatch import clock

#: Most waiting requests of one connection; beyond that it is not read.
MAX_WAITING_REQUESTS = 32

#: Most bytes of one connection's waiting requests; beyond that it is not read.
MAX_WAITING_BYTES = 1_048_576

#: Most requests of one connection whose responses wait for a write of the coordinator; fewer if they reach
#: MAX_WAITING_BYTES.
MAX_AHEAD = 1_024

#: A connection whose requests are all answered at once lets other work run after this long, in seconds.
#: Others wait for this and for the writes that follow: for a client with many groups, one in every partition.
TURN_S = 0.002

#: Bit mask of the count of consecutive requests: those with these bits 0, one in 16, read the clock, to see
#: whether the turn is over and how much a limited client has used.
LOOK = 15

#: Once connections have worked for this long without a rest, in seconds, each takes one request per turn of
#: the loop, so that a quiet connection's request does not wait for all of thousands. A rest is _REST_S
#: without work.
CROWD_S = 0.008
_REST_S = 50e-6

#: Interval at which new connections are accepted while others work, in seconds.
_LET_IN_S = 0.001

#: A connection that holds no more bytes than this may still be read while larger ones have to wait.
SMALL_BYTES = 16_384


class Turn:
    """The time for which connections have worked in one turn of the loop, one after another.

    ``let_in`` is called in a long turn, so that new connections need not wait for its end.
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
        """Return whether a connection has to leave its work to the loop's next turn. ``last`` is the number
        of the turn in which it read before: it reads once in each.
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
            # only after every waiting connection has had one request handled
            self._loop.call_soon(self._loop.call_soon, self._pass_on)
        return self._over

    def pause(self) -> None:
        """Called when a connection has done some work."""
        self._ended = clock()

    def _pass_on(self) -> None:
        self._over = False
        self.number += 1
        self._began = clock()


class RequestQueue:
    """Frames of one connection that have arrived, in order; the last may be an error that ends them."""

    __slots__ = ("_arrivals", "ended", "frames", "held_bytes")

    def __init__(self) -> None:
        #: Frames to handle.
        self.frames: deque[bytes | ProtocolError] = deque()
        self._arrivals: deque[float] = deque()
        #: Bytes of the frames in the queue, and of those taken and not released.
        self.held_bytes = 0
        #: Whether all bytes from now on are ignored.
        self.ended = False

    @property
    def full(self) -> bool:
        """Whether so many requests or bytes wait that reading has to stop."""
        return len(self.frames) >= MAX_WAITING_REQUESTS or self.held_bytes >= MAX_WAITING_BYTES

    def add(self, frame: bytes) -> None:
        """Append a frame, with the time of its arrival."""
        self.frames.append(frame)
        self._arrivals.append(clock())
        self.held_bytes += len(frame)

    def end(self, error: ProtocolError) -> None:
        """End the stream with an error: bytes that follow are not frames."""
        self.frames.append(error)
        self.ended = True

    def take(self) -> tuple[bytes | ProtocolError, float]:
        """Take the first frame, with the seconds it has waited. Its bytes count as held until released."""
        frame = self.frames.popleft()
        return frame, clock() - self._arrivals.popleft() if self._arrivals else 0.0

    def close(self) -> None:
        """Drop all frames, present and future."""
        self.ended = True
        self.frames.clear()
        self._arrivals.clear()
        self.held_bytes = 0


class Pause:
    """The pause of a client that exceeds a quota: true while it lasts; ``over`` is called at its end."""

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
        """End the pause now, if there is one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._over()


def wake_waiter(waiter: asyncio.Future[None] | None) -> None:
    """Complete a future that a coroutine may wait for."""
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
