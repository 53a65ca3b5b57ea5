"""What a broker says of a disk that is full or fails: when it begins, while it lasts, and when it ends."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Final

from ...log import NoDescriptorsError
from ...protocol import KafkaError
from ..event_loop.stopwatch import clock
from ..metrics import DiskFigures
from ..reporting.trouble import Trouble
from .hang_watch import HangWatch

log = logging.getLogger("kohort.broker")

#: Time without a refusal after which a write that succeeds shows that the disk takes writes again, in
#: seconds: a full disk still has room for small batches.
QUIET_S: Final = 10.0

#: Least time between two lines while writes are refused, in seconds.
REPEAT_S: Final = 60.0


class DiskWatch:
    """The writes that the disk of a data folder refuses, those that hang for ``hang_ms``, and its space: low
    below ``low_percent``.
    """

    def __init__(
        self,
        folder: str,
        now: Callable[[], float] = clock,
        low_percent: Callable[[], int] = lambda: 0,
        hang_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        #: Whether the last writes were refused.
        self.failing = False
        #: Hears of calls that do not return.
        self.hangs = HangWatch(folder, hang_ms)
        self._folder = folder
        self._now = now
        self._low_percent = low_percent
        self._low = Trouble(now=now)
        self._refused = 0
        self._since = 0.0
        self._last = 0.0
        self._told = -REPEAT_S

    def __repr__(self) -> str:
        return f"DiskWatch({self._folder}, {self._refused} refused{', failing' if self.failing else ''})"

    def on_refused(self, error: KafkaError | OSError) -> None:
        """A write failed with ``error``. A KafkaError that the disk did not cause is ignored."""
        of_disk = isinstance(error, OSError) or isinstance(error.__cause__, OSError)
        if not of_disk or isinstance(error, NoDescriptorsError):
            return
        now = self._now()
        self._refused += 1
        self._last = now
        if not self.failing:
            self.failing, self._since = True, now
        if now - self._told >= REPEAT_S:
            self._told = now
            figures = self.figures()
            log.error(
                "the disk of %s refuses writes, %d so far, %d of %d bytes are free: %s",
                self._folder,
                self._refused,
                figures.free_bytes,
                figures.total_bytes,
                error,
            )

    def on_accepted(self) -> None:
        """A write succeeded while ``failing``."""
        now = self._now()
        if now - self._last >= QUIET_S:
            self.failing = False
            log.error(
                "the disk of %s takes writes again, after %.0f s", self._folder, self._last - self._since
            )

    def look_at_space(self) -> None:
        """Tell if there is little space left, and when there is more again."""
        found = self.figures()
        if found.free_bytes < found.low_bytes:
            self._low.on_present(
                "the disk of %s fills: %d of %d bytes are free; shorten retention, delete topics or give it "
                "more space, as a full disk refuses writes",
                self._folder,
                found.free_bytes,
                found.total_bytes,
            )
        else:
            self._low.on_absent(f"the disk of {self._folder} has space again")

    def figures(self) -> DiskFigures:
        """The space of the disk now; 0 if it cannot be asked."""
        try:
            space = os.statvfs(self._folder)
        except OSError:
            return DiskFigures(0, 0, self._refused, 0, self.failing, self.hangs.hanging_s)
        total = space.f_blocks * space.f_frsize
        low = total * self._low_percent() // 100
        free = space.f_bavail * space.f_frsize
        return DiskFigures(free, total, self._refused, low, self.failing, self.hangs.hanging_s)
