"""Tells of certificates that have expired or soon will: when the listeners open, and once a day."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from ._listener_security import ListenerSecurity

log = logging.getLogger("kohort.broker")

#: A certificate that expires within this many days is mentioned.
SOON_DAYS = 30

DAY_S = 86_400.0


class CertificateWatch:
    """``log_expiring`` may be called often; ``now`` is a steady clock, ``wall`` the one that certificates go
    by.
    """

    def __init__(
        self,
        listeners: Iterable[ListenerSecurity],
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._listeners = list(listeners)
        self._now = now
        self._wall = wall
        self._next_s = float("-inf")

    def __repr__(self) -> str:
        return f"CertificateWatch({self.ends()})"

    def ends(self) -> dict[str, float]:
        """When the first certificate of each listener expires, in seconds since 1970."""
        found = {each.listener.name: each.certificate_end() for each in self._listeners}
        return {name: end for name, end in found.items() if end is not None}

    def log_expiring(self) -> None:
        """Log what has expired or soon will, unless that was done within a day."""
        if self._now() < self._next_s:
            return
        self._next_s = self._now() + DAY_S
        from datetime import UTC, datetime

        for name, end in self.ends().items():
            left_s = end - self._wall()
            day = datetime.fromtimestamp(end, UTC).date()
            if left_s < 0:
                log.error(
                    "listener %s: a certificate expired on %s: exchange it, clients refuse it", name, day
                )
            elif left_s < SOON_DAYS * DAY_S:
                log.warning("listener %s: a certificate expires on %s: exchange it", name, day)
