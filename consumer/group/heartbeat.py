"""Times of heartbeats, and the check whether the session is at risk. No I/O; times are milliseconds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ...client.waiting import Backoff
from ...protocol import ErrorCode
from ..events import SessionInDoubt, SessionResumed
from .effects import Effect, ReportEvent, Send, SessionAtRisk
from .errors import NO_COORDINATOR_FOR_US

#: Before an announced rebalance the first heartbeat comes this soon, and each pause is longer by half: the
#: partitions that move wait for the member that learns of the rebalance last.
FIRST_PAUSE_MS = 10.0
_GROWTH = 1.5

#: Default for the time between heartbeats: partitions that others give up wait for the next one. In large
#: groups it is longer, so that a group sends no more than 333 heartbeats per second.
SHORTEST_INTERVAL_MS = 200.0
MEMBER_MS = 3.0


def interval_ms(members: int | None, longest_ms: float) -> float:
    """The time between heartbeats in a group of this size; None: not known."""
    return longest_ms if members is None else min(max(SHORTEST_INTERVAL_MS, MEMBER_MS * members), longest_ms)


@dataclass(slots=True)
class Heartbeats:
    """The heartbeats of one membership. ``under_way`` is the pending one, sent with ``generation``."""

    interval_ms: float
    session_timeout_ms: float
    backoff: Backoff
    emit: Callable[[Effect], None]
    under_way: Send | None = None
    generation: int = -1
    at_risk: bool = False
    sent_at: float = 0.0
    _next: float = 0.0
    _pause_ms: float = math.inf
    _growth: float = _GROWTH
    _grows_at: float = 0.0
    _last_heard: float = 0.0
    _failures: int = 0

    def deadline(self) -> float | None:
        """Time of the next heartbeat or session check, in states that have heartbeats."""
        times = [] if self.under_way is not None else [self._next]
        if not self.at_risk:
            times.append(self._last_heard + self.session_timeout_ms)
        return min(times, default=None)

    def due(self, now: float) -> bool:
        """Return whether one is to be sent now; never while another is under way."""
        return self.under_way is None and now >= self._next

    def on_sent(self, send: Send, generation: int, now: float) -> None:
        """Note a heartbeat that is under way, and for which generation."""
        self.under_way = send
        self.generation = generation
        self.sent_at = now
        growth = self._growth if now >= self._grows_at else 1.0
        self._pause_ms = min(growth * self._pause_ms, self.interval_ms)
        self._next = now + self._pause_ms
        self.emit(send)

    def on_heard(self, at: float) -> None:
        """Called when the coordinator has accepted a request of this member: restart the session timeout
        at this time.
        """
        self._last_heard = at
        self._failures = 0
        self._end_risk()

    def on_joined(self, now: float) -> None:
        """Called when JoinGroup has succeeded."""
        self.on_heard(now)
        self._pause_ms = self.interval_ms
        self._next = now + self.interval_ms

    def change_interval(self, interval_ms: float, now: float) -> None:
        """Send them at another interval from now on."""
        self.interval_ms = self._pause_ms = interval_ms
        self._next = min(self._next, now + interval_ms)

    def expect_rebalance(
        self, now: float, pause_ms: float = FIRST_PAUSE_MS, growth: float = _GROWTH, steady_ms: float = 0.0
    ) -> None:
        """Another rebalance, or assignment, is about to follow. Pauses grow after ``steady_ms``."""
        self._pause_ms, self._growth = min(pause_ms, self.interval_ms), growth
        self._grows_at = now + steady_ms
        self._next = now + self._pause_ms

    def at_once(self, now: float) -> None:
        """Make the next heartbeat due as soon as the pending one is answered: there is news for it."""
        self._next = now

    def put_off(self, now: float) -> None:
        """There is nothing to tell yet, and soon there will be."""
        self._next = now + self.interval_ms

    def retry_later(self, now: float) -> None:
        """A heartbeat failed: send the next one after a growing back-off."""
        self._next = now + self.backoff.delay_ms(self._failures)
        self._failures += 1

    def is_final(self, code: ErrorCode) -> bool:
        """Return whether this error is a right that was withdrawn and not given back for a session timeout: a
        shorter withdrawal, while access rules are changed, is survived.
        """
        return code in NO_COORDINATOR_FOR_US and self.at_risk

    def check_session(self, now: float) -> None:
        """Put the session at risk after a session timeout without an answer.

        The coordinator may have assigned this member's partitions to others. Or it is down, and after its
        restart all members have a new session. So nothing is lost yet, but nothing more is delivered.
        """
        if not self.at_risk and now >= self._last_heard + self.session_timeout_ms:
            self.at_risk = True
            self.emit(SessionAtRisk(True))
            self.emit(ReportEvent(SessionInDoubt(now - self._last_heard)))

    def stop(self) -> None:
        """Called when the generation is over."""
        self.under_way = None
        self._end_risk()

    def _end_risk(self) -> None:
        if self.at_risk:
            self.at_risk = False
            self.emit(SessionAtRisk(False))
            self.emit(ReportEvent(SessionResumed()))
