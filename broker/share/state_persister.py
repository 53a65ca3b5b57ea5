"""The way to the share coordinators, over the client that all brokers have of them."""

from __future__ import annotations

from collections.abc import Sequence

from ...client.share_state import SharePlace, ShareStateClient
from ...protocol import KafkaError
from ...protocol.messages import read_share_group_state, write_share_group_state
from ...share_partitions import StateBatch, StoredState
from .persister import ShareKey, StoredPartition


class StatePersister:
    """A ``Persister`` that asks share coordinators."""

    def __init__(self, client: ShareStateClient) -> None:
        self._client = client

    async def read(self, key: ShareKey, leader_epoch: int) -> StoredPartition:
        asked = read_share_group_state.PartitionData(key.number, leader_epoch)
        rows = await self._client.read_state(key.group, {key.topic_id: [asked]})
        row = rows[SharePlace(key.topic_id, key.number)]
        _check(row.error_code, row.error_message)
        return StoredPartition(
            row.state_epoch,
            row.start_offset,
            [
                StateBatch(first, last, StoredState(state), count)
                for first, last, state, count in row.state_batches
            ],
        )

    async def write(
        self,
        key: ShareKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        done_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        asked = write_share_group_state.PartitionData(
            key.number,
            state_epoch,
            leader_epoch,
            start_offset,
            done_count,
            [write_share_group_state.StateBatch(*batch) for batch in batches],
        )
        rows = await self._client.write_state(key.group, {key.topic_id: [asked]})
        row = rows[SharePlace(key.topic_id, key.number)]
        _check(row.error_code, row.error_message)


def _check(code: int, message: str | None) -> None:
    if code:
        raise KafkaError(code, message or "")
