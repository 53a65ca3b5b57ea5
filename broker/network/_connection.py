"""One connection: bytes in, requests one at a time and in order, responses out.

As in Apache Kafka, a waiting request (a parked JoinGroup, a Fetch without records) blocks its connection, not
the broker. The requests that members send most go to the coordinator as they are read, without a task, and
the next one is taken before a commit is written: commits that arrive together share one write.

Requests that a client sent before it disconnected are carried out, except those that would have to wait.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol, cast

from ...client.certificates import CertificateError
from ...coordinator.engine.runner import Writes
from ...protocol import FrameReader, Part, ProtocolError
from ..apis import AnyApi
from ..clients.client_state import Peer
from ..event_loop.stopwatch import clock
from ..metrics import FailedLogins
from ..reporting.log_lines import RateLimitedLog, printable_text
from ..requests.pending_response import PendingResponse
from ..requests.router import Router
from ..security._listeners import Listener
from ..security._login import Login, Pass
from ..security._quotas import ConnectionSlot
from ._acceptor import Acceptor
from ._backpressure import Backpressure
from ._flow import (
    LOOK,
    MAX_AHEAD,
    MAX_WAITING_BYTES,
    SMALL_BYTES,
    TURN_S,
    Pause,
    RequestQueue,
    Turn,
    wake_waiter,
)
from ._sender import FrameSender, Outbox

#: Most bytes that are read when a connection is accepted.
FIRST_READ_BYTES = 65_536


class Host(Protocol):
    """The part of the server that its connections need."""

    loop: asyncio.AbstractEventLoop
    #: The loop's clock.
    now: Callable[[], float]
    router: Router
    turn: Turn
    max_frame_bytes: int
    unread_timeout_s: float
    backpressure: Backpressure
    #: Log lines about connections that are closed.
    complaints: RateLimitedLog
    #: Those about connections whose requests failed unexpectedly.
    failures: RateLimitedLog
    failed_logins: FailedLogins
    stopping: bool

    def introduce(self, connection: ClientConnection, acceptor: Acceptor) -> tuple[Peer, str]:
        """Register a new connection; return its peer and the peer's name for logs."""

    def forget(self, connection: ClientConnection) -> None:
        """Called when the connection is closed."""

    def spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Run a coroutine; the server's stop cancels it."""


class ClientConnection(asyncio.Protocol):
    """asyncio's protocol of a connection, and the task that answers its requests."""

    # thousands of connections do not fit in a processor's cache, and a dictionary would be three times as
    # large
    __slots__ = (
        "_acceptor",
        "_ahead_bytes",
        "_busy",
        "_calls",
        "_collecting",
        "_droppable",
        "_frame",
        "_gone",
        "_login",
        "_pause",
        "_reader",
        "_run_since_s",
        "_served",
        "_server",
        "_settled",
        "_slot",
        "_takes",
        "_task",
        "_turn",
        "_turn_ends",
        "_waiting",
        "_wakeup",
        "_writes",
        "_writing",
        "frame_since",
        "last_active",
        "outbox",
        "peer",
        "peer_name",
        "reading",
        "sender",
        "small_only",
        "transport",
        "unauthenticated_since",
        "unmetered",
    )

    def __init__(self, server: Host, acceptor: Acceptor, slot: ConnectionSlot) -> None:
        self._server = server
        self._acceptor = acceptor
        self._slot = slot
        sasl = acceptor.security.sasl
        self._reader = FrameReader(server.max_frame_bytes if sasl is None else sasl.max_frame_bytes)
        self._waiting = RequestQueue()
        self._calls: deque[PendingResponse] = deque()
        self._ahead_bytes = 0
        # the requests of one read are being taken; their records are being written
        self._collecting = self._writing = False
        self._writes: Writes
        self._busy = False
        self._wakeup: asyncio.Future[None] | None = None
        self._settled: asyncio.Future[None] | None = None
        self._takes = True
        self._frame = b""
        self._pause = Pause(server.loop, self._end_mute)
        self._run_since_s = 0.0
        self._served = 0
        #: Whether the next request of a limited client is charged with the time since the previous one.
        self.unmetered = False
        #: Whether the socket is read.
        self.reading = True
        #: Whether it has sent requests, and only small ones.
        self.small_only = False
        self._gone = False
        self.sender: FrameSender
        self.outbox: Outbox
        # the current request is given up when the client disconnects
        self._droppable = False
        self._task: asyncio.Task[None] | None = None
        self._turn_ends = 0.0
        self._turn = -1
        self.transport: asyncio.Transport
        self.peer: Peer
        self.peer_name = "an unknown address"
        self._login: Login | None = None
        #: When it connected, if it has to authenticate and has not yet.
        self.unauthenticated_since: float | None = None
        #: When the last byte arrived or the last response was sent, on the loop's clock.
        self.last_active = server.now()
        #: When the first byte of the incomplete frame arrived; None without one.
        self.frame_since: float | None = None

    def __repr__(self) -> str:
        return f"Connection({self.peer_name}, {len(self._waiting.frames)} requests waiting)"

    @property
    def idle(self) -> bool:
        """Return whether no request is in progress or waiting."""
        return not (self._busy or self._waiting.frames or self._calls or self._pause)

    @property
    def listener(self) -> Listener:
        """The listener that it came to."""
        return self._acceptor.listener

    @property
    def held_bytes(self) -> int:
        """Bytes of requests that wait, the incomplete one included."""
        return self._waiting.held_bytes + self._reader.buffered_bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol. Login, limits and the log name of the peer begin here."""
        self.transport = cast(asyncio.Transport, transport)
        self.sender = FrameSender(self.transport, self._server.unread_timeout_s)
        self.outbox = Outbox(self._server.loop, self.transport)
        self.peer, self.peer_name = self._server.introduce(self, self._acceptor)
        self._writes = self._server.router.writes
        try:
            self.peer.identify(self._acceptor.security.principal(self.transport))
        except CertificateError as error:
            self._server.failed_logins.count(self.listener.name)
            self.end(str(error))
            return
        if (sasl := self._acceptor.security.sasl) is not None:
            self._login = Login(sasl, self.peer_name, self._let_in)
            self.unauthenticated_since = self._server.now()
        self._task = self._server.spawn(self._serve_requests())
        if not self.listener.tls:
            self._read_at_once()

    def _read_at_once(self) -> None:
        """Read the first bytes now: the loop would do it after a request of every other connection."""
        link = self.transport.get_extra_info("socket")
        if link is None:
            return
        try:
            data = os.read(link.fileno(), FIRST_READ_BYTES)
        except OSError:
            return  # nothing has come, or the loop will meet the same error
        if data:
            self.data_received(data)
            if not self.reading:
                self._server.loop.call_soon(self._reading_began)

    def _reading_began(self) -> None:
        """Stop reading again if necessary: uvloop always starts to read after ``connection_made``."""
        self.reading = True
        self.regulate()

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol. Frames that need no task are handled here, without one."""
        waiting = self._waiting
        if waiting.ended:
            return
        reader = self._reader
        before = waiting.held_bytes + reader.buffered_bytes
        now = self.last_active = self._server.now()
        turn = self._server.turn
        is_over = turn.is_over(self._turn)
        self._turn = turn.number
        at_once = not (self._busy or waiting.frames)
        self._collecting = True
        writes = self._writes
        writes.begin_read()
        metered = self._server.router.metered
        if metered:
            self._run_since_s = clock()
            self.unmetered = True
        taken = 0
        try:
            for frame in reader.feed(data):
                self.frame_since = None
                if at_once and self._take_request(frame):
                    taken += 1
                    # take at least one: to defer it would save no time, and costs half as much again
                    at_once = not is_over
                    if not taken & LOOK:
                        at_once = at_once and self._server.now() - now <= TURN_S
                        self.unmetered = metered
                else:
                    at_once = False
                    waiting.add(frame)
        except ProtocolError as error:
            waiting.end(error)
        finally:
            self._collecting, self._writing = False, True
            if not self._calls:
                # no response waits for what is written now
                self.outbox.flush()
            writes.end_read()
            self._writing = False
            turn.pause()
        self.peer.traffic.requests += taken
        if self.outbox.unsent:
            self.outbox.flush()
        if metered:
            self._end_run()
        held = waiting.held_bytes + reader.buffered_bytes
        if held == before == 0 and self.reading and not waiting.frames:
            self.small_only = True
            return
        self.small_only = self.small_only and held <= SMALL_BYTES
        if self._reader.buffered_bytes and self.frame_since is None:
            self.frame_since = now
        self._server.backpressure.count_bytes(self, held - before)
        if waiting.frames:
            wake_waiter(self._wakeup)
        self.regulate()

    def eof_received(self) -> bool:
        """See asyncio.Protocol. Keeps a plain connection open for the answers under way."""
        self._on_peer_gone()
        # with TLS a connection cannot stay half open
        return not self.listener.tls

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """See asyncio.Protocol. Gives back what the connection held."""
        self._on_peer_gone()
        self._slot.leave()
        self.sender.close()
        self.resume_writing()
        self._server.forget(self)

    def pause_writing(self) -> None:
        """See asyncio.Protocol. No request is taken while answers cannot be sent."""
        self._takes = False
        self.sender.pause()

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self._takes = not self._pause
        self.sender.resume()

    def on_answer(self) -> None:
        """Called when the coordinator has answered a call: send the responses that are due."""
        calls = self._calls
        while calls and (response := calls[0].response) is not None:
            calls.popleft()
            self.outbox.unsent += response
        # of several responses after one write, the last sends all of them, before other connections'
        # responses
        if not (self._collecting or (calls and self._writing)):
            self.last_active = self._server.now()
            self.outbox.send(more=bool(self._waiting.frames or calls))
            if not calls and self._settled is not None:
                wake_waiter(self._settled)

    def take_run_time(self, now: float) -> float:
        """Seconds that this connection has run and is not charged for yet; 0.0 while it does not run."""
        if not self._run_since_s:
            return 0.0
        before, self._run_since_s = self._run_since_s, now
        return now - before

    def _end_run(self) -> None:
        """Charge the time that was charged to no response."""
        now = clock()
        self._server.router.charge(self.peer, self.take_run_time(now), now)
        self._run_since_s = 0.0

    def mute(self, seconds: float) -> None:
        """Accept no requests for this long. Those that have come wait; responses are still sent."""
        if not self._gone:
            self._pause.begin(seconds)
            self._takes = False
            self.regulate()

    def _end_mute(self) -> None:
        self._takes = self.sender.can_write
        wake_waiter(self._wakeup)
        self.regulate()

    def end(self, reason: str) -> None:
        """Close with one log line. Bytes that come from now on are ignored."""
        self._server.complaints.say("connection from %s closed: %s", self.peer_name, printable_text(reason))
        self.outbox.flush()
        # closing passes on bytes that asyncio's TLS has already read, maybe together with the handshake
        self._waiting.ended = True
        self.transport.close()

    def regulate(self) -> None:
        """Stop or resume reading, depending on the waiting requests here and in the whole broker."""
        if self.transport.is_closing():
            return
        before = self.reading
        self.reading = not (self._waiting.full or self._pause) and self._server.backpressure.lets_read(self)
        if self.reading > before:
            self.transport.resume_reading()
            if self.frame_since is not None:
                self.frame_since = self._server.now()
        elif self.reading < before:
            self.transport.pause_reading()

    def _on_peer_gone(self) -> None:
        """The peer is gone: give up waiting requests, carry out queued ones."""
        if self._gone:
            return
        self._gone = True
        self._pause.end()
        if self._calls and self._calls[0].parks:
            # its response may come in minutes, and nobody would receive it
            self._calls.clear()
            wake_waiter(self._settled)
        wake_waiter(self._wakeup)
        if self._droppable and self._task is not None:
            self._task.cancel()

    def _let_in(self, principal: str) -> None:
        """Called when authentication succeeds."""
        self.peer.identify(principal)
        self.unauthenticated_since = None
        self._reader.limit(self._server.max_frame_bytes)

    def _take_request(self, frame: bytes) -> bool:
        """Pass a request that needs no task to the coordinator, if there is room; return whether that was
        done.
        """
        if self._login is not None and not self._login.open:
            return False
        calls = self._calls
        if not calls:
            self._ahead_bytes = len(frame)
        elif calls[0].parks or len(calls) >= MAX_AHEAD or self._ahead_bytes >= MAX_WAITING_BYTES:
            return False
        else:
            self._ahead_bytes += len(frame)
        return self._takes and self._server.router.take(frame, self.peer, self, calls)

    async def _serve_requests(self) -> None:
        turn = self._server.turn
        try:
            while (frame := await self._next_request()) is not None:
                if isinstance(frame, ProtocolError):
                    await self._all_answered()
                    raise frame
                size = len(frame)
                if metered := self._server.router.metered:
                    self._run_since_s = clock()
                    self._served += 1
                    self.unmetered = not self._served & LOOK
                taken = self._take_request(frame)
                if metered:
                    self._end_run()
                if taken:
                    self.peer.traffic.requests += 1
                else:
                    api = self._server.router.api_of(frame)
                    if api is not None and api.parks:
                        # it may wait for minutes: its frame must not keep others waiting
                        self._release_bytes(size)
                        size = 0
                    self._frame, frame = frame, b""
                    await self._answer_in_order(api)
                self._busy = False
                self.peer.queue_s = 0.0
                self._release_bytes(size)
                turn.pause()
                if self._server.now() > self._turn_ends or (self._waiting.frames and turn.is_over()):
                    # requests that never wait would otherwise be handled by the thousand in one step
                    await asyncio.sleep(0)
                    self._turn_ends = self._server.now() + TURN_S
        except ProtocolError as error:
            self.end(str(error))
        except Exception:
            self._server.failures.fail(
                "connection from %s closed: its requests cannot be answered", self.peer_name
            )
        finally:
            self._server.backpressure.count_bytes(self, -self.held_bytes)
            self._waiting.close()
            self.peer.on_closed()
            # this object is part of a cycle, maybe with thousands of others: release its buffer now
            self._reader = FrameReader(0)
            self.outbox.flush()
            self.transport.close()

    async def _next_request(self) -> bytes | ProtocolError | None:
        while not self._waiting.frames or self._pause:
            if self._gone:
                await self._all_answered()
                return None
            self._wakeup = self._server.loop.create_future()
            await self._wakeup
            self._turn_ends = self._server.now() + TURN_S
        self._busy = True
        frame, self.peer.queue_s = self._waiting.take()
        return frame

    async def _all_answered(self) -> None:
        """Return when the coordinator has answered every call."""
        while self._calls:
            self._settled = self._server.loop.create_future()
            await self._settled

    async def _answer_in_order(self, api: AnyApi | None) -> None:
        """Answer a request in order: no other overtakes it, and it overtakes none."""
        await self._all_answered()
        response = await self._make_response(api)
        sending_s = clock()
        if response is not None:
            self.last_active = self._server.now()
        if isinstance(response, (bytes, bytearray)):
            self.outbox.unsent += response
            self.outbox.send(more=bool(self._waiting.frames or self._calls))
        elif response is not None:
            self.outbox.flush()
            await self.sender.send(response)
        if self._login is not None and self._login.failed:
            self._server.failed_logins.count(self.listener.name)
            self.outbox.flush()
            await self._login.end()
        if self.peer.delay_ms:
            self.mute(self.peer.take_delay_s())
        await self.sender.wait_drained()
        if not self._gone:
            self.peer.on_sent(clock() - sending_s)

    async def _make_response(self, api: AnyApi | None) -> bytes | bytearray | Sequence[Part] | None:
        self._droppable = api is None or not api.carried_out
        try:
            if self._login is not None:
                answer = await self._login.answer(self._frame)
                if not isinstance(answer, Pass):
                    return answer
            if self._gone and api is not None and api.reads_only:
                return None
            answering = self._server.router.answer(self._hand_over_frame(), self.peer)
            if self._gone and self._droppable:
                # run the first step, in which most requests take effect, but do not wait
                async with asyncio.timeout(0):
                    response = await answering
            else:
                response = await answering
            return None if self._gone else response
        except TimeoutError:
            return None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._gone or self._server.stopping or task is None:
                raise
            task.uncancel()
            return None
        finally:
            self._droppable = False

    def _hand_over_frame(self) -> bytes:
        """The frame to answer; the connection drops its reference."""
        frame, self._frame = self._frame, b""
        return frame

    def _release_bytes(self, size: int) -> None:
        self._waiting.held_bytes -= size
        self.small_only = max(size, self.held_bytes) <= SMALL_BYTES if size else self.small_only
        self._server.backpressure.count_bytes(self, -size)
        if not self.reading:
            self.regulate()
