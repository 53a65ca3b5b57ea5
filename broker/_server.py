"""The listener, the connections it has let in, and the limits that concern all of them."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine
from typing import Any

from ._connection import Connection
from ._router import Peer, Router
from ._settings import BrokerSettings, parse_listener

log = logging.getLogger("kohort.broker")

#: A frame must be complete this long after its first byte, in seconds.
SLOW_FRAME_S = 30.0

#: A client that reads none of its answer for this long, in seconds, is cut off ...
SLOW_READER_S = 30.0

#: ... if more than this is unread, in bytes.
MAX_UNREAD_BYTES = 1_048_576

#: Time between two looks for slow and idle connections, in seconds.
SWEEP_S = 5.0

_WILDCARDS = ("", "0.0.0.0", "::")


class Server:
    """Accepts connections until stopped."""

    def __init__(self, router: Router, settings: BrokerSettings) -> None:
        self.router = router
        self.loop = asyncio.get_running_loop()
        self.now = self.loop.time
        self.max_frame_bytes = settings.socket_request_max_bytes
        self.stopping = False
        self._settings = settings
        self._held_bytes = 0
        self._favoured: Connection | None = None
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unread: dict[Connection, tuple[int, float]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._listener: asyncio.Server | None = None
        self._host = ""
        self._advertised: tuple[str, int] | None = None

    def __repr__(self) -> str:
        return f"Server({len(self._connections)} connections, {self._held_bytes} request bytes held)"

    async def start(self, host: str, port: int) -> int:
        """Listen; gives the port. Raises OSError if the address cannot be had."""
        self._host = host
        self._listener = await self.loop.create_server(
            lambda: Connection(self), host or None, port, backlog=self._settings.socket_listen_backlog_size
        )
        bound: int = self._listener.sockets[0].getsockname()[1]
        if self._settings.advertised_listeners:
            self._advertised = parse_listener(self._settings.advertised_listeners)
        elif host not in _WILDCARDS:
            self._advertised = host, bound
        self._sweeper = self.loop.call_later(self._sweep_s(), self._sweep)
        return bound

    async def stop(self) -> None:
        """Accept nothing more, drop the requests that wait, close every connection."""
        self.stopping = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._listener is not None:
            self._listener.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for connection in list(self._connections):
            connection.transport.abort()

    # for connections

    def introduce(self, connection: Connection) -> tuple[Peer, str]:
        """Take a new connection in; gives its peer and the peer's name for logs."""
        self._connections.add(connection)
        link = connection.transport.get_extra_info("socket")
        if link is not None:
            # a client that vanished without a word is noticed by the system
            link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # a client that has already gone has no address any more
        remote = connection.transport.get_extra_info("peername") or ("0.0.0.0", 0)
        local = connection.transport.get_extra_info("sockname") or ("0.0.0.0", 0)
        endpoint = self._advertised or (local[0], local[1])
        return Peer(remote[0], endpoint), f"{remote[0]}:{remote[1]}"

    def forget(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._unread.pop(connection, None)
        if connection is self._favoured:
            self._favoured = None
            self.loop.call_soon(self._regulate)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def hold(self, connection: Connection, change: int) -> None:
        """Count request bytes that arrived (or, negative, are done with)."""
        over = self._over()
        self._held_bytes += change
        eased = over and not self._over()
        if eased or (connection is self._favoured and not connection.held_bytes):
            self._favoured = None
            self.loop.call_soon(self._regulate)

    def must_wait(self, connection: Connection) -> bool:
        """Whether this connection may not read on, because all of them together hold too much.

        One may always go on, or a broker full of incomplete requests would stand still.
        """
        if not self._over():
            return False
        if self._favoured is None:
            self._favoured = connection
        return connection is not self._favoured

    def _over(self) -> bool:
        return self._held_bytes > self._settings.queued_max_request_bytes

    def _regulate(self) -> None:
        for connection in list(self._connections):
            if not connection.reading:
                connection.regulate()

    # slow and idle ones

    def _sweep_s(self) -> float:
        idle_ms = self._settings.connections_max_idle_ms
        return SWEEP_S if idle_ms < 0 else max(0.05, min(SWEEP_S, idle_ms / 4_000))

    def _sweep(self) -> None:
        now = self.now()
        for connection in list(self._connections):
            self._look_at(connection, now)
        self._sweeper = self.loop.call_later(self._sweep_s(), self._sweep)

    def _look_at(self, connection: Connection, now: float) -> None:
        if self._reads_nothing(connection, now):
            connection.end(f"it left {self._unread[connection][0]} bytes of its answer unread")
            connection.transport.abort()
            return
        since = connection.frame_since
        if since is not None and connection.reading and now - since > SLOW_FRAME_S:
            connection.end(f"its request was not complete after {SLOW_FRAME_S:.0f} s")
            return
        idle_ms = self._settings.connections_max_idle_ms
        if idle_ms >= 0 and connection.idle and (now - connection.last_active) * 1000 > idle_ms:
            log.info("connection from %s closed: idle for %d ms", connection.peer_name, idle_ms)
            connection.transport.close()

    def _reads_nothing(self, connection: Connection, now: float) -> bool:
        unread = connection.transport.get_write_buffer_size()
        before = self._unread.get(connection)
        if before is None or min(unread, before[0]) <= MAX_UNREAD_BYTES or unread < before[0]:
            self._unread[connection] = unread, now
            return False
        return now - before[1] > SLOW_READER_S
