"""Decides which connections are read, by the bytes of requests that all of them hold together.

Nothing is dropped: a connection that has to wait stays in a queue until there is room.
"""

from __future__ import annotations

import asyncio
from itertools import chain, islice
from typing import Protocol

from ..security._listeners import Listener
from ..settings import BrokerSettings
from ._flow import SMALL_BYTES

#: Most waiting connections that resume in one turn of the loop: each may bring a whole read.
AT_ONCE = 32

#: Bytes in one turn of the loop beyond which connections that hold much wait for the next turn.
TURN_BYTES = 8 << 20

#: Levels of the bytes that all connections hold: little, over half of the limit, over three quarters, over
#: all.
_LITTLE, _HALF, _MOST, _ALL = range(4)

#: The line of those that hold much.
_LARGE = 2

#: Lower bounds of the levels, in eighths of the limit.
_BEGINS = (0, 4, 6, 8)


class Requester(Protocol):
    """A connection that sends requests."""

    @property
    def held_bytes(self) -> int:
        """Bytes of its waiting requests, the incomplete one included."""

    @property
    def small_only(self) -> bool:
        """Return whether it has sent requests, and only small ones."""

    @property
    def listener(self) -> Listener:
        """The listener that the connection came to."""

    def regulate(self) -> None:
        """Stop or resume reading, as ``lets_read`` says."""


class Backpressure:
    """Over half of ``queued.max.request.bytes`` connections that hold more than ``SMALL_BYTES`` stop being
    read, except one, so that small requests still come through; over three quarters all but those that have
    sent small requests only, and over all of it every connection, also those that are not accepted yet. One
    may always go on, or a broker full of incomplete requests would never make progress.
    """

    def __init__(self, settings: BrokerSettings, loop: asyncio.AbstractEventLoop) -> None:
        #: Bytes of waiting requests, incomplete ones included.
        self.held_bytes = 0
        self._settings = settings
        self._loop = loop
        self._level = _LITTLE
        # when bytes last came or went while all of the limit was held, on the loop's clock
        self._moved_at = 0.0
        # since when it is, and how long it was before
        self._depleted_at: float | None = None
        self._depleted_s = 0.0
        #: The one connection that is always read.
        self._favourite: Requester | None = None
        #: Connections that are read, and those that hold much, read or waiting.
        self._free: dict[Requester, None] = {}
        self._large: dict[Requester, None] = {}
        self._turn_bytes = 0
        #: Waiting connections in order: those with small requests only, others that hold little, and those
        #: that hold much.
        self._lines: tuple[dict[Requester, None], ...] = ({}, {}, {})
        self._about_to_let_on = False

    def __repr__(self) -> str:
        waiting = sum(map(len, self._lines))
        return f"Backpressure({self.held_bytes} request bytes held, {waiting} connections wait)"

    def is_crowded(self) -> bool:
        """Return whether new connections have to wait."""
        return self._level == _ALL

    def depleted_s(self, now: float) -> float:
        """Seconds for which all of the limit was held, so far."""
        return self._depleted_s + (0.0 if self._depleted_at is None else now - self._depleted_at)

    def stuck_bytes(self, now: float) -> int:
        """Bytes that have to go before anybody else may go on; 0 unless nothing has come or gone for as long
        as a request may take to be complete, and then its answer to be read.

        Complete requests can wait without end: behind a Fetch of hours, or for a client to read its answers.
        """
        settings = self._settings
        patience_ms = settings.kohort_request_complete_timeout_ms + settings.kohort_response_unread_timeout_ms
        if not self.is_crowded() or (now - self._moved_at) * 1000 <= patience_ms:
            return 0
        return self.held_bytes - settings.queued_max_request_bytes * (_BEGINS[_ALL] - 1) // 8

    def add(self, connection: Requester) -> None:
        """Begin to count a connection's bytes."""
        self._free[connection] = None

    def forget(self, connection: Requester) -> None:
        """Called when a connection is closed: stop counting its bytes."""
        self._leave_line(connection)
        del self._free[connection]
        self._large.pop(connection, None)
        if connection is self._favourite:
            self._favourite = None
            self._let_on()

    def count_bytes(self, connection: Requester, change: int) -> None:
        """Count request bytes that arrived (or, negative, were released)."""
        self.held_bytes += change
        if change > 0:
            if not self._turn_bytes:
                self._loop.call_soon(self._end_turn)
            self._turn_bytes += change
            if connection.held_bytes > SMALL_BYTES:
                self._large[connection] = None
        elif connection.held_bytes <= SMALL_BYTES:
            self._large.pop(connection, None)
        self._stop_waiting_readers(connection)
        if self._level == _ALL:
            self._moved_at = self._loop.time()

    def _end_turn(self) -> None:
        self._turn_bytes = 0
        self._stop_waiting_readers()

    def _stop_waiting_readers(self, changed: Requester | None = None) -> None:
        """Stop reading the connections that have to wait now."""
        before, self._level = self._level, self._level_now()
        if (self._level == _ALL) is not (before == _ALL):
            self._note_depletion()
        if self._level > before:
            if self._favourite is None and changed is not None and changed.held_bytes:
                self._favourite = changed
            # at once: each of the others could bring a whole read before its turn comes
            some = self._large if self._open_queues == _LARGE else self._free
            for each in [each for each in some if each in self._free and _rank_of(each) >= self._open_queues]:
                each.regulate()
        elif self._level < before or (
            changed is not None and changed is self._favourite and not changed.held_bytes
        ):
            self._favourite = None
            self._let_on()

    def _note_depletion(self) -> None:
        now = self._loop.time()
        self._depleted_s = self.depleted_s(now)
        self._depleted_at = now if self._level == _ALL else None

    def lets_read(self, connection: Requester) -> bool:
        """Return whether this connection may go on reading; else it is queued."""
        rank = _rank_of(connection)
        if rank < self._open_queues or connection is self._favourite or connection.listener.control:
            self._leave_line(connection)
            return True
        if self._favourite is None and connection.held_bytes and not self._about_to_let_on:
            self._favourite = connection
            self._leave_line(connection)
            return True
        if connection not in self._lines[rank]:
            self._leave_line(connection)
            self._free.pop(connection, None)
            self._lines[rank][connection] = None
        return False

    @property
    def _open_queues(self) -> int:
        """Number of queues whose connections may read."""
        return len(self._lines) - self._level

    def _level_now(self) -> int:
        """The present level. It is left an eighth below its lower bound, so as not to flutter."""
        eighths = self.held_bytes * 8 / self._settings.queued_max_request_bytes
        level = self._level
        while level < _ALL and eighths > _BEGINS[level + 1]:
            level += 1
        while level > _LITTLE and eighths <= _BEGINS[level] - 1:
            level -= 1
        return max(level, _HALF) if self._turn_bytes > TURN_BYTES else level

    def _leave_line(self, connection: Requester) -> None:
        if connection not in self._free:
            for line in self._lines:
                line.pop(connection, None)
            self._free[connection] = None

    def _let_on(self) -> None:
        """Resume waiting connections soon, some in each turn of the loop: thousands of reads would block
        it.
        """
        if not self._about_to_let_on:
            self._about_to_let_on = True
            self._loop.call_soon(self._let_some_on)

    def _let_some_on(self) -> None:
        self._about_to_let_on = False
        if self._favourite is None and self._level:
            # their bytes are released once their requests are handled
            waiting = chain.from_iterable(reversed(self._lines))
            self._favourite = next((each for each in waiting if each.held_bytes), None)
        some = list(islice(chain.from_iterable(self._lines[: self._open_queues]), AT_ONCE))
        if len(some) == AT_ONCE:
            self._let_on()
        if self._favourite is not None:
            some.append(self._favourite)
        for connection in some:
            # it may have another reason to wait, and asks again when that has ended
            self._leave_line(connection)
            connection.regulate()


def _rank_of(connection: Requester) -> int:
    if connection.held_bytes > SMALL_BYTES:
        return _LARGE
    return 0 if connection.small_only else 1
