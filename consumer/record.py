"""What a consumer gives to its user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..protocol import TopicPartition

#: Name and value, in the producer's order; names may repeat.
Headers = Sequence[tuple[str, bytes | None]]


@dataclass(slots=True, eq=False)
class Record:
    """One record. ``key`` and ``value`` are None for null; times are in milliseconds since 1970.

    ``generation`` is the group's generation when it was delivered (-1 outside a group). ``epoch`` numbers the
    stays of the partition with this consumer: ``done`` is refused for a record of an earlier stay.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    generation: int = -1
    epoch: int = 0

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)
