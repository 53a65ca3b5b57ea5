"""Figures of the tasks' reading, collected by a Spark accumulator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from pyspark.accumulators import AccumulatorParam

from ..protocol import TopicPartition
from ._fetch import Newest, TaskFigures

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Accumulator, SparkContext

    from ._offsets import OffsetRange

_MICROS_PER_MILLI = 1_000

#: Figures of a task, by the batch's key and the task's number.
Told = dict[tuple[str, int], TaskFigures]


class Reading(NamedTuple):
    """Figures of a batch; None if not known. ``seconds``: the time of the slowest reader. ``newest_ms``: the
    timestamp of the newest record of the partition that is furthest behind. ``lost``: what retention took
    after the batch was planned.
    """

    rows: int | None = None
    seconds: float | None = None
    newest_ms: int | None = None
    lost: tuple[OffsetRange, ...] = ()


class _Most(AccumulatorParam[Told]):
    """Merges figures so that a batch that is read twice, or by a retried task, counts once."""

    def zero(self, value: Told) -> Told:  # noqa: ARG002 - Spark's signature
        return {}

    def addInPlace(self, value1: Told, value2: Told) -> Told:  # noqa: N802 - Spark's name
        for key, told in value2.items():
            value1[key] = max(value1.get(key, told), told)
        return value1


class Readings:
    """The accumulator of a driver. There is one for all batches, because Spark never frees an accumulator."""

    def __init__(self, context: SparkContext) -> None:
        self._told: Accumulator[Told] = context.accumulator({}, _Most())

    def teller(self, batch: str) -> Teller:
        """Return the reporter for the tasks of a batch."""
        return Teller(self._told, batch)

    def take(self, batch: str, tasks: int) -> Reading:
        """Remove and return the figures of a batch. They are unknown if a task has not read to its end."""
        found = [self._told.value.pop((batch, number), None) for number in range(tasks)]
        told = [each for each in found if each is not None]
        lost = tuple(span for each in told for span in each.lost)
        if len(told) < tasks:
            return Reading(lost=lost)
        return Reading(
            sum(each.rows for each in told),
            max((each.seconds for each in told), default=0.0),
            furthest_behind(each.newest for each in told),
            lost,
        )


class Teller:
    """The reporter that executors get with the tasks of a batch."""

    def __init__(self, told: Accumulator[Told], batch: str) -> None:
        self._told = told
        self._batch = batch

    def __call__(self, number: int, figures: TaskFigures) -> None:
        self._told.add({(self._batch, number): figures})


class NewestRecords:
    """Finds the newest record of each partition that a task reads."""

    def __init__(self) -> None:
        self._newest: dict[TopicPartition, int] = {}

    def add(self, part: pa.RecordBatch) -> None:
        """Take in records of one partition, in the columns of kohort.consumer.reading.arrow."""
        import pyarrow.compute

        if not part.num_rows:
            return
        partition = TopicPartition(part.column("topic")[0].as_py(), part.column("partition")[0].as_py())
        newest = pyarrow.compute.max(part.column("timestamp")).value // _MICROS_PER_MILLI
        self._newest[partition] = max(newest, self._newest.get(partition, newest))

    def take(self) -> Newest:
        return tuple(sorted(self._newest.items()))


def furthest_behind(parts: Iterable[Newest]) -> int | None:
    """Return the timestamp of the newest record of the partition whose newest record is the oldest.

    None if nothing was read, or a partition's records have no timestamps (those have -1).
    """
    newest: dict[TopicPartition, int] = {}
    for part in parts:
        for partition, at in part:
            newest[partition] = max(at, newest.get(partition, at))
    least = min(newest.values(), default=-1)
    return None if least < 0 else least
