"""Events of a consumer: one type for each kind of thing that happens. Consuming needs none of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import dataclass_transform

from ..protocol import TopicPartition
from ..statemachine import MemberState

#: Events kept for a reader that comes later; older ones are dropped first.
KEPT_EVENTS = 1_000

Partitions = tuple[TopicPartition, ...]


@dataclass_transform(frozen_default=True)
class Event:
    """Base of all events: each class is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class StateChanged(Event):
    """The member moved to another state."""

    state: MemberState
    reason: str


class RebalanceStarted(Event):
    """This member is about to join a new generation. ``generation`` is the old one, -1 for none."""

    generation: int
    reason: str


class RebalanceCompleted(Event):
    """The group has a new generation. ``assignment`` is all that this member has now."""

    generation: int
    member_id: str
    leader: bool
    protocol: str
    assignment: Partitions
    assigned: Partitions
    revoked: Partitions
    duration_ms: float


class RebalanceRetried(Event):
    """Joining or syncing did not work and is tried again after ``delay_ms``."""

    reason: str
    delay_ms: float


class PartitionsAssigned(Event):
    partitions: Partitions
    generation: int


class PartitionsRevoking(Event):
    """Delivery of these partitions has stopped; records delivered and not done are waited for."""

    partitions: Partitions
    undone: int


class PartitionsRevoked(Event):
    """Partitions are revoked. ``undone`` counts the records, by partition, that will be delivered again."""

    partitions: Partitions
    undone: Mapping[TopicPartition, int]


class PartitionsLost(Event):
    """The group went on without this member; others may have these partitions already."""

    partitions: Partitions
    reason: str


class DrainTimedOut(Event):
    """Records were not done in time at a revocation: ``offsets`` has the first undone of each partition."""

    offsets: Mapping[TopicPartition, int]
    waited_ms: float


class OffsetReset(Event):
    """Reading of a partition goes on elsewhere than ``asked``, which is None when nothing was committed."""

    partition: TopicPartition
    asked: int | None
    reason: str
    policy: str
    offset: int


class LogTruncated(Event):
    """The log was cut before ``asked``, reached in ``leader_epoch``; reading goes on at ``offset``.

    Records up to ``asked`` that were delivered are no longer in the log (KIP-320).
    """

    partition: TopicPartition
    asked: int
    leader_epoch: int
    offset: int


class CommitSucceeded(Event):
    offsets: Mapping[TopicPartition, int]


class CommitFailed(Event):
    """A commit in the background failed; what is still owned is committed again later."""

    partitions: Partitions
    error: Exception


class CallbackFailed(Event):
    """A callback raised or took too long; the consumer went on."""

    callback: str
    error: BaseException


class AssignorFailed(Event):
    """The leader's assignor raised or gave an assignment that breaks the rules; ``used`` took its place.

    ``partitions`` are those that the wrong answer is about. The consumer withdraws the assignor, and the
    group takes the next one that all its members offer.
    """

    assignor: str
    error: Exception
    used: str
    partitions: Partitions = ()


class AssignmentRefused(Event):
    """The leader's answer for this member cannot be used; the member joins again."""

    reason: str


class PollIntervalExceeded(Event):
    """No poll for longer than max_poll_interval_ms; the member leaves until the next one.

    ``busy_with`` names what the one that polled last is doing instead: ``bill (billing.py:31)``.
    """

    age_ms: float
    partitions: Partitions
    busy_with: str = ""


class SessionInDoubt(Event):
    """No heartbeat was answered for a session timeout: delivery stops until one is."""

    silent_ms: float


class SessionResumed(Event):
    """A heartbeat was answered again; delivery goes on."""


class LoopBlocked(Event):
    """Something blocked the event loop for longer than a heartbeat interval: no heartbeat could be sent.

    ``by`` names it, and the line it was at: ``bill (billing.py:31)``.
    """

    late_ms: float
    by: str = ""


class BrokerUnavailable(Event):
    """A request failed because a broker could not be reached or did not answer; it will be tried again."""

    doing: str
    error: Exception


class PatternMatched(Event):
    """The subscribed pattern matches these topics now; before, it matched others."""

    topics: tuple[str, ...]


class PatternRefused(Event):
    """The broker does not take the pattern; this consumer finds the topics that match it."""

    pattern: str
    reason: str


class TopicMissing(Event):
    """A subscribed topic does not exist, or may not be read; it is looked for again."""

    topic: str
    error: Exception


class PartitionFailed(Event):
    """A partition cannot be read; the error is also raised by the next poll where that says so."""

    partition: TopicPartition
    error: Exception


class WindowFull(Event):
    """A partition's delivery pauses: too many of its records are delivered and not done."""

    partition: TopicPartition
    undone: int
    #: Offset of the first of them.
    first: int


class ConsumerFailed(Event):
    """The consumer cannot go on; every call raises this error from now on."""

    error: Exception


class EventLog:
    """The last events, and listeners. Iterate it (``async for``) or give ``listen`` a function."""

    def __init__(self, kept: int = KEPT_EVENTS) -> None:
        self._recent: deque[Event] = deque(maxlen=kept)
        self._listeners: list[Callable[[Event], None]] = []
        self._count = 0
        self._closed = False
        self._changed = asyncio.Event()

    def __repr__(self) -> str:
        return f"EventLog({self._count} events)"

    @property
    def recent(self) -> list[Event]:
        """The events that are kept, oldest first."""
        return list(self._recent)

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call ``listener`` with each event as it happens, on the consumer's loop. It must not block."""
        self._listeners.append(listener)

    def publish(self, event: Event) -> None:
        """Add an event (for the consumer)."""
        self._count += 1
        self._recent.append(event)
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as error:  # a listener must not stop the consumer
                self._recent.append(CallbackFailed(repr(listener), error))
                self._count += 1
        self._changed.set()

    def close(self) -> None:
        """End the iterations, after what has been published."""
        self._closed = True
        self._changed.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        seen = self._count - len(self._recent)
        while True:
            while seen < self._count:
                first_kept = self._count - len(self._recent)
                at = max(seen, first_kept)
                seen = at + 1
                yield self._recent[at - first_kept]
            if self._closed:
                return
            self._changed.clear()
            await self._changed.wait()
