"""Events of share consumers as log lines."""

from __future__ import annotations

from logging import INFO, WARNING

from ..event_lines import Line, line_of
from ..events import Event
from . import events


def line_of_share(event: Event) -> Line:
    """The level and the sentence of an event: warnings for what may need a person."""
    match event:
        case events.LockLost(record, verdict, late_ms, reason):
            said = (
                "before anything was said of it"
                if verdict is None
                else f"so its {verdict.name} does not count"
            )
            late = f", {late_ms / 1000:.1f} s too late" if late_ms else ""
            return WARNING, (
                f"the lock of {record.topic}-{record.partition}@{record.offset} has ended, {said}{late}; it "
                f"is delivered again unless delivery {record.delivery_count} was its last: {reason}"
            )
        case events.RenewalUnavailable(reason, lock_ms):
            return WARNING, (
                f"locks cannot be renewed, so a record that takes longer than {lock_ms / 1000:.0f} s is "
                f"delivered again: {reason}"
            )
        case events.ShareAssignmentChanged(partitions, epoch):
            shown = ", ".join(f"{p.topic}-{p.partition}" for p in partitions) or "none"
            return INFO, f"epoch {epoch}: {len(partitions)} partitions ({shown})"
        case _:
            return line_of(event)
