"""Records that wait, by key and by partition, and what they amount to."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...protocol import TopicPartition

#: What a record takes up beside its key and value, roughly: objects for its fields, and its place in a queue.
RECORD_OVERHEAD_BYTES = 400


class Waiting(Protocol):
    """All that queues know about a record."""

    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...


def size_of(record: Waiting) -> int:
    """Bytes that a record takes up, roughly."""
    key, value = record.key, record.value
    return RECORD_OVERHEAD_BYTES + (len(value) if value else 0) + (len(key) if key else 0)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A record whose handler did not finish in time and was cancelled."""

    partition: TopicPartition
    offset: int


@dataclass(slots=True, eq=False)
class KeyQueue:
    """Records that wait for each other; ``taken`` are with the handler, or before their next try."""

    partition: PartitionQueues
    key: Hashable
    waiting: deque[Any]
    #: A list when there are any.
    taken: Any = ()
    attempt: int = 0
    #: So many of the next records were in a batch that is out of tries.
    one_by_one: int = 0
    #: The slot that has its turn just now.
    slot: asyncio.Task[None] | None = None
    #: Set while it waits for its next try.
    timer: asyncio.TimerHandle | None = None
    #: Whatever a slot still does with its records counts for nothing.
    abandoned: bool = False


@dataclass(slots=True, eq=False)
class PartitionQueues:
    """The queues of a partition that have records, and what these records amount to."""

    partition: TopicPartition
    queues: dict[Hashable, KeyQueue] = field(default_factory=dict)
    #: Those of them that could have their turn, and how many have it.
    ready: deque[KeyQueue] = field(default_factory=deque)
    running: int = 0
    records: int = 0
    bytes: int = 0
    #: Highest offset any queue has begun with.
    begun: int = -1
    #: Which delivery of the partition the records are of: see ``Record.session_id``.
    session: int = -1
    #: Set once it takes no further records: when its last queue ends.
    ended: asyncio.Event | None = None
    #: By the loop's clock, when its release is over; and what is known not to be finished by then.
    until: float = math.inf
    unfinished: list[Unfinished] = field(default_factory=list)
    #: Its delivery is paused, because too much of it waits.
    paused: bool = False
