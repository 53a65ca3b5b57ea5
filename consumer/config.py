"""A consumer's settings: Kafka's names in snake case, checked before anything connects.

This module imports pydantic, so it is loaded when a consumer is made and not with the package.
"""

from __future__ import annotations

import difflib
import ssl
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ..client.errors import ConfigError
from ..client.metadata import parse_bootstrap
from ..client.sasl import OAUTH, Sasl

#: Java's spelling of "there is no reset: tell me".
_RESET_ALIASES = {"none": "fail"}
_SASL_SETTINGS = (
    "sasl_mechanism",
    "sasl_plain_username",
    "sasl_plain_password",
    "sasl_oauth_token_provider",
)
_NAME_ALIASES = {"bootstrap_servers": "bootstrap", "group_id": "group"}

Millis = Annotated[int, Field(ge=0, le=2_147_483_647, strict=True)]
PositiveMillis = Annotated[int, Field(ge=1, le=2_147_483_647, strict=True)]
Bytes = Annotated[int, Field(ge=1, le=2_147_483_647, strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Text = Annotated[str, Field(strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=32_767, strict=True)]
OffsetReset = Annotated[
    Literal["earliest", "latest", "fail"] | Annotated[int, Field(ge=0, strict=True)],
    BeforeValidator(lambda value: _RESET_ALIASES.get(value, value) if isinstance(value, str) else value),
]


class ConsumerConfig(BaseModel):
    """Make it with :func:`consumer_config`, whose errors are written for people.

    Times are milliseconds. Defaults are Kafka's where Kafka has the setting.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    bootstrap: str | list[str]
    #: Empty only where partitions are assigned by hand: then nothing is committed.
    group: Annotated[str, Field(max_length=32_767, strict=True)] = ""
    client_id: Name = "kohort"
    client_rack: Text = ""
    group_instance_id: Name | None = None
    #: A name, class or instance, or several in the order of preference.
    assignor: Any = "cooperative-sticky"

    session_timeout_ms: PositiveMillis = 45_000
    heartbeat_interval_ms: PositiveMillis = 3_000
    max_poll_interval_ms: PositiveMillis = 300_000
    #: How long the others wait for this member at a rebalance; by default ``max_poll_interval_ms``.
    rebalance_timeout_ms: PositiveMillis | None = None
    #: How long a consumer that is closed reads on until the others are ready to take over, at most; 0: it
    #: leaves at once. By default twice ``heartbeat_interval_ms``: they hear of it by a heartbeat.
    leave_notice_ms: Millis | None = None
    #: How long a revocation waits for records that are delivered and not done; at most, and by default, nine
    #: tenths of the rebalance timeout.
    drain_timeout_ms: Millis | None = None

    #: A number is a time in milliseconds since 1970: go on at the first record that is not older.
    auto_offset_reset: OffsetReset = "latest"
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    #: Commit what is done by itself: at intervals, before a partition is given up, at close.
    enable_auto_commit: Flag = True
    auto_commit_interval_ms: PositiveMillis = 5_000

    max_poll_records: Annotated[int, Field(ge=1, strict=True)] = 500
    #: Delivered and not done, per partition, at which its delivery pauses.
    max_undone_records: Annotated[int, Field(ge=1, strict=True)] = 100_000
    fetch_min_bytes: Bytes = 1
    fetch_max_bytes: Bytes = 52_428_800
    max_partition_fetch_bytes: Bytes = 1_048_576
    fetch_max_wait_ms: Millis = 500
    #: Fetched and not delivered, with the memory that this keeps, in all, at which fetching pauses.
    prefetch_max_bytes: Bytes = 67_108_864
    #: Most that a record batch may grow to when it is decompressed; a larger one is a CorruptBatchError.
    max_decompressed_batch_bytes: Bytes = 67_108_864
    check_crcs: Flag = True

    request_timeout_ms: PositiveMillis = 30_000
    default_api_timeout_ms: PositiveMillis = 60_000
    retry_backoff_ms: PositiveMillis = 100
    retry_backoff_max_ms: PositiveMillis = 1_000
    reconnect_backoff_ms: PositiveMillis = 50
    reconnect_backoff_max_ms: PositiveMillis = 1_000
    metadata_max_age_ms: PositiveMillis = 300_000
    allow_auto_create_topics: Flag = False

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    ssl_cafile: Text | None = None
    ssl_certfile: Text | None = None
    ssl_keyfile: Text | None = None
    ssl_password: Text | None = Field(default=None, repr=False)
    ssl_check_hostname: Flag = True
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = None
    sasl_plain_username: Name | None = None
    sasl_plain_password: Text | None = Field(default=None, repr=False)
    #: A function that gives a token, or an object as kafka-python takes it.
    sasl_oauth_token_provider: Any = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        parse_bootstrap(self.bootstrap)
        if "group" in self.model_fields_set and not self.group:
            raise ValueError("group='': give the group a name, or leave the setting out")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms ({self.heartbeat_interval_ms}) must be less than session_timeout_ms "
                f"({self.session_timeout_ms}); a third of it is usual"
            )
        for name in ("retry_backoff", "reconnect_backoff"):
            first, most = getattr(self, f"{name}_ms"), getattr(self, f"{name}_max_ms")
            if first > most:
                raise ValueError(f"{name}_ms ({first}) must not be more than {name}_max_ms ({most})")
        if self.fetch_max_wait_ms >= self.request_timeout_ms:
            raise ValueError(
                f"fetch_max_wait_ms ({self.fetch_max_wait_ms}) must be less than request_timeout_ms "
                f"({self.request_timeout_ms}), or a fetch with nothing to give would be taken for lost"
            )
        self._check_tls()
        self._check_sasl()
        return self

    def _check_tls(self) -> None:
        if "SSL" not in self.security_protocol and (self.ssl_cafile or self.ssl_certfile or self.ssl_keyfile):
            raise ValueError("the ssl settings need security_protocol='SSL' or 'SASL_SSL'")
        if self.ssl_keyfile and not self.ssl_certfile:
            raise ValueError("ssl_keyfile needs ssl_certfile, the certificate that the key is for")

    def _check_sasl(self) -> None:
        given = [name for name in _SASL_SETTINGS if getattr(self, name) is not None]
        if not self.security_protocol.startswith("SASL"):
            if given:
                raise ValueError(f"{given[0]} needs security_protocol='SASL_PLAINTEXT' or 'SASL_SSL'")
            return
        if self.sasl_mechanism is None:
            raise ValueError(f"security_protocol={self.security_protocol!r} needs a sasl_mechanism")
        if self.sasl_mechanism == OAUTH:
            provider = self.sasl_oauth_token_provider
            if not callable(provider) and not callable(getattr(provider, "token", None)):
                raise ValueError("sasl_mechanism='OAUTHBEARER' needs sasl_oauth_token_provider, a function")
        elif self.sasl_plain_username is None or self.sasl_plain_password is None:
            raise ValueError(
                f"sasl_mechanism={self.sasl_mechanism!r} needs sasl_plain_username and sasl_plain_password"
            )

    @property
    def rebalance_ms(self) -> int:
        """The rebalance timeout that is sent."""
        return self.rebalance_timeout_ms or self.max_poll_interval_ms

    @property
    def notice_ms(self) -> int:
        """How long a member reads on at most when it has told the group that it is about to leave."""
        return 2 * self.heartbeat_interval_ms if self.leave_notice_ms is None else self.leave_notice_ms

    @property
    def commits(self) -> bool:
        """Whether what is done is committed by itself."""
        return self.enable_auto_commit and bool(self.group)

    @property
    def drain_ms(self) -> float:
        """How long a revocation waits for what is not done."""
        if not self.group:
            return 0.0  # nothing is committed, so there is nothing to wait for
        longest = self.rebalance_ms * 0.9
        return longest if self.drain_timeout_ms is None else min(self.drain_timeout_ms, longest)

    def ssl_context(self) -> ssl.SSLContext | None:
        """The TLS settings; None for plain text. Raises ConfigError for files that cannot be read."""
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
        """Who to say we are; None where nobody asks."""
        if self.sasl_mechanism is None:
            return None
        return Sasl(
            self.sasl_mechanism,
            self.sasl_plain_username or "",
            self.sasl_plain_password or "",
            self.sasl_oauth_token_provider,
        )


def consumer_config(**settings: Any) -> ConsumerConfig:
    """Check settings. Raises ConfigError naming each wrong key, its value and what is allowed."""
    for alias, name in _NAME_ALIASES.items():
        if alias in settings:
            if name in settings:
                raise ConfigError(f"{alias} and {name} are the same setting: give one of them")
            settings[name] = settings.pop(alias)
    try:
        return ConsumerConfig(**settings)
    except ValidationError as error:
        raise ConfigError("; ".join(dict.fromkeys(_explain(row) for row in error.errors()))) from None


def _explain(row: Any) -> str:
    location = [str(part) for part in row["loc"]]
    key = location[0] if location else ""
    if row["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, ConsumerConfig.model_fields, 1)
        hint = f", did you mean {near[0]!r}?" if near else ""
        return f"{key!r} is no setting of a consumer{hint or ': see docs/consumer.md for the list'}"
    if row["type"] == "missing":
        return f"{key!r} is missing and has no default"
    message = row["msg"].removeprefix("Value error, ")
    if key == "auto_offset_reset":
        message = "give 'earliest', 'latest', 'fail' or a time in milliseconds since 1970"
    return f"{key}={row['input']!r}: {message}" if key else message
