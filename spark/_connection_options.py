"""Options of connections: security by Python's and Java's names, and Java's settings that are left unused."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import model_validator

from ..client.config import check_security
from ..settings import SPARK_LOOP, Row, Scope
from ..settings.model import SettingsModel
from ._client import ConnectionOptions, OptionsError, Security

_PEM = "-----BEGIN "


class SecurityOptions(SettingsModel):
    """Base of all options. Files are read where a job is planned; PEM text may stand for a file."""

    SCOPE: ClassVar[Scope] = SPARK_LOOP

    bootstrap: Annotated[
        str, Row("HOST:PORT, several with commas", kafka="kafka.bootstrap.servers", shortest=1)
    ]
    client_id: Annotated[
        str,
        Row(
            "name of this client in the broker's logs, metrics and quotas",
            kafka="kafka.client.id",
            shortest=1,
        ),
    ] = "kohort-spark"
    request_timeout_ms: Annotated[
        int, Row("longest wait for the answer to one request", 1, kafka="kafka.request.timeout.ms")
    ] = 30_000
    security_protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
        Row(
            "encryption and authentication of connections",
            kafka="kafka.security.protocol",
            also=("security_protocol",),
        ),
    ] = "PLAINTEXT"
    ssl_cafile: Annotated[
        str | None,
        Row(
            "authorities to trust: a file or PEM text; by default the system's",
            kafka="kafka.ssl.truststore.location",
            also=("kafka.ssl.truststore.certificates", "ssl_cafile"),
            sensitive=True,
        ),
    ] = None
    ssl_certfile: Annotated[
        str | None,
        Row(
            "the client's certificate, and its key unless ssl_keyfile has it",
            kafka="kafka.ssl.keystore.location",
            also=("kafka.ssl.keystore.certificate.chain", "ssl_certfile"),
            sensitive=True,
        ),
    ] = None
    ssl_keyfile: Annotated[
        str | None,
        Row(
            "key of the client's certificate",
            kafka="kafka.ssl.keystore.key",
            also=("ssl_keyfile",),
            sensitive=True,
        ),
    ] = None
    ssl_password: Annotated[
        str | None,
        Row("password of the key", kafka="kafka.ssl.key.password", also=("ssl_password",), sensitive=True),
    ] = None
    ssl_check_hostname: Annotated[
        bool,
        Row(
            "the broker's certificate must be for its host name",
            kafka="kafka.ssl.endpoint.identification.algorithm",
            also=("ssl_check_hostname",),
        ),
    ] = True
    sasl_mechanism: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None,
        Row("SASL mechanism", kafka="kafka.sasl.mechanism", also=("sasl_mechanism",)),
    ] = None
    sasl_plain_username: Annotated[
        str | None, Row("user", kafka="kafka.sasl.username", also=("sasl_plain_username",), sensitive=True)
    ] = None
    sasl_plain_password: Annotated[
        str | None,
        Row("password", kafka="kafka.sasl.password", also=("sasl_plain_password",), sensitive=True),
    ] = None

    @model_validator(mode="after")
    def _secured(self) -> Self:
        check_security(self)
        return self

    @property
    def connection(self) -> ConnectionOptions:
        """Connection of driver and executors. Raises OptionsError for TLS files that cannot be read."""
        return ConnectionOptions(self.bootstrap, self.client_id, self.request_timeout_ms, self.security)

    @property
    def security(self) -> Security:
        """Security with the files' present contents. Raises OptionsError for one that cannot be read."""
        return Security(
            protocol=self.security_protocol,
            mechanism=self.sasl_mechanism or "",
            username=self.sasl_plain_username or "",
            password=self.sasl_plain_password or "",
            authorities=_pem("ssl_cafile", self.ssl_cafile),
            certificate="\n".join(
                part
                for part in (_pem("ssl_keyfile", self.ssl_keyfile), _pem("ssl_certfile", self.ssl_certfile))
                if part
            ),
            key_password=self.ssl_password or "",
            check_hostname=self.ssl_check_hostname,
        )


def _pem(name: str, given: str | None) -> str:
    if not given:
        return ""
    if _PEM in given:
        return given
    try:
        text = Path(given).read_text(errors="replace")
    except OSError as error:
        raise OptionsError(f"{name}: {error}") from None
    if _PEM not in text:
        raise OptionsError(f"{name}={given!r} is no PEM file: Java's key stores must be converted to PEM")
    return text


_JAAS = "kafka.sasl.jaas.config"
_STORE_TYPES = ("kafka.ssl.truststore.type", "kafka.ssl.keystore.type")
_CHECK_HOSTNAME = "kafka.ssl.endpoint.identification.algorithm"
_JAAS_OPTION = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
_JAAS_MODULES = ("PlainLoginModule", "ScramLoginModule")


def from_spark(given: Mapping[str, str]) -> dict[str, Any]:
    """Translate Java's options whose values are not ours; keep the others. Raises OptionsError."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = key.lower()
        if name == _JAAS:
            found |= _from_jaas(value)
        elif name in _STORE_TYPES:
            if value.upper() != "PEM":
                raise OptionsError(f"{key}={value!r}: only PEM; convert Java's key stores to PEM")
        elif name == _CHECK_HOSTNAME:
            found["ssl_check_hostname"] = value.strip() != ""
        else:
            found[key] = value
    return found


def to_spark(name: str, value: str) -> str:
    """Text of the Java option that stands for our ``name`` with the text ``value``."""
    return ("https" if value == "true" else "") if name == "ssl_check_hostname" else value


def _from_jaas(text: str) -> dict[str, str]:
    named = {key: re.sub(r"\\(.)", r"\1", value) for key, value in _JAAS_OPTION.findall(text)}
    if len(named) != 2 or not any(module in text for module in _JAAS_MODULES):
        raise OptionsError(
            f"{_JAAS}: name PlainLoginModule or ScramLoginModule with username and password in quotes, or "
            "use kafka.sasl.username and kafka.sasl.password"
        )
    return {"sasl_plain_username": named["username"], "sasl_plain_password": named["password"]}


T = TypeVar("T")

log = logging.getLogger(__name__)

# settings of Java's clients: of both kinds, of consumers, of producers
_CLIENT = """
    auto.include.jmx.reporter client.dns.lookup client.rack connections.max.idle.ms default.api.timeout.ms
    enable.metrics.push metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms receive.buffer.bytes
    reconnect.backoff.max.ms reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms send.buffer.bytes
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
"""

_CONSUMER = """
    allow.auto.create.topics check.crcs exclude.internal.topics fetch.max.bytes fetch.max.wait.ms
    fetch.min.bytes heartbeat.interval.ms max.partition.fetch.bytes max.poll.interval.ms max.poll.records
    partition.assignment.strategy session.timeout.ms
"""

_PRODUCER = """
    acks batch.size buffer.memory delivery.timeout.ms enable.idempotence linger.ms max.block.ms
    max.in.flight.requests.per.connection max.request.size metadata.max.age.ms metadata.max.idle.ms retries
"""

#: What a read takes and does not need.
READING = frozenset(
    {
        *(f"kafka.{name}" for name in (_CLIENT + _CONSUMER).split()),
        "fetchoffset.numretries",
        "fetchoffset.retryintervalms",
        "groupidprefix",
        "kafkaconsumer.polltimeoutms",
    }
)

#: What a write takes and does not need: all replicas in sync acknowledge, each record once.
WRITING = frozenset(f"kafka.{name}" for name in (_CLIENT + _PRODUCER).split())


def without_tuning(given: Mapping[str, T], unused: frozenset[str]) -> dict[str, T]:
    """The options without those of ``unused``; names count in any case."""
    for key in given:
        if key.lower() in unused:
            _say_once(key)
    return {key: value for key, value in given.items() if key.lower() not in unused}


@cache
def _say_once(key: str) -> None:
    log.info("%s is a setting of Java's clients: it is left unused here", key)
