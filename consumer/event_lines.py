"""Events as log lines. A service writes them to a log of its own, and its consumer writes none then."""

from __future__ import annotations

import logging
from collections.abc import Callable
from logging import DEBUG, ERROR, INFO, WARNING

from . import events
from .errors import describe_error
from .events import Event

#: A level of ``logging``, and a sentence.
Line = tuple[int, str]

log = logging.getLogger("kohort.consumer")

#: The same line is written again after this long at the earliest.
REPEATED_AFTER_S = 60.0


class EventLines:
    """``write_event`` each event. The group begins each line. ``find_line``: the line of an event; by default
    ``line_of``.
    """

    def __init__(
        self, group: str, clock: Callable[[], float], find_line: Callable[[Event], Line] | None = None
    ) -> None:
        self._who = reader_name(group)
        self._clock = clock
        self._find_line = find_line or line_of
        self._written: dict[type[Event], tuple[str, float]] = {}

    def write_event(self, event: Event) -> None:
        """Write the event's line, unless the last one of its type was the same, and recent."""
        level, text = self._find_line(event)
        if not log.isEnabledFor(level):
            return
        last, at = self._written.get(type(event), ("", 0.0))
        now = self._clock()
        if text == last and now < at + REPEATED_AFTER_S:
            return
        self._written[type(event)] = text, now
        log.log(level, "%s: %s", self._who, text)


def reader_name(group: str) -> str:
    """What lines call the consumer."""
    return f"group {group}" if group else "partitions by hand"


def tell_blocked_loop(group: str, late_ms: float, by: str) -> None:
    """Write that the event loop is blocked, while it is: from another thread, since no event can be reported
    then.
    """
    log.warning(
        "%s: the event loop has been blocked%s for %.1f s, and no heartbeat can be sent",
        reader_name(group),
        by and f" by {by}",
        late_ms / 1000,
    )


def _names_text(partitions: events.Partitions) -> str:
    return ", ".join(f"{p.topic}-{p.partition}" for p in sorted(partitions)) or "none"


def line_of(event: Event) -> Line:
    """The level and the sentence of an event: warnings for what may need a person."""
    return _line_of_member(event) or _line_of_reading(event) or (DEBUG, str(event))


def _line_of_member(event: Event) -> Line | None:
    """The line of what befalls the member of a group, its commits and its loop."""
    match event:
        case events.StateChanged(state, reason):
            return DEBUG, f"the member is {state.value}: {reason}"
        case events.RebalanceCompleted():
            return INFO, (
                f"generation {event.generation} after {event.duration_ms:.0f} ms, by {event.protocol}: "
                f"{len(event.assignment)} partitions (new: {_names_text(event.assigned)}; "
                f"given up: {_names_text(event.revoked)})"
            )
        case events.RebalanceRetried(reason, delay_ms):
            return INFO, f"joining again in {delay_ms:.0f} ms: {reason}"
        case events.PartitionsRevoked(partitions, undone):
            left = sum(undone.values())
            rest = f"; {left} records were not done and will be delivered again" if left else ""
            return INFO, f"gave up {_names_text(partitions)}{rest}"
        case events.PartitionsLost(partitions, reason):
            return WARNING, f"lost {_names_text(partitions)}, so records may be handled twice: {reason}"
        case events.CommitFailed(partitions, error):
            return WARNING, (
                f"a commit of {_names_text(partitions)} failed, and is repeated for what is still owned: "
                f"{describe_error(error)}"
            )
        case events.CallbackFailed(callback, failure):
            return WARNING, f"{callback} failed: {describe_error(failure)}"
        case events.AssignorFailed(assignor, error, used):
            return WARNING, f"assignor {assignor} failed, {used} is used instead: {describe_error(error)}"
        case events.AssignmentRefused(reason):
            return WARNING, f"the assignment cannot be used, joining again: {reason}"
        case events.PollIntervalExceeded(age_ms, partitions, busy_with):
            busy = f", busy with {busy_with}" if busy_with else ""
            return WARNING, (
                f"no poll for {age_ms / 1000:.0f} s (max_poll_interval_ms){busy}: leaving the group, with "
                f"{_names_text(partitions)}, until the next one"
            )
        case events.SessionInDoubt(silent_ms):
            return WARNING, (
                f"no heartbeat has been answered for {silent_ms / 1000:.0f} s: nothing is delivered until "
                "one is"
            )
        case events.SessionResumed():
            return INFO, "heartbeats are answered again: delivery goes on"
        case events.LoopBlocked(late_ms, by):
            return WARNING, (
                f"the event loop was blocked{by and f' by {by}'} for {late_ms / 1000:.1f} s, in which no "
                "heartbeat could be sent: have a thread do what takes long (a service does, for handlers "
                "that are plain functions)"
            )
        case _:
            return None


def _line_of_reading(event: Event) -> Line | None:
    """The line of what befalls the partitions that are read, and the consumer as a whole."""
    match event:
        case events.OffsetReset(partition, asked, reason, policy, offset):
            where = f"{_names_text((partition,))} starts at offset {offset}"
            if asked is None:
                return INFO, f"{where}: {reason} (auto_offset_reset: {policy})"
            return WARNING, f"{where} instead of {asked}: {reason} (auto_offset_reset: {policy})"
        case events.LogTruncated(partition, asked, _, offset):
            return WARNING, (
                f"the log of {_names_text((partition,))} was cut before offset {asked}, by an unclean "
                f"election: going on at offset {offset}"
            )
        case events.BrokerUnavailable(doing, error):
            return WARNING, f"{doing} failed and is tried again: {describe_error(error)}"
        case events.PatternRefused(pattern, reason):
            return INFO, f"the broker does not take {pattern!r}, so this consumer matches topics: {reason}"
        case events.TopicMissing(topic, error):
            return WARNING, (
                f"topic {topic} cannot be read, and is looked for again: {describe_error(error)}. Create it, "
                "or give this client the right to describe and read it"
            )
        case events.PartitionFailed(partition, error):
            return WARNING, f"{_names_text((partition,))} cannot be read: {describe_error(error)}"
        case events.WindowFull(partition, count, first):
            return WARNING, (
                f"{count} records of {_names_text((partition,))} are delivered and not done "
                f"(max_undone_records), from offset {first} on: its delivery pauses until some are"
            )
        case events.ConsumerFailed(error):
            return ERROR, f"the consumer cannot go on: {describe_error(error)}"
        case _:
            return None
