"""The probes of a service, served while it runs."""

from __future__ import annotations

import asyncio
import importlib.util
from types import TracebackType
from typing import TYPE_CHECKING

from ._health import Answer, HealthListener
from ._metrics import metrics_route
from ._progress import Progress

if TYPE_CHECKING:
    from ._engine import Engine


class Probes:
    """/healthz, /readyz and /metrics at ``address``; nothing is served when that is None."""

    def __init__(self, engine: Engine, progress: Progress, address: tuple[str, int] | None) -> None:
        self._engine = engine
        self._progress = progress
        self._host = "" if address is None else address[0]
        self._listener: HealthListener | None = None
        if address is not None:
            routes = {
                "/healthz": self._healthz,
                "/readyz": self._readyz,
                "/metrics": metrics_route(lambda: engine.snapshot(self._complaint() is None)),
            }
            self._listener = HealthListener(routes, host=address[0], port=address[1])

    @property
    def port(self) -> int | None:
        """The port that is listened on; None when nothing is."""
        return self._listener.port if self._listener is not None else None

    def addresses(self) -> str:
        """Where it listens, for the log."""
        paths = "/healthz, /readyz and /metrics"
        if importlib.util.find_spec("prometheus_client") is None:
            paths = "/healthz and /readyz (/metrics needs prometheus-client: pip install 'kohort[service]')"
        return f"{paths} at http://{self._host}:{self.port}"

    async def __aenter__(self) -> Probes:
        self._progress.observe(asyncio.get_running_loop().time(), finished=0, waiting=0)
        if self._listener is not None:
            await self._listener.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            await self._listener.stop()

    def _complaint(self) -> str | None:
        return self._progress.complaint(asyncio.get_running_loop().time())

    def _healthz(self) -> Answer:
        complaint = self._complaint()
        return Answer(200, "ok\n") if complaint is None else Answer(503, f"{complaint}\n")

    def _readyz(self) -> Answer:
        reason = self._engine.unready() or self._complaint()
        return Answer(200, "ready\n") if reason is None else Answer(503, f"{reason}\n")
