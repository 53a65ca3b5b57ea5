"""Which requests to initialize and to delete a state come late, and what becomes of them."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol import ApiKey, ErrorCode, SharePartitionKey
from kohort.protocol.messages import delete_share_group_state as delete
from kohort.protocol.messages import initialize_share_group_state as initialize
from kohort.protocol.messages import read_share_group_state as read
from kohort.protocol.messages import write_share_group_state as write
from kohort.share_state import ShareCoordinator
from kohort.share_state.order import Arrival, StateOrder
from tests.share_state.test_coordinator import TOPIC, Around

KEY = SharePartitionKey("orders", TOPIC, 0)


async def ask_initialize(coordinator: ShareCoordinator, start: int, order: int, epoch: int = 1) -> int:
    row = initialize.PartitionData(0, epoch, start, order)
    (told,) = await coordinator.answer(ApiKey.INITIALIZE_SHARE_GROUP_STATE, [(KEY, row)])
    return int(told.error_code)


async def ask_delete(coordinator: ShareCoordinator, order: int) -> int:
    row = delete.PartitionData(0, order)
    (told,) = await coordinator.answer(ApiKey.DELETE_SHARE_GROUP_STATE, [(KEY, row)])
    return int(told.error_code)


async def write_start(coordinator: ShareCoordinator, start: int) -> None:
    row = write.PartitionData(0, 1, 0, start, 0)
    (told,) = await coordinator.answer(ApiKey.WRITE_SHARE_GROUP_STATE, [(KEY, row)])
    assert not told.error_code


async def read_start(coordinator: ShareCoordinator) -> int:
    rows = [(KEY, read.PartitionData(0, 0))]
    (told,) = await coordinator.answer(ApiKey.READ_SHARE_GROUP_STATE, rows)
    assert not told.error_code
    return int(told.start_offset)


async def test_a_deletion_that_comes_late_does_not_delete_the_state_that_followed() -> None:
    coordinator = await Around().start()
    await ask_initialize(coordinator, 0, 1)
    assert await ask_delete(coordinator, 2) == ErrorCode.NONE
    assert await ask_initialize(coordinator, 5, 3) == ErrorCode.NONE
    assert await ask_delete(coordinator, 2) == ErrorCode.FENCED_STATE_EPOCH
    assert await read_start(coordinator) == 5
    coordinator.stop()


async def test_what_was_carried_out_is_answered_again_and_changes_nothing() -> None:
    coordinator = await Around().start()
    assert await ask_initialize(coordinator, 3, 1) == ErrorCode.NONE
    await write_start(coordinator, 8)
    assert await ask_initialize(coordinator, 3, 1) == ErrorCode.NONE
    assert await read_start(coordinator) == 8
    assert await ask_initialize(coordinator, 3, 2) == ErrorCode.NONE
    assert await read_start(coordinator) == 3, "offsets were altered once more"
    coordinator.stop()


async def test_what_was_refused_is_carried_out_when_it_comes_again() -> None:
    coordinator = await Around().start()
    assert await ask_initialize(coordinator, 3, 1, epoch=5) == ErrorCode.NONE
    assert await ask_initialize(coordinator, 4, 2, epoch=4) == ErrorCode.FENCED_STATE_EPOCH
    assert await ask_initialize(coordinator, 4, 2, epoch=5) == ErrorCode.NONE
    assert await read_start(coordinator) == 4
    coordinator.stop()


async def test_what_was_carried_out_is_not_answered_by_who_has_the_state_no_more() -> None:
    around = Around()
    coordinator = await around.start()
    assert await ask_initialize(coordinator, 3, 1) == ErrorCode.NONE
    for partition in range(around.log.partition_count):
        coordinator.unload(partition)
    # another broker may have begun the state anew since
    assert await ask_initialize(coordinator, 3, 1) == ErrorCode.NOT_COORDINATOR
    coordinator.stop()


async def test_a_deletion_that_was_sent_before_another_broker_had_the_state_meanwhile_is_refused() -> None:
    around = Around(leader_epoch=5)
    coordinator = await around.start()
    assert await ask_initialize(coordinator, 3, 2) == ErrorCode.NONE
    around.leader_epoch = 7
    # the broker of epoch 6 has carried it out, and begun the state anew
    row = delete.PartitionData(0, 3, 5)
    (told,) = await coordinator.answer(ApiKey.DELETE_SHARE_GROUP_STATE, [(KEY, row)])
    assert told.error_code == ErrorCode.NOT_COORDINATOR
    assert await read_start(coordinator) == 3
    (told,) = await coordinator.answer(
        ApiKey.DELETE_SHARE_GROUP_STATE, [(KEY, row._replace(coordinator_epoch=7))]
    )
    assert told.error_code == ErrorCode.NONE
    coordinator.stop()


async def test_requests_without_a_number_are_taken_as_they_come() -> None:
    coordinator = await Around().start()
    assert await ask_initialize(coordinator, 3, 7) == ErrorCode.NONE
    assert await ask_delete(coordinator, -1) == ErrorCode.NONE
    assert await ask_initialize(coordinator, 4, -1) == ErrorCode.NONE
    assert await read_start(coordinator) == 4
    coordinator.stop()


def test_the_newest_share_partitions_are_remembered() -> None:
    order = StateOrder(2)
    keys = [SharePartitionKey("g", UUID(int=1), number) for number in range(3)]
    for key in keys[:2]:
        assert order.admit(key, 2) is Arrival.NEXT
    assert order.admit(keys[0], 3) is Arrival.NEXT
    assert order.admit(keys[2], 2) is Arrival.NEXT
    assert order.admit(keys[0], 2) is Arrival.LATE
    assert order.admit(keys[1], 1) is Arrival.NEXT, "it was forgotten"
    assert repr(order) == "<StateOrder: 2 share partitions>"
