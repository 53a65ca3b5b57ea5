"""Tells of certificates that have expired or soon will: when the listeners open, and once a day."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from ...client.certificates import DAY_S, SOON_DAYS, first_end
from ._listener_security import ListenerSecurity

log = logging.getLogger("kohort.broker")

#: What the certificate that ZooKeeper is shown is called among those of listeners.
ZOOKEEPER: Final = "zookeeper"


class CertificateWatch:
    """``log_expiring`` may be called often; ``now`` is a steady clock, ``wall`` the one that certificates go
    by. ``for_zookeeper``: the file with the certificate that ZooKeeper is shown, "" for none.
    """

    def __init__(
        self,
        listeners: Iterable[ListenerSecurity],
        for_zookeeper: str = "",
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._listeners = list(listeners)
        self._for_zookeeper = for_zookeeper
        self._now = now
        self._wall = wall
        self._next_s = float("-inf")

    def __repr__(self) -> str:
        return f"CertificateWatch({self.ends()})"

    def ends(self) -> dict[str, float]:
        """When the first certificate of each listener expires, and the one for ZooKeeper, in seconds since
        1970.
        """
        found = {each.listener.name: each.certificate_end() for each in self._listeners}
        if self._for_zookeeper:
            try:
                found[ZOOKEEPER] = first_end(Path(self._for_zookeeper).read_text(errors="replace"))
            except OSError:
                found[ZOOKEEPER] = None
        return {name: end for name, end in found.items() if end is not None}

    def log_expiring(self) -> None:
        """Log what has expired or soon will, unless that was done within a day."""
        if self._now() < self._next_s:
            return
        self._next_s = self._now() + DAY_S
        from datetime import UTC, datetime

        for name, end in self.ends().items():
            left_s = end - self._wall()
            where = "zookeeper.ssl.keystore.location" if name == ZOOKEEPER else f"listener {name}"
            day = datetime.fromtimestamp(end, UTC).date()
            if left_s < 0:
                log.error("%s: a certificate expired on %s: exchange it, it is refused", where, day)
            elif left_s < SOON_DAYS * DAY_S:
                log.warning("%s: a certificate expires on %s: exchange it", where, day)
