"""A link to a server on this machine that can be cut, and be whole again."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from types import TracebackType

_CHUNK = 1 << 16


class Link:
    """Passes bytes on between clients of ``port`` and a server, in a thread with an event loop of its own."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="link", daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self._server: asyncio.Server | None = None
        #: Where clients connect to.
        self.port = 0

    def __enter__(self) -> Link:
        self._thread.start()
        self._call(self._open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """End every connection, and each new one at once."""
        self._call(self._set(cut=True))

    def mend(self) -> None:
        self._call(self._set(cut=False))

    def _call(self, made: object) -> None:
        asyncio.run_coroutine_threadsafe(made, self._loop).result(10)  # type: ignore[arg-type]

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._set(cut=True)

    async def _set(self, *, cut: bool) -> None:
        self._is_cut = cut
        for writer in list(self._writers) if cut else ():
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        with suppress(OSError):
            there_reader, there = await asyncio.open_connection("127.0.0.1", self._server_port)
            ends = {writer, there}
            self._writers |= ends
            try:
                await asyncio.gather(self._pass_on(reader, there), self._pass_on(there_reader, writer))
            finally:
                self._writers -= ends
                for each in ends:
                    each.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError("the other end has gone")
