"""The persister asks share coordinators, and what they refuse is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest

from kohort.broker.share.persister import ShareKey, StateId, StoredPartition
from kohort.broker.share.state_persister import StatePersister
from kohort.client.share_state import ShareStateClient
from kohort.protocol import ApiKey, ErrorCode, KafkaError, SharePartitionKey
from kohort.protocol.messages import read_share_group_state as read
from kohort.protocol.messages import write_share_group_state as write
from kohort.share_partitions import StateBatch, StoredState

KEY = ShareKey("g", UUID(int=5), 3)
STATE = StateId(9, 1_700)


class Own:
    """The share coordinator on the same broker, which answers with this row."""

    def __init__(self, row: Any = None) -> None:
        self.asked: list[Any] = []
        self._row = row or write.PartitionResult(3, ErrorCode.NOT_COORDINATOR)

    async def answer_one(self, *asked: Any) -> Any:
        self.asked.append(asked)
        return self._row


class Coordinator:
    """Answers as the coordinator of every key; ``asked`` are the requests."""

    def __init__(self, read_row: Any = None, write_row: Any = None) -> None:
        self.asked: list[Any] = []
        self._rows = {read.ReadShareGroupStateRequest: read_row, write.WriteShareGroupStateRequest: write_row}

    def persister(self, own: Own | None = None) -> StatePersister:
        return StatePersister(lambda: ShareStateClient(self.find, self.ask, timeout_ms=100), own or Own())

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
        3, 0, None, 9, 40, [read.StateBatch(41, 44, 2, 1), read.StateBatch(45, 45, 0, 3)], 1_700
    )
    coordinator = Coordinator(read_row=row)
    found = await coordinator.persister().read(KEY, 6)
    assert found == StoredPartition(
        STATE,
        40,
        [StateBatch(41, 44, StoredState.ACKNOWLEDGED, 1), StateBatch(45, 45, StoredState.AVAILABLE, 3)],
    )
    (asked,) = coordinator.asked
    assert asked == read.ReadShareGroupStateRequest(
        "g", [read.ReadStateData(KEY.topic_id, [read.PartitionData(3, 6)])]
    )


async def test_a_state_is_written() -> None:
    coordinator = Coordinator(write_row=write.PartitionResult(3))
    batches = [StateBatch(41, 44, StoredState.ARCHIVED, 5)]
    await coordinator.persister().write(KEY, STATE, 6, 40, 4, batches)
    (asked,) = coordinator.asked
    assert asked == write.WriteShareGroupStateRequest(
        "g",
        [
            write.WriteStateData(
                KEY.topic_id, [write.PartitionData(3, 9, 6, 40, 4, [write.StateBatch(41, 44, 4, 5)], 1_700)]
            )
        ],
    )


async def test_the_brokers_own_share_coordinator_writes_without_a_request() -> None:
    coordinator, own = Coordinator(), Own(write.PartitionResult(3))
    await coordinator.persister(own).write(
        KEY, STATE, 6, 40, 4, [StateBatch(41, 44, StoredState.ARCHIVED, 5)]
    )
    row = write.PartitionData(3, 9, 6, 40, 4, [write.StateBatch(41, 44, 4, 5)], 1_700)
    key = SharePartitionKey(*KEY)
    assert own.asked == [(ApiKey.WRITE_SHARE_GROUP_STATE, key, str(key), row)]
    assert coordinator.asked == []


async def test_what_the_own_share_coordinator_refuses_for_good_is_not_asked_of_others() -> None:
    coordinator, own = Coordinator(), Own(write.PartitionResult(3, ErrorCode.FENCED_LEADER_EPOCH))
    with pytest.raises(KafkaError) as refused:
        await coordinator.persister(own).write(KEY, STATE, 6, 40, 4, ())
    assert refused.value.code is ErrorCode.FENCED_LEADER_EPOCH
    assert coordinator.asked == []


async def test_a_refusal_is_raised() -> None:
    fenced = ErrorCode.FENCED_STATE_EPOCH
    coordinator = Coordinator(read.PartitionResult(3, fenced, "too old"), write.PartitionResult(3, fenced))
    with pytest.raises(KafkaError, match="too old") as refused:
        await coordinator.persister().read(KEY, 6)
    assert refused.value.code is fenced
    with pytest.raises(KafkaError):
        await coordinator.persister().write(KEY, STATE, 6, 40, 0, ())
