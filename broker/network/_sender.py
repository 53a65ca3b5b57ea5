"""Sending of responses: small ones together, those in parts as bytes or from the page cache to the socket.

Ranges of files are sent with ``sendfile`` if the platform has it and the connection has no TLS, on asyncio's
own loop and on uvloop; records of a Fetch then do not enter this process. Otherwise they are read and
written.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Iterator, Sequence
from typing import Final

from ...log import OPEN_FILES, FileRange
from ...protocol import Part
from ..reporting.log_lines import RateLimitedLog

#: Bytes of a response that are read from files at once; the rest is read once the client has taken them. So a
#: client that reads slowly costs little memory, whatever it requested.
PIECE_BYTES = 262_144

#: Most bytes of small responses that are sent together; beyond that they are written at once.
MAX_JOINED_BYTES: Final = 65_536

_NO_SENDFILE = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSOCK})

_aborted = RateLimitedLog()


class Outbox:
    """Small responses of one connection, sent in one write: a write to a socket costs as much as a
    request. Without TLS they go right to the socket, which takes less time than through the transport.
    """

    __slots__ = ("_descriptor", "_due", "_loop", "_transport", "given", "unsent")

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        self._loop = loop
        self._transport = transport
        self._due = False
        link = None if transport.get_extra_info("sslcontext") else transport.get_extra_info("socket")
        self._descriptor = -1 if link is None else link.fileno()
        #: Total of bytes passed to the transport.
        self.given = 0
        #: Bytes to send; callers append to it.
        self.unsent = bytearray()

    def send(self, *, more: bool) -> None:
        """Send them, unless ``more`` will soon be added."""
        if not more or len(self.unsent) >= MAX_JOINED_BYTES:
            self.flush()
        elif not self._due:
            # if the next request has to wait, this response must not wait with it
            self._due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Hand everything to the transport in one piece."""
        self._due = False
        if self.unsent:
            unsent, self.unsent = self.unsent, bytearray()
            if not self._transport.is_closing():
                self.given += len(unsent)
                if not self._is_sent(unsent):
                    self._transport.write(unsent)

    def _is_sent(self, unsent: bytearray) -> bool:
        """Send to the socket, if nothing waits in the transport; what is left in ``unsent`` has to wait
        there. Return whether nothing is.
        """
        if self._descriptor < 0 or self._transport.get_write_buffer_size():
            return False
        try:
            sent = os.write(self._descriptor, unsent)
        except OSError:
            # full, or broken: the transport meets the same error
            return False
        del unsent[:sent]
        return not unsent


class FrameSender:
    """Sends to one transport. Call one ``send`` at a time, and do not write to the transport meanwhile."""

    __slots__ = (
        "_closed",
        "_patience_s",
        "_resumed",
        "_transport",
        "_writable",
        "can_write",
        "given",
        "left",
    )

    def __init__(self, transport: asyncio.Transport, patience_s: float) -> None:
        """A socket that accepts no bytes for ``patience_s`` is given up."""
        self._transport = transport
        self._patience_s = patience_s
        self._resumed: asyncio.Future[None] | None = None
        #: Whether the client has taken most of the bytes passed to the transport.
        self.can_write = True
        #: Total of bytes passed to the transport, or to the socket directly.
        self.given = 0
        #: Bytes of the current response that have not been passed to the transport yet.
        self.left = 0
        self._closed = False
        self._writable: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"Sender({self._transport!r})"

    def close(self) -> None:
        """Called when the connection is gone: end a ``send`` in progress."""
        self._closed = True
        self._wake_waiter()
        self.resume()

    def pause(self) -> None:
        """The socket takes no more: parts that follow wait."""
        self.can_write = False

    def resume(self) -> None:
        """The socket takes bytes again."""
        self.can_write = True
        if self._resumed is not None and not self._resumed.done():
            self._resumed.set_result(None)

    async def wait_drained(self) -> None:
        """Return when the client has taken most of the bytes sent to it."""
        while not self.can_write:
            self._resumed = asyncio.get_running_loop().create_future()
            await self._resumed

    async def send(self, parts: Sequence[Part]) -> None:
        """Pass all parts to the transport, or directly to the socket. A connection that breaks is aborted."""
        if self._transport.is_closing():
            return
        try:
            if any(isinstance(part, FileRange) for part in parts) and self._may_pass():
                await self._send_past(parts)
            else:
                await self._send_pieces(parts)
        except OSError as error:
            self._abort_sending(str(error))

    async def _send_pieces(self, parts: Sequence[Part]) -> None:
        self.left = sum(len(part) for part in parts)
        pieces: list[bytes | bytearray] = []
        try:
            size = 0
            for part in parts:
                for piece in _pieces_of(part):
                    pieces.append(piece)
                    size += len(piece)
                    if size >= PIECE_BYTES:
                        self.left -= size
                        self.given += size
                        self._transport.writelines(pieces)
                        pieces, size = [], 0
                        await self.wait_drained()
                        if self._closed or self._transport.is_closing():
                            return
            self.given += size
            self._transport.writelines(pieces)
        finally:
            self.left = 0

    async def _send_past(self, parts: Sequence[Part]) -> None:
        # a duplicate, since the loop watches the transport's own descriptor
        descriptor = os.dup(self._transport.get_extra_info("socket").fileno())
        with socket.socket(fileno=descriptor) as link:
            link.setblocking(False)
            for number, part in enumerate(parts, start=1):
                if isinstance(part, FileRange):
                    await self._send_range(link, part)
                else:
                    await self._send_bytes(link, _bytes_of(part), more=number < len(parts))

    def _may_pass(self) -> bool:
        """Return whether bytes may, and should, be sent to the socket directly."""
        transport = self._transport
        if (
            not hasattr(os, "sendfile")
            or transport.get_extra_info("sslcontext") is not None
            or transport.get_extra_info("socket") is None
        ):
            return False
        if transport.is_closing() or transport.get_write_buffer_size() != 0:
            return False
        # a client may read as slowly as it likes: the duplicate counts as one more connection
        return OPEN_FILES.make_room(transport.get_extra_info("socket").fileno())

    async def _send_range(self, link: socket.socket, part: FileRange) -> None:
        at, end = part.position, part.position + len(part)
        while at < end:
            try:
                sent = os.sendfile(link.fileno(), part.fileno(), at, end - at)
            except BlockingIOError:
                await self._wait_writable(link)
                continue
            except OSError as error:
                if error.errno not in _NO_SENDFILE:
                    raise
                await self._send_bytes(link, part.read(at - part.position), more=False)
                return
            if not sent:
                raise OSError(errno.EIO, f"the file ends {end - at} bytes before it should")
            at += sent
            self.given += sent

    async def _send_bytes(self, link: socket.socket, data: bytes | bytearray, *, more: bool) -> None:
        left = memoryview(data)
        while left:
            try:
                sent = link.send(left, _MORE if more else 0)
                left = left[sent:]
                self.given += sent
            except BlockingIOError:
                await self._wait_writable(link)

    async def _wait_writable(self, link: socket.socket) -> None:
        """Return when the socket accepts more bytes. Raises OSError if it will not."""
        loop = asyncio.get_running_loop()
        self._writable = loop.create_future()
        loop.add_writer(link.fileno(), self._wake_waiter)
        try:
            async with asyncio.timeout(self._patience_s):
                await self._writable
        except TimeoutError:
            raise OSError(errno.ETIMEDOUT, "it left its answer unread") from None
        finally:
            loop.remove_writer(link.fileno())
            self._writable = None
        if self._closed or self._transport.is_closing():
            raise OSError(errno.ECONNABORTED, "it was closed")

    def _wake_waiter(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    def _abort_sending(self, reason: str) -> None:
        if not self._transport.is_closing():
            _aborted.say("connection closed while an answer was sent: %s", reason)
            self._transport.abort()


#: Flag: more of the response follows, so a packet may wait.
_MORE = getattr(socket, "MSG_MORE", 0)


def _pieces_of(part: Part) -> Iterator[bytes | bytearray]:
    """A part as it is, or a range of a file in pieces, each read when it is its turn."""
    if not isinstance(part, FileRange) or len(part) <= PIECE_BYTES:
        yield _bytes_of(part)
        return
    for start in range(0, len(part), PIECE_BYTES):
        yield part.read(start, min(start + PIECE_BYTES, len(part)))


def _bytes_of(part: Part) -> bytes | bytearray:
    if isinstance(part, FileRange):
        return part.read()
    assert isinstance(part, (bytes, bytearray))
    return part
