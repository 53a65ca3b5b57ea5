"""A consumer's connection to a simulated node: whole messages instead of frames, else as the real one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ....client.errors import BrokerConnectionError, BrokerTimeoutError
from ....client.metadata import Address
from ....protocol import RequestContext, UnsupportedVersionError, api_for
from .._network import Call, Connection

if TYPE_CHECKING:
    from ._nodes import Node
    from ._process import Process


class SimulatedConnection:
    """See ``kohort.client.connection.Connection``, whose place it takes."""

    retired = False

    def __init__(self, process: Process, address: Address, node: Node) -> None:
        self.address = address
        self.name = process.name
        self.context = RequestContext(process.name, "/10.0.0.1")
        self.versions = process.versions
        self.node = node
        self.line = Connection(process.world, node)
        self._process = process
        self._waiting: dict[Call, asyncio.Future[Any]] = {}
        self._closed_because: str | None = None

    def __repr__(self) -> str:
        state = f"closed: {self._closed_because}" if self.closed else f"{len(self._waiting)} under way"
        return f"SimulatedConnection({self.address}, {state})"

    @property
    def closed(self) -> bool:
        return self._closed_because is not None

    @property
    def idle(self) -> bool:
        return not self._waiting

    def version_for(self, api_key: int, max_version: int | None = None) -> int:
        version = self.versions.get(api_key)
        if version is None:
            raise UnsupportedVersionError(f"{self.address} does not offer {api_for(api_key).name}")
        return version if max_version is None else min(version, max_version)

    async def request(self, body: Any, *, timeout_ms: float, max_version: int | None = None) -> Any:
        """The answer's body. Raises as the real one does."""
        if self._closed_because is not None:
            raise BrokerConnectionError(str(self.address), f"connection closed: {self._closed_because}")
        call = Call(self._process.world, self, self.line, body.API_KEY, body)
        call.version = self.version_for(body.API_KEY, max_version)
        self._process.world.sending(self._process, call)
        answer = self._waiting[call] = asyncio.get_running_loop().create_future()
        self.line.send(call, int(timeout_ms))
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await answer
        except TimeoutError:
            why = f"{api_for(body.API_KEY).name} was not answered within {timeout_ms:.0f} ms"
            self.close(why)
            raise BrokerTimeoutError(str(self.address), why) from None

    def close(self, because: str = "closed by this client") -> None:
        if self._closed_because is None:
            self._closed_because = because
            self.line.close()
            self._process.connections.pop(self, None)
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(BrokerConnectionError(str(self.address), self._closed_because))
                # whoever asked may have gone
                answer.exception()

    # --- from the network ---------------------------------------------------------------------------------

    def on_answer(self, call: Call, body: Any) -> None:
        answer = self._waiting.pop(call, None)
        if answer is not None and not answer.done():
            answer.set_result(body)

    def on_failure(self, _call: Call, error: BrokerConnectionError) -> None:
        self.close(str(error))


async def open_connection(process: Process, address: Address) -> SimulatedConnection:
    """Connect, in a few milliseconds. Raises BrokerConnectionError."""
    world = process.world
    await asyncio.sleep((1 + int(world.rng.random() * 4)) / 1000)
    node = world.node_at(address)
    if node is None or not node.reachable:
        raise BrokerConnectionError(str(address), "cannot connect: connection refused")
    connection = SimulatedConnection(process, address, node)
    process.connections[connection] = None
    return connection
