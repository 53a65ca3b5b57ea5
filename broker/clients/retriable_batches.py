"""Batches that a producer is to send again, and what is on its way behind them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from ...protocol import BatchHeader, ErrorCode, KafkaError
from ...protocol.named_tuples import NamedTuple

#: Refusals of batches of which nothing is stored, and that producers send again.
_FOR_NOW: Final = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR}
)
#: Most partitions of a connection that are known.
_MOST: Final = 1_000


class _Next(NamedTuple):
    """The batch that would follow a refused one."""

    producer_id: int
    producer_epoch: int
    sequence: int
    error: KafkaError


class RefusedBatches:
    """The last refused batch of each partition that a connection writes to.

    An idempotent producer has several batches on their way. Where the first was refused, and the next one
    comes when it could be taken, that one is out of order. librdkafka then takes another epoch for all its
    partitions, and sends batches again of which it does not know whether they are stored. So what follows a
    refused batch is refused as that was, once: the producer sends all of them again in their order.
    """

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[Hashable, _Next] = {}

    def __bool__(self) -> bool:
        return bool(self._next)

    def note_refusal(self, place: Hashable, header: BatchHeader, error: KafkaError) -> None:
        """A batch for ``place`` is refused."""
        if error.code in _FOR_NOW and header.base_sequence >= 0 and not header.transactional:
            if len(self._next) >= _MOST:
                self._next.clear()
            sequence = (header.last_sequence + 1) & 0x7FFFFFFF
            self._next[place] = _Next(header.producer_id, header.producer_epoch, sequence, error)

    def refusal_before(self, place: Hashable, header: BatchHeader) -> KafkaError | None:
        """The refusal of the batch that this one follows; None if that was not refused."""
        known = self._next.get(place)
        if known is None or known[:3] != (header.producer_id, header.producer_epoch, header.base_sequence):
            return None
        return known.error

    def on_stored(self, place: Hashable) -> None:
        """A batch for ``place`` is stored."""
        self._next.pop(place, None)
