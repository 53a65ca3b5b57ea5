"""Settings of services as keyword arguments, for type checkers and editors.

Written by scripts/typed_settings.py from the table of settings, which says more of what a value may be.
"""

from __future__ import annotations

from typing import Literal

from ..consumer.typed_settings import ConsumerSettings


class ServiceSettings(ConsumerSettings, total=False):
    """Settings of a service, its consumer's included."""

    group_type: Literal["consumer", "share"]
    """Type of the group: a consumer group, whose members have partitions of their own, or a share group,
    whose members get single records of the same partitions."""
    hold_retries_ms: int
    """In a share group: longest wait for the next try of a record for which it stays locked; before a
    longer one it is released."""
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
    max_locked_records: int
    """Most records that are locked for this member: those it works on, and those that wait to be
    delivered. Unless it is set, more than 500 only while it is done with so many in 50 ms. Brokers
    before Apache Kafka 4.2 may give more, whole record batches."""
    renew_locks: bool
    """Locks are renewed while records are worked on, up to max_processing_ms."""
    max_processing_ms: int
    """Locks of records are renewed until they are held for so long."""
