"""What a broker says of a disk that hangs: of a write or a flush that neither succeeds nor fails."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from ...log import DISK_CALLS, DiskCall, DiskCalls
from ..reporting.trouble import Trouble

#: Time between two looks, in seconds.
LOOK_S: Final = 1.0

#: Least time between two lines while it hangs, in seconds.
REPEAT_S: Final = 60.0


class HangWatch:
    """Looks in a thread of its own, since a write that hangs blocks the event loop. A call hangs once it has
    been under way for ``limit_ms`` (0: never).
    """

    def __init__(
        self,
        folder: str,
        limit_ms: Callable[[], int] = lambda: 0,
        calls: DiskCalls = DISK_CALLS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._limit_ms = limit_ms
        self._calls = calls
        self._now = now
        self._trouble = Trouble(logging.ERROR, repeat_s=REPEAT_S, now=now)
        self._seen: DiskCall | None = None
        self._begun_s = 0.0
        self._ended = threading.Event()

    def __repr__(self) -> str:
        return f"HangWatch({self._folder}, hangs for {self.hanging_s:.0f} s)"

    @property
    def hanging_s(self) -> float:
        """For how long the disk has hung, in seconds; 0 if it does not."""
        return self._now() - self._begun_s if self._trouble.present else 0.0

    def start(self) -> None:
        """Look now and then until ``stop``."""
        threading.Thread(target=self._run, name="kohort disk watch", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()

    def look(self) -> None:
        """Tell if a call hangs, and when none does any more."""
        oldest, limit_s = self._calls.find_oldest(self._folder), self._limit_ms() / 1_000
        # two looks: a call that was under way while the whole process stood still is not the disk's fault
        again, self._seen = oldest == self._seen, oldest
        if oldest is None or not limit_s or self._now() - oldest.begun_s < limit_s:
            self._trouble.on_absent(f"the disk of {self._folder} no longer hangs", self._begun_s)
        elif again:
            self._begun_s = self._begun_s if self._trouble.present else oldest.begun_s
            self._trouble.on_present(
                "the disk of %s hangs: a %s of %s has not returned for %.0f s, and what needs it waits",
                self._folder,
                oldest.kind,
                oldest.path,
                self._now() - oldest.begun_s,
            )

    def _run(self) -> None:
        while not self._ended.wait(LOOK_S):
            self.look()
