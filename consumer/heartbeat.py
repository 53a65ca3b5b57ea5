"""When heartbeats are due, and when silence puts the session in doubt. No I/O; times are milliseconds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..client.waiting import Backoff
from .effects import Effect, Report, Send, SessionAtRisk
from .events import SessionInDoubt, SessionResumed

#: When another round is about to follow, the first heartbeat comes so soon, and each pause is longer by half:
#: partitions on their way wait for the member that hears of it last.
FIRST_PAUSE_MS = 10.0
_GROWTH = 1.5


@dataclass(slots=True)
class Heartbeats:
    """``under_way`` is the heartbeat that waits for its answer, sent with ``generation``."""

    interval_ms: float
    session_timeout_ms: float
    backoff: Backoff
    emit: Callable[[Effect], None]
    under_way: Send | None = None
    generation: int = -1
    at_risk: bool = False
    _next: float = 0.0
    _pause_ms: float = math.inf
    _last_heard: float = 0.0
    _failures: int = 0

    def deadline(self) -> float | None:
        """When to look again, while the member's state has heartbeats."""
        times = [] if self.under_way is not None else [self._next]
        if not self.at_risk:
            times.append(self._last_heard + self.session_timeout_ms)
        return min(times, default=None)

    def due(self, now: float) -> bool:
        return self.under_way is None and now >= self._next

    def sent(self, send: Send, generation: int, now: float) -> None:
        self.under_way = send
        self.generation = generation
        self._pause_ms = min(_GROWTH * self._pause_ms, self.interval_ms)
        self._next = now + self._pause_ms
        self.emit(send)

    def heard(self, now: float) -> None:
        """The coordinator knows us at this moment: the session starts anew."""
        self._last_heard = now
        self._failures = 0
        self._end_doubt()

    def joined(self, now: float) -> None:
        """A JoinGroup was answered."""
        self.heard(now)
        self._pause_ms = self.interval_ms
        self._next = now + self.interval_ms

    def expect(self, now: float) -> None:
        """The group is about to have another round."""
        self._pause_ms = min(FIRST_PAUSE_MS, self.interval_ms)
        self._next = now + self._pause_ms

    def retry(self, now: float) -> None:
        """A heartbeat failed: the next one after a pause that grows."""
        self._next = now + self.backoff.delay_ms(self._failures)
        self._failures += 1

    def check_session(self, now: float) -> None:
        """Begin to doubt after a session timeout of silence.

        The coordinator may have given our partitions to others; or it is down, and after its restart every
        member has its seat and a new session. So nothing is lost yet, but nothing more is delivered.
        """
        if not self.at_risk and now >= self._last_heard + self.session_timeout_ms:
            self.at_risk = True
            self.emit(SessionAtRisk(True))
            self.emit(Report(SessionInDoubt(now - self._last_heard)))

    def stop(self) -> None:
        """The generation is gone, and the doubt with it."""
        self.under_way = None
        self._end_doubt()

    def _end_doubt(self) -> None:
        if self.at_risk:
            self.at_risk = False
            self.emit(SessionAtRisk(False))
            self.emit(Report(SessionResumed()))
