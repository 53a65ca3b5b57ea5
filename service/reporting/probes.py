"""The probes of a service, /healthz, /readyz and /metrics, served by a small HTTP listener.

The listener speaks as much HTTP/1.1 as probes need: one GET or HEAD a connection, no body read. It listens on
the event loop that the consumer runs on, on purpose: a loop that a handler has blocked cannot answer, and the
probe sees that.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Protocol

from .metrics import Answer, Snapshot, metrics_route

#: Most bytes of request line and headers, and how long a client may take to send them.
MAX_REQUEST_BYTES = 8_192
REQUEST_TIMEOUT_S = 5.0


@dataclass(slots=True, eq=False)
class HandlingProgress:
    """Detects a standstill. The poll loop reports, in each iteration, how many records are finished.

    Comparing a running count costs nothing per record. ``stalled_after_ms`` is how long records may wait
    without any being finished, and how long the poll loop may not report. Times are seconds of one monotonic
    clock.
    """

    stalled_after_ms: int
    finished: int = 0
    waiting: int = 0
    moved_at: float = 0.0
    observed_at: float = 0.0

    def observe(self, now: float, *, finished: int, waiting: int) -> None:
        """``finished``: records in total; ``waiting``: records with handlers, or not read yet."""
        if finished != self.finished or not self.waiting:
            self.moved_at = now
        self.finished, self.waiting, self.observed_at = finished, waiting, now

    def complaint(self, now: float) -> str | None:
        """A description of the standstill; None while there is progress."""
        limit_s = self.stalled_after_ms / 1000
        if now - self.observed_at > limit_s:
            return f"the consumer has not been asked for records for {now - self.observed_at:.0f} s"
        if self.waiting and now - self.moved_at > limit_s:
            return f"{self.waiting} records wait and none has been finished for {now - self.moved_at:.0f} s"
        return None


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
                self._serve_client, self._host, self.port, limit=MAX_REQUEST_BYTES
            )
        except OSError as error:
            raise OSError(
                error.errno,
                f"cannot listen for health checks on {self._host}:{self.port}: {error.strerror}. "
                "Choose another health_port, or 0 for any free one",
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the listener. Safe to call again."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(self._make_response(head))
            await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # a client that sends no request gets no answer
        finally:
            writer.close()

    def _make_response(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/"):
            return _encode_answer(Answer(400, "not an HTTP request\n"), with_body=True)
        method, target, _ = words
        route = self._routes.get(target.split("?", 1)[0])
        if route is None:
            answer = Answer(404, f"there is {', '.join(sorted(self._routes))}\n")
        elif method not in ("GET", "HEAD"):
            answer = Answer(405, "only GET and HEAD\n")
        else:
            answer = route()
        return _encode_answer(answer, with_body=method != "HEAD")


def _encode_answer(answer: Answer, *, with_body: bool) -> bytes:
    body = answer.body.encode()
    head = (
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")


class Probed(Protocol):
    """A run of a service, as its probes see it. ``snapshot`` gets whether it is alive.

    ``remarks`` are lines for the body of a probe that has no complaint.
    """

    group: str

    def complaint(self) -> str | None:
        """What stands still, in words; None while there is progress."""

    def unready(self) -> str | None:
        """Why no record can be handled now; None if one can."""

    def remarks(self) -> Sequence[str]:
        """What /healthz says besides: a line for each."""

    def snapshot(self, live: bool) -> Snapshot:
        """Numbers for /metrics."""


class Probes:
    """/healthz, /readyz and /metrics at ``address``; nothing is served when that is None.

    They cover the services that ``probed`` returns, of which ``expected`` must be there.
    """

    def __init__(
        self, probed: Callable[[], Sequence[Probed]], address: tuple[str, int] | None, *, expected: int = 1
    ) -> None:
        self._probed = probed
        self._expected = expected
        self._host = "" if address is None else address[0]
        self._listener: HealthListener | None = None
        if address is not None:
            routes = {
                "/healthz": self._answer_healthz,
                "/readyz": self._answer_readyz,
                "/metrics": metrics_route(
                    lambda: [each.snapshot(each.complaint() is None) for each in probed()]
                ),
            }
            self._listener = HealthListener(routes, host=address[0], port=address[1])

    @property
    def port(self) -> int | None:
        """The port that is listened on; None when nothing is."""
        return self._listener.port if self._listener is not None else None

    def addresses(self) -> str:
        """Paths and address as a text, for the log."""
        paths = "/healthz, /readyz and /metrics"
        if importlib.util.find_spec("prometheus_client") is None:
            paths = "/healthz and /readyz (/metrics needs prometheus-client: pip install 'kohort[service]')"
        return f"{paths} at http://{self._host}:{self.port}"

    async def __aenter__(self) -> Probes:
        if self._listener is not None:
            await self._listener.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            await self._listener.stop()

    def _answer_healthz(self) -> Answer:
        return self._answer_with("ok\n", {each.group: each.complaint() for each in self._probed()})

    def _answer_readyz(self) -> Answer:
        reasons = {each.group: each.unready() or each.complaint() for each in self._probed()}
        if len(reasons) < self._expected:
            return Answer(503, f"{len(reasons)} of {self._expected} services run\n")
        return self._answer_with("ready\n", reasons)

    def _answer_with(self, good: str, reasons: Mapping[str, str | None]) -> Answer:
        """200 where no group has a reason against it."""
        several = self._expected > 1
        bad = [f"group {group}: {why}\n" if several else f"{why}\n" for group, why in reasons.items() if why]
        remarks = [f"{remark}\n" for each in self._probed() for remark in each.remarks()]
        return Answer(503, "".join(bad)) if bad else Answer(200, "".join((good, *remarks)))
