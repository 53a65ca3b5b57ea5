"""The rows of the transition table (specification 2.4), each named by its number.

Covers: coordinator/classic_groups/group.py.
"""

from __future__ import annotations

import pytest

from kohort.coordinator import GroupRemoved
from kohort.offsets_topic import GroupDeleted, GroupStored, OffsetDeleted, decode
from kohort.protocol import ErrorCode
from kohort.statemachine import GroupState
from tests.coordinator.bodies import REBALANCE_MS, SESSION_MS, protocols, subscription
from tests.coordinator.driver import World, errors_of


def last_group_record(world: World) -> GroupStored:
    return next(r for pair in reversed(world.log) if isinstance(r := decode(*pair), GroupStored))


@pytest.mark.row("2.4/1", "5.4/create")
def test_row_1_a_first_join_creates_the_group_and_its_record() -> None:
    world = World()
    assert world.join(type_="consumer").error == ErrorCode.MEMBER_ID_REQUIRED
    assert world.state() == "Empty"
    assert last_group_record(world) == GroupStored("g", "", 0, None, None, world.now)


@pytest.mark.row("2.4/1")
def test_row_1_if_that_record_cannot_be_written_the_group_never_was() -> None:
    world = World()
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    parked = world.join(version=3)
    assert parked.error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.state() == "Dead"
    assert world.shard.next_deadline() is not None
    assert len(world.shard.timers) == 1, "only the retention timer is left"


@pytest.mark.row("2.4/2", "1.4/simple", "3.7/1")
def test_row_2_a_commit_without_generation_creates_a_simple_group() -> None:
    world = World()
    assert world.commit_errors("s", {("t", 0): 3}) == [0]
    (listed,) = world.list_groups()
    assert (listed.group_id, listed.protocol_type, listed.group_state) == ("s", "", "Empty")
    assert len(world.log) == 1, "only the offset is written"


@pytest.mark.row("2.4/3")
def test_row_3_a_group_comes_back_stable_or_empty_with_fresh_sessions() -> None:
    world = World()
    (a,) = world.stable()
    world.advance(SESSION_MS - 1)
    world.crash()
    assert world.state() == "Stable"
    world.advance(SESSION_MS - 1)
    assert world.heartbeat("g", a) == 0
    world.leave("g", (a, None))
    world.crash()
    assert world.state() == "Empty"


@pytest.mark.row("2.4/4")
def test_row_4_the_first_member_starts_the_initial_delay() -> None:
    world = World(initial_delay_ms=3_000)
    a, parked = world.new_member()
    assert world.state() == "PreparingRebalance"
    world.advance(2_999)
    assert parked.parked
    assert world.shard.timers.deadline(("session", "g", a)) == world.now - 2_999 + 300_000
    world.advance(1)
    assert parked.reply.generation_id == 1


@pytest.mark.row("2.4/4")
def test_row_4_the_first_join_is_never_answered_inside_its_own_request() -> None:
    world = World(initial_delay_ms=0)
    _, parked = world.new_member()
    assert parked.parked
    world.advance(0)
    assert not parked.parked


@pytest.mark.row("2.4/5")
def test_row_5_an_id_that_was_handed_out_holds_a_later_round_open() -> None:
    world = World()
    (a,) = world.stable()
    pending = world.join().reply.member_id
    parked = world.join("g", a)
    assert parked.parked, "the pending id may still come"
    assert world.state() == "PreparingRebalance"
    joined = world.join("g", pending)
    assert parked.reply.generation_id == joined.reply.generation_id == 2


@pytest.mark.row("2.4/5")
def test_row_5_until_that_id_expires() -> None:
    world = World()
    (a,) = world.stable()
    world.join(session_ms=6_000)
    parked = world.join("g", a)
    world.advance(5_999)
    assert parked.parked
    world.advance(1)
    assert parked.reply.generation_id == 2


@pytest.mark.row("2.4/6", "2.4/7")
def test_rows_6_and_7_members_arriving_in_the_delay_prolong_it_up_to_the_rebalance_timeout() -> None:
    world = World(initial_delay_ms=3_000)
    _, first = world.new_member(rebalance_ms=8_000)
    for _ in range(3):
        world.advance(2_500)
        world.new_member(rebalance_ms=8_000)
    world.advance(8_000 - 7_500 - 1)
    assert first.parked
    world.advance(1)
    assert len(first.reply.members) == 4


@pytest.mark.row("2.4/8")
def test_row_8_the_last_member_in_ends_the_round() -> None:
    world = World()
    a, b = world.stable(2)
    world.new_member()
    parked = world.join("g", a)
    assert parked.parked
    world.join("g", b)
    assert len(parked.reply.members) == 3


@pytest.mark.row("2.4/9")
def test_row_9_a_round_that_nobody_is_left_in_ends_empty() -> None:
    world = World()
    world.new_member()
    member = next(iter(world.groups["g"].members))
    world.leave("g", (member, None))
    assert world.state() == "PreparingRebalance", "the initial delay is waited out"
    world.advance(0)
    assert world.state() == "Empty"
    assert last_group_record(world).generation == 1
    assert ("join", "g") not in world.shard.timers


@pytest.mark.row("2.4/10")
def test_row_10_absent_static_members_alone_keep_the_round_open() -> None:
    world = World()
    (a,) = world.stable(rebalance_ms=5_000)
    world.join(instance="i", rebalance_ms=5_000)
    world.join("g", a, rebalance_ms=5_000)
    static = world.groups["g"].static_members["i"]
    world.settle([a, static])
    world.leave("g", (a, None))
    assert world.state() == "PreparingRebalance"
    world.advance(5_000)
    assert world.state() == "PreparingRebalance"
    assert world.shard.timers.deadline(("join", "g")) == world.now + 5_000


@pytest.mark.row("2.4/11", "3.3/preparing")
def test_row_11_a_second_join_of_a_member_answers_the_first_kafka_20938() -> None:
    world = World()
    a, _ = world.stable(2)
    world.new_member()
    first = world.join("g", a)
    second = world.join("g", a)
    assert first.error == ErrorCode.NOT_COORDINATOR
    assert second.parked


@pytest.mark.row("2.4/12")
def test_row_12_the_assignment_is_durable_before_anyone_gets_it() -> None:
    world = World()
    a, b = (world.new_member()[0] for _ in range(2))
    world.advance(0)
    world.hold_writes = True
    follower = world.sync("g", b)
    leader = world.sync("g", a, assignments={a: b"1", b: b"2"})
    assert leader.parked
    assert follower.parked
    assert world.state() == "CompletingRebalance"
    world.write()
    assert (leader.reply.assignment, follower.reply.assignment) == (b"1", b"2")
    assert world.state() == "Stable"
    assert [m.assignment for m in last_group_record(world).members] == [b"1", b"2"]


@pytest.mark.row("2.4/13")
def test_row_13_an_assignment_that_cannot_be_written_starts_over() -> None:
    world = World()
    a, b = (world.new_member()[0] for _ in range(2))
    world.advance(0)
    follower = world.sync("g", b)
    world.fail_next_write = ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader = world.sync("g", a, assignments={})
    assert leader.error == follower.error == ErrorCode.NOT_COORDINATOR
    assert world.state() == "PreparingRebalance"
    assert world.settle([a, b]) == 2


@pytest.mark.row("2.4/13")
def test_row_13_a_write_that_fails_late_does_not_touch_the_next_generation() -> None:
    world = World()
    (a,) = (world.new_member()[0],)
    world.advance(0)
    world.hold_writes = True
    world.sync("g", a, assignments={})
    world.new_member()
    rejoined = world.join("g", a)
    assert rejoined.reply.generation_id == 2
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.write()
    assert world.state() == "CompletingRebalance"


@pytest.mark.row("2.4/14")
def test_row_14_followers_that_synced_are_no_longer_waited_for() -> None:
    world = World()
    a, b = (world.new_member()[0] for _ in range(2))
    world.advance(0)
    world.sync("g", b)
    assert list(world.groups["g"].pending_sync) == [a]
    world.sync("g", a)
    assert ("sync", "g") not in world.shard.timers


@pytest.mark.row("2.4/15", "2.3/prepare-1", "2.3/prepare-2")
def test_row_15_a_new_member_while_completing_starts_over() -> None:
    world = World()
    a, b = (world.new_member()[0] for _ in range(2))
    world.advance(0)
    parked = world.sync("g", b)
    world.new_member()
    assert parked.error == ErrorCode.REBALANCE_IN_PROGRESS
    assert (parked.reply.protocol_type, parked.reply.protocol_name) == (None, None)
    assert world.state() == "PreparingRebalance"
    assert ("sync", "g") not in world.shard.timers
    assert {a, b} < world.groups["g"].members.keys()


@pytest.mark.row("2.4/15")
def test_row_15_changed_metadata_while_completing_starts_over() -> None:
    world = World()
    a, _ = (world.new_member()[0] for _ in range(2))
    world.advance(0)
    assert world.join("g", a, offers=protocols(range=subscription("u"))).parked
    assert world.state() == "PreparingRebalance"


@pytest.mark.row("2.4/16")
def test_row_16_the_same_metadata_while_completing_is_answered_again() -> None:
    world = World()
    a, b = (world.new_member()[0] for _ in range(2))
    world.advance(0)
    again = world.join("g", a).reply
    assert (again.generation_id, len(again.members)) == (1, 2)
    assert world.join("g", b).reply.members == []
    assert world.state() == "CompletingRebalance"


@pytest.mark.row("2.4/17")
def test_row_17_a_leave_starts_a_rebalance() -> None:
    world = World()
    a, b = world.stable(2)
    world.leave("g", (b, None))
    assert world.state() == "PreparingRebalance"
    assert world.heartbeat("g", a) == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.row("2.4/17")
def test_row_17_a_leave_while_completing_answers_the_parked_syncs() -> None:
    world = World()
    a, b = (world.new_member()[0] for _ in range(2))
    world.advance(0)
    parked = world.sync("g", b)
    world.leave("g", (a, None))
    assert parked.error == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.row("2.4/18")
def test_row_18_who_does_not_sync_in_time_goes_even_if_static() -> None:
    world = World()
    a, _ = world.new_member(session_ms=100_000)
    world.join(instance="i", session_ms=100_000)
    world.advance(0)
    assert world.sync("g", a).error == 0
    assert world.state() == "Stable"
    world.advance(REBALANCE_MS)
    assert world.state() == "PreparingRebalance"
    assert list(world.groups["g"].members) == [a]


@pytest.mark.row("2.4/19", "3.3/leader")
def test_row_19_the_leader_can_force_a_rebalance() -> None:
    world = World()
    a, b = world.stable(2)
    assert world.join("g", a).parked
    assert world.state() == "PreparingRebalance"
    assert world.heartbeat("g", b) == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.row("2.4/19", "2.3/prepare-5")
def test_row_19_a_lone_member_that_changes_is_answered_at_once() -> None:
    world = World()
    (a,) = world.stable()
    changed = world.join("g", a, offers=protocols(range=subscription("u")))
    assert changed.reply.generation_id == 2


@pytest.mark.row("2.4/20")
def test_row_20_a_follower_that_changed_nothing_is_answered_at_once() -> None:
    world = World()
    a, b = world.stable(2)
    again = world.join("g", b).reply
    assert (again.generation_id, again.leader, again.members) == (1, a, [])
    assert world.state() == "Stable"


@pytest.mark.row("2.4/21")
def test_row_21_a_static_member_that_returns_unchanged_is_durable_first() -> None:
    world = World()
    world.join(instance="i")
    world.advance(0)
    world.settle([world.groups["g"].static_members["i"]])
    world.hold_writes = True
    back = world.join(instance="i")
    assert back.parked
    world.write()
    assert back.reply.generation_id == 1
    assert last_group_record(world).members[0].member_id == back.reply.member_id
    assert ("session", "g", back.reply.member_id) in world.shard.timers


@pytest.mark.row("2.4/22")
def test_row_22_a_static_member_that_changes_the_protocol_rebalances() -> None:
    world = World()
    both = protocols(range=subscription("t"), roundrobin=subscription("t"))
    world.join(instance="i", offers=both)
    a, _ = world.new_member(offers=both)
    world.advance(0)
    world.settle([world.groups["g"].static_members["i"], a])
    world.join(instance="i", offers=protocols(roundrobin=subscription("t")))
    assert world.state() == "PreparingRebalance"


@pytest.mark.row("2.4/23")
def test_row_23_a_loaded_group_above_the_limit_rebalances_and_sheds_members() -> None:
    world = World()
    members = world.stable(3)
    world.settings.group_max_size = 2
    world.crash()
    assert world.state() == "PreparingRebalance"
    joins = [world.join("g", member) for member in members]
    assert joins[2].error == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert joins[0].reply.generation_id == joins[1].reply.generation_id == 2


@pytest.mark.row("2.4/24")
def test_row_24_deletion_writes_tombstones_for_the_offsets_then_the_group() -> None:
    world = World()
    (a,) = world.stable()
    world.commit("g", {("t", 0): 1, ("t", 1): 1}, a, 1)
    world.leave("g", (a, None))
    before = len(world.log)
    assert world.delete().error == 0
    records = [decode(*pair) for pair in world.log[before:]]
    assert records == [OffsetDeleted("g", "t", 0), OffsetDeleted("g", "t", 1), GroupDeleted("g")]
    assert world.state() == "Dead"
    assert world.reloaded().group_ids() == {}
    assert isinstance(world.notes[-1], GroupRemoved)


@pytest.mark.row("2.4/25")
def test_row_25_unloading_answers_everyone_who_is_parked() -> None:
    world = World()
    world.new_member("preparing")
    parked_join = world.calls[-1]
    a, b = (world.new_member("completing")[0] for _ in range(2))
    world.new_member("writing")
    world.advance(0)
    parked_join = world.new_member("preparing")[1]
    parked_sync = world.sync("completing", b)
    world.hold_writes = True
    commit = world.commit("simple")
    fetch = world.fetch_call("simple")
    groups = list(world.groups.values())
    world.unload()
    assert parked_join.error == parked_sync.error == fetch.error == ErrorCode.NOT_COORDINATOR
    assert errors_of(commit) == [ErrorCode.NOT_COORDINATOR]
    assert {group.state for group in groups} == {GroupState.DEAD}
    assert world.shard.next_deadline() is None
    assert world.heartbeat("completing", a) == ErrorCode.NOT_COORDINATOR
    assert all(not call.parked for call in world.calls)
