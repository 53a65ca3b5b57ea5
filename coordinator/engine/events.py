"""Events of a coordinator, one typed event for each thing that happens, and who is told of them.

Nobody has to listen, so an event costs little to make. Those of a shard are here, others belong to what is
coordinated.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

#: Events that wait for the reader of a subscription; over it the oldest are lost.
MAX_WAITING: Final = 1_000


@dataclass(slots=True)
class CoordinatorEvent:
    """Something worth knowing happened. ``group`` is the id of the group it is about, "" for none.

    ``timestamp_ms`` and ``sequence`` are given when it is told: the time, and its number in the history of
    its group, 0 where none is kept. ``name`` is what it is called on the wire and in logs, ``level`` what a
    log takes it for.
    """

    name: ClassVar[str]
    level: ClassVar[Literal["debug", "info", "warning"]] = "info"

    group: str
    sequence: int = field(default=0, kw_only=True, compare=False)
    timestamp_ms: int = field(default=0, kw_only=True, compare=False)


@dataclass(slots=True)
class RecordSkipped(CoordinatorEvent):
    """A record of the offsets topic could not be read and was left out."""

    name = "RecordSkipped"
    level = "warning"

    partition: int
    offset: int
    reason: str


@dataclass(slots=True)
class ShardLoading(CoordinatorEvent):
    """A partition of the offsets topic is being read back, and that takes long."""

    name = "ShardLoading"

    partition: int
    records: int
    duration_ms: int


@dataclass(slots=True)
class ShardLoaded(CoordinatorEvent):
    """A partition of the offsets topic was read back."""

    name = "ShardLoaded"
    level = "debug"

    partition: int
    records: int
    skipped: int
    groups: int
    duration_ms: int


@dataclass(slots=True)
class EventsLost(CoordinatorEvent):
    """Only in a subscription: its reader was too slow, ``count`` events before this one are lost to it."""

    name = "EventsLost"
    level = "warning"

    count: int


class EventStream:
    """A subscription: ``async for event in stream`` gives each event from now on, in order.

    A reader that is so slow that more than ``limit`` events wait for it loses the oldest, and is told how
    many by an EventsLost in their place. ``close`` ends it, as the coordinator's end does, once what waits is
    read; a stream that nobody holds any more ends by itself. For the event loop of the coordinator only.
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
        """No further events; those that wait can still be read."""
        self._closed = True
        self._news.set()

    def offer(self, event: CoordinatorEvent) -> None:
        if self._closed or (self._group is not None and event.group != self._group):
            return
        if len(self._waiting) == self._waiting.maxlen:
            self._lost += 1
        self._waiting.append(event)
        self._news.set()


class Listeners:
    """Hands each event to every subscription, and last to ``on_event``, whose errors harm no other."""

    def __init__(self, on_event: Callable[[CoordinatorEvent], None] | None) -> None:
        self._on_event = on_event
        self._streams: weakref.WeakSet[EventStream] = weakref.WeakSet()

    def tell(self, event: CoordinatorEvent) -> None:
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
        for stream in list(self._streams):
            stream.close()
