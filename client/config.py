"""Settings that every client of a cluster has: brokers, time limits, TLS and SASL.

This module imports pydantic, so it is loaded when a client is created and not with the package.
"""

from __future__ import annotations

from typing import Annotated, Self, TypeVar

from pydantic import ConfigDict, Field, model_validator

from ..protocol import MAX_FRAME_BYTES
from ..settings import MAX_INT, Row, SettingsError, read_settings
from ..settings.connection import BOOTSTRAP, ClientRows, check_security, fallback_settings
from ..settings.model import SettingsModel
from .cluster import Cluster
from .errors import ConfigError
from .metadata import parse_bootstrap
from .security import context_and_login


def positive(doc: str) -> Row:
    """Return the row of a setting of Kafka's type int with values from 1."""
    return Row(doc, 1, MAX_INT)


class ClientSettings(SettingsModel, ClientRows):
    """Settings that consumers and producers share. Times are in milliseconds."""

    model_config = ConfigDict(strict=True)

    bootstrap: Annotated[
        str | Annotated[list[str], Field(strict=False)],
        BOOTSTRAP,
    ]
    client_id: Annotated[
        str, Row("name of this client in the broker's logs, metrics and quotas", shortest=1, longest=32_767)
    ] = "kohort"
    request_timeout_ms: Annotated[int, positive("longest wait for the answer to one request")] = 30_000
    retry_backoff_ms: Annotated[int, positive("first pause before a request is sent again")] = 100
    retry_backoff_max_ms: Annotated[int, positive("longest pause before a request is sent again")] = 1_000
    reconnect_backoff_ms: Annotated[int, positive("first pause before a new connection")] = 50
    reconnect_backoff_max_ms: Annotated[int, positive("longest pause before a new connection")] = 1_000
    metadata_max_age_ms: Annotated[
        int, positive("age at which topics and partitions are looked up again")
    ] = 300_000

    @model_validator(mode="after")
    def _check_connection(self) -> Self:
        parse_bootstrap(self.bootstrap)
        for name in ("retry_backoff", "reconnect_backoff"):
            first, most = getattr(self, f"{name}_ms"), getattr(self, f"{name}_max_ms")
            if first > most:
                raise ValueError(f"{name}_ms ({first}) must not be more than {name}_max_ms ({most})")
        check_security(self)
        return self

    def cluster(self, default_api_timeout_ms: int, max_frame_bytes: int = MAX_FRAME_BYTES) -> Cluster:
        """Return a client of the cluster with these settings. It is not connected yet."""
        ssl_context, sasl = context_and_login(self)
        return Cluster(
            self.bootstrap,
            self.client_id,
            request_timeout_ms=self.request_timeout_ms,
            default_api_timeout_ms=default_api_timeout_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
            reconnect_backoff_ms=self.reconnect_backoff_ms,
            reconnect_backoff_max_ms=self.reconnect_backoff_max_ms,
            ssl_context=ssl_context,
            sasl=sasl,
            max_frame_bytes=max_frame_bytes,
        )


Settings = TypeVar("Settings", bound=ClientSettings)


def read_connected(cls: type[Settings], given: dict[str, object]) -> Settings:
    """Check settings; missing ones may come from the environment or a file. Raises ConfigError."""
    try:
        fallback = fallback_settings(cls, given.get("config"))
    except SettingsError as error:
        raise ConfigError(str(error)) from None
    return read_settings(cls, given, ConfigError, fallback)
