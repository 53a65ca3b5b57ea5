"""What a service may be told: its own settings, and those of its consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...client.errors import ConfigError
from ._tracing import require_opentelemetry

if TYPE_CHECKING:
    from ..config import ConsumerConfig

#: Default bound of a graceful end, or nine tenths of the rebalance timeout where that is less. Container
#: runtimes commonly kill 30 s after SIGTERM.
DRAIN_TIMEOUT_MS = 20_000


def check_own(
    drain_timeout_ms: int | None,
    stalled_after_ms: int,
    health_host: str,
    health_port: int | None,
    tracing: bool,
) -> None:
    if drain_timeout_ms is not None:
        require_number("drain_timeout_ms", drain_timeout_ms, 0, 2_147_483_647)
    require_number("stalled_after_ms", stalled_after_ms, 1, 2_147_483_647)
    if health_port is not None:
        require_number("health_port", health_port, 0, 65_535)
    if not isinstance(health_host, str):
        raise ConfigError(f"health_host={health_host!r}, but it must be the name or address to listen on")
    if not isinstance(tracing, bool):
        raise ConfigError(f"tracing={tracing!r}, but it must be True or False")
    if tracing:
        require_opentelemetry()


def require_number(name: str, value: int, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigError(f"{name}={value!r}, but it must be a whole number in {least}..{most}")


def drain_ms(wanted: int | None, rebalance_ms: int) -> int:
    """The group waits for a member no longer than its rebalance timeout, commit and join included."""
    longest = rebalance_ms * 9 // 10
    if wanted is None:
        return min(DRAIN_TIMEOUT_MS, longest)
    if wanted > longest:
        raise ConfigError(
            f"drain_timeout_ms={wanted}, but the group waits for a member at most {rebalance_ms} ms "
            "(rebalance_timeout_ms, or max_poll_interval_ms): it must be nine tenths of that or less"
        )
    return wanted


def check_consumer(config: dict[str, Any]) -> ConsumerConfig:
    """Raises ConfigError for settings that a consumer, or a service, cannot have."""
    # imported here: it brings pydantic
    from ..config import consumer_config

    checked = consumer_config(**config)
    if not checked.enable_auto_commit:
        raise ConfigError("enable_auto_commit=False: a service commits what is done by itself, leave it on")
    checked.ssl_context()
    return checked
