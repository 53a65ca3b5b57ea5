"""The counters of one broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...coordinator import CoordinatorEvent
from ..event_loop.stopwatch import clock
from ._groups import GroupCounters
from ._logins import FailedLogins
from ._requests import RequestMeters
from ._sensors import WINDOW_S, Counter, Histogram
from ._shares import ShareCounters
from ._traffic import Clients


class BrokerMetrics:
    """Counters of one broker. ``on_event`` is called with each event of the coordinator after it is
    counted.
    """

    def __init__(self, on_event: Callable[[CoordinatorEvent], None] | None = None) -> None:
        self.requests = RequestMeters(clock())
        self.groups = GroupCounters(on_event)
        self.clients = Clients()
        self.failed_logins = FailedLogins(clock())
        self.flush_times = Histogram()
        self.share_writes = Histogram()
        self.share_write_rate = Counter(clock())
        self.shares = ShareCounters()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start to rotate windows, on the running loop."""
        self._timer = asyncio.get_running_loop().call_later(WINDOW_S, self._rotate_windows)

    def stop(self) -> None:
        """Stop turning windows. Safe to call without a start."""
        if self._timer is not None:
            self._timer.cancel()

    def count_share_write(self, seconds: float) -> None:
        """Count a write of a share partition's state, and how long it took."""
        self.share_writes.record(seconds)
        self.share_write_rate.count += 1

    def _rotate_windows(self) -> None:
        self.requests.rotate(clock())
        self.failed_logins.rotate(clock())
        self.groups.rebalance_times.rotate()
        self.flush_times.rotate()
        self.share_writes.rotate()
        self.share_write_rate.rotate(clock())
        self.shares.rotate()
        self.start()
