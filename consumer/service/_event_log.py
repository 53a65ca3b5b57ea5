"""The consumer's events in the log: a service has no other eye on them."""

from __future__ import annotations

import logging
from functools import singledispatchmethod

from .. import events
from ..events import Event
from ._error_text import short
from ._repeated_log import RepeatedLog

Line = tuple[int, str]


def _names(partitions: events.Partitions) -> str:
    return ", ".join(f"{p.topic}-{p.partition}" for p in sorted(partitions)) or "none"


class EventLines:
    """``see`` each event: warnings for what may need a person, information on rebalances, details as DEBUG.

    What repeats is written a few times in a while, and then counted.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self._repeated = RepeatedLog()

    def see(self, event: Event) -> None:
        """Write its line."""
        level, text = self._line(event)
        self._repeated.line((type(event), level), level, "group %s: %s", self._group, text)

    @singledispatchmethod
    def _line(self, event: Event) -> Line:
        return logging.DEBUG, str(event)

    @_line.register
    def _(self, event: events.StateChanged) -> Line:
        return logging.DEBUG, f"the member is {event.state.value}: {event.reason}"

    @_line.register
    def _(self, event: events.RebalanceCompleted) -> Line:
        return logging.INFO, (
            f"generation {event.generation} after {event.duration_ms:.0f} ms, by {event.protocol}: "
            f"{len(event.assignment)} partitions (new: {_names(event.assigned)}; "
            f"given up: {_names(event.revoked)})"
        )

    @_line.register
    def _(self, event: events.RebalanceRetried) -> Line:
        return logging.INFO, f"joining again in {event.delay_ms:.0f} ms: {event.reason}"

    @_line.register
    def _(self, event: events.PartitionsRevoked) -> Line:
        undone = sum(event.undone.values())
        rest = f"; {undone} records were not done and will be handled by others" if undone else ""
        return logging.INFO, f"gave up {_names(event.partitions)}{rest}"

    @_line.register
    def _(self, event: events.PartitionsLost) -> Line:
        return logging.WARNING, (
            f"lost {_names(event.partitions)}, so records may be handled twice: {event.reason}"
        )

    @_line.register
    def _(self, event: events.OffsetReset) -> Line:
        where = f"{_names((event.partition,))} starts at offset {event.offset}"
        if event.asked is None:
            return logging.INFO, f"{where}: {event.reason} (auto_offset_reset: {event.policy})"
        return logging.WARNING, (
            f"{where} instead of {event.asked}: {event.reason} (auto_offset_reset: {event.policy})"
        )

    @_line.register
    def _(self, event: events.LogTruncated) -> Line:
        return logging.WARNING, (
            f"the log of {_names((event.partition,))} was cut before offset {event.asked}, by an unclean "
            f"election: going on at offset {event.offset}"
        )

    @_line.register
    def _(self, event: events.CommitFailed) -> Line:
        return logging.WARNING, (
            f"a commit of {_names(event.partitions)} failed, and is repeated for what is still owned: "
            f"{short(event.error)}"
        )

    @_line.register
    def _(self, event: events.CallbackFailed) -> Line:
        return logging.WARNING, f"{event.callback} failed: {short(event.error)}"

    @_line.register
    def _(self, event: events.AssignorFailed) -> Line:
        return logging.WARNING, (
            f"assignor {event.assignor} failed, {event.used} is used instead: {short(event.error)}"
        )

    @_line.register
    def _(self, event: events.AssignmentRefused) -> Line:
        return logging.WARNING, f"the assignment cannot be used, joining again: {event.reason}"

    @_line.register
    def _(self, event: events.PollIntervalExceeded) -> Line:
        busy = f", busy with {event.busy_with}" if event.busy_with else ""
        return logging.WARNING, (
            f"no poll for {event.age_ms / 1000:.0f} s (max_poll_interval_ms){busy}: leaving the group, with "
            f"{_names(event.partitions)}, until the next one"
        )

    @_line.register
    def _(self, event: events.SessionInDoubt) -> Line:
        return logging.WARNING, (
            f"no heartbeat has been answered for {event.silent_ms / 1000:.0f} s: nothing is delivered until "
            "one is"
        )

    @_line.register
    def _(self, _: events.SessionResumed) -> Line:
        return logging.INFO, "heartbeats are answered again: delivery goes on"

    @_line.register
    def _(self, event: events.LoopBlocked) -> Line:
        by = f" by {event.by}" if event.by else ""
        return logging.WARNING, (
            f"the event loop was blocked{by}, and a heartbeat {event.late_ms / 1000:.1f} s late: make what "
            "takes long a plain function, which runs in a thread"
        )

    @_line.register
    def _(self, event: events.BrokerUnavailable) -> Line:
        return logging.WARNING, f"{event.doing} failed and is tried again: {short(event.error)}"

    @_line.register
    def _(self, event: events.TopicMissing) -> Line:
        return logging.WARNING, (
            f"topic {event.topic} cannot be read, and is looked for again: {short(event.error)}. Create it, "
            "or give this client the right to describe and read it"
        )

    @_line.register
    def _(self, event: events.PartitionFailed) -> Line:
        return logging.WARNING, f"{_names((event.partition,))} cannot be read: {short(event.error)}"

    @_line.register
    def _(self, event: events.WindowFull) -> Line:
        return logging.INFO, (
            f"{event.undone} records of {_names((event.partition,))} are delivered and not done "
            "(max_undone_records): its delivery pauses"
        )

    @_line.register
    def _(self, event: events.ConsumerFailed) -> Line:
        return logging.ERROR, f"the consumer cannot go on: {short(event.error)}"
