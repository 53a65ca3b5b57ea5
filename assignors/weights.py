"""Weights of partitions: where they come from, and how they become whole numbers.

Whole numbers, because sums of floats depend on their order, and an assignment must not.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ..protocol import TopicPartition
from .base import Assignor

#: Weights by partition, or one for each partition of a topic. Any unit: only proportions count.
Weights = Mapping[TopicPartition, float] | Mapping[str, float]
#: Weights, or a function that gives those of the partitions it is asked for, or what to measure.
WeightSource = Weights | Callable[[Sequence[TopicPartition]], Weights] | Literal["lag", "throughput"]

MEASURES: Final = ("lag", "throughput")

#: All weights of a group together, about; small enough for exact arithmetic, large enough for proportions.
_TOTAL: Final = 1 << 40
#: The least a partition weighs, as a part of the mean: idle partitions are work too, and are spread.
_LEAST_OF_MEAN: Final = 100


@dataclass(frozen=True, slots=True)
class Measure:
    """Measurement that a leader takes for its assignor before it assigns.

    ``lag``: records between committed and end offset. ``throughput``: records written in the last
    ``window_ms``, by end offset and the offset of that time.
    """

    kind: Literal["lag", "throughput"]
    window_ms: int = 600_000

    def __post_init__(self) -> None:
        if self.kind not in MEASURES:
            raise ValueError(f"weights {self.kind!r}: give 'lag', 'throughput', a mapping or a function")
        if isinstance(self.window_ms, bool) or not isinstance(self.window_ms, int) or self.window_ms < 1:
            raise ValueError(f"window_ms is {self.window_ms!r}: give whole milliseconds, 1 or more")


class MeasuringAssignor(Assignor):
    """Base of assignors that get measured weights before they assign, where ``measure`` is set.

    The leader's consumer measures on the group's own cluster, and so does the workbench. When that fails the
    assignor is not told, and goes on with what it was told last.
    """

    measure: Measure | None = None

    @abstractmethod
    def measured(self, weights: Mapping[TopicPartition, float]) -> None:
        """The weights of all partitions of the group's topics, as far as they could be measured."""


def whole_weights(weights: Weights, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """A weight of 1 or more for each partition, in proportion; partitions without one weigh the mean.

    ValueError for a weight that is no number of 0 or more.
    """
    asked = list(partitions)
    found = ((partition, _weight_of(weights, partition)) for partition in asked)
    known = {partition: weight for partition, weight in found if weight is not None}
    heaviest = max(known.values(), default=0.0)
    if not heaviest:
        return dict.fromkeys(asked, _TOTAL // max(1, len(asked)))
    # parts of the heaviest: sums of these neither overflow nor vanish, whatever the unit
    parts = {partition: weight / heaviest for partition, weight in known.items()}
    mean = math.fsum(parts.values()) / len(parts)
    scale = _TOTAL / (mean * len(asked))
    least = max(1, round(mean * scale / _LEAST_OF_MEAN))
    return {partition: max(least, round(parts.get(partition, mean) * scale)) for partition in asked}


def _weight_of(weights: Weights, partition: TopicPartition) -> float | None:
    table: Mapping[object, float] = weights  # type: ignore[assignment]
    weight = table.get(partition, table.get(partition.topic))
    if weight is None:
        return None
    try:
        good = math.isfinite(weight) and weight >= 0
    except TypeError:
        good = False
    if not good:
        name = f"{partition.topic}-{partition.partition}"
        raise ValueError(f"the weight of {name} is {weight!r}: give a number of 0 or more")
    return float(weight)
