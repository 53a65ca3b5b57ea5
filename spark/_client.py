"""The cluster client of driver and executors: its options, as plain data, and a blocking face of it.

Options go to executors, which need no file that only the driver has. Secrets are in no ``repr`` and no error,
and so in no log.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ..client import Cluster
from ..protocol import KohortError

if TYPE_CHECKING:
    from ..client.sasl import Sasl


class OptionsError(KohortError, ValueError):
    """Options that cannot be used; the text names each one."""


@dataclass(frozen=True, slots=True)
class Security:
    """TLS and SASL. Certificates and keys are PEM text, empty where there are none."""

    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    authorities: str = field(default="", repr=False)
    #: The client's certificate and those it hangs on, and its key.
    certificate: str = field(default="", repr=False)
    key_password: str = field(default="", repr=False)
    check_hostname: bool = True

    def ssl_context(self) -> ssl.SSLContext | None:
        """TLS context, None for plain text. Raises OptionsError for certificates and keys that are none."""
        if "SSL" not in self.protocol:
            return None
        try:
            context = ssl.create_default_context(cadata=self.authorities or None)
            if self.certificate:
                # Python takes them from a file only; this one can be read by nobody else
                with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                    file.write(self.certificate)
                    file.flush()
                    # a key that needs a password and has none must not ask for it at the terminal
                    context.load_cert_chain(file.name, password=lambda: self.key_password)
        except (OSError, ssl.SSLError) as error:
            raise OptionsError(
                f"the certificates or the key cannot be used: {error}; see ssl_cafile, ssl_certfile, "
                "ssl_keyfile and ssl_password"
            ) from None
        context.check_hostname = self.check_hostname
        return context

    def sasl(self) -> Sasl | None:
        """SASL credentials; None without SASL."""
        if not self.mechanism:
            return None
        from ..client.sasl import Sasl

        return Sasl(self.mechanism, self.username, self.password)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Address, limits and security of a connection; plain data, for it goes to executors."""

    bootstrap: str
    client_id: str = "kohort-spark"
    request_timeout_ms: int = 30_000
    security: Security = field(default_factory=Security)


class Client:
    """Runs calls to a Cluster, from any thread; ``close`` ends its thread and sockets."""

    def __init__(self, options: ConnectionOptions) -> None:
        self.options = options
        self._loop = asyncio.new_event_loop()
        self._cluster: Cluster | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="kohort-client", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"Client({self.options.bootstrap}, {'running' if self._thread.is_alive() else 'closed'})"

    def submit(self, call: Callable[[Cluster], Awaitable[T]]) -> Future[T]:
        """Start ``call(cluster)``; its future."""
        return asyncio.run_coroutine_threadsafe(self._run(call), self._loop)

    def run(self, call: Callable[[Cluster], Coroutine[Any, Any, T]]) -> T:
        """The result of ``call(cluster)``; its errors are raised here."""
        return self.submit(call).result()

    def close(self) -> None:
        """Safe to call again."""
        if not self._thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _run(self, call: Callable[[Cluster], Awaitable[T]]) -> T:
        if self._cluster is None:
            options = self.options
            self._cluster = Cluster(
                options.bootstrap,
                options.client_id,
                request_timeout_ms=options.request_timeout_ms,
                ssl_context=options.security.ssl_context(),
                sasl=options.security.sasl(),
                # time for a second try after one that was not answered
                default_api_timeout_ms=2 * options.request_timeout_ms,
            )
        return await call(self._cluster)

    async def _end(self) -> None:
        if self._cluster is not None:
            await self._cluster.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


_clients: dict[tuple[int, ConnectionOptions], Client] = {}


def process_client(options: ConnectionOptions) -> Client:
    """This process's client for these options, made at first use and kept: workers serve many tasks.

    The process id is part of the key because Spark forks its Python workers.
    """
    key = os.getpid(), options
    client = _clients.get(key)
    if client is None:
        client = _clients[key] = Client(options)
    return client
