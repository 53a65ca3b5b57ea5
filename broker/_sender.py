"""Sending answers that come in parts: bytes as they are, ranges of files from the page cache to the socket.

A range goes by ``sendfile`` where the platform has it, the connection is plain and the loop is asyncio's own,
which copies what a socket does not take at once; records of a Fetch then do not enter this process. Where it
cannot go, it is read and written. uvloop sends from the memory it is given, and with it that is quicker than
``sendfile`` (docs/performance.md).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Sequence

from ..log import FileRange
from ..protocol import Part

log = logging.getLogger("kohort.broker")

#: A client that takes nothing for this long, in seconds, is cut off, as one that leaves answers unread.
SLOW_READER_S = 30.0

_NO_SENDFILE = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSOCK})


class Sender:
    """Sends to one transport. One ``send`` at a time, and nobody writes to the transport meanwhile."""

    __slots__ = ("_closed", "_transport", "_writable")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._closed = False
        self._writable: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"Sender({self._transport!r})"

    def close(self) -> None:
        """The connection is gone: a ``send`` under way ends."""
        self._closed = True
        self._wake()

    async def send(self, parts: Sequence[Part]) -> None:
        """Hand all parts to the transport, or send them past it. A connection that breaks is aborted."""
        if self._transport.is_closing():
            return
        try:
            if any(isinstance(part, FileRange) for part in parts) and self._may_pass():
                await self._send_past(parts)
            else:
                self._transport.writelines([_bytes(part) for part in parts])
        except OSError as error:
            self._abort(str(error))

    async def _send_past(self, parts: Sequence[Part]) -> None:
        # a descriptor of our own: the loop watches the transport's
        descriptor = os.dup(self._transport.get_extra_info("socket").fileno())
        with socket.socket(fileno=descriptor) as link:
            link.setblocking(False)
            for number, part in enumerate(parts, start=1):
                if isinstance(part, FileRange):
                    await self._send_range(link, part)
                else:
                    await self._send_bytes(link, _bytes(part), more=number < len(parts))

    def _may_pass(self) -> bool:
        """Whether bytes may, and should, go to the socket past the transport."""
        transport = self._transport
        return (
            hasattr(os, "sendfile")
            and isinstance(asyncio.get_running_loop(), asyncio.SelectorEventLoop)
            and transport.get_extra_info("sslcontext") is None
            and transport.get_extra_info("socket") is not None
            and transport.get_write_buffer_size() == 0
        )

    async def _send_range(self, link: socket.socket, part: FileRange) -> None:
        at, end = part.position, part.position + len(part)
        while at < end:
            try:
                sent = os.sendfile(link.fileno(), part.fileno(), at, end - at)
            except BlockingIOError:
                await self._wait(link)
                continue
            except OSError as error:
                if error.errno not in _NO_SENDFILE:
                    raise
                await self._send_bytes(link, part.read(at - part.position), more=False)
                return
            if not sent:
                raise OSError(errno.EIO, f"the file ends {end - at} bytes before it should")
            at += sent

    async def _send_bytes(self, link: socket.socket, data: bytes | bytearray, *, more: bool) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[link.send(left, _MORE if more else 0) :]
            except BlockingIOError:
                await self._wait(link)

    async def _wait(self, link: socket.socket) -> None:
        """Return when the socket takes more. Raises OSError when it will not."""
        loop = asyncio.get_running_loop()
        self._writable = loop.create_future()
        loop.add_writer(link.fileno(), self._wake)
        try:
            async with asyncio.timeout(SLOW_READER_S):
                await self._writable
        except TimeoutError:
            raise OSError(errno.ETIMEDOUT, "it left its answer unread") from None
        finally:
            loop.remove_writer(link.fileno())
            self._writable = None
        if self._closed or self._transport.is_closing():
            raise OSError(errno.ECONNABORTED, "it was closed")

    def _wake(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    def _abort(self, reason: str) -> None:
        if not self._transport.is_closing():
            log.warning("connection closed while an answer was sent: %s", reason)
            self._transport.abort()


#: More of the answer follows: a packet need not leave yet.
_MORE = getattr(socket, "MSG_MORE", 0)


def _bytes(part: Part) -> bytes | bytearray:
    if isinstance(part, FileRange):
        return part.read()
    assert isinstance(part, (bytes, bytearray))
    return part
