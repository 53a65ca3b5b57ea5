"""The consumer's events in the log: a service has no other eye on them."""

from __future__ import annotations

import logging

from .. import events
from ..events import Event

_WARNINGS = (
    events.AssignmentRefused,
    events.AssignorFailed,
    events.BrokerUnavailable,
    events.CallbackFailed,
    events.CommitFailed,
    events.ConsumerFailed,
    events.LoopBlocked,
    events.OffsetReset,
    events.PartitionFailed,
    events.PartitionsLost,
    events.PollIntervalExceeded,
    events.SessionInDoubt,
    events.TopicMissing,
)
_NEWS = (events.RebalanceCompleted, events.PartitionsRevoked, events.SessionResumed)

log = logging.getLogger("kohort.consumer.service")


def log_event(group: str, event: Event) -> None:
    """Warnings for what may need a person, information on rebalances, the rest for debugging."""
    if isinstance(event, _WARNINGS):
        level = logging.WARNING
    elif isinstance(event, _NEWS):
        level = logging.INFO
    else:
        level = logging.DEBUG
    log.log(level, "group %s: %s", group, event)
