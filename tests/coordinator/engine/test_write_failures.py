"""What waits for a write goes on when the write has failed, at the time of that."""

from __future__ import annotations

from kohort.protocol import ErrorCode
from tests.coordinator.driver import World, errors_of


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


def test_what_waits_for_a_write_when_its_shard_goes_is_sent_to_look_for_it() -> None:
    world = World()
    world.commit("g")
    world.hold_writes = True
    committing, deleting, reading = world.commit("g"), world.delete("g"), world.fetch_call("g")
    assert (committing.parked, deleting.parked, reading.parked) == (True, True, True)
    world.unload()
    assert errors_of(committing) == [ErrorCode.NOT_COORDINATOR]
    assert (deleting.error, reading.reply.error_code) == (ErrorCode.NOT_COORDINATOR,) * 2
