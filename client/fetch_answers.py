"""Fetch answers as consumers take them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from ..protocol.messages.fetch import AbortedTransaction, FetchResponse, PartitionData

__all__ = ["AbortedTransaction", "FetchedPartition", "fetched_rows"]


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """A partition's part of a Fetch response.

    ``records`` are record batches, the first of which may begin before the offset asked for and the last of
    which may be cut short. Offsets are -1 where the broker did not say; ``aborted`` is set for
    read_committed.
    ``diverging_offset`` is where the log was cut behind what was read (KIP-595), -1 if it was not.
    """

    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: bytes | memoryview
    aborted: tuple[AbortedTransaction, ...] = ()
    diverging_offset: int = -1
    preferred_replica: int = -1


def fetched_rows(response: FetchResponse) -> Iterator[tuple[str | uuid.UUID | None, int, FetchedPartition]]:
    """Topic, partition and what there is of it; topics go by id from v13 on, else by name."""
    for topic in response.responses:
        for partition in topic.partitions:
            yield topic.topic or topic.topic_id, partition.partition_index, _fetched(partition)


def _fetched(partition: PartitionData) -> FetchedPartition:
    diverging = partition.diverging_epoch
    return FetchedPartition(
        partition.error_code,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
        partition.records or b"",
        tuple(partition.aborted_transactions or ()),
        -1 if diverging is None else diverging.end_offset,
        partition.preferred_read_replica,
    )
