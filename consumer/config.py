"""A consumer's settings: Kafka's names in snake case, checked before anything connects.

This module imports pydantic, so it is loaded when a consumer is made and not with the package.
"""

from __future__ import annotations

import ssl
from typing import Annotated, Any, ClassVar, Literal, Self

from annotated_types import Ge
from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from ..client.errors import ConfigError
from ..client.metadata import parse_bootstrap
from ..client.sasl import OAUTH, Sasl
from ..settings import CONSUMER, MAX_INT, Row, Scope, read_settings
from ..settings.model import SettingsModel

#: Java's spelling of "there is no reset: tell me".
_RESET_ALIASES = {"none": "fail"}
#: Assignors that every broker with consumer groups has.
_SERVER_ASSIGNORS = ("uniform", "range")
#: Added to the rebalance timeout.
_REBALANCE_SLACK_MS = 5_000
_SASL_SETTINGS = (
    "sasl_mechanism",
    "sasl_plain_username",
    "sasl_plain_password",
    "sasl_oauth_token_provider",
)


def _positive(doc: str) -> Row:
    """The row of a whole number of Kafka's type int, from 1 on."""
    return Row(doc, 1, MAX_INT)


OffsetReset = Annotated[
    Literal["earliest", "latest", "fail"] | Annotated[int, Ge(0)],
    BeforeValidator(lambda value: _RESET_ALIASES.get(value, value) if isinstance(value, str) else value),
]


class ConsumerConfig(SettingsModel):
    """Make it with :func:`consumer_config`, whose errors are written for people.

    Times are milliseconds. Defaults are Kafka's where Kafka has the setting.
    """

    model_config = ConfigDict(strict=True)
    SCOPE: ClassVar[Scope] = CONSUMER

    bootstrap: Annotated[
        str | Annotated[list[str], Field(strict=False)],
        Row(
            "brokers to ask for the cluster",
            kafka="bootstrap.servers",
            also=("bootstrap_servers",),
            allowed="HOST:PORT, several with commas or as a list",
        ),
    ]
    group: Annotated[
        str,
        Row(
            "consumer group; without one, partitions are assigned manually and nothing is committed",
            kafka="group.id",
            also=("group_id",),
            longest=32_767,
        ),
    ] = ""
    client_id: Annotated[
        str, Row("name of this client in the broker's logs, metrics and quotas", shortest=1, longest=32_767)
    ] = "kohort"
    client_rack: Annotated[
        str, Row("rack of this client, for rack-aware assignors and the nearest replicas")
    ] = ""
    group_instance_id: Annotated[
        str | None, Row("makes the member static: no rebalance when it restarts", shortest=1, longest=32_767)
    ] = None
    protocol: Annotated[
        Literal["classic", "consumer", "auto"],
        Row(
            "who assigns: a member of the group, or the coordinator (KIP-848); auto: the coordinator, if it "
            "can and no other setting needs the classic protocol",
            kafka="group.protocol",
            also=("group_protocol",),
        ),
    ] = "classic"
    assignor: Annotated[
        Any,
        Row(
            "assignor, or several in the order of preference; with protocol 'consumer' the name of one of "
            "the broker's, by default its first",
            kafka="partition.assignment.strategy",
            allowed="a name, a class or an instance, or a list of these",
        ),
    ] = "cooperative-sticky"
    session_timeout_ms: Annotated[
        int,
        _positive(
            "silence after which the group goes on without this member; with protocol 'consumer' the broker "
            "has its own, and this one only ends delivery"
        ),
    ] = 45_000
    heartbeat_interval_ms: Annotated[
        int,
        _positive(
            "time between heartbeats, less than session_timeout_ms; unless it is set, the size of the group "
            "decides: 3 ms for each member, from 200 ms to the default (with protocol 'consumer': to the "
            "broker's interval)"
        ),
    ] = 3_000
    max_poll_interval_ms: Annotated[int, _positive("longest time between two polls")] = 300_000
    rebalance_timeout_ms: Annotated[
        int | None,
        _positive("how long a rebalance waits for this member; by default max_poll_interval_ms"),
    ] = None
    leave_notice_ms: Annotated[
        int | None,
        Row(
            "how long a closed consumer reads on at most, until others are ready to take over; 0: it leaves "
            "at once; by default twice heartbeat_interval_ms",
            0,
            MAX_INT,
        ),
    ] = None
    drain_timeout_ms: Annotated[
        int | None,
        Row(
            "how long a revocation waits for records that are delivered and not done; at most, and by "
            "default, nine tenths of the rebalance timeout",
            0,
            MAX_INT,
        ),
    ] = None
    auto_offset_reset: Annotated[
        OffsetReset,
        Row(
            "where to begin without a committed offset; a number: at the first record of that time or later",
            allowed="'earliest', 'latest', 'fail' or a time in milliseconds since 1970",
        ),
    ] = "latest"
    isolation_level: Annotated[
        Literal["read_uncommitted", "read_committed"],
        Row("whether records of open and aborted transactions are read"),
    ] = "read_uncommitted"
    enable_auto_commit: Annotated[
        bool, Row("records that are done are committed at intervals, before a revocation and at close")
    ] = True
    auto_commit_interval_ms: Annotated[int, _positive("time between automatic commits")] = 5_000
    max_poll_records: Annotated[int, Row("most records of one poll", 1)] = 500
    max_undone_records: Annotated[
        int, Row("records delivered and not done at which a partition's delivery pauses", 1)
    ] = 100_000
    fetch_min_bytes: Annotated[int, _positive("bytes that a broker waits for before it answers a fetch")] = 1
    fetch_max_bytes: Annotated[int, _positive("most bytes of one fetch")] = 52_428_800
    max_partition_fetch_bytes: Annotated[int, _positive("most bytes of one partition in a fetch")] = 1_048_576
    fetch_max_wait_ms: Annotated[
        int, Row("longest wait for fetch_min_bytes, less than request_timeout_ms", 0, MAX_INT)
    ] = 500
    prefetch_max_bytes: Annotated[
        int, _positive("memory of fetched and undelivered records at which fetching pauses")
    ] = 67_108_864
    max_decompressed_batch_bytes: Annotated[
        int, _positive("largest record batch after decompression; a larger one is a CorruptBatchError")
    ] = 67_108_864
    check_crcs: Annotated[bool, Row("checksums of record batches are verified")] = True
    request_timeout_ms: Annotated[int, _positive("longest wait for the answer to one request")] = 30_000
    default_api_timeout_ms: Annotated[int, _positive("longest duration of a call with its retries")] = 60_000
    retry_backoff_ms: Annotated[int, _positive("first pause before a request is sent again")] = 100
    retry_backoff_max_ms: Annotated[int, _positive("longest pause before a request is sent again")] = 1_000
    reconnect_backoff_ms: Annotated[int, _positive("first pause before a new connection")] = 50
    reconnect_backoff_max_ms: Annotated[int, _positive("longest pause before a new connection")] = 1_000
    metadata_max_age_ms: Annotated[
        int, _positive("age at which topics and partitions are looked up again")
    ] = 300_000
    allow_auto_create_topics: Annotated[bool, Row("a broker may create topics that do not exist")] = False
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
        if self.protocol == "consumer" and not (self.assignor_is_default or isinstance(self.assignor, str)):
            raise ValueError(
                "protocol='consumer' lets the broker assign: give the name of one of its assignors, or none"
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
    def assignor_is_default(self) -> bool:
        """Return whether no assignor was asked for."""
        return "assignor" not in self.model_fields_set

    @property
    def server_assignor(self) -> str | None:
        """The broker's assignor that was asked for."""
        return None if self.assignor_is_default else self.assignor

    @property
    def needs_classic(self) -> bool:
        """Return whether something was asked for that only the classic protocol has."""
        own = "session_timeout_ms" in self.model_fields_set
        return own or not (self.assignor_is_default or self.assignor in _SERVER_ASSIGNORS)

    @property
    def rebalance_ms(self) -> int:
        """Rebalance timeout that is sent to the coordinator."""
        return self.rebalance_timeout_ms or self.max_poll_interval_ms

    @property
    def heartbeat_is_set(self) -> bool:
        """Return whether the user has set the time between heartbeats."""
        return "heartbeat_interval_ms" in self.model_fields_set

    @property
    def round_timeout_ms(self) -> int:
        """Request timeout of JoinGroup and SyncGroup, which may wait at the coordinator for the others."""
        return max(self.request_timeout_ms, self.rebalance_ms + _REBALANCE_SLACK_MS)

    @property
    def notice_ms(self) -> int:
        """Longest time that a member reads on after it has announced that it leaves."""
        return 2 * self.heartbeat_interval_ms if self.leave_notice_ms is None else self.leave_notice_ms

    @property
    def reads_committed(self) -> bool:
        """Return whether records of open and aborted transactions are left out."""
        return self.isolation_level == "read_committed"

    @property
    def commits(self) -> bool:
        """Return whether records that are done are committed automatically."""
        return self.enable_auto_commit and bool(self.group)

    @property
    def drain_ms(self) -> float:
        """Time that a revocation waits for records that are not done, in ms."""
        if not self.group:
            return 0.0  # nothing is committed, so there is nothing to wait for
        longest = self.rebalance_ms * 0.9
        return longest if self.drain_timeout_ms is None else min(self.drain_timeout_ms, longest)

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


def consumer_config(**settings: Any) -> ConsumerConfig:
    """Check settings. Raises ConfigError naming each wrong setting, its value and what is allowed."""
    return read_settings(ConsumerConfig, settings, ConfigError)
