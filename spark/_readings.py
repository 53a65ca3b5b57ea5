"""Rows and seconds of the tasks' reading, collected by a Spark accumulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.accumulators import AccumulatorParam

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext

#: Rows and seconds of a task, by the batch's key and the task's number.
Told = dict[tuple[str, int], tuple[int, float]]


class Reading(NamedTuple):
    """Figures of a batch; None if not known. ``seconds``: the time of the slowest reader."""

    rows: int | None = None
    seconds: float | None = None


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
        if len(told) < tasks:
            return Reading()
        return Reading(sum(rows for rows, _ in told), max((seconds for _, seconds in told), default=0.0))


class Teller:
    """The reporter that executors get with the tasks of a batch."""

    def __init__(self, told: Accumulator[Told], batch: str) -> None:
        self._told = told
        self._batch = batch

    def __call__(self, number: int, rows: int, seconds: float) -> None:
        self._told.add({(self._batch, number): (rows, seconds)})
