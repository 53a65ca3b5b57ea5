"""Events of a coordinator, one type for each thing that happens, and their listeners.

Events are cheap to create, since usually nothing listens. Events of shards are here; each kind of coordinator
defines its own.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from ...protocol.compared_fields import ComparedFields

#: Most events that wait for a subscription's reader; beyond that the oldest are dropped.
MAX_WAITING: Final = 1_000


@dataclass(slots=True, eq=False, repr=False)
class CoordinatorEvent(ComparedFields):
    """Base of events. ``group`` is the id of the group concerned, "" for none.

    ``timestamp_ms`` and ``sequence`` are set when the event is reported: the time, and the number in its
    group's history, 0 if none is kept. ``name`` is its name on the wire and in logs, ``level`` its log level.
    """

    name: ClassVar[str]
    level: ClassVar[Literal["debug", "info", "warning"]] = "info"

    group: str
    sequence: int = field(default=0, kw_only=True, compare=False)
    timestamp_ms: int = field(default=0, kw_only=True, compare=False)


@dataclass(slots=True, eq=False, repr=False)
class RecordSkipped(CoordinatorEvent):
    """A record of the offsets topic could not be read and was skipped."""

    name = "RecordSkipped"
    level = "warning"

    partition: int
    offset: int
    reason: str


@dataclass(slots=True, eq=False, repr=False)
class ShardLoading(CoordinatorEvent):
    """Progress of a long load of a partition of the offsets topic."""

    name = "ShardLoading"

    partition: int
    records: int
    duration_ms: int


@dataclass(slots=True, eq=False, repr=False)
class ShardLoaded(CoordinatorEvent):
    """A partition of the offsets topic was loaded."""

    name = "ShardLoaded"
    level = "debug"

    partition: int
    records: int
    skipped: int
    groups: int
    duration_ms: int


@dataclass(slots=True, eq=False, repr=False)
class EventsLost(CoordinatorEvent):
    """Only in a subscription: its reader was too slow and lost the ``count`` events before this one."""

    name = "EventsLost"
    level = "warning"

    count: int


class EventStream:
    """A subscription: ``async for event in stream`` gives each event from now on, in order.

    A reader that falls more than ``limit`` events behind loses the oldest; an EventsLost in their place says
    how many. After ``close``, or after the coordinator has stopped, the stream ends when its pending events
    are read; a stream without references ends by itself. Use it on the coordinator's event loop.
    """

    def __init__(self, group: str | None = None, limit: int = MAX_WAITING) -> None:
        self._group = group
        self._waiting: deque[CoordinatorEvent] = deque(maxlen=limit)
        self._lost = 0
        self._closed = False
        self._news = asyncio.Event()

    def __repr__(self) -> str:
        return f"<EventStream of {self._group or 'all groups'}: {len(self._waiting)} events waiting>"

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> CoordinatorEvent:
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        if self._lost:
            lost, self._lost = EventsLost(self._group or "", count=self._lost), 0
            lost.timestamp_ms = self._waiting[0].timestamp_ms
            return lost
        return self._waiting.popleft()

    def close(self) -> None:
        """Accept no further events; pending ones can still be read."""
        self._closed = True
        self._news.set()

    def offer(self, event: CoordinatorEvent) -> None:
        """Queue an event, if it is of the stream's group; the oldest go when nobody reads."""
        if self._closed or (self._group is not None and event.group != self._group):
            return
        if len(self._waiting) == self._waiting.maxlen:
            self._lost += 1
        self._waiting.append(event)
        self._news.set()


class Listeners:
    """Passes each event to all subscriptions and then to ``on_event``, whose errors affect nothing else."""

    def __init__(self, on_event: Callable[[CoordinatorEvent], None] | None) -> None:
        self._on_event = on_event
        self._streams: weakref.WeakSet[EventStream] = weakref.WeakSet()

    def tell(self, event: CoordinatorEvent) -> None:
        """Pass an event to every stream and callback."""
        if self._streams:
            for stream in list(self._streams):
                stream.offer(event)
        if self._on_event is not None:
            self._on_event(event)

    def stream(self, group: str | None, limit: int) -> EventStream:
        """A new subscription, to one group or to everything."""
        stream = EventStream(group, limit)
        self._streams.add(stream)
        return stream

    def close(self) -> None:
        """End every stream."""
        for stream in list(self._streams):
            stream.close()
