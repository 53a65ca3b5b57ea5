"""The client of share coordinators: it asks each one for its own, and again while state moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from kohort.client import BrokerConnectionError, Cluster
from kohort.client.share_state import SharePlace, ShareStateClient, state_client
from kohort.client.waiting import Backoff
from kohort.protocol import ApiKey, ErrorCode, KafkaError, SharePartitionKey
from kohort.protocol.messages import read_share_group_state as read
from kohort.protocol.messages import write_share_group_state as write
from kohort.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tests.client.fake_broker import FakeBroker

ID, OTHER = UUID(int=1), UUID(int=2)


class Coordinators:
    """Two nodes; even partitions are at 0, odd ones at 1. ``errors`` come first, one at each request."""

    def __init__(self, *errors: ErrorCode | BrokerConnectionError) -> None:
        self.errors = list(errors)
        self.asked: list[tuple[int, list[tuple[UUID, list[int]]]]] = []

    async def find(self, keys: Sequence[str]) -> dict[str, int | KafkaError]:
        return {key: SharePartitionKey.parse(key).partition % 2 for key in keys}

    async def ask(self, node: int, body: Any) -> Any:
        topics = [(topic.topic_id, [row.partition for row in topic.partitions]) for topic in body.topics]
        assert all(topic_id is not None for topic_id, _ in topics)
        self.asked.append((node, topics))
        error = self.errors.pop(0) if self.errors else ErrorCode.NONE
        if isinstance(error, BrokerConnectionError):
            raise error
        return read.ReadShareGroupStateResponse(
            [
                read.ReadStateResult(topic_id, [read.PartitionResult(each, error) for each in numbers])
                for topic_id, numbers in topics
            ]
        )

    def client(self, timeout_ms: int = 5_000) -> ShareStateClient:
        return ShareStateClient(self.find, self.ask, timeout_ms=timeout_ms, backoff=Backoff(1, 1))


def rows(*partitions: int) -> list[read.PartitionData]:
    return [read.PartitionData(each, 3) for each in partitions]


async def test_each_coordinator_gets_one_request_with_all_of_its_partitions() -> None:
    coordinators = Coordinators()
    told = await coordinators.client().read_state("orders", {ID: rows(0, 1, 2), OTHER: rows(0)})
    assert coordinators.asked == [(0, [(ID, [0, 2]), (OTHER, [0])]), (1, [(ID, [1])])]
    assert set(told) == {SharePlace(ID, 0), SharePlace(ID, 1), SharePlace(ID, 2), SharePlace(OTHER, 0)}
    assert {row.error_code for row in told.values()} == {ErrorCode.NONE}


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNSUPPORTED_VERSION,
        BrokerConnectionError("a", "it went away"),
    ],
)
async def test_what_passes_is_asked_for_again_and_only_that(
    error: ErrorCode | BrokerConnectionError,
) -> None:
    coordinators = Coordinators(error)
    told = await coordinators.client().read_state("orders", {ID: rows(0, 1)})
    assert coordinators.asked == [(0, [(ID, [0])]), (1, [(ID, [1])]), (0, [(ID, [0])])]
    assert {row.error_code for row in told.values()} == {ErrorCode.NONE}


async def test_other_errors_are_results_at_once() -> None:
    coordinators = Coordinators(ErrorCode.FENCED_LEADER_EPOCH)
    told = await coordinators.client().read_state("orders", {ID: rows(0)})
    assert told[SharePlace(ID, 0)].error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert len(coordinators.asked) == 1


async def test_the_last_error_is_the_result_when_the_time_is_up() -> None:
    coordinators = Coordinators(*[BrokerConnectionError("a", "it went away")] * 1_000)
    told = await coordinators.client(timeout_ms=20).read_state("orders", {ID: rows(0)})
    row = told[SharePlace(ID, 0)]
    assert row.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "it went away" in str(row.error_message)
    assert len(coordinators.asked) > 1


async def test_a_partition_that_the_answer_lacks_has_an_error() -> None:
    coordinators = Coordinators()

    async def ask(_node: int, _body: object) -> Any:
        return read.ReadShareGroupStateResponse([])

    client = ShareStateClient(coordinators.find, ask)
    told = await client.read_state("orders", {ID: rows(0)})
    assert told[SharePlace(ID, 0)].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_a_client_of_a_cluster_finds_coordinators_by_their_keys() -> None:
    async with FakeBroker() as broker:
        keys: list[str] = []

        def find(body: Any) -> FindCoordinatorResponse:
            assert body.key_type == 2
            keys.extend(body.coordinator_keys)
            good = [Coordinator(key, 0, "127.0.0.1", broker.port) for key in body.coordinator_keys[:1]]
            denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            bad = [Coordinator(key, -1, "", -1, denied, "no") for key in body.coordinator_keys[1:]]
            return FindCoordinatorResponse(coordinators=[*good, *bad])

        def answer(body: write.WriteShareGroupStateRequest) -> write.WriteShareGroupStateResponse:
            (topic,) = body.topics
            return write.WriteShareGroupStateResponse(
                [
                    write.WriteStateResult(
                        topic.topic_id, [write.PartitionResult(topic.partitions[0].partition)]
                    )
                ]
            )

        broker.answers[ApiKey.FIND_COORDINATOR] = find
        broker.answers[ApiKey.WRITE_SHARE_GROUP_STATE] = answer
        async with Cluster(broker.address) as cluster:
            batch = write.StateBatch(0, 4, 2, 1)
            changed = [write.PartitionData(each, 1, 2, 0, 5, [batch]) for each in (0, 1)]
            told = await state_client(cluster).write_state("orders", {ID: changed})
        assert keys == [str(SharePartitionKey("orders", ID, each)) for each in (0, 1)]
        assert told[SharePlace(ID, 0)].error_code == ErrorCode.NONE
        assert told[SharePlace(ID, 1)].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
