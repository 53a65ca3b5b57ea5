"""Weights of partitions: where they come from, and how they become integers.

Integers, because a sum of floats depends on the order of its terms, and an assignment must not.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ..protocol import TopicPartition
from .base import Assignor

#: Weights by partition, or by topic for each of its partitions. In any unit: only proportions count.
Weights = Mapping[TopicPartition, float] | Mapping[str, float]
#: Weights, or a function that returns the weights of the given partitions, or what to measure.
WeightSource = Weights | Callable[[Sequence[TopicPartition]], Weights] | Literal["lag", "throughput"]

MEASURES: Final = ("lag", "throughput")

#: About the sum of all weights of a group: large enough that rounding does not matter.
_TOTAL: Final = 1 << 40
#: A partition weighs at least the mean divided by this: idle partitions are work too, and are spread.
_LEAST_OF_MEAN: Final = 100


@dataclass(frozen=True, slots=True)
class Measure:
    """What a leader measures for its assignor before it assigns.

    ``lag``: records between committed and end offset. ``throughput``: records written in the last
    ``window_ms`` milliseconds: end offset minus the offset at the beginning of that time. Raises ValueError
    for anything else.
    """

    kind: Literal["lag", "throughput"]
    window_ms: int = 600_000

    def __post_init__(self) -> None:
        if self.kind not in MEASURES:
            raise ValueError(f"weights {self.kind!r}: give 'lag', 'throughput', a mapping or a function")
        if isinstance(self.window_ms, bool) or not isinstance(self.window_ms, int) or self.window_ms < 1:
            raise ValueError(f"window_ms is {self.window_ms!r}: give whole milliseconds, 1 or more")


class MeasuringAssignor(Assignor):
    """Base class of assignors that use measured weights. Set ``measure`` to what the leader is to measure.

    The leader's consumer measures on the group's own cluster just before :meth:`assign`, and so does `kohort
    assignors`. If that fails, :meth:`measured` is not called, and the assignor continues with the weights of
    the last call.
    """

    measure: Measure | None = None

    @abstractmethod
    def measured(self, weights: Mapping[TopicPartition, float]) -> None:
        """Called with the weights of all partitions of the group's topics that could be measured."""


def whole_weights(weights: Weights, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return an integer weight of 1 or more for each partition, in proportion to ``weights``.

    Partitions without a weight get the mean. Raises ValueError for a weight that is negative or not a number.
    """
    asked = list(partitions)
    found = ((partition, _weight_of(weights, partition)) for partition in asked)
    known = {partition: weight for partition, weight in found if weight is not None}
    heaviest = max(known.values(), default=0.0)
    if not heaviest:
        return dict.fromkeys(asked, _TOTAL // max(1, len(asked)))
    # fractions of the heaviest: their sum neither overflows nor underflows, whatever the unit
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
