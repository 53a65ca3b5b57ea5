"""The listeners, their connections, and the limits for all of them."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine
from functools import partial

from ...cluster import Endpoint
from ...coordinator.engine.runner import when_read
from ...settings import SettingsError
from ..clients.client_state import Peer
from ..metrics import BrokerMetrics
from ..reporting.log_lines import RateLimitedLog
from ..reporting.trouble import Trouble
from ..requests.router import Router
from ..security._certificate_watch import CertificateWatch
from ..security._listener_security import ListenerSecurity
from ..security._listeners import listeners_of
from ..security._quotas import ConnectionQuotas
from ..security._scram_users import ScramUsers
from ..settings import BrokerSettings
from ._acceptor import Acceptor
from ._backpressure import Backpressure
from ._connection import ClientConnection
from ._flow import Turn
from ._slow_readers import SlowReaders

log = logging.getLogger("kohort.broker")

#: Time for a client to authenticate after it connected, in seconds.
UNAUTHENTICATED_S = 30.0

#: Interval of the search for slow and idle connections, in seconds.
SWEEP_S = 5.0


class Server:
    """The listeners' acceptors, and their connections, until stopped. Raises SettingsError.

    ``metrics`` adds up the traffic of closed connections, and refused logins. ``host`` and ``port`` are the
    address if the settings name no listeners.
    """

    router: Router

    def __init__(
        self,
        settings: BrokerSettings,
        users: ScramUsers,
        metrics: BrokerMetrics,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.now = self.loop.time
        self.max_frame_bytes = settings.socket_request_max_bytes
        self.unread_timeout_s = settings.kohort_response_unread_timeout_ms / 1000
        self.stopping = False
        self._settings = settings
        self._clients = metrics.clients
        self.failed_logins = metrics.failed_logins
        #: Of connections that are closed.
        self.complaints = RateLimitedLog()
        self.failures = RateLimitedLog(logging.ERROR)
        self.backpressure = Backpressure(settings, self.loop)
        self.turn = Turn(self.loop, self._let_in)
        self.connections_made = 0
        self._connections: set[ClientConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._slow = SlowReaders(settings)
        self._sweeper: asyncio.TimerHandle | None = None
        listeners = listeners_of(settings, host, port)
        self.quotas = ConnectionQuotas(settings, listeners, self.now)
        self.quotas.on_excess.append(self._make_room_soon)
        connected = partial(ClientConnection, self)
        self.acceptors = [
            Acceptor(
                listener,
                ListenerSecurity(settings, listener, users),
                self.quotas,
                connected,
                self.backpressure.is_crowded,
                partial(self.failed_logins.count, listener.name),
            )
            for listener in listeners
        ]
        for listener in listeners:
            self.failed_logins.add(listener.name)
        self._depleted = Trouble(now=self.now)
        self._depleted_s = 0.0
        self.certificates = CertificateWatch(
            (each.security for each in self.acceptors), settings.zookeeper_ssl_keystore_location
        )

    def __repr__(self) -> str:
        return f"Server({len(self._connections)} connections, {self.backpressure})"

    async def listen(self, router: Router) -> None:
        """Listen on all listeners; clients wait until ``start``. Raises OSError if an address is not
        available.
        """
        self.router = router
        for acceptor in self.acceptors:
            await acceptor.listen(self._settings.socket_listen_backlog_size)

    def start(self) -> None:
        """Accept connections."""
        self.certificates.log_expiring()
        for acceptor in self.acceptors:
            acceptor.start()
        self._plan_sweep()

    async def stop(self) -> None:
        """Stop accepting, drop waiting requests, close all connections."""
        self.stopping = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for acceptor in self.acceptors:
            acceptor.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for connection in list(self._connections):
            connection.transport.abort()

    def addresses(self, host: str) -> dict[str, tuple[str, int]]:
        """Host and port of each listener, by its name; ``host`` for one that listens on every address."""
        return {each.listener.name: (each.listener.host or host, each.port) for each in self.acceptors}

    def endpoints(self) -> dict[str, str]:
        """The address for clients of each listener; 127.0.0.1 for one that listens on every address."""
        return {
            each.listener.name: host_port(*(each.advertised or ("127.0.0.1", each.port)))
            for each in self.acceptors
        }

    def registered_endpoints(self) -> list[Endpoint]:
        """The listeners for this broker's registration. Raises SettingsError for one that listens on every
        address and advertises none.
        """
        found = []
        for each in self.acceptors:
            if each.advertised is None:
                raise SettingsError(
                    f"listener {each.listener.name} listens on every address: name the one by which brokers "
                    "and clients reach it in advertised.listeners, or listen on one address"
                )
            found.append(Endpoint(each.listener.name, each.listener.protocol, *each.advertised))
        return found

    def peers(self) -> list[Peer]:
        """Return the clients that are connected now."""
        return [connection.peer for connection in self._connections]

    def introduce(self, connection: ClientConnection, acceptor: Acceptor) -> tuple[Peer, str]:
        """Take a new connection in; gives its peer and the peer's name for logs."""
        self._connections.add(connection)
        self.backpressure.add(connection)
        self.connections_made += 1
        link = connection.transport.get_extra_info("socket")
        if link is not None:
            # the operating system notices clients that vanished
            link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # a client that is already gone has no address
        remote = connection.transport.get_extra_info("peername") or ("0.0.0.0", 0)
        local = connection.transport.get_extra_info("sockname") or ("0.0.0.0", 0)
        endpoint = acceptor.advertised or (local[0], local[1])
        return Peer(remote[0], endpoint, acceptor.listener.name), f"{remote[0]}:{remote[1]}"

    def _let_in(self) -> None:
        for acceptor in self.acceptors:
            acceptor.accept_waiting()

    def forget(self, connection: ClientConnection) -> None:
        """See Host."""
        if connection in self._connections:
            self._connections.discard(connection)
            self._clients.add_closed(connection.peer)
        self._slow.forget(connection)
        self.backpressure.forget(connection)

    def spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """See Host."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _make_room_soon(self) -> None:
        self.loop.call_soon(self._make_room)

    def _make_room(self) -> None:
        """While there are too many connections, close those that were silent for the longest time."""
        if not self.quotas.excess:
            return
        others = [one for one in self._connections if not one.listener.protected]
        closing = sum(one.transport.is_closing() for one in others)
        left = sorted(
            (one for one in others if not one.transport.is_closing()),
            key=lambda one: (not one.idle, one.last_active),
        )
        for connection in left[: max(0, self.quotas.excess - closing)]:
            connection.end("it was idle the longest, and max.connections is reached")
            connection.transport.abort()

    def _sweep_s(self) -> float:
        settings = self._settings
        waits_ms = [settings.kohort_request_complete_timeout_ms, settings.kohort_response_unread_timeout_ms]
        if settings.connections_max_idle_ms >= 0:
            waits_ms.append(settings.connections_max_idle_ms)
        return max(0.05, min(SWEEP_S, *(wait_ms / 4_000 for wait_ms in waits_ms)))

    def _plan_sweep(self) -> None:
        self._sweeper = self.loop.call_later(self._sweep_s(), when_read, self._sweep_connections)

    def _sweep_connections(self) -> None:
        if self.stopping:
            return
        now = self.now()
        for connection, unread in self._slow.find_slow(self._connections, now):
            connection.end(f"it left {unread} bytes of its answer unread")
            connection.transport.abort()
        for connection in list(self._connections):
            self._look_at(connection, now)
        self._end_standstill(now)
        self.certificates.log_expiring()
        self._tell_depletion(now)
        # connections in their handshakes could not be closed before
        self._make_room()
        self._plan_sweep()

    def _tell_depletion(self, now: float) -> None:
        """Tell if requests had to wait for memory since the last look."""
        before, self._depleted_s = self._depleted_s, self.backpressure.depleted_s(now)
        if self._depleted_s > before:
            self._depleted.on_present(
                "requests wait: all of queued.max.request.bytes=%d is taken; see which clients send so "
                "much, or raise it",
                self._settings.queued_max_request_bytes,
            )
        else:
            self._depleted.on_absent("requests wait no more for queued.max.request.bytes")

    def _end_standstill(self, now: float) -> None:
        """Close those that hold the most request bytes, if nobody else could ever go on."""
        stuck = self.backpressure.stuck_bytes(now)
        if stuck <= 0:
            return  # nearly always: thousands of connections need not be sorted
        others = (one for one in self._connections if not one.listener.control)
        for connection in sorted(others, key=lambda one: one.held_bytes, reverse=True):
            if stuck <= 0:
                return
            stuck -= connection.held_bytes
            connection.end(
                f"{connection.held_bytes} bytes of its requests wait, no other request goes on, and "
                "queued.max.request.bytes is reached"
            )
            connection.transport.abort()

    def _look_at(self, connection: ClientConnection, now: float) -> None:
        if connection.transport.is_closing():
            if connection.held_bytes:
                # it was closed at an earlier look, and takes none of its answers
                connection.transport.abort()
            return
        unauthenticated = connection.unauthenticated_since
        if unauthenticated is not None and now - unauthenticated > UNAUTHENTICATED_S:
            connection.end(f"it did not say who it is within {UNAUTHENTICATED_S:.0f} s")
            return
        since = connection.frame_since
        complete_ms = self._settings.kohort_request_complete_timeout_ms
        if since is not None and connection.reading and (now - since) * 1000 > complete_ms:
            connection.end(f"its request was not complete after {complete_ms} ms")
            return
        idle_ms = self._settings.connections_max_idle_ms
        if idle_ms >= 0 and connection.idle and (now - connection.last_active) * 1000 > idle_ms:
            log.info("connection from %s closed: idle for %d ms", connection.peer_name, idle_ms)
            connection.transport.close()


def host_port(host: str, port: int) -> str:
    """``HOST:PORT``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
