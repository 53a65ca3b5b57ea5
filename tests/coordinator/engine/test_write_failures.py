"""What waits for a write goes on when the write has failed, at the time of that."""

from __future__ import annotations

from kohort.protocol import ErrorCode
from tests.coordinator.driver import World


def test_a_member_that_waited_for_a_deletion_joins_when_that_has_failed() -> None:
    world = World()
    world.commit("g")
    world.hold_writes = True
    deleting = world.delete("g")
    joining = world.join("g", member="", instance="i")
    assert (deleting.parked, joining.parked) == (True, True)
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.write()
    assert deleting.error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.hold_writes = False
    world.advance(0)
    assert joining.error == 0
    assert world.state() == "CompletingRebalance"
