"""Calls of handlers that run for long: who is told, and what probes and metrics say of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...consumer.run.watchdogs import activity_of_task
from ..handlers.handler import place_of
from ..reporting.log import ServiceLog
from ..share.deliveries import all_lost
from .queues import KeyQueue
from .running_handler import RunningHandler

#: Calls are looked at this often, or once in the time after which they count as long if that is less.
LOOK_S = 1.0


@dataclass(slots=True, eq=False)
class LongCalls:
    """Finds calls that have run for longer than ``after_s``. Times are seconds of the loop's clock.

    One of them is no standstill: other lanes go on. But its lane waits, and its partition's commits with it.
    """

    handlers: Sequence[RunningHandler]
    after_s: float
    group: str
    log: ServiceLog
    _look_at: float = 0.0
    #: Calls that were told: when each began, and what it was about.
    _told: dict[KeyQueue, tuple[float, str, str]] = field(default_factory=dict)

    def warn_of_long(self, now: float) -> None:
        """Warn of each long call, again whenever ``after_s`` have passed, and tell when it has ended."""
        if now < self._look_at:
            return
        self._look_at = now + min(LOOK_S, self.after_s)
        self._tell_ended(now)
        for handler, queue in self._find_long(now):
            if now - queue.told > self.after_s:
                queue.told = now
                self._told[queue] = queue.began, handler.handler.name, place_of(queue.taken)
                text = "group %s: %s; %s"
                kind = ("long call", handler.handler.name)
                what = _describe_handler(handler, queue, now)
                self.log.line(
                    kind, logging.WARNING, text, self.group, what, _describe_waiting(handler, queue)
                )

    def _tell_ended(self, now: float) -> None:
        for queue, (began, name, place) in list(self._told.items()):
            if queue.slot is None or queue.began != began:
                del self._told[queue]
                text = "group %s: handler %s is through with %s, which it began %.0f s ago"
                values = self.group, name, place, now - began
                self.log.line(("long call over", name), logging.WARNING, text, *values)

    def describe(self, now: float) -> list[str]:
        """A line for each long call."""
        return [_describe_handler(handler, queue, now) for handler, queue in self._find_long(now)]

    def count(self, handler: RunningHandler, now: float) -> int:
        """The long calls of a handler."""
        return sum(now - queue.began > self.after_s for queue in handler.queues.calls())

    def _find_long(self, now: float) -> Iterator[tuple[RunningHandler, KeyQueue]]:
        for handler in self.handlers:
            for queue in handler.queues.calls():
                if now - queue.began > self.after_s:
                    yield handler, queue


def _describe_waiting(handler: RunningHandler, queue: KeyQueue) -> str:
    if handler.handler.deliveries is None:
        return "the records of its lane wait for it"
    if all_lost(queue.taken):
        return "the lock has ended, so others have what it is at"
    return "what it is at stays locked, up to max_processing_ms"


def _describe_handler(handler: RunningHandler, queue: KeyQueue, now: float) -> str:
    assert queue.slot is not None, "its call runs"
    # the line that a thread is at is not known
    at = f", at {activity_of_task(queue.slot)}" if handler.handler.is_async else ""
    name, for_s = handler.handler.name, now - queue.began
    return f"handler {name} has been handling {place_of(queue.taken)} for {for_s:.0f} s{at}"
