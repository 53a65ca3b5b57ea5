"""A TCP proxy between clients and broker that a test can cut, hold up and slow down.

What a client has sent may arrive after it has given the connection up, and after what it sent on the next:
so does what lies in the buffers of a network.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable
from typing import Protocol

CHUNK_BYTES = 65_536
START_TIMEOUT_S = 20.0


class ConnectionTap(Protocol):
    """Reads along on one connection, in pieces as they come."""

    def asked(self, data: bytes) -> None:
        """The server is about to be sent this."""

    def answered(self, data: bytes) -> None:
        """The server has sent this."""


class Tap(Protocol):
    """Reads along."""

    def connection(self) -> ConnectionTap: ...


class Proxy:
    """Listens on ``port`` from its making until ``close``; its loop runs in a thread of its own.

    ``delay_s`` holds each piece of data for up to so long, in order, either way. While ``holding`` nothing
    passes. ``connections`` and ``cuts`` count what was let in and what was cut. ``tap`` reads along. ``host``
    is where it listens, ``target_host`` where the broker does.
    """

    def __init__(
        self,
        target_port: Callable[[], int],
        *,
        tap: Tap | None = None,
        seed: int = 0,
        host: str = "127.0.0.1",
        target_host: str = "127.0.0.1",
    ) -> None:
        self.host = host
        self._target_host = target_host
        self.delay_s = 0.0
        self.connections = 0
        self.cuts = 0
        self.port = 0
        self._target_port = target_port
        self._tap = tap
        self._random = random.Random(seed)
        self._links: set[_Link] = set()
        self._loop = asyncio.new_event_loop()
        self._passing = asyncio.Event()
        self._passing.set()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()
        assert self._started.wait(START_TIMEOUT_S), "the proxy did not start"

    def __repr__(self) -> str:
        return f"Proxy({self.port}, {len(self._links)} connections)"

    def cut(self) -> None:
        """Reset every connection that is there now, wherever in a frame it stands."""
        self._do(self._cut)

    def hold(self, held: bool) -> None:
        """Let nothing pass, or let it pass again."""
        self._do(self._passing.clear if held else self._passing.set)

    def close(self) -> None:
        self._do(self._loop.stop)
        self._thread.join()

    def _do(self, action: Callable[[], object]) -> None:
        done = threading.Event()

        def run() -> None:
            action()
            done.set()

        self._loop.call_soon_threadsafe(run)
        assert done.wait(START_TIMEOUT_S), "the proxy hangs"

    def _cut(self) -> None:
        self.cuts += len(self._links)
        for link in list(self._links):
            link.abort()

    def _run(self) -> None:
        self._loop.run_until_complete(self._listen())
        self._started.set()
        self._loop.run_forever()
        self._cut()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _listen(self) -> None:
        server = await asyncio.start_server(self._serve, self.host, 0)
        self.port = server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            there = await asyncio.open_connection(self._target_host, self._target_port())
        except OSError:
            writer.transport.abort()
            return
        link = _Link(writer, there[1])
        self._links.add(link)
        tap = None if self._tap is None else self._tap.connection()
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._to_broker(reader, there[1], link, tap))
                both.create_task(self._to_client(there[0], writer, link, tap))
        except* (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._links.discard(link)
            link.abort()

    async def _to_broker(
        self,
        client: asyncio.StreamReader,
        broker: asyncio.StreamWriter,
        link: _Link,
        tap: ConnectionTap | None,
    ) -> None:
        while data := await client.read(CHUNK_BYTES):
            if not await self._may_pass(link):
                return
            if tap is not None:
                tap.asked(data)
            await _send(broker, data)
        link.abort()

    async def _to_client(
        self,
        broker: asyncio.StreamReader,
        client: asyncio.StreamWriter,
        link: _Link,
        tap: ConnectionTap | None,
    ) -> None:
        while data := await broker.read(CHUNK_BYTES):
            if tap is not None:
                tap.answered(data)
            if not await self._may_pass(link):
                return
            await _send(client, data)
        link.abort()

    async def _may_pass(self, link: _Link) -> bool:
        """Wait as long as a piece of data has to; whether there is still somewhere to send it."""
        if self.delay_s:
            await asyncio.sleep(self._random.random() * self.delay_s)
        while not self._passing.is_set():
            await self._passing.wait()
        return not link.gone


async def _send(sink: asyncio.StreamWriter, data: bytes) -> None:
    sink.write(data)
    with contextlib.suppress(ConnectionError):
        await sink.drain()


class _Link:
    """A client's connection and the one to the broker: they end together."""

    def __init__(self, *ends: asyncio.StreamWriter) -> None:
        self.gone = False
        self._ends = ends

    def abort(self) -> None:
        self.gone = True
        for end in self._ends:
            end.transport.abort()
