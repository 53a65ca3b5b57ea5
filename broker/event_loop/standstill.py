"""Notices that this process stood still (SIGSTOP, a virtual machine that is moved): its session with the
metadata store may be over by then, and others lead, though the store still says that it is connected.
"""

from __future__ import annotations

import asyncio
import logging
import math

from ...cluster import MetadataStore

log = logging.getLogger("kohort.broker")

#: Parts of the session's timeout. Pings are a third of it apart: a standstill that is not noticed must be
#: shorter than the rest.
_LOOKS, _LIMIT = 6, 2


class StandstillWatch:
    """Looks at the clock between ``start`` and ``stop``. After a standstill the session is in doubt until
    the store has answered a question that was asked later.
    """

    def __init__(self, store: MetadataStore, session_timeout_s: float) -> None:
        self._store = store
        self._pause_s = session_timeout_s / _LOOKS
        self._limit_s = session_timeout_s / _LIMIT
        self._loop = asyncio.get_running_loop()
        self._seen_s = self._loop.time()
        # the end of the last standstill that was noticed
        self._awake_s = -math.inf
        self._doubted = False
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"StandstillWatch({'in doubt' if self.is_in_doubt else 'no doubt'})"

    @property
    def is_in_doubt(self) -> bool:
        """Return whether the session may be over without a word of it."""
        return self._doubted or self._loop.time() - self._seen_s > self._limit_s

    @property
    def awake_since_s(self) -> float:
        """The time on the loop's clock since when this process has not stood still. What is read a moment
        later may have been sent long before.
        """
        now_s = self._loop.time()
        return now_s if now_s - self._seen_s > self._limit_s else self._awake_s

    def start(self) -> None:
        """Begin to watch, on the running loop."""
        self._seen_s = self._loop.time()
        self._task = self._loop.create_task(self._watch_loop())

    def stop(self) -> None:
        """Stop watching. Safe to call without a start."""
        if self._task is not None:
            self._task.cancel()

    async def _watch_loop(self) -> None:
        while True:
            await asyncio.sleep(self._pause_s)
            still_s = self._loop.time() - self._seen_s
            if still_s > self._limit_s:
                # the cause of lost sessions and late answers that the log has of the same moment
                log.warning("this process stood still for up to %.1f s: stopped, swapped or busy", still_s)
                self._awake_s = self._loop.time()
            self._doubted = self.is_in_doubt and not await self._is_answered()
            self._seen_s = self._loop.time()

    async def _is_answered(self) -> bool:
        """Ask the store; an answer after another standstill may be from before it."""
        self._doubted = True
        asked_s = self._loop.time()
        try:
            await self._store.sync()
        except OSError:
            return False
        return self._loop.time() - asked_s <= self._limit_s
