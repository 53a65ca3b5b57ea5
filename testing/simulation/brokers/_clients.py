"""A client of simulated brokers: a process with connections, whose program uses the client as it ships."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from contextvars import copy_context
from random import Random

from ....client.errors import BrokerConnectionError
from ....client.metadata import Address
from ....client.surroundings import SURROUNDINGS, Surroundings
from ..engine._connection import SimulatedConnection
from ..engine._loop import AnyFuture, ProcessLoop
from ..engine._network import Link, SimulatedCall
from ._plan import BrokerPlan
from ._schedule import BrokerSchedule


class ClientProcess:
    """One process, with an event loop and connections of its own."""

    def __init__(self, world: BrokerSchedule[BrokerPlan], name: str) -> None:
        self.world = world
        self.name = name
        self.versions = world.versions
        self.connections: dict[SimulatedConnection, None] = {}
        self.rng = Random(world.rng.getrandbits(64))
        #: Features in force, as brokers tell it.
        self.features = world.plan.features
        #: It has done all that it was to do.
        self.done = False
        self.loop = ProcessLoop(  # type: ignore[abstract]
            world.heap, failed=self._on_error, delay_ms=lambda _: 1
        )
        context = copy_context()
        context.run(
            SURROUNDINGS.set,
            Surroundings(
                open_connection=self.open_connection,  # type: ignore[arg-type]
                make_random=lambda: Random(self.rng.getrandbits(64)),
                in_thread=self.loop.in_thread,
                time_ms=world.clock_ms,
            ),
        )
        self.loop.create_task(self._main(), context=context)

    def __repr__(self) -> str:
        return self.name

    @property
    def alive(self) -> bool:
        """Return whether it runs and has something to do."""
        return self.loop.alive and not self.done

    @abstractmethod
    async def run(self) -> None:
        """The program."""

    def kill(self) -> None:
        """End it, without a word to anybody."""
        for connection in list(self.connections):
            connection.line.close()
        self.connections.clear()
        self.loop.clear()

    def link_to(self, broker: int) -> Link | None:  # noqa: ARG002
        """The path to a broker, if its delay varies."""
        return None

    def sending(self, call: SimulatedCall, answer: AnyFuture) -> None:
        """Called with each of its requests."""

    async def _main(self) -> None:
        await self.run()
        self.done = True

    async def open_connection(self, address: Address, **_: object) -> SimulatedConnection:
        """Connect, in a few milliseconds. Raises BrokerConnectionError."""
        await asyncio.sleep((1 + int(self.world.rng.random() * 4)) / 1_000)
        broker = self.world.broker_at(address)
        if not broker.reachable:
            raise BrokerConnectionError(str(address), "cannot connect: connection refused")
        connection = SimulatedConnection(self, address, broker, self.link_to(broker.number))
        connection.features = {**connection.features, **self.features}
        self.connections[connection] = None
        return connection

    def _on_error(self, context: dict[str, object]) -> None:
        self.world.found("S0", f"{self}: {context['message']}: {context.get('exception')!r}")
