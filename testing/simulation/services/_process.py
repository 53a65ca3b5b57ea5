"""One process: its loop, its randomness, its connections; started, stopped, suspended, killed.

Its programs use it through :class:`ServiceProcess`, and its schedule through :class:`ServiceSchedule`.
"""

from __future__ import annotations

import asyncio
import functools
import sqlite3
import traceback
from abc import abstractmethod
from collections.abc import Callable, Collection
from contextvars import copy_context
from random import Random
from typing import Any, Final, Protocol

from ....client.errors import BrokerConnectionError
from ....client.metadata import Address
from ....client.surroundings import SURROUNDINGS, Surroundings
from ....consumer import AsyncGroupConsumer, ConsumerError, Record
from ....protocol import KohortError
from ..engine._connection import SimulatedConnection
from ..engine._loop import AnyFuture, Caught, ProcessLoop
from ..engine._network import SimulatedCall
from ..engine._schedule import Schedule
from ..engine._violation import Violation
from ._ledger import HandledEntry, ServiceLedger
from ._nodes import SimulatedNodes
from ._plan import ProcessPlan, ServicePlan

#: A function in a thread hangs until everything is healed.
_FOR_EVER_MS: Final = 10_000_000


class Refused(Exception):  # noqa: N818
    """Raised by handlers that are to fail."""


class Program(Protocol):
    """A program that a process runs until it is stopped."""

    async def run(self) -> None: ...
    def stop(self) -> None: ...
    def consumer(self) -> AsyncGroupConsumer | None: ...
    def queues(self) -> object: ...


class ServiceSchedule(Schedule[ServicePlan]):
    """The schedule as its processes see it. ``database`` is the URI of their shared database."""

    cluster: SimulatedNodes
    ledger: ServiceLedger
    processes: dict[str, ServiceProcess]
    database: str

    @abstractmethod
    def open_zookeeper(self, process: ServiceProcess, *given: Any) -> Any:
        """A session with ZooKeeper, as client.zookeeper makes it."""

    @abstractmethod
    def sending(self, process: ServiceProcess, call: SimulatedCall) -> None:
        """Called when a consumer sends a request."""

    @abstractmethod
    def process_ended(self, process: ServiceProcess, error: BaseException | None) -> None:
        """Called when a process has ended."""


class ServiceProcess:
    """One process, from its start to its end; a restart creates another one."""

    def __init__(
        self, world: ServiceSchedule, plan: ProcessPlan, make: Callable[[ServiceProcess], Program]
    ) -> None:
        self.world = world
        self.plan = plan
        self.name = plan.name
        self.versions = world.plan.versions
        self.rng = Random(world.rng.getrandbits(64))
        self.connections: dict[SimulatedConnection, None] = {}
        self.started_ms = world.heap.now
        #: The time at which it was asked to stop.
        self.stopping_ms: int | None = None
        #: Time between its end and its restart; None: it is not restarted.
        self.restart_ms: int | None = None
        self.ended = False
        #: When its last pause was over, or will be.
        self.awake_ms = -1_000
        self.loop = ProcessLoop(  # type: ignore[abstract]
            world.heap, failed=self._on_error, delay_ms=self._delay_ms
        )
        #: Of groups without a coordinator: its sessions with ZooKeeper.
        self.sessions: list[Any] = []
        self._databases: list[sqlite3.Connection] = []
        self._hanging: list[asyncio.Future[None]] = []
        around = Surroundings(
            open_connection=self._open,  # type: ignore[arg-type]
            make_random=lambda: Random(self.rng.getrandbits(64)),
            in_thread=self.loop.in_thread,
            open_zookeeper=lambda *given: world.open_zookeeper(self, *given),
            time_ms=world.clock_ms,
        )
        context = copy_context()
        context.run(SURROUNDINGS.set, around)
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self.loop)
        try:
            self.program = context.run(make, self)
            coroutine = self.program.run()
            self._main = context.run(self.loop.create_task, coroutine, name="main")
        finally:
            asyncio._set_running_loop(before)
        self._main.add_done_callback(self._on_ended)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def alive(self) -> bool:
        return self.loop.alive and not self.ended

    @property
    def consumer(self) -> AsyncGroupConsumer | None:
        """Its current consumer."""
        return self.program.consumer() if self.alive else None

    # --- what happens to it -------------------------------------------------------------------------------

    def stop(self) -> None:
        if self.alive and self.stopping_ms is None:
            self.stopping_ms = self.world.heap.now
            self.loop.call_soon(self.program.stop)

    def freeze(self, until_ms: int) -> None:
        self.loop.freeze(until_ms)
        self.awake_ms = until_ms

    def kill(self) -> None:
        self.loop.kill()
        self.world.ledger.on_gone(self)
        for connection in list(self.connections):
            connection.line.close()
        self.connections.clear()
        for database in self._databases:
            database.close()

    def close(self) -> None:
        """Drop all references, so that this is freed at once."""
        self.kill()
        self.loop.clear()
        vars(self).clear()

    def heal(self) -> None:
        """Let hanging functions continue."""
        for waiting in self._hanging:
            if not waiting.done():
                waiting.set_result(None)
        self.loop.release_threads()

    def connection_lost(self, node: object) -> None:
        """A node has ended: its connections break."""
        for connection in list(self.connections):
            if connection.node is node:
                connection.close("closed by the broker")

    # --- what its programs use ----------------------------------------------------------------------------

    async def hang(self) -> None:
        """Wait until everything is healed."""
        if not self.world.healed:
            waiting = self.loop.create_future()
            self._hanging.append(waiting)
            await waiting

    def connect(self) -> sqlite3.Connection:
        """A connection to the database that all processes share."""
        database = sqlite3.connect(self.world.database, uri=True)
        self._databases.append(database)
        return database

    def on_closed(self, known: Collection[asyncio.Task[object]]) -> None:
        """A program has closed its consumer: none of its tasks may run any more."""
        left = [task for task in self._left() if task not in known]
        if left:
            names = sorted({task.get_name() for task in left})
            self.world.found("L5", f"{self.name} has closed its consumer, and of it still runs: {names}")

    def _left(self) -> list[asyncio.Task[object]]:
        """Tasks beside the main one that nobody has cancelled."""
        return [task for task in self.loop.tasks if task is not self._main and not task.cancelling()]

    # --- inside -------------------------------------------------------------------------------------------

    def sending(self, call: SimulatedCall, _answer: AnyFuture) -> None:
        self.world.sending(self, call)

    async def _open(self, address: Address, **_: object) -> SimulatedConnection:
        """Connect, in a few milliseconds. Raises BrokerConnectionError."""
        await asyncio.sleep((1 + int(self.world.rng.random() * 4)) / 1000)
        node = self.world.cluster.node_at(address)
        if node is None or not node.reachable:
            raise BrokerConnectionError(str(address), "cannot connect: connection refused")
        connection = SimulatedConnection(self, address, node)
        self.connections[connection] = None
        return connection

    def in_threads(self) -> list[HandledEntry]:
        """The records that functions in threads are at."""
        ledger = self.world.ledger
        return [e for call, _ in self.loop.in_threads.values() for e in ledger.all_of(_records(call))]

    def _delay_ms(self, call: Callable[..., object]) -> int:
        """Time that a function takes in a thread."""
        entries = self.world.ledger.all_of(_records(call))
        if any(entry.hangs for entry in entries):
            return _FOR_EVER_MS
        return 1 + int(self.world.rng.random() * 3) + sum(entry.work_ms for entry in entries)

    def _on_error(self, context: dict[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, Violation):
            self.world.found(error.name, error.text)
        elif isinstance(error, Caught):
            self.world.found("S17", f"{self.name} does something without end at one moment: {error}")
        elif not isinstance(error, Refused):
            self.world.found("S0", f"{self.name}: {context.get('message')}: {error!r}")

    def _on_ended(self, main: asyncio.Task[None]) -> None:
        error = None if main.cancelled() else main.exception()
        if error is not None and not isinstance(error, (KohortError, ConsumerError)):
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error} ({where.filename.rpartition('/')[2]}:{where.lineno})"
            self.world.found("S0", f"{self.name} ends with {text}")
        left = sorted(task.get_name() for task in self._left())
        if left and error is None:
            self.world.found("L5", f"{self.name} has ended, and these still run: {left}")
        self.ended = True
        self.kill()
        self.world.process_ended(self, error)


def _records(call: Callable[..., object]) -> list[Record]:
    """The records that a function is to be called with."""
    found: list[Record] = []
    left: list[object] = [call]
    while left:
        each = left.pop()
        if isinstance(each, functools.partial):
            left += [each.func, *each.args]
        elif isinstance(each, Record):
            found.append(each)
        elif isinstance(each, list):
            left += each
    return found
