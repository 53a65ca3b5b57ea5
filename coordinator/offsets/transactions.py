"""Open transactions that hold offsets: one that nobody ends keeps its partitions UNSTABLE_OFFSET_COMMIT for
readers of stable offsets, and its group from being removed. There is no time limit in the log, so their age
is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...protocol import TopicPartition

if TYPE_CHECKING:
    from ..durable import Durable


class OpenTransaction(NamedTuple):
    """One producer's transaction in one group: its age in ms since its first offset, and the partitions that
    wait for its end.
    """

    group_id: str
    producer_id: int
    age_ms: int
    partitions: tuple[TopicPartition, ...]


def open_transactions(durable: Durable, now_ms: int) -> list[OpenTransaction]:
    """Every open transaction of a shard, in the order in which groups were first met."""
    return [
        OpenTransaction(
            group_id, producer_id, max(now_ms - since_ms, 0), tuple(durable.pending[producer_id][group_id])
        )
        for group_id, producers in durable.open_producers.items()
        for producer_id, since_ms in producers.items()
    ]
