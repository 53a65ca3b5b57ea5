"""The traces of the specification (section 10): initial delay 3 s, session 10 s, rebalance timeout 60 s."""

from __future__ import annotations

import pytest

from kohort.coordinator.classic_groups.group import CLASSIC_TYPE
from kohort.protocol import ErrorCode
from tests.coordinator.driver import World

SECOND = 1_000


@pytest.mark.row("10/1")
def test_1_members_arriving_in_the_initial_delay_extend_it_once_each_round() -> None:
    world = World(initial_delay_ms=3 * SECOND)
    start = world.now
    world.advance(1)
    a, join_a = world.new_member()
    world.advance(1_999)
    _, join_b = world.new_member()
    world.advance(start + 3_001 - world.now)
    assert join_a.parked
    assert join_b.parked
    world.advance(2_999)
    assert join_a.parked
    world.advance(1)
    assert world.now == start + 6_001
    assert join_a.reply.generation_id == join_b.reply.generation_id == 1
    assert join_a.reply.leader == join_b.reply.leader == a
    assert world.state() == "CompletingRebalance"


@pytest.mark.row("10/2")
def test_2_a_member_whose_heartbeat_stops_is_removed_and_the_other_goes_on_at_once() -> None:
    world = World()
    a, b = world.stable(2)
    generation = world.groups["g"].generation
    world.advance(6 * SECOND)
    assert world.heartbeat("g", a, generation) == 0
    world.advance(3_999)
    assert b in world.groups["g"].members
    world.advance(1)
    assert b not in world.groups["g"].members
    assert world.heartbeat("g", a, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    rejoined = world.join("g", a)
    assert rejoined.reply.generation_id == generation + 1
    assert [m.member_id for m in rejoined.reply.members] == [a]


@pytest.mark.row("10/3")
def test_3_a_member_that_only_heartbeats_is_dropped_when_the_round_ends() -> None:
    world = World()
    a, b = world.stable(2)
    generation = world.groups["g"].generation
    c, join_c = world.new_member()
    join_a = world.join("g", a)
    for _ in range(19):
        world.advance(3 * SECOND)
        assert world.heartbeat("g", b, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert join_c.parked
    world.advance(3 * SECOND)
    assert join_a.reply.generation_id == join_c.reply.generation_id == generation + 1
    assert {m.member_id for m in join_a.reply.members} == {a, c}
    assert world.heartbeat("g", b, generation) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.row("10/4")
def test_4a_a_leader_that_dies_before_its_sync_is_found_by_its_session() -> None:
    world = World()
    a, b = (world.new_member()[0] for _ in range(2))
    world.advance(0)
    sync_b = world.sync("g", b)
    world.advance(9_999)
    assert sync_b.parked
    world.advance(1)
    assert sync_b.error == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(world.groups["g"].members) == [b]
    assert a not in world.groups["g"].members


@pytest.mark.row("10/4")
def test_4b_a_leader_that_heartbeats_and_never_syncs_is_found_by_the_sync_timer() -> None:
    world = World()
    a, b = (world.new_member()[0] for _ in range(2))
    world.advance(0)
    sync_b = world.sync("g", b)
    for _ in range(59):
        world.advance(SECOND)
        assert world.heartbeat("g", a) == 0
    assert sync_b.parked
    world.advance(SECOND)
    assert sync_b.error == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat("g", a) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("g", b) == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.row("10/5")
def test_5a_after_a_crash_behind_the_write_a_retried_sync_gets_the_assignment() -> None:
    world = World()
    a, b = (world.new_member()[0] for _ in range(2))
    world.advance(0)
    world.sync("g", b)
    world.sync("g", a, assignments={a: b"for a", b: b"for b"})
    world.crash()
    assert world.state() == "Stable"
    assert world.sync("g", b).reply.assignment == b"for b"
    assert world.heartbeat("g", a) == 0


@pytest.mark.row("10/5", "2.3/complete-7")
def test_5b_after_a_crash_before_the_write_the_last_durable_generation_is_current() -> None:
    world = World()
    (a,) = world.stable()
    b, _ = world.new_member()
    world.join("g", a)
    world.hold_writes = True
    world.sync("g", a, 2, {a: b"x", b: b"y"})
    world.sync("g", b, 2)
    world.hold_writes = False
    world.crash()
    assert world.state() == "Stable"
    assert world.sync("g", a, 2).error == ErrorCode.ILLEGAL_GENERATION
    assert world.sync("g", b, 2).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join("g", a).reply.generation_id == 2


@pytest.mark.row("10/6")
def test_6_a_static_leader_that_restarts_keeps_the_generation_and_fences_its_old_id() -> None:
    world = World()
    world.join(instance="i1")
    world.advance(0)
    old = world.groups["g"].static_members["i1"]
    generation = world.settle([old])
    reply = world.join(instance="i1").reply
    assert reply.error_code == 0
    assert reply.generation_id == generation
    assert reply.member_id != old
    assert reply.leader == reply.member_id
    assert reply.skip_assignment
    assert [m.member_id for m in reply.members] == [reply.member_id]
    assert world.heartbeat("g", old, generation, instance="i1") == ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat("g", reply.member_id, generation, instance="i1") == 0


@pytest.mark.row("10/7")
def test_7_when_the_last_member_leaves_the_group_is_empty_and_its_offsets_stay() -> None:
    world = World(offsets_retention_minutes=1)
    (a,) = world.stable()
    assert world.commit_errors("g", {("t", 1): 7}, a, 1) == [0]
    world.advance(9 * SECOND)
    assert world.leave("g", (a, None)).reply.members[0].error_code == 0
    assert world.state() == "Empty"
    assert world.groups["g"].generation == 2
    assert world.reloaded().of_type(CLASSIC_TYPE)["g"].generation == 2
    world.advance(59 * SECOND)
    assert world.fetch() == {("t", 1): 7}


@pytest.mark.row("10/8")
def test_8_the_generation_that_ends_may_commit_until_the_next_one_is_known() -> None:
    world = World()
    (a,) = world.stable()
    b, _ = world.new_member()
    assert world.state() == "PreparingRebalance"
    assert world.commit_errors("g", {("t", 0): 5}, a, 1) == [0]
    world.join("g", a)
    assert world.state() == "CompletingRebalance"
    assert world.commit_errors("g", {("t", 0): 6}, a, 1) == [ErrorCode.ILLEGAL_GENERATION]
    assert world.commit_errors("g", {("t", 0): 6}, b, 2) == [ErrorCode.REBALANCE_IN_PROGRESS]
    assert world.fetch() == {("t", 0): 5}
