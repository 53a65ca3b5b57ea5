"""The persister asks share coordinators, and what they refuse is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest

from kohort.broker.share.persister import ShareKey, StoredPartition
from kohort.broker.share.state_persister import StatePersister
from kohort.client.share_state import ShareStateClient
from kohort.protocol import ErrorCode, KafkaError
from kohort.protocol.messages import read_share_group_state as read
from kohort.protocol.messages import write_share_group_state as write
from kohort.share_partitions import StateBatch, StoredState

KEY = ShareKey("g", UUID(int=5), 3)


class Coordinator:
    """Answers as the coordinator of every key; ``asked`` are the requests."""

    def __init__(self, read_row: Any = None, write_row: Any = None) -> None:
        self.asked: list[Any] = []
        self._rows = {read.ReadShareGroupStateRequest: read_row, write.WriteShareGroupStateRequest: write_row}

    def persister(self) -> StatePersister:
        return StatePersister(ShareStateClient(self.find, self.ask, timeout_ms=100))

    async def find(self, keys: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(keys, 1)

    async def ask(self, _node: int, body: Any) -> Any:
        self.asked.append(body)
        row = self._rows[type(body)]
        if isinstance(body, read.ReadShareGroupStateRequest):
            return read.ReadShareGroupStateResponse([read.ReadStateResult(KEY.topic_id, [row])])
        return write.WriteShareGroupStateResponse([write.WriteStateResult(KEY.topic_id, [row])])


async def test_a_state_is_read() -> None:
    row = read.PartitionResult(
        3, 0, None, 9, 40, [read.StateBatch(41, 44, 2, 1), read.StateBatch(45, 45, 0, 3)]
    )
    coordinator = Coordinator(read_row=row)
    found = await coordinator.persister().read(KEY, 6)
    assert found == StoredPartition(
        9, 40, [StateBatch(41, 44, StoredState.ACKNOWLEDGED, 1), StateBatch(45, 45, StoredState.AVAILABLE, 3)]
    )
    (asked,) = coordinator.asked
    assert asked == read.ReadShareGroupStateRequest(
        "g", [read.ReadStateData(KEY.topic_id, [read.PartitionData(3, 6)])]
    )


async def test_a_state_is_written() -> None:
    coordinator = Coordinator(write_row=write.PartitionResult(3))
    batches = [StateBatch(41, 44, StoredState.ARCHIVED, 5)]
    await coordinator.persister().write(KEY, 9, 6, 40, 4, batches)
    (asked,) = coordinator.asked
    assert asked == write.WriteShareGroupStateRequest(
        "g",
        [
            write.WriteStateData(
                KEY.topic_id, [write.PartitionData(3, 9, 6, 40, 4, [write.StateBatch(41, 44, 4, 5)])]
            )
        ],
    )


async def test_a_refusal_is_raised() -> None:
    fenced = ErrorCode.FENCED_STATE_EPOCH
    coordinator = Coordinator(read.PartitionResult(3, fenced, "too old"), write.PartitionResult(3, fenced))
    with pytest.raises(KafkaError, match="too old") as refused:
        await coordinator.persister().read(KEY, 6)
    assert refused.value.code is fenced
    with pytest.raises(KafkaError):
        await coordinator.persister().write(KEY, 9, 6, 40, 0, ())
