"""Queues of records by key and partition, and their sizes."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...protocol import TopicPartition

#: Approximate memory of a record beside its key and value: objects for its fields, and its queue entry.
RECORD_OVERHEAD_BYTES = 400


class Waiting(Protocol):
    """The fields of a record that queues use."""

    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...


def size_of(record: Waiting) -> int:
    """Approximate memory of a record."""
    key, value = record.key, record.value
    return RECORD_OVERHEAD_BYTES + (len(value) if value else 0) + (len(key) if key else 0)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A record whose handler did not finish in time and was cancelled."""

    partition: TopicPartition
    offset: int


@dataclass(slots=True, eq=False)
class KeyQueue:
    """Records that are handled in order; ``taken`` are with the handler, or wait for their next attempt."""

    partition: PartitionQueues
    key: Hashable
    waiting: deque[Any]
    #: A list when there are any.
    taken: Any = ()
    attempt: int = 0
    #: How many of the next records were in a batch that is out of attempts.
    one_by_one: int = 0
    #: The slot that serves it now.
    slot: asyncio.Task[None] | None = None
    #: Set while it waits for its next attempt.
    timer: asyncio.TimerHandle | None = None
    #: The outcome of its current call is ignored.
    abandoned: bool = False


@dataclass(slots=True, eq=False)
class PartitionQueues:
    """The non-empty queues of a partition, and the number and size of their records."""

    partition: TopicPartition
    queues: dict[Hashable, KeyQueue] = field(default_factory=dict)
    #: The queues that wait for a slot, and how many have one.
    ready: deque[KeyQueue] = field(default_factory=deque)
    running: int = 0
    records: int = 0
    bytes: int = 0
    #: Highest offset that any queue has started.
    begun: int = -1
    #: The session that the records are from, see ``Record.session_id``.
    session: int = -1
    #: Exists once it takes no more records; set when its last queue ends.
    ended: asyncio.Event | None = None
    #: End of its release by the loop's clock, and the records known to be unfinished by then.
    until: float = math.inf
    unfinished: list[Unfinished] = field(default_factory=list)
    #: Whether its delivery is paused, because too many of its records wait.
    paused: bool = False
