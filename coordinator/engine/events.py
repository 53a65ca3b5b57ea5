"""Who is told of events: the history, any number of subscriptions, and the callback that was given."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable
from typing import Final

from ..events import EventsLost, GroupEvent, GroupRemoved, Refusal, shorten
from ..history import History
from .effects import Note

#: Events that wait for the reader of a subscription; over it the oldest are lost.
MAX_WAITING: Final = 1_000


class EventStream:
    """A subscription: ``async for event in stream`` gives each event from now on, in order.

    A reader that is so slow that more than ``limit`` events wait for it loses the oldest, and is told how
    many by an EventsLost in their place. ``close`` ends it, as the coordinator's end does, once what waits is
    read; a stream that nobody holds any more ends by itself. For the event loop of the coordinator only.
    """

    def __init__(self, group: str | None = None, limit: int = MAX_WAITING) -> None:
        self._group = group
        self._waiting: deque[Note] = deque(maxlen=limit)
        self._lost = 0
        self._closed = False
        self._news = asyncio.Event()

    def __repr__(self) -> str:
        return f"<EventStream of {self._group or 'all groups'}: {len(self._waiting)} events waiting>"

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Note:
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

    def offer(self, event: Note) -> None:
        """An event has happened."""
        if self._closed or (self._group is not None and event.group != self._group):
            return
        if len(self._waiting) == self._waiting.maxlen:
            self._lost += 1
        self._waiting.append(event)
        self._news.set()


class Listeners:
    """Stamps each event and hands it on; ``on_note`` comes last, so that its mistakes are only its own."""

    def __init__(
        self, history_size: int, clock_ms: Callable[[], int], on_note: Callable[[Note], None] | None
    ) -> None:
        self.history = History(history_size)
        self._clock_ms = clock_ms
        self._on_note = on_note
        self._streams: weakref.WeakSet[EventStream] = weakref.WeakSet()

    def tell(self, knows: Callable[[str], bool], event: Note) -> None:
        """Something happened; ``knows`` says whether a group exists."""
        event.timestamp_ms = self._clock_ms()
        if isinstance(event, GroupEvent):
            shorten(event)
        if isinstance(event, GroupRemoved):
            self.history.drop(event.group)
        elif isinstance(event, GroupEvent) and (not isinstance(event, Refusal) or knows(event.group)):
            # anybody may be refused in a group that does not exist
            self.history.add(event)
        if self._streams:
            for stream in list(self._streams):
                stream.offer(event)
        if self._on_note is not None:
            self._on_note(event)

    def stream(self, group: str | None, limit: int) -> EventStream:
        """A new subscription, to one group or to everything."""
        stream = EventStream(group, limit)
        self._streams.add(stream)
        return stream

    def close(self) -> None:
        """No more events."""
        for stream in list(self._streams):
            stream.close()
