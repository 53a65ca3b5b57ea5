"""One listener's sockets: accepts connections as fast as the quotas allow, and completes their TLS
handshakes.

While an acceptor has to wait, new connections wait in the operating system's backlog.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import select
import socket
import ssl
from collections.abc import Callable, Coroutine, Generator
from functools import partial

from ...log import OPEN_FILES
from ..reporting.log_lines import RateLimitedLog
from ..reporting.trouble import Trouble
from ..security._listener_security import ListenerSecurity
from ..security._listeners import Listener
from ..security._quotas import ConnectionQuotas, ConnectionSlot

#: Time for a TLS handshake after the connection was accepted, in seconds.
HANDSHAKE_S = 30.0

#: Pause when there are no descriptors for more connections, in seconds.
NO_ROOM_S = 1.0

#: Share of the descriptors that are not for connections which is left even by those that max.connections does
#: not hold up.
LEFT_BY_PROTECTED = 0.5

#: Pause while connections hold all the request bytes that they may, in seconds.
CROWDED_S = 0.02

#: Most connections accepted in one go, before others are served.
AT_ONCE = 32


class Acceptor:
    """Listens for one listener. ``connected`` makes the protocol of a connection that has its slot; while
    ``crowded`` says so, no connection is accepted, unless the listener is for control. ``login_failed`` is
    called when a TLS handshake fails.
    """

    def __init__(
        self,
        listener: Listener,
        security: ListenerSecurity,
        quotas: ConnectionQuotas,
        connected: Callable[[Acceptor, ConnectionSlot], asyncio.Protocol],
        crowded: Callable[[], bool],
        login_failed: Callable[[], None],
    ) -> None:
        self.listener = listener
        self.security = security
        #: The address for clients; None: the one that they connected to.
        self.advertised = listener.advertised
        self.port = listener.port
        self._quotas = quotas
        self._connected = connected
        self._crowded = crowded
        self._login_failed = login_failed
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._welcomes: set[asyncio.Task[None]] = set()
        self._watching = False
        self._timer: asyncio.TimerHandle | None = None
        self._refusals = RateLimitedLog()
        self._failures = RateLimitedLog(logging.INFO)
        self._no_room = Trouble(logging.ERROR, now=self._loop.time)
        self._full = Trouble(now=self._loop.time)
        quotas.on_free.append(self._watch_again)

    def __repr__(self) -> str:
        return f"Acceptor({self.listener}, {self._quotas.by_listener()[self.listener.name]} connections)"

    @property
    def lacks_descriptors(self) -> bool:
        """Return whether new connections wait because no descriptors are left for them."""
        return self._no_room.present

    @property
    def is_full(self) -> bool:
        """Return whether new connections wait because there are as many as ``max.connections``."""
        return self._full.present

    async def listen(self, backlog: int) -> None:
        """Listen; connections wait until ``start``. Raises OSError, with the listener in its text, if the
        address is not available.
        """
        host = self.listener.host
        try:
            found = await self._loop.getaddrinfo(
                host or None, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            for family, kind, protocol, _, address in dict.fromkeys(found):
                self._bind_socket(family, kind, protocol, address, backlog)
        except OSError as error:
            self.close()
            raise OSError(error.errno, f"{self.listener}: {error.strerror or error}") from None
        if self.advertised is None and host not in ("", "0.0.0.0", "::"):
            self.advertised = host, self.port

    def start(self) -> None:
        """Accept connections."""
        self._watch_sockets()

    def accept_waiting(self) -> None:
        """Accept waiting connections now: the loop is busy and would come to them much later."""
        for link in self._sockets:
            if self._watching:
                self._accept_from(link)

    def close(self) -> None:
        """Stop accepting, and abort handshakes in progress."""
        if self._timer is not None:
            self._timer.cancel()
        self._look_away()
        for link in self._sockets:
            link.close()
        self._sockets.clear()
        for task in self._welcomes:
            task.cancel()

    def _bind_socket(
        self, family: int, kind: int, protocol: int, address: tuple[object, ...], backlog: int
    ) -> None:
        try:
            link = socket.socket(family, kind, protocol)
        except OSError:
            return  # the system has no such family
        self._sockets.append(link)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        # all addresses of a host get the port that the first was given
        link.bind((address[0], self.port, *address[2:]))
        link.listen(backlog)
        link.setblocking(False)
        self.port = link.getsockname()[1]

    def _watch_sockets(self) -> None:
        self._timer = None
        if (self._no_room.present or self._full.present) and not any(map(_is_ready, self._sockets)):
            for trouble in (self._no_room, self._full):
                trouble.on_absent(f"{self.listener}: no connection waits any more")
        if not self._watching:
            self._watching = True
            for link in self._sockets:
                self._loop.add_reader(link.fileno(), self._accept_from, link)

    def _look_away(self) -> None:
        if self._watching:
            self._watching = False
            for link in self._sockets:
                self._loop.remove_reader(link.fileno())

    def _watch_again(self) -> None:
        if not self._watching and self._timer is None and self._sockets:
            self._watch_sockets()

    def _pause_accepting(self, seconds: float) -> None:
        self._look_away()
        self._timer = self._loop.call_later(seconds, self._watch_sockets)

    def _wait_for_place(self, link: socket.socket) -> None:
        if not _is_ready(link):
            return
        self._full.on_present(
            "%s: new connections wait until others end: %s is reached",
            self.listener,
            self._quotas.reached_limit(self.listener),
        )
        # until a connection ends
        self._look_away()

    def _accept_from(self, link: socket.socket) -> None:
        for _ in range(AT_ONCE):
            wait_s = self._quotas.wait_s(self.listener)
            if wait_s == math.inf:
                self._wait_for_place(link)
                return
            if not wait_s and not self.listener.control and self._crowded():
                # a new connection is read once, whatever the others hold
                wait_s = CROWDED_S
            if wait_s:
                self._pause_accepting(wait_s)
                return
            if not OPEN_FILES.make_room(link.fileno(), LEFT_BY_PROTECTED if self.listener.protected else 1.0):
                if _is_ready(link):
                    self._no_room.on_present(
                        "%s: new connections wait: the descriptors that are left are for files; raise the "
                        "limit (ulimit -n, or LimitNOFILE= of the service)",
                        self.listener,
                    )
                    self._pause_accepting(NO_ROOM_S)
                return
            try:
                client, address = link.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._no_room.on_present(
                    "%s: no connection can be accepted: %s", self.listener, error.strerror
                )
                self._pause_accepting(NO_ROOM_S)
                return
            for trouble in (self._no_room, self._full):
                trouble.on_absent(f"{self.listener}: connections are accepted again")
            self._take_in(client, str(address[0]))

    def _take_in(self, client: socket.socket, address: str) -> None:
        slot = self._quotas.admit(self.listener, address)
        if slot is None:
            client.close()
            self._refusals.say(
                "%s: connection from %s closed: too many connections", self.listener.name, address
            )
            return
        client.setblocking(False)
        try:
            begun = _Begun(self._start_connection(client, slot))
        except StopIteration:
            return  # it failed at once
        task = self._loop.create_task(begun.rest())
        self._welcomes.add(task)
        task.add_done_callback(self._welcomes.discard)

    async def _start_connection(self, client: socket.socket, slot: ConnectionSlot) -> None:
        context = self.security.tls_context()
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._connected(self, slot),
                client,
                ssl=context,
                ssl_handshake_timeout=None if context is None else HANDSHAKE_S,
            )
        except (OSError, ssl.SSLError) as error:
            slot.leave()
            if isinstance(error, ssl.SSLError):
                self._login_failed()
            with contextlib.suppress(OSError):
                client.close()
            self._failures.say(
                "%s: connection from %s closed before it began: %s",
                self.listener.name,
                slot.address,
                _reason_of(error),
            )
        except BaseException:
            slot.leave()
            raise


def _is_ready(link: socket.socket) -> bool:
    poll = select.poll()
    poll.register(link, select.POLLIN)
    return bool(poll.poll(0))


class _Begun:
    """A coroutine that has run up to its first wait. A task would take this step in the loop's next turn,
    after a request of every other ready connection.

    Raises StopIteration if there was nothing to wait for.
    """

    def __init__(self, work: Coroutine[object, object, None]) -> None:
        self._work = work
        self._waits_for = work.send(None)

    async def rest(self) -> None:
        await self

    def __await__(self) -> Generator[object, None, None]:
        step: Callable[[], object]
        while True:
            try:
                yield self._waits_for
            except BaseException as error:
                step = partial(self._work.throw, error)
            else:
                step = partial(self._work.send, None)
            try:
                self._waits_for = step()
            except StopIteration:
                return


def _reason_of(error: OSError) -> str:
    reason = str(getattr(error, "reason", None) or error.strerror or error)
    if not reason and isinstance(error, ConnectionError):
        return "the client has gone"
    return "plain text where TLS is expected" if reason == "WRONG_VERSION_NUMBER" else reason
