"""What the admin clients share: the connections to a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from ..client import Cluster
from .connection import cluster_of, connect_soon, read_connection


class AdminClient:
    """A client of a cluster. ``timeout_ms`` bounds each call, retries included.

    ``connection`` has settings of TLS and SASL, as consumers have them; see docs/connections.md.
    """

    def __init__(
        self,
        bootstrap: str | Iterable[str] | None = None,
        *,
        timeout_ms: int = 30_000,
        client_id: str = "kohort-admin",
        **connection: object,
    ) -> None:
        self._cluster = cluster_of(read_connection(bootstrap, connection), client_id, timeout_ms)
        self._timeout_ms = timeout_ms

    @classmethod
    def on_cluster(cls, cluster: Cluster) -> Self:
        """A client over the connections of ``cluster``, which is connected; its timeout bounds each call."""
        self = cls.__new__(cls)
        self._cluster, self._timeout_ms = cluster, cluster.default_api_timeout_ms
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._cluster!r})"

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def cluster(self) -> Cluster:
        """The connections, for requests of other kinds."""
        return self._cluster

    async def connect(self) -> None:
        """Reach a bootstrap broker. One that refuses connections is retried for a second, no longer."""
        await connect_soon(self._cluster)

    async def close(self) -> None:
        """Close every connection. Safe to call again."""
        await self._cluster.close()
