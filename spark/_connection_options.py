"""Options of connections: security under Python's and Java's names, and Java's settings that are ignored."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Annotated, ClassVar, Final, Self, TypeVar

from pydantic import model_validator

from ..client import ConfigError
from ..client.security import security_of
from ..settings import SPARK_LOOP, Fallback, Row, Scope, SettingsError, read_settings
from ..settings.connection import BOOTSTRAP, SecurityRows, check_security, fallback_settings, from_java
from ..settings.model import SettingsModel
from ._client import ConnectionOptions, OptionsError


class SecurityOptions(SettingsModel, SecurityRows):
    """Base of all options. Certificate files are read on the driver; PEM text may be given instead."""

    SCOPE: ClassVar[Scope] = SPARK_LOOP

    bootstrap: Annotated[str, replace(BOOTSTRAP, allowed="", shortest=1)]
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

    @model_validator(mode="after")
    def _check_security(self) -> Self:
        check_security(self)
        return self

    @property
    def connection(self) -> ConnectionOptions:
        """Connection options for driver and executors. Raises OptionsError for unreadable TLS files."""
        try:
            security = security_of(self)
        except ConfigError as error:
            raise OptionsError(str(error)) from None
        return ConnectionOptions(self.bootstrap, self.client_id, self.request_timeout_ms, security)


def from_spark(given: Mapping[str, str]) -> dict[str, object]:
    """Translate Java's options that have other values than kohort's; keep the rest. Raises OptionsError."""
    found: dict[str, object] = {}
    for key, value in given.items():
        before, _, name = key.lower().partition("kafka.")
        try:
            translated = None if before or not name else from_java(name, value)
        except SettingsError as error:
            raise OptionsError(f"kafka.{error}") from None
        if translated is None:
            found[key] = value
        else:
            found |= {f"kafka.{name}" if "." in name else name: text for name, text in translated.items()}
    return found


Options = TypeVar("Options", bound=SecurityOptions)


def read_connected(cls: type[Options], given: Mapping[str, object]) -> Options:
    """Check options. Missing ones may come from the environment or a file. Raises OptionsError."""
    for name, value in given.items():
        if name.lower() in _OBJECTS and not isinstance(value, str | None):
            instead = _OBJECTS[name.lower()]
            raise OptionsError(
                f"{name} is an object of this process, and executors need it too: give {instead}"
            )
    return read_settings(cls, given, OptionsError, fallback_options(cls, given))


def fallback_options(cls: type[SecurityOptions], given: Mapping[str, object]) -> Fallback:
    """Options from the environment and the file ``config``. Raises OptionsError."""
    config = next((value for key, value in given.items() if key.lower() == "config"), None)
    try:
        return fallback_settings(cls, config)
    except SettingsError as error:
        raise OptionsError(str(error)) from None


def to_spark(name: str, value: str) -> str:
    """Return the value of the Java option that corresponds to kohort's option ``name`` with this value."""
    return ("https" if value == "true" else "") if name == "ssl_check_hostname" else value


T = TypeVar("T")

#: Settings of other clients that are objects of one process, and what to give here.
_OBJECTS: Final = {
    "sasl_oauth_token_provider": "MODULE:NAME of a function that each process can import, or "
    "sasl_oauth_token_url, sasl_oauth_client_id and sasl_oauth_client_secret",
    "ssl_context": "ssl_cafile, ssl_certfile and ssl_keyfile",
}

log = logging.getLogger(__name__)

# settings of Java's clients: of both kinds, of consumers, of producers
_CLIENT = """
    auto.include.jmx.reporter client.dns.lookup connections.max.idle.ms default.api.timeout.ms
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
    acks buffer.memory client.rack delivery.timeout.ms enable.idempotence linger.ms max.block.ms
    max.in.flight.requests.per.connection max.request.size metadata.max.age.ms metadata.max.idle.ms retries
"""

#: Options that a read accepts and ignores.
READING = frozenset(
    {
        *(f"kafka.{name}" for name in (_CLIENT + _CONSUMER).split()),
        "fetchoffset.numretries",
        "fetchoffset.retryintervalms",
        "groupidprefix",
        "kafkaconsumer.polltimeoutms",
    }
)

#: Options that a write accepts and ignores: it always uses acks=all and idempotence.
WRITING = frozenset(f"kafka.{name}" for name in (_CLIENT + _PRODUCER).split())


def without_tuning(given: Mapping[str, T], unused: frozenset[str]) -> dict[str, T]:
    """Return the options without those in ``unused``; names are compared without case."""
    for key in given:
        if key.lower() in unused:
            _say_once(key)
    return {key: value for key, value in given.items() if key.lower() not in unused}


@cache
def _say_once(key: str) -> None:
    log.info("%s is a setting of Java's clients: it is left unused here", key)
