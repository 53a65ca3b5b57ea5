"""Settings that every client of a cluster has: brokers, time limits, TLS and SASL.

This module imports pydantic, so it is loaded when a client is made and not with the package.
"""

from __future__ import annotations

import ssl
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from ..settings import MAX_INT, Row
from ..settings.model import SettingsModel
from .cluster import Cluster
from .errors import ConfigError
from .metadata import parse_bootstrap
from .sasl import OAUTH, Sasl

_SASL_SETTINGS = (
    "sasl_mechanism",
    "sasl_plain_username",
    "sasl_plain_password",
    "sasl_oauth_token_provider",
)


def positive(doc: str) -> Row:
    """The row of a whole number of Kafka's type int, from 1 on."""
    return Row(doc, 1, MAX_INT)


def check_security(settings: Any) -> None:
    """Check that TLS and SASL settings fit together. Raises ValueError."""
    tls = settings.ssl_cafile or settings.ssl_certfile or settings.ssl_keyfile
    if tls and "SSL" not in settings.security_protocol:
        raise ValueError("the ssl settings need security_protocol='SSL' or 'SASL_SSL'")
    if settings.ssl_keyfile and not settings.ssl_certfile:
        raise ValueError("ssl_keyfile needs ssl_certfile, the certificate that the key is for")
    given = [name for name in _SASL_SETTINGS if getattr(settings, name, None) is not None]
    mechanism = settings.sasl_mechanism
    if not settings.security_protocol.startswith("SASL"):
        if given:
            raise ValueError(f"{given[0]} needs security_protocol='SASL_PLAINTEXT' or 'SASL_SSL'")
    elif mechanism is None:
        raise ValueError(f"security_protocol={settings.security_protocol!r} needs a sasl_mechanism")
    elif mechanism == OAUTH:
        provider = settings.sasl_oauth_token_provider
        if not callable(provider) and not callable(getattr(provider, "token", None)):
            raise ValueError("sasl_mechanism='OAUTHBEARER' needs sasl_oauth_token_provider, a function")
    elif settings.sasl_plain_username is None or settings.sasl_plain_password is None:
        raise ValueError(f"sasl_mechanism={mechanism!r} needs sasl_plain_username and sasl_plain_password")


class ClientSettings(SettingsModel):
    """Rows that a consumer's settings and a producer's begin with. Times are milliseconds."""

    model_config = ConfigDict(strict=True)

    bootstrap: Annotated[
        str | Annotated[list[str], Field(strict=False)],
        Row(
            "brokers to ask for the cluster",
            kafka="bootstrap.servers",
            also=("bootstrap_servers",),
            allowed="HOST:PORT, several with commas or as a list",
        ),
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
    security_protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
        Row("encryption and authentication of connections"),
    ] = "PLAINTEXT"
    ssl_cafile: Annotated[str | None, Row("file with the authorities to trust; by default the system's")] = (
        None
    )
    ssl_certfile: Annotated[
        str | None, Row("file with the client's certificate, and its key unless ssl_keyfile has it")
    ] = None
    ssl_keyfile: Annotated[str | None, Row("file with the key of ssl_certfile")] = None
    ssl_password: Annotated[str | None, Row("password of the key", sensitive=True)] = None
    ssl_check_hostname: Annotated[bool, Row("the broker's certificate must be for its host name")] = True
    sasl_mechanism: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None,
        Row("SASL mechanism, for SASL_PLAINTEXT and SASL_SSL"),
    ] = None
    sasl_plain_username: Annotated[str | None, Row("user of PLAIN and SCRAM", shortest=1, longest=32_767)] = (
        None
    )
    sasl_plain_password: Annotated[str | None, Row("password of PLAIN and SCRAM", sensitive=True)] = None
    sasl_oauth_token_provider: Annotated[
        Any,
        Row(
            "function that gives a token, or an object with a method token",
            allowed="a function or an object with a method token",
            sensitive=True,
        ),
    ] = None

    @model_validator(mode="after")
    def _connects(self) -> Self:
        parse_bootstrap(self.bootstrap)
        for name in ("retry_backoff", "reconnect_backoff"):
            first, most = getattr(self, f"{name}_ms"), getattr(self, f"{name}_max_ms")
            if first > most:
                raise ValueError(f"{name}_ms ({first}) must not be more than {name}_max_ms ({most})")
        check_security(self)
        return self

    def ssl_context(self) -> ssl.SSLContext | None:
        """TLS context; None for plain text. Raises ConfigError for files that cannot be read."""
        if "SSL" not in self.security_protocol:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ssl_cafile)
            if self.ssl_certfile:
                context.load_cert_chain(self.ssl_certfile, self.ssl_keyfile, self.ssl_password)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"the TLS files cannot be used: {error}") from error
        context.check_hostname = self.ssl_check_hostname
        return context

    def sasl(self) -> Sasl | None:
        """SASL credentials; None without SASL."""
        if self.sasl_mechanism is None:
            return None
        return Sasl(
            self.sasl_mechanism,
            self.sasl_plain_username or "",
            self.sasl_plain_password or "",
            self.sasl_oauth_token_provider,
        )

    def cluster(self, default_api_timeout_ms: int) -> Cluster:
        """A client of the cluster with these settings, which has not connected."""
        return Cluster(
            self.bootstrap,
            self.client_id,
            request_timeout_ms=self.request_timeout_ms,
            default_api_timeout_ms=default_api_timeout_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
            reconnect_backoff_ms=self.reconnect_backoff_ms,
            reconnect_backoff_max_ms=self.reconnect_backoff_max_ms,
            ssl_context=self.ssl_context(),
            sasl=self.sasl(),
        )
