"""GET /metrics: the snapshot in Prometheus' format. The text is made in a thread, beside the event loop.

The extra "service" installs prometheus-client; without it /metrics says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from ._families import FAMILIES, Family
from ._snapshot import BrokerSnapshot, TallyFigures, TimeFigures

#: Most bytes of a request, how long it and its answer may take, and how many are answered at once.
MAX_REQUEST_BYTES: Final = 8_192
REQUEST_TIMEOUT_S: Final = 5.0
ANSWER_TIMEOUT_S: Final = 30.0
MAX_AT_ONCE: Final = 8

#: Most connections; further ones are closed. They count towards no limit of the broker.
MAX_CONNECTIONS: Final = 64

_PLAIN: Final = "text/plain; charset=utf-8"


def exposition(snapshot: BrokerSnapshot) -> tuple[bytes, str]:
    """The text and its content type. Raises ImportError without prometheus-client."""
    import prometheus_client as prometheus

    registry = prometheus.CollectorRegistry()
    registry.register(_Collector(snapshot))
    prometheus.ProcessCollector(registry=registry)
    prometheus.GCCollector(registry=registry)
    return prometheus.generate_latest(registry), prometheus.CONTENT_TYPE_LATEST


class MetricsListener:
    """Serves /metrics on ``host:port``; port 0 picks a free one, see ``port``."""

    def __init__(self, snapshot: Callable[[], BrokerSnapshot], host: str, port: int) -> None:
        self._snapshot = snapshot
        self._host = host
        self.port = port
        self._server: asyncio.Server | None = None
        self._places = asyncio.Semaphore(MAX_AT_ONCE)
        self._connections = 0

    async def start(self) -> None:
        """Listen. Raises OSError."""
        self._server = await asyncio.start_server(
            self._serve_client, self._host or None, self.port, limit=MAX_REQUEST_BYTES
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Close the listener; answers that are under way are cut short."""
        if self._server is not None:
            self._server.close()

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._connections >= MAX_CONNECTIONS:
            writer.close()
            return
        self._connections += 1
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                async with self._places:
                    writer.write(await self._answer_request(head))
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # no request came: close without a response
        finally:
            self._connections -= 1
            writer.transport.abort()

    async def _answer_request(self, head: bytes) -> bytes:
        method, _, rest = head.split(b"\r\n", 1)[0].partition(b" ")
        path = rest.split(b" ", 1)[0].split(b"?", 1)[0]
        if method not in (b"GET", b"HEAD"):
            return _to_http("405 Method Not Allowed", b"only GET and HEAD\n", _PLAIN)
        if path != b"/metrics":
            return _to_http("404 Not Found", b"there is /metrics\n", _PLAIN)
        try:
            body, content_type = await asyncio.to_thread(exposition, self._snapshot())
        except ImportError:
            hint = b"metrics need prometheus-client: pip install 'kohort[service]'\n"
            return _to_http("503 Service Unavailable", hint, _PLAIN)
        return _to_http("200 OK", body, content_type, head_only=method == b"HEAD")


class _Collector:
    def __init__(self, snapshot: BrokerSnapshot) -> None:
        self._snapshot = snapshot

    def describe(self) -> Iterable[object]:
        """Return nothing: the families are only known when they are collected."""
        return ()

    def collect(self) -> Iterator[Any]:
        from prometheus_client.metrics_core import Metric

        for family in FAMILIES:
            metric = Metric(family.name, family.help, family.kind)
            for values, value in family.samples(self._snapshot):
                _add_sample(metric, family, dict(zip(family.labels, values, strict=True)), value)
            yield metric


def _add_sample(
    metric: Any, family: Family, labels: dict[str, str], value: float | TimeFigures | TallyFigures
) -> None:
    if isinstance(value, TimeFigures):
        for share, time_ms in value.quantiles_ms.items():
            metric.add_sample(family.name, {**labels, "quantile": f"{share:g}"}, time_ms)
        metric.add_sample(f"{family.name}_count", labels, value.count)
        metric.add_sample(f"{family.name}_sum", labels, value.total_s * 1000)
    elif isinstance(value, TallyFigures):
        metric.add_sample(f"{family.name}_count", labels, value.count)
        metric.add_sample(f"{family.name}_sum", labels, value.total)
    else:
        name = f"{family.name}_total" if family.kind == "counter" else family.name
        metric.add_sample(name, labels, value)


def _to_http(status: str, body: bytes, content_type: str, *, head_only: bool = False) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if head_only else body)
