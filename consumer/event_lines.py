"""Events as log lines. A service writes them to a log of its own, and its consumer writes none then."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import singledispatch

from . import events
from .errors import told
from .events import Event

#: A level of ``logging``, and a sentence.
Line = tuple[int, str]

log = logging.getLogger("kohort.consumer")

#: The same line is written again after this long at the earliest.
REPEATED_AFTER_S = 60.0


class EventLines:
    """``see`` each event. ``who`` begins each line: the group."""

    def __init__(self, who: str, clock: Callable[[], float]) -> None:
        self._who = who
        self._clock = clock
        self._written: dict[type[Event], tuple[str, float]] = {}

    def see(self, event: Event) -> None:
        """Write the event's line, unless the last one of its type was the same, and recent."""
        level, text = line_of(event)
        if not log.isEnabledFor(level):
            return
        last, at = self._written.get(type(event), ("", 0.0))
        now = self._clock()
        if text == last and now < at + REPEATED_AFTER_S:
            return
        self._written[type(event)] = text, now
        log.log(level, "%s: %s", self._who, text)


def _names(partitions: events.Partitions) -> str:
    return ", ".join(f"{p.topic}-{p.partition}" for p in sorted(partitions)) or "none"


@singledispatch
def line_of(event: Event) -> Line:
    """The level and the sentence of an event: warnings for what may need a person."""
    return logging.DEBUG, str(event)


@line_of.register
def _(event: events.StateChanged) -> Line:
    return logging.DEBUG, f"the member is {event.state.value}: {event.reason}"


@line_of.register
def _(event: events.RebalanceCompleted) -> Line:
    return logging.INFO, (
        f"generation {event.generation} after {event.duration_ms:.0f} ms, by {event.protocol}: "
        f"{len(event.assignment)} partitions (new: {_names(event.assigned)}; "
        f"given up: {_names(event.revoked)})"
    )


@line_of.register
def _(event: events.RebalanceRetried) -> Line:
    return logging.INFO, f"joining again in {event.delay_ms:.0f} ms: {event.reason}"


@line_of.register
def _(event: events.PartitionsRevoked) -> Line:
    undone = sum(event.undone.values())
    rest = f"; {undone} records were not done and will be delivered again" if undone else ""
    return logging.INFO, f"gave up {_names(event.partitions)}{rest}"


@line_of.register
def _(event: events.PartitionsLost) -> Line:
    return logging.WARNING, (
        f"lost {_names(event.partitions)}, so records may be handled twice: {event.reason}"
    )


@line_of.register
def _(event: events.OffsetReset) -> Line:
    where = f"{_names((event.partition,))} starts at offset {event.offset}"
    if event.asked is None:
        return logging.INFO, f"{where}: {event.reason} (auto_offset_reset: {event.policy})"
    return logging.WARNING, (
        f"{where} instead of {event.asked}: {event.reason} (auto_offset_reset: {event.policy})"
    )


@line_of.register
def _(event: events.LogTruncated) -> Line:
    return logging.WARNING, (
        f"the log of {_names((event.partition,))} was cut before offset {event.asked}, by an unclean "
        f"election: going on at offset {event.offset}"
    )


@line_of.register
def _(event: events.CommitFailed) -> Line:
    return logging.WARNING, (
        f"a commit of {_names(event.partitions)} failed, and is repeated for what is still owned: "
        f"{told(event.error)}"
    )


@line_of.register
def _(event: events.CallbackFailed) -> Line:
    return logging.WARNING, f"{event.callback} failed: {told(event.error)}"


@line_of.register
def _(event: events.AssignorFailed) -> Line:
    return logging.WARNING, (
        f"assignor {event.assignor} failed, {event.used} is used instead: {told(event.error)}"
    )


@line_of.register
def _(event: events.AssignmentRefused) -> Line:
    return logging.WARNING, f"the assignment cannot be used, joining again: {event.reason}"


@line_of.register
def _(event: events.PollIntervalExceeded) -> Line:
    busy = f", busy with {event.busy_with}" if event.busy_with else ""
    return logging.WARNING, (
        f"no poll for {event.age_ms / 1000:.0f} s (max_poll_interval_ms){busy}: leaving the group, with "
        f"{_names(event.partitions)}, until the next one"
    )


@line_of.register
def _(event: events.SessionInDoubt) -> Line:
    return logging.WARNING, (
        f"no heartbeat has been answered for {event.silent_ms / 1000:.0f} s: nothing is delivered until "
        "one is"
    )


@line_of.register
def _(_: events.SessionResumed) -> Line:
    return logging.INFO, "heartbeats are answered again: delivery goes on"


@line_of.register
def _(event: events.LoopBlocked) -> Line:
    by = f" by {event.by}" if event.by else ""
    return logging.WARNING, (
        f"the event loop was blocked{by} for {event.late_ms / 1000:.1f} s, in which no heartbeat could be "
        "sent: have a thread do what takes long (a service does, for handlers that are plain functions)"
    )


@line_of.register
def _(event: events.BrokerUnavailable) -> Line:
    return logging.WARNING, f"{event.doing} failed and is tried again: {told(event.error)}"


@line_of.register
def _(event: events.TopicMissing) -> Line:
    return logging.WARNING, (
        f"topic {event.topic} cannot be read, and is looked for again: {told(event.error)}. Create it, "
        "or give this client the right to describe and read it"
    )


@line_of.register
def _(event: events.PartitionFailed) -> Line:
    return logging.WARNING, f"{_names((event.partition,))} cannot be read: {told(event.error)}"


@line_of.register
def _(event: events.WindowFull) -> Line:
    return logging.INFO, (
        f"{event.undone} records of {_names((event.partition,))} are delivered and not done "
        "(max_undone_records): its delivery pauses"
    )


@line_of.register
def _(event: events.ConsumerFailed) -> Line:
    return logging.ERROR, f"the consumer cannot go on: {told(event.error)}"
