"""The share coordinator over a log in memory: requests about many share partitions, restarts, cuts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kohort.protocol import ApiKey, ErrorCode, KafkaError, SharePartitionKey
from kohort.protocol.messages import initialize_share_group_state as initialize
from kohort.protocol.messages import read_share_group_state as read
from kohort.protocol.messages import write_share_group_state as write
from kohort.share_state import ShareCoordinator, ShareCoordinatorSettings
from kohort.share_state.shards import PruneLog
from tests.coordinator.engine.test_replicas import Replicas, turns
from tests.coordinator.memory_log import MemoryLog

TOPIC = UUID(int=1)
KEYS = [SharePartitionKey("orders", TOPIC, each) for each in range(20)]


@dataclass
class Around:
    """The world around a coordinator: its log, and where it was cut."""

    log: MemoryLog = field(default_factory=MemoryLog)
    cuts: list[tuple[int, int]] = field(default_factory=list)
    may_cut: bool = True
    now_ms: int = 1_700_000_000_000
    leader_epoch: int = 0

    def make(self, **settings: int) -> ShareCoordinator:
        return ShareCoordinator(
            settings=ShareCoordinatorSettings(**settings),
            prune=self._prune,
            partitions_of=lambda topic_id: 20 * (topic_id == TOPIC),
            epoch_of=lambda _partition: self.leader_epoch,
            clock_ms=lambda: self.now_ms,
        )

    def _prune(self, partition: int, cut: PruneLog) -> bool:
        self.cuts.append((partition, cut.before_offset))
        return self.may_cut

    async def start(self, **settings: int) -> ShareCoordinator:
        coordinator = self.make(**settings)
        await coordinator.start(self.log)
        return coordinator


async def begin(coordinator: ShareCoordinator) -> None:
    rows = [(key, initialize.PartitionData(key.partition, 1, 0)) for key in KEYS]
    answers = await coordinator.answer(ApiKey.INITIALIZE_SHARE_GROUP_STATE, rows)
    assert [row.error_code for row in answers] == [ErrorCode.NONE] * len(KEYS)


async def test_rows_are_answered_in_their_order_wherever_their_shards_are() -> None:
    coordinator = await Around().start()
    await begin(coordinator)
    rows = [(key, read.PartitionData(key.partition, 0)) for key in reversed(KEYS)]
    answers = await coordinator.answer(ApiKey.READ_SHARE_GROUP_STATE, rows)
    assert [row.partition for row in answers] == [key.partition for key in reversed(KEYS)]
    assert {row.state_epoch for row in answers} == {1}
    coordinator.stop()


async def test_the_next_run_has_what_was_written() -> None:
    around = Around()
    coordinator = await around.start()
    await begin(coordinator)
    batch = write.StateBatch(0, 4, 2, 1)
    row = write.PartitionData(3, 1, 0, 0, 5, [batch])
    await coordinator.answer(ApiKey.WRITE_SHARE_GROUP_STATE, [(KEYS[3], row)])
    coordinator.stop()
    coordinator = await around.start()
    (answer,) = await coordinator.answer(ApiKey.READ_SHARE_GROUP_STATE, [(KEYS[3], read.PartitionData(3, 0))])
    assert answer.state_batches == (batch,)
    coordinator.stop()


async def test_one_row_is_answered_as_a_request_with_it_alone() -> None:
    around = Around()
    row, key = write.PartitionData(0, 1, 0, 0, 5, [write.StateBatch(0, 4, 2, 1)]), KEYS[0]
    coordinator = around.make()
    answer = await coordinator.answer_one(ApiKey.WRITE_SHARE_GROUP_STATE, key, str(key), row)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    coordinator = await around.start()
    await begin(coordinator)
    answer = await coordinator.answer_one(ApiKey.WRITE_SHARE_GROUP_STATE, key, str(key), row)
    assert answer == write.PartitionResult(0)
    (found,) = await coordinator.answer(ApiKey.READ_SHARE_GROUP_STATE, [(key, read.PartitionData(0, 0))])
    assert found.state_batches == ((0, 4, 2, 1),)
    coordinator.stop()


async def test_two_writes_of_one_request_about_one_share_partition_count_in_their_order() -> None:
    coordinator = await Around().start()
    await begin(coordinator)
    rows = [
        (KEYS[0], write.PartitionData(0, 1, 0, start, -1, [write.StateBatch(0, 9, state, 1)]))
        for start, state in ((0, 0), (2, 2))
    ]
    answers = await coordinator.answer(ApiKey.WRITE_SHARE_GROUP_STATE, rows)
    assert [row.error_code for row in answers] == [ErrorCode.NONE] * 2
    (found,) = await coordinator.answer(ApiKey.READ_SHARE_GROUP_STATE, [(KEYS[0], read.PartitionData(0, 0))])
    assert (found.start_offset, found.state_batches) == (2, ((2, 9, 2, 1),))
    coordinator.stop()


async def test_a_coordinator_that_was_replaced_and_does_not_know_it_reads_nothing() -> None:
    around, replicas = Around(MemoryLog(1)), Replicas()
    coordinator = around.make()
    coordinator.start_replicated(around.log, replicas)

    async def ask(api_key: ApiKey, row: object) -> asyncio.Task[list[Any]]:
        asked = asyncio.create_task(coordinator.answer(api_key, [(KEYS[0], row)]))
        await turns()
        return asked

    loading = asyncio.create_task(coordinator.load(0))
    await turns()
    replicas.settle()
    await loading
    for api_key, row in (
        (ApiKey.INITIALIZE_SHARE_GROUP_STATE, initialize.PartitionData(0, 1, 0)),
        (ApiKey.READ_SHARE_GROUP_STATE, read.PartitionData(0, 0)),
    ):
        asked = await ask(api_key, row)
        replicas.settle()
        assert [each.error_code for each in await asked] == [ErrorCode.NONE]
    # another broker leads, which this one hears late: its replicas take nothing from it
    asked = await ask(ApiKey.READ_SHARE_GROUP_STATE, read.PartitionData(0, 0))
    assert not asked.done()
    replicas.settle(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "replaced"))
    assert [each.error_code for each in await asked] == [ErrorCode.NOT_COORDINATOR]
    coordinator.stop()


async def test_before_its_topic_is_there_it_coordinates_nothing() -> None:
    coordinator = Around().make()
    row = initialize.PartitionData(0, 1, 0)
    (answer,) = await coordinator.answer(ApiKey.INITIALIZE_SHARE_GROUP_STATE, [(KEYS[0], row)])
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    coordinator.topics_deleted([TOPIC])
    coordinator.stop()


async def test_state_of_a_deleted_topic_is_deleted_in_all_shards() -> None:
    around = Around()
    coordinator = await around.start()
    await begin(coordinator)
    coordinator.topics_deleted([TOPIC])
    rows = [(key, read.PartitionData(key.partition, 0)) for key in KEYS]
    answers = await coordinator.answer(ApiKey.READ_SHARE_GROUP_STATE, rows)
    assert {row.error_code for row in answers} == {ErrorCode.INVALID_REQUEST}
    coordinator.stop()


async def test_the_owner_is_told_where_to_cut_the_log() -> None:
    around = Around(MemoryLog(1))
    coordinator = await around.start(
        share_coordinator_state_topic_prune_interval_ms=20,
        share_coordinator_snapshot_update_records_per_snapshot=0,
    )
    rows = [(KEYS[0], initialize.PartitionData(0, 1, 0))]
    await coordinator.answer(ApiKey.INITIALIZE_SHARE_GROUP_STATE, rows)
    await coordinator.answer(ApiKey.WRITE_SHARE_GROUP_STATE, [(KEYS[0], write.PartitionData(0, 1, 0, 0))])
    async with asyncio.timeout(5):
        while not around.cuts:
            around.now_ms += 10
            await asyncio.sleep(0.01)
    assert around.cuts == [(0, 1)]
    assert coordinator.pruned_offsets() == {0: 1}
    coordinator.stop()


async def test_a_cut_that_cannot_be_made_yet_is_asked_for_again() -> None:
    around = Around(MemoryLog(1), may_cut=False)
    coordinator = await around.start(
        share_coordinator_state_topic_prune_interval_ms=20,
        share_coordinator_snapshot_update_records_per_snapshot=0,
    )
    rows = [(KEYS[0], initialize.PartitionData(0, 1, 0))]
    await coordinator.answer(ApiKey.INITIALIZE_SHARE_GROUP_STATE, rows)
    await coordinator.answer(ApiKey.WRITE_SHARE_GROUP_STATE, [(KEYS[0], write.PartitionData(0, 1, 0, 0))])
    async with asyncio.timeout(5):
        while len(around.cuts) < 2:
            around.now_ms += 10
            await asyncio.sleep(0.01)
    assert around.cuts == [(0, 1), (0, 1)]
    assert coordinator.pruned_offsets() == {}, "nothing was cut"
    coordinator.stop()
