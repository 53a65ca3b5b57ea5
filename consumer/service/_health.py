"""A small HTTP listener for probes: /healthz, /readyz, /metrics.

It speaks as much HTTP/1.1 as probes need: one GET or HEAD a connection, no body read. It listens on the event
loop that the consumer runs on, on purpose: a loop that a handler has blocked cannot answer, and the probe
sees that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

#: Most bytes of request line and headers, and how long a client may take to send them.
MAX_REQUEST_BYTES = 8_192
REQUEST_TIMEOUT_S = 5.0

_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a probe gets."""

    status: int
    body: str
    content_type: str = "text/plain; charset=utf-8"


Route = Callable[[], Answer]


class HealthListener:
    """Serves ``routes`` (path to function) on ``host:port``; port 0 picks a free one, see ``port``."""

    def __init__(self, routes: Mapping[str, Route], *, host: str, port: int) -> None:
        self._routes = dict(routes)
        self._host = host
        self.port = port
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen. Raises OSError with the address in its text."""
        try:
            self._server = await asyncio.start_server(
                self._serve, self._host, self.port, limit=MAX_REQUEST_BYTES
            )
        except OSError as error:
            raise OSError(
                error.errno,
                f"cannot listen for health checks on {self._host}:{self.port}: {error.strerror}. "
                "Choose another health_port, or 0 for any free one",
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(self._respond(head))
            await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # a client that sends no request gets no answer
        finally:
            writer.close()

    def _respond(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/"):
            return _encode(Answer(400, "not an HTTP request\n"), with_body=True)
        method, target, _ = words
        route = self._routes.get(target.split("?", 1)[0])
        if route is None:
            answer = Answer(404, f"there is {', '.join(sorted(self._routes))}\n")
        elif method not in ("GET", "HEAD"):
            answer = Answer(405, "only GET and HEAD\n")
        else:
            answer = route()
        return _encode(answer, with_body=method != "HEAD")


def _encode(answer: Answer, *, with_body: bool) -> bytes:
    body = answer.body.encode()
    head = (
        f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")
