"""Settings of a service: its own, and those of its consumer. Importing this loads pydantic."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict

from ..client.errors import ConfigError
from ..client.security import context_and_login
from ..consumer.config import ConsumerConfig, consumer_config
from ..consumer.share.config import ShareConsumerConfig, share_consumer_config
from ..settings import MAX_INT, MAX_LONG, SERVICE, Row, Scope, read_settings
from ..settings.model import SettingsModel
from .reporting.tracing import require_opentelemetry

#: Default limit of a graceful end; nine tenths of the rebalance timeout if that is less. Container runtimes
#: commonly kill 30 s after SIGTERM.
DRAIN_TIMEOUT_MS = 20_000


class ServiceOptions(SettingsModel):
    """Settings of a service besides those of its consumer."""

    model_config = ConfigDict(strict=True)
    SCOPE: ClassVar[Scope] = SERVICE

    group_type: Annotated[
        Literal["consumer", "share"],
        Row(
            "type of the group: a consumer group, whose members have partitions of their own, or a share "
            "group, whose members get single records of the same partitions"
        ),
    ] = "consumer"
    hold_retries_ms: Annotated[
        int,
        Row(
            "in a share group: longest wait for the next try of a record for which it stays locked; before a "
            "longer one it is released",
            0,
            MAX_INT,
        ),
    ] = 60_000
    drain_timeout_ms: Annotated[
        int | None,
        Row(
            "time for records that have begun, at a rebalance and at a stop; by default 20000, or nine "
            "tenths of the rebalance timeout where that is less",
            0,
            MAX_INT,
        ),
    ] = None
    backlog_max_bytes: Annotated[
        int, Row("records with handlers or waiting for them, of all partitions together", 1, MAX_LONG)
    ] = 67_108_864
    health_host: Annotated[str, Row("name or address that the health listener listens on")] = "127.0.0.1"
    health_port: Annotated[
        int | None, Row("port of the health listener, 0 for any free one; none: it is off", 0, 65_535)
    ] = None
    stalled_after_ms: Annotated[
        int, Row("time that work may wait without progress before the probes turn red", 1, MAX_INT)
    ] = 60_000
    fail_probes_on_hanging_call: Annotated[
        bool, Row("whether a single call that runs for longer than stalled_after_ms turns the probes red")
    ] = False
    tracing: Annotated[bool, Row("an OpenTelemetry span for each call of a handler")] = False


def check_own(given: dict[str, object]) -> ServiceOptions:
    """Check a service's own settings. Raises ConfigError."""
    own = read_settings(ServiceOptions, given, ConfigError)
    if own.tracing:
        require_opentelemetry()
    return own


def check_consumer(config: dict[str, object]) -> ConsumerConfig:
    """Check the settings of a service's consumer. Raises ConfigError."""
    checked = consumer_config(**config)
    if not checked.enable_auto_commit:
        raise ConfigError("enable_auto_commit=False: a service commits what is done by itself, leave it on")
    context_and_login(checked)  # files that cannot be used are told before anything starts
    return checked


def check_share_consumer(config: dict[str, object]) -> ShareConsumerConfig:
    """As ``check_consumer``, for a service of a share group."""
    if config.get("group_instance_id") is not None:
        raise ConfigError(
            "group_instance_id: a share group has no static members, since nothing is handed over"
        )
    checked = share_consumer_config(**config)
    context_and_login(checked)
    return checked


def longest_drain_ms(rebalance_ms: int) -> int:
    """The longest drain with a rebalance timeout, in which the commit and the join have to be done, too."""
    return rebalance_ms * 9 // 10


def rebalance_ms_for(drain_ms: int) -> int:
    """The shortest rebalance timeout with a drain."""
    return min(-(-drain_ms * 10 // 9), MAX_INT)


def drain_ms(wanted: int | None, rebalance_ms: int | None) -> int:
    """The time for a drain: the group waits no longer than the rebalance timeout, commit and join
    included; a share group (None) waits for nobody.
    """
    if rebalance_ms is None:
        return DRAIN_TIMEOUT_MS if wanted is None else wanted
    longest = longest_drain_ms(rebalance_ms)
    if wanted is None:
        return min(DRAIN_TIMEOUT_MS, longest)
    if wanted > longest:
        raise ConfigError(
            f"drain_timeout_ms={wanted}, but the group waits for a member at most {rebalance_ms} ms "
            "(rebalance_timeout_ms, or max_poll_interval_ms): it must be nine tenths of that or less"
        )
    return wanted
