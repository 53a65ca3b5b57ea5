"""Answers that leave together: a write to a socket costs as much as a request."""

from __future__ import annotations

import asyncio
from typing import Final

#: Bytes of answers that leave together; more than that are written at once.
MAX_JOINED_BYTES: Final = 65_536


class Outbox:
    """Small answers of one connection, until they are handed to its transport in one piece."""

    __slots__ = ("_due", "_loop", "_transport", "given", "unsent")

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        self._loop = loop
        self._transport = transport
        self._due = False
        #: Bytes that the transport was given, in all.
        self.given = 0
        #: To be added to.
        self.unsent = bytearray()

    def send(self, *, more: bool) -> None:
        """Let them go, unless ``more`` will soon be with them."""
        if not more or len(self.unsent) >= MAX_JOINED_BYTES:
            self.flush()
        elif not self._due:
            # should the next request have to wait, this answer does not wait with it
            self._due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Let them go now."""
        self._due = False
        if self.unsent:
            unsent, self.unsent = self.unsent, bytearray()
            if not self._transport.is_closing():
                self.given += len(unsent)
                self._transport.write(unsent)
