"""What a consumer gives to its user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

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
    of an earlier session, or of another consumer. A record equals itself only: what is delivered again is
    another one.
    """

    # a tuple underneath, since nothing else is made as quickly by the hundred thousand
    __slots__ = ()

    @property
    def epoch(self) -> int:
        """The name that ``session_id`` had before."""
        return self.session_id

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)


class _Row(tuple[Any, ...]):
    """Made of an iterable, by C code."""

    __slots__ = ()
    __new__ = tuple.__new__


#: A kind of Record that is made of a row of fields instead of an argument for each: no step in Python.
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
    """Records column by column, ``offsets`` ascending. ``headers`` is None when no record has any."""

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
        """The rows in these places."""
        pick = itemgetter(*places, places[-1])  # twice the last: of one place it would give no tuple
        offsets, timestamps, keys, values, headers = self
        return Rows(
            pick(offsets)[:-1],
            pick(timestamps)[:-1],
            pick(keys)[:-1],
            pick(values)[:-1],
            None if headers is None else pick(headers)[:-1],
        )


class RecordBatch:
    """Records of one partition, each made when it is asked for. ``size``: about so many bytes of memory."""

    __slots__ = ("_epoch", "_generation", "_partition", "rows", "size")

    def __init__(
        self, partition: TopicPartition, rows: Rows, generation: int = -1, epoch: int = 0, size: int = 0
    ) -> None:
        self.rows = rows
        self.size = size
        self._partition = partition
        self._generation = generation
        self._epoch = epoch

    def __repr__(self) -> str:
        return f"RecordBatch({self._partition}, {len(self)} records)"

    def __len__(self) -> int:
        return len(self.rows.offsets)

    def only(self, places: Sequence[int]) -> RecordBatch:
        """With the records in these places."""
        return RecordBatch(self._partition, self.rows.at(places), self._generation, self._epoch, self.size)

    @property
    def topic(self) -> str:
        return self._partition.topic

    @property
    def partition(self) -> int:
        return self._partition.partition

    def records(self, first: int = 0, last: int | None = None) -> list[Record]:
        """Records ``first`` to, not including, ``last``."""
        topic, partition = self._partition
        fields = self.fields(first, last, repeat(topic), repeat(partition))
        return list(map(made, fields))

    def fields(
        self, first: int, last: int | None, topics: Iterable[str], partitions: Iterable[int]
    ) -> Iterator[tuple[Any, ...]]:
        """What records ``first`` to ``last`` are made of; it ends where ``topics`` ends."""
        rows = self.rows if first == 0 and last is None else self.rows.part(first, last)
        return zip(
            topics,
            partitions,
            rows.offsets,
            rows.timestamps_ms,
            rows.keys,
            rows.values,
            repeat(()) if rows.headers is None else rows.headers,
            repeat(self._generation),
            repeat(self._epoch),
        )
