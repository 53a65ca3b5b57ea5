"""A client's connection as programs see it, on the simulated network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from ....client.errors import BrokerConnectionError, BrokerTimeoutError
from ....client.metadata import Address
from ....protocol import RequestContext, UnsupportedVersionError, api_for
from ._loop import AnyFuture
from ._network import Link, Receiver, SimulatedCall, SimulatedLink
from ._schedule import Schedule

_OnAnswer = Callable[..., None] | None


class WaitingCaller(Protocol):
    """A process that connects. ``versions`` are those of the requests that it sends, ``connections`` what it
    has open; ``sending`` is called with each request, and the future of its answer.
    """

    name: str
    versions: dict[int, int]
    connections: dict[SimulatedConnection, None]

    @property
    def world(self) -> Schedule[Any]: ...
    def sending(self, call: SimulatedCall, answer: AnyFuture, /) -> None: ...


class SimulatedConnection:
    """Takes the place of ``kohort.client.connection.Connection``: whole messages, no frames."""

    is_retired = False

    def __init__(
        self, process: WaitingCaller, address: Address, node: Receiver, link: Link | None = None
    ) -> None:
        self.address = address
        self.name = process.name
        self.context = RequestContext(process.name, "/10.0.0.1")
        self.versions = process.versions
        self.node = node
        self.line = SimulatedLink(process.world, node, link)
        self._process = process
        #: Features in force, as its broker says.
        self.features = {"group.version": 1}
        self._waiting: dict[SimulatedCall, tuple[AnyFuture, asyncio.TimerHandle, _OnAnswer]] = {}
        self._closed_because: str | None = None
        self._ended = asyncio.Event()

    def __repr__(self) -> str:
        state = f"closed: {self._closed_because}" if self.is_closed else f"{len(self._waiting)} under way"
        return f"SimulatedConnection({self.address}, {state})"

    @property
    def is_closed(self) -> bool:
        return self._closed_because is not None

    @property
    def idle(self) -> bool:
        return not self._waiting

    def is_usable(self) -> bool:
        return not self.is_closed

    def version_for(self, api_key: int, max_version: int | None = None) -> int:
        version = self.versions.get(api_key)
        if version is None:
            raise UnsupportedVersionError(f"{self.address} does not offer {api_for(api_key).name}")
        return version if max_version is None else min(version, max_version)

    async def request(self, body: Any, *, timeout_ms: float, max_version: int | None = None) -> Any:
        """The response's body. Raises the errors of a real connection."""
        return await self.ask(body, timeout_ms=timeout_ms, max_version=max_version)

    def ask(
        self,
        body: Any,
        *,
        timeout_ms: float,
        max_version: int | None = None,
        on_answer: _OnAnswer = None,
    ) -> AnyFuture:
        """A future of the response's body; see ``Connection.ask``."""
        if self._closed_because is not None:
            raise BrokerConnectionError(str(self.address), f"connection closed: {self._closed_because}")
        version = self.version_for(body.API_KEY, max_version)
        call = SimulatedCall(self, self.line, body.API_KEY, body)
        call.version = version
        loop = asyncio.get_running_loop()
        answer: AnyFuture = loop.create_future()
        self._process.sending(call, answer)
        timer = loop.call_later(timeout_ms / 1000, self._late, call, answer, timeout_ms)
        self._waiting[call] = answer, timer, on_answer
        self.line.send(call, int(timeout_ms))
        return answer

    def _late(self, call: SimulatedCall, answer: AnyFuture, timeout_ms: float) -> None:
        if not answer.done():
            why = f"{api_for(call.api_key).name} was not answered within {timeout_ms:.0f} ms"
            answer.set_exception(BrokerTimeoutError(str(self.address), why))
            self.close(why)

    async def wait_closed(self) -> None:
        await self._ended.wait()

    def close(self, because: str = "closed by this client") -> None:
        if self._closed_because is None:
            self._closed_because = because
            self._ended.set()
            self.line.close()
            self._process.connections.pop(self, None)
        waiting, self._waiting = self._waiting, {}
        for answer, timer, _ in waiting.values():
            timer.cancel()
            if not answer.done():
                answer.set_exception(BrokerConnectionError(str(self.address), self._closed_because))
                # the caller may have ended
                answer.exception()

    # --- from the network ---------------------------------------------------------------------------------

    def on_answer(self, call: SimulatedCall, body: object) -> None:
        found = self._waiting.pop(call, None)
        if found is not None:
            answer, timer, on_answer = found
            timer.cancel()
            if not answer.done():
                try:
                    if on_answer is not None:
                        on_answer(body)
                except Exception as error:
                    answer.set_exception(error)
                else:
                    answer.set_result(body)

    def on_failure(self, _call: SimulatedCall, error: BrokerConnectionError) -> None:
        self.close(str(error))
