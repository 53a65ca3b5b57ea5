"""The cluster client of driver and executors: its options as plain data, and a blocking interface.

Options are sent to executors, so they hold the content of files and no paths. Secrets are left out of
``repr`` and errors, and so out of logs.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from ..client import Cluster, ConfigError
from ..client.security import Security
from ..client.threads import LoopThread
from ..settings import MAX_INT


class OptionsError(ConfigError):
    """Options cannot be used. The text names each wrong one."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Address, timeout (milliseconds) and security of a connection: plain data that is sent to executors."""

    bootstrap: str
    client_id: str = "kohort-spark"
    request_timeout_ms: int = 30_000
    security: Security = field(default_factory=Security)


class Client:
    """Runs calls to a Cluster on a thread with an event loop. May be used from any thread."""

    def __init__(self, options: ConnectionOptions) -> None:
        self.options = options
        self._cluster: Cluster | None = None
        self._thread = LoopThread("kohort-client")

    def __repr__(self) -> str:
        return f"Client({self.options.bootstrap}, {'running' if self._thread.is_alive else 'closed'})"

    def submit(self, call: Callable[[Cluster], Awaitable[T]]) -> Future[T]:
        """Start ``call(cluster)``; return its future."""
        return self._thread.submit(self._run(call))

    def run(self, call: Callable[[Cluster], Coroutine[object, None, T]]) -> T:
        """Return the result of ``call(cluster)``. Raises its errors."""
        return self.submit(call).result()

    def close(self) -> None:
        """Close the connections and end the thread. Safe to call again."""
        if not self._thread.is_alive:
            return
        if self._cluster is not None:
            self._thread.run(self._cluster.close())
        self._thread.stop()

    async def _run(self, call: Callable[[Cluster], Awaitable[T]]) -> T:
        if self._cluster is None:
            options = self.options
            self._cluster = Cluster(
                options.bootstrap,
                options.client_id,
                request_timeout_ms=options.request_timeout_ms,
                ssl_context=options.security.ssl_context(),
                sasl=options.security.sasl(),
                # twice, so that there is time for a second attempt after one without a response
                default_api_timeout_ms=2 * options.request_timeout_ms,
                # brokers send the first batch whole, and a range cannot be read without it
                max_frame_bytes=MAX_INT,
            )
        return await call(self._cluster)


_clients: dict[tuple[int, ConnectionOptions], Client] = {}


def process_client(options: ConnectionOptions) -> Client:
    """Return this process's client for these options. It is made at first use and kept for further tasks.

    The process id is part of its key because Spark forks its Python workers.
    """
    key = os.getpid(), options
    client = _clients.get(key)
    if client is None:
        client = _clients[key] = Client(options)
    return client
