"""TxnOffsetCommit: who may commit in a transaction, and what is pending until its marker."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.coordinator import EndMarker
from kohort.coordinator.offsets.commit import resolve_transactional
from kohort.protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from kohort.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordinator.bodies import DIRECTORY
from tests.coordinator.consumer_groups.group_world import World as ConsumerWorld
from tests.coordinator.driver import World, errors_of
from tests.coordinator.memory_log import CONTEXT, MemoryLog, coordinator, fetch

NONE = ErrorCode.NONE
PRODUCER, EPOCH = 7, 3


def body(
    group: str = "g",
    offset: int = 5,
    *,
    topic: str = "t",
    partition: int = 0,
    generation: int = -1,
    member: str = "",
    instance: str | None = None,
) -> TxnOffsetCommitRequest:
    offsets = [TxnOffsetCommitRequestPartition(partition, offset, -1, "")]
    topics = [TxnOffsetCommitRequestTopic(topic, offsets)]
    return TxnOffsetCommitRequest("pay", group, PRODUCER, EPOCH, generation, member, instance, topics)


def commit(world: World, **options: Any) -> int:
    """Commit in the transaction; the error of the partition."""
    request = resolve_transactional(body(**options), DIRECTORY, 100)
    (error,) = errors_of(world.send(ApiKey.TXN_OFFSET_COMMIT, 5, request))
    return int(error)


def committed(world: World) -> int | None:
    entry = world.shard.state.durable.offset("g", TopicPartition("t", 0))
    return None if entry is None else entry.offset


@pytest.mark.parametrize("committed_", [True, False])
def test_an_offset_is_pending_until_the_marker(*, committed_: bool) -> None:
    world = World()
    assert commit(world) == NONE
    durable = world.shard.state.durable
    assert committed(world) is None
    assert durable.is_pending("g", TopicPartition("t", 0))
    world.shard.end_transaction(PRODUCER, committed=committed_)
    assert committed(world) == (5 if committed_ else None)
    assert not durable.is_pending("g", TopicPartition("t", 0))


def test_the_record_belongs_to_the_producer() -> None:
    world = World()
    world.hold_writes = True
    request = resolve_transactional(body(), DIRECTORY, 100)
    world.send(ApiKey.TXN_OFFSET_COMMIT, 5, request)
    (append,) = world.shard._writes.values()
    assert (append.producer_id, append.producer_epoch) == (PRODUCER, EPOCH)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, NONE),
        ({"member": "c-1", "generation": 1}, NONE),
        ({"member": "c-1", "generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"member": "c-1", "generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"member": "nobody", "generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_producer_that_names_a_member_is_checked_as_one(options: dict[str, Any], error: ErrorCode) -> None:
    world = World()
    world.stable()
    assert commit(world, **options) == error


@pytest.mark.parametrize("generation", [-1, -2])
def test_only_one_number_is_no_epoch_for_a_group_of_consumers(generation: int) -> None:
    groups = ConsumerWorld()
    groups.join("m", "t")
    request = resolve_transactional(body(generation=generation), DIRECTORY, 100)
    answer = groups.ask(ApiKey.TXN_OFFSET_COMMIT, 5, request)
    error = answer.topics[0].partitions[0].error_code
    assert error == (NONE if generation == -1 else ErrorCode.UNKNOWN_MEMBER_ID)

    world = World()
    world.stable()
    assert commit(world, generation=generation) == NONE


def test_a_generation_of_a_missing_group_is_refused_in_every_version() -> None:
    assert commit(World(), generation=1, member="m") == ErrorCode.ILLEGAL_GENERATION


def test_the_end_of_a_rebalance_is_not_waited_for() -> None:
    world = World()
    member, *_ = world.new_member("g")
    world.advance(1)
    (group,) = world.groups.values()
    assert group.state_name == "CompletingRebalance"
    plain = world.commit_errors("g", None, member, group.generation)
    assert plain == [ErrorCode.REBALANCE_IN_PROGRESS]
    assert commit(world, member=member, generation=group.generation) == NONE


def test_what_does_not_exist_is_told_partition_by_partition() -> None:
    assert commit(World(), topic="nope") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(World(), partition=99) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_the_coordinator_asks_whether_the_transaction_may_write_once_something_exists() -> None:
    running = coordinator(MemoryLog())
    await running.start()
    asked = []

    async def admit() -> ErrorCode:
        asked.append(True)
        return ErrorCode.INVALID_TXN_STATE

    async def errors(request: TxnOffsetCommitRequest) -> list[int]:
        answer = await running.commit_in_transaction(request, CONTEXT, admit)
        return [partition.error_code for topic in answer.topics for partition in topic.partitions]

    assert await errors(body()) == [ErrorCode.INVALID_TXN_STATE]
    assert await errors(body(topic="nope")) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await errors(body("")) == [ErrorCode.INVALID_GROUP_ID]
    assert len(asked) == 1
    await running.stop()


async def test_a_marker_goes_to_the_log_behind_the_offsets_and_ends_the_transaction() -> None:
    log = MemoryLog()
    running = coordinator(log)
    await running.start()

    async def admit() -> ErrorCode:
        return NONE

    await running.commit_in_transaction(body(offset=8), CONTEXT, admit)
    assert running.open_transactions()
    partition = running.partition_of("g")
    assert await running.write_marker(partition, PRODUCER, EPOCH, EndMarker(True, 2)) == NONE
    assert not running.open_transactions()
    kinds = [(batch.transactional, batch.control) for batch in log.batches[partition]]
    assert kinds == [(True, False), (True, True)]
    (group,) = (await fetch(running, "g")).groups
    assert group.topics[0].partitions[0].committed_offset == 8
    await running.stop()


async def test_a_marker_that_is_not_written_is_told() -> None:
    log = MemoryLog()
    running = coordinator(log)
    marker = EndMarker(True, 2)
    not_running = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await running.write_marker(0, PRODUCER, EPOCH, marker) == not_running
    running.open()
    assert await running.write_marker(0, PRODUCER, EPOCH, marker) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await running.load_all()
    assert await running.write_marker(99, PRODUCER, EPOCH, marker) == ErrorCode.NOT_COORDINATOR
    log.fail = KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, "older than what is there")
    assert await running.write_marker(0, PRODUCER, EPOCH, marker) == ErrorCode.INVALID_PRODUCER_EPOCH
    await running.stop()
