"""Records as consumers deliver them: single ones, batches, and runs that are made as they are taken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, repeat
from operator import itemgetter, length_hint
from typing import Any, NamedTuple, Self

from ..protocol import TopicPartition

#: Name and value, in the producer's order; names may repeat.
Headers = Sequence[tuple[str, bytes | None]]


class _Fields(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    generation: int = -1
    session_id: int = 0


class Record(_Fields):
    """One record. ``key`` and ``value`` are None for null; times are in milliseconds since 1970.

    ``generation`` is the group's generation when it was delivered (-1 outside a group). ``session_id``
    is that of the partition's session with the consumer that delivered it: ``done`` is refused for a record
    of an earlier session, or of another consumer. A record equals only itself: when it is delivered again it
    is another object.
    """

    # a tuple, since nothing else is created as quickly
    __slots__ = ()

    @property
    def epoch(self) -> int:
        """Former name of ``session_id``."""
        return self.session_id

    @property
    def topic_partition(self) -> TopicPartition:
        """The record's partition."""
        return TopicPartition(self.topic, self.partition)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)


class _Row(tuple[object, ...]):
    """A tuple made from an iterable by C code."""

    __slots__ = ()
    __new__ = tuple.__new__


#: A Record class whose instances are made from a row of fields, without a step in Python.
made: Any = type(
    Record.__name__,
    (_Row, Record),
    {
        "__slots__": (),
        "__module__": Record.__module__,
        "__new__": tuple.__new__,
        "__reduce__": lambda record: (Record, tuple(record)),
    },
)


class Rows(NamedTuple):
    """Records as columns, with ascending ``offsets``. ``headers`` is None when no record has any."""

    offsets: Sequence[int]
    timestamps_ms: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers] | None

    def part(self, first: int, last: int | None = None) -> Rows:
        """Rows ``first`` to, not including, ``last``."""
        offsets, timestamps, keys, values, headers = self
        return Rows(
            offsets[first:last],
            timestamps[first:last],
            keys[first:last],
            values[first:last],
            None if headers is None else headers[first:last],
        )

    def at(self, places: Sequence[int]) -> Rows:
        """The rows with these indexes."""
        # the last one twice: for a single index itemgetter returns no tuple
        pick = itemgetter(*places, places[-1])
        return Rows._make(None if column is None else pick(column)[:-1] for column in self)


@dataclass(slots=True, eq=False)
class RecordBatch:
    """Records of one partition as columns; ``size`` is their approximate memory in bytes."""

    topic_partition: TopicPartition
    rows: Rows
    generation: int = -1
    session_id: int = 0
    size: int = 0

    def __repr__(self) -> str:
        return f"RecordBatch({self.topic_partition}, {len(self)} records)"

    def __len__(self) -> int:
        return len(self.rows.offsets)

    def only(self, places: Sequence[int]) -> RecordBatch:
        """A batch of the records with these indexes."""
        return replace(self, rows=self.rows.at(places))

    def records(self, first: int = 0, last: int | None = None) -> list[Record]:
        """Records ``first`` to, not including, ``last``."""
        topic, partition = self.topic_partition
        fields = self.fields(first, last, repeat(topic), repeat(partition))
        return list(map(made, fields))

    def fields(
        self, first: int, last: int | None, topics: Iterable[str], partitions: Iterable[int]
    ) -> Iterator[tuple[Any, ...]]:
        """The fields of records ``first`` to ``last``, as rows; ends where ``topics`` ends."""
        rows = self.rows if first == 0 and last is None else self.rows.part(first, last)
        return zip(
            topics,
            partitions,
            rows.offsets,
            rows.timestamps_ms,
            rows.keys,
            rows.values,
            repeat(()) if rows.headers is None else rows.headers,
            repeat(self.generation),
            repeat(self.session_id),
        )


class Run:
    """Records ``first`` to, not including, ``end`` of a batch. Iterate it, in any thread.

    The next record is made by C code only, which no other thread can interrupt: ``given`` is right even if
    one thread recalls the run while another one takes records.
    """

    __slots__ = ("_gate", "_left", "_offsets", "_records", "count")

    def __init__(self, batch: RecordBatch, first: int, end: int) -> None:
        self.count = end - first
        self._offsets = batch.rows.offsets[first:end]
        topic, partition = batch.topic_partition
        self._gate = [topic] * self.count
        # counts down with each record
        self._left = repeat(partition, self.count)
        self._records: Iterator[Record] = map(made, batch.fields(first, end, self._gate, self._left))

    def __repr__(self) -> str:
        return f"Run({self.given_count} of {self.count} given)"

    def __iter__(self) -> Iterator[Record]:
        return self._records

    @property
    def given_count(self) -> int:
        """Number of records taken."""
        return self.count - length_hint(self._left)

    @property
    def next_offset(self) -> int | None:
        """Offset of the next record to take; None when all are taken."""
        given = self.given_count
        return self._offsets[given] if given < self.count else None

    @property
    def over(self) -> bool:
        """Return whether there are no more records to take."""
        return not self._gate or not length_hint(self._left)

    def recall(self) -> int:
        """End the run; returns how many records were taken."""
        self._gate.clear()
        return self.given_count


#: Other tasks get their turn, if it is due, after this many records at most.
LOOK_EVERY = 64


@dataclass(slots=True, eq=False)
class RecordStream:
    """The iterator of ``async for record in consumer``.

    It is not an async generator, because CPython creates an exception for each tuple that those yield.
    ``give_way`` lets other tasks run if that is due, and returns whether it was; ``run_now`` returns records
    if there are any; ``next_run`` waits for some, and returns None at the end.
    """

    give_way: Callable[[], Awaitable[bool]]
    run_now: Callable[[], Run | None]
    next_run: Callable[[], Awaitable[Run | None]]
    _run: Run | None = None
    _few: Iterator[Record] = field(default_factory=lambda: iter(()))
    _many: int = 1

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        for record in self._few:
            return record
        return await self._next_record()

    async def _next_record(self) -> Record:
        """The next record, and the first of the next few: twice as many each time that no turn was due."""
        while True:
            self._many = 1 if await self.give_way() else min(2 * self._many, LOOK_EVERY)
            if self._run is None or self._run.over:
                self._run = self.run_now() or await self.next_run()
            if self._run is None:
                raise StopAsyncIteration
            self._few = islice(self._run, self._many)
            for record in self._few:
                return record
