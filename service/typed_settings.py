"""Settings of services as keyword arguments, for type checkers and editors.

Written by scripts/typed_settings.py from the table of settings, which says more of what a value may be.
"""

from __future__ import annotations

from ..consumer.typed_settings import ConsumerSettings


class ServiceSettings(ConsumerSettings, total=False):
    """Settings of a service, its consumer's included."""

    backlog_max_bytes: int
    """Records with handlers or waiting for them, of all partitions together."""
    health_host: str
    """Name or address that the health listener listens on."""
    health_port: int | None
    """Port of the health listener, 0 for any free one; none: it is off."""
    stalled_after_ms: int
    """Time that work may wait without progress before the probes turn red."""
    fail_probes_on_hanging_call: bool
    """Whether a single call that runs for longer than stalled_after_ms turns the probes red."""
    tracing: bool
    """An OpenTelemetry span for each call of a handler."""
