"""Events of a share consumer, beside those that all consumers have."""

from __future__ import annotations

from ...protocol import AcknowledgeType
from ..events import Event, Partitions
from .records import ShareRecord


class LockLost(Event):
    """The lock of a record has ended, so it is delivered again, here or elsewhere, or was its last delivery.

    ``verdict`` is what was said of it, which does not count; None if nothing was. ``late_ms``: by how much
    that came late, about; 0 if the lock ended before its time.
    """

    record: ShareRecord
    verdict: AcknowledgeType | None
    late_ms: float
    reason: str


class RenewalUnavailable(Event):
    """Locks cannot be renewed: a record that takes longer than ``lock_ms`` is delivered again."""

    reason: str
    lock_ms: float


class ShareAssignmentChanged(Event):
    """The coordinator has assigned these partitions to the member, in this epoch."""

    partitions: Partitions
    epoch: int
