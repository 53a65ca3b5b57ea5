"""The metadata that brokers share, on virtual time: each session has its own connection, which may be cut or
slow; it ends when its broker is silent for too long.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from ....cluster import Change, ConflictError, SessionState
from ....cluster.tree import Step
from ...memory_store import MemoryHome, SharedStore, complete_future
from ..engine._loop import ProcessLoop
from ..engine._schedule import Schedule
from ._plan import BrokerPlan

#: Time until a client notices that its connection is lost, and until it is connected again, in ms.
_NOTICED_MS: Final = 60
_AGAIN_MS: Final = 30


class BrokerSession(SharedStore):
    """The sessions of the broker whose process is on ``loop``. Times are in milliseconds."""

    def __init__(
        self, home: MemoryHome, schedule: Schedule[BrokerPlan], loop: ProcessLoop, name: str
    ) -> None:
        super().__init__(home)
        home.sessions.append(self)
        self._schedule = schedule
        self._heap = schedule.heap
        self._rng = schedule.rng
        self._loop = loop
        self._name = name
        # the present session, and the one that the client knows
        self._present = self._known = 0
        # its client is not notified: it has to begin another session first
        self._is_new = self._is_cut = self._has_noticed = False
        #: Its process is gone.
        self.is_over = False
        self._held_until = 0
        # requests and notifications on their way, and the futures of responses
        self._asked: deque[tuple[int, Sequence[Change], asyncio.Future[None]]] = deque()
        # number of requests that were sent while it was cut off without noticing: TCP still has them
        self._stuck = 0
        self._told: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self._waiting: dict[asyncio.Future[None], None] = {}

    # --- the client ---------------------------------------------------------------------------------------

    async def commit(self, *changes: Change) -> None:
        self._check_connected(self._session)
        answer: asyncio.Future[None] = self._loop.create_future()
        self._waiting[answer] = None
        self._asked.append((self._known, changes, answer))
        self._heap.at(self._heap.now + self._travel_ms(), self._arrive)
        try:
            await answer
        finally:
            self._waiting.pop(answer, None)

    def close(self) -> None:
        if not self.is_over:
            self.end()
            self._become(SessionState.LOST)

    # --- what happens to it -------------------------------------------------------------------------------

    def end(self) -> None:
        """Its process is gone, and so is the session."""
        self.is_over = True
        self._home.sessions.remove(self)
        self._home.drop_owned(self)

    def expire(self) -> None:
        """End the session; its client learns of it when it can be reached, and begins another one."""
        if self.is_over:
            return
        self._schedule.say(f"the session of {self._name} is over")
        self._present += 1
        self._is_new = True
        self._told.clear()
        self._home.drop_owned(self)
        if not self._is_cut:
            self._heap.at(self._heap.now + _AGAIN_MS, self._connect)

    def cut(self) -> None:
        """Cut the connection in both directions until ``heal``."""
        self._is_cut = True
        self._heap.at(self._heap.now + _NOTICED_MS, self._notice)

    def heal(self) -> None:
        """Restore the connection."""
        if self._is_cut and not self.is_over:
            self._is_cut = False
            if self._has_noticed or self._is_new:
                self._connect()
            else:
                for _ in self._told:
                    self._heap.at(self._heap.now, self._deliver)
                for _ in range(self._stuck):
                    self._heap.at(self._heap.now, self._arrive)
                self._stuck = 0

    def blink(self) -> None:
        """Break the connection; another one in the same session follows."""
        self._is_cut = True
        self._notice()
        self._heap.at(self._heap.now + _AGAIN_MS, self.heal)

    def hold(self, until_ms: int) -> None:
        """Delay its notifications."""
        self._held_until = until_ms

    # --- inside -------------------------------------------------------------------------------------------

    def _travel_ms(self) -> int:
        return 1 + int(self._rng.random() * 3)

    def _arrive(self) -> None:
        """The oldest request on its way arrives."""
        if self.is_over or not self._asked:
            return
        if self._is_cut and not self._has_noticed:
            self._stuck += 1
            return
        known, changes, answer = self._asked.popleft()
        if self._is_cut or known != self._present:
            # a client that is cut off notices by itself
            if not self._is_cut:
                self._tell(_fail, answer, ConnectionError("the session with the metadata store is over"))
            return
        try:
            self._home.write(self, changes)
        except ConflictError as error:
            self._tell(_fail, answer, error)
            return
        schedule = self._schedule
        if not schedule.healed and self._rng.random() < schedule.plan.lost_writes:
            schedule.say(f"the answer to a write of {self._name} is lost")
            self.blink()
            return
        self._tell(complete_future, answer)

    def on_step(self, step: Step) -> None:
        """Notify the client of a step."""
        if not (self._is_new or (self._is_cut and self._has_noticed)):
            self._tell(self._show, step)

    def _tell(self, call: Callable[..., None], *arguments: object) -> None:
        self._told.append((call, arguments))
        self._heap.at(self._heap.now + self._travel_ms(), self._deliver)

    def _deliver(self) -> None:
        """The oldest notification on its way arrives at the client."""
        if self.is_over or self._is_cut or not self._told:
            return
        if self._heap.now < self._held_until:
            self._heap.at(self._held_until, self._deliver)
            return
        call, arguments = self._told.popleft()
        self._loop.call_soon(call, *arguments)

    def _notice(self) -> None:
        if self._is_cut and not self.is_over and not self._has_noticed:
            self._has_noticed = True
            # notifications on their way are lost: everything is read again
            self._told.clear()
            self._drop_stuck()
            self._loop.call_soon(self._on_suspended)

    def _drop_stuck(self) -> None:
        """TCP has another connection now; what the former one still had does not arrive."""
        while self._stuck:
            self._asked.popleft()
            self._stuck -= 1

    def _on_suspended(self) -> None:
        self._become(SessionState.SUSPENDED)
        self._fail_all()

    def _connect(self) -> None:
        if self._is_cut or self.is_over or not (self._is_new or self._has_noticed):
            return
        self._drop_stuck()
        if self._known != self._present:
            self._tell(self._on_lost)
        self._tell(self._show_all, dict(self._home.tree.entries()))
        self._tell(self._on_connected, self._present)
        self._is_new = self._has_noticed = False

    def _on_lost(self) -> None:
        self._fail_all()
        self._become(SessionState.LOST)

    def _on_connected(self, present: int) -> None:
        self._known = present
        self._become(SessionState.CONNECTED)

    def _fail_all(self) -> None:
        for answer in list(self._waiting):
            _fail(answer, ConnectionError("the connection to the metadata store broke"))


def _fail(answer: asyncio.Future[None], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
