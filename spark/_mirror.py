"""The group follows a query from the driver's process: newest first, again and again until it is there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..protocol import KohortError, TopicPartition

log = logging.getLogger(__name__)

_FIRST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Done:
    """What a query has done: a batch's number and where it ended."""

    number: int
    ends: Mapping[TopicPartition, int]


class OffsetMirror:
    """A thread that commits what it is told; a newer batch takes the place of one that waits.

    ``commit`` raises KohortError to be called again. ``close`` lets a commit under way have its last try.
    """

    def __init__(self, commit: Callable[[Done], None], closed: Callable[[], None] = lambda: None) -> None:
        self._commit = commit
        self._closed = closed
        self._waiting: Done | None = None
        self._last: Done | None = None
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="kohort-mirror", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"OffsetMirror(last {self._last}, waiting {self._waiting})"

    def tell(self, done: Done) -> None:
        """Commit this, unless it is what was committed last."""
        with self._changed:
            if done.ends != (self._waiting or self._last or Done(-1, {})).ends:
                self._waiting = done
                self._changed.notify()

    def close(self) -> None:
        """End the thread after what waits has had a try; returns at once."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def join(self, timeout_seconds: float) -> None:
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        wait = _FIRST_WAIT_SECONDS
        while True:
            with self._changed:
                while self._waiting is None and not self._closing:
                    self._changed.wait()
                done, closing = self._waiting, self._closing
            if done is None:
                break
            if self._tried(done):
                wait = _FIRST_WAIT_SECONDS
                continue
            if closing:
                log.warning("batch %d is not committed: the group catches up at the next start", done.number)
                break
            with self._changed:
                self._changed.wait(wait)
            wait = min(wait * 2, _LONGEST_WAIT_SECONDS)
        self._closed()

    def _tried(self, done: Done) -> bool:
        try:
            self._commit(done)
        except KohortError as error:
            log.warning("batch %d is done and not committed yet: %s", done.number, error)
            return False
        with self._changed:
            self._last = done
            if self._waiting is done:
                self._waiting = None
        return True
