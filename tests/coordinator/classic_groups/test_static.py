"""Static members (KIP-345): replacement, fencing, and what a returning leader is told at each version.

Covers: coordinator/classic_groups/members.py.
"""

from __future__ import annotations

import pytest

from kohort.coordinator import MemberReplaced
from kohort.coordinator.classic_groups import static
from kohort.protocol import ErrorCode, Subscription, encode_subscription
from tests.coordinator.bodies import RANGE_T, protocols, subscription
from tests.coordinator.driver import World


def group_with_static(world: World) -> tuple[str, str]:
    """A Stable group of a static leader "i" and a dynamic follower."""
    world.join(instance="i")
    follower, _ = world.new_member()
    world.advance(0)
    returned = world.groups["g"].static_members["i"]
    world.settle([returned, follower])
    return returned, follower


@pytest.mark.row("3.3/static")
@pytest.mark.parametrize("version", [5, 9])
def test_a_static_member_joins_in_one_step(version: int) -> None:
    assert World().join(instance="i", version=version).parked


@pytest.mark.row("2.9/4", "3.1/JoinGroup-v9")
@pytest.mark.parametrize("version", [5, 6, 7, 8])
def test_below_version_9_a_returning_leader_believes_it_follows(version: int) -> None:
    world = World()
    old, _ = group_with_static(world)
    reply = world.join(instance="i", version=version).reply
    assert (reply.leader, reply.members, reply.skip_assignment) == (old, (), False)
    assert reply.member_id == world.groups["g"].leader_id


@pytest.mark.row("2.9/4", "3.1/JoinGroup-v9")
def test_from_version_9_it_leads_and_leaves_the_assignment_alone_kip_814() -> None:
    world = World()
    group_with_static(world)
    reply = world.join(instance="i", version=9).reply
    assert (reply.leader, reply.skip_assignment, len(reply.members)) == (reply.member_id, True, 2)


@pytest.mark.row("2.9/4")
def test_a_returning_follower_is_told_the_leader_and_no_members() -> None:
    world = World()
    leader, _ = world.new_member()
    world.join(instance="i")
    world.advance(0)
    world.settle([leader, world.groups["g"].static_members["i"]])
    reply = world.join(instance="i").reply
    assert (reply.leader, reply.skip_assignment, reply.members) == (leader, False, ())


@pytest.mark.row("2.9/1")
def test_its_assignment_waits_for_it_under_the_new_id() -> None:
    world = World()
    old, _ = group_with_static(world)
    reply = world.join(instance="i").reply
    synced = world.sync("g", reply.member_id, reply.generation_id, instance="i")
    assert synced.reply.assignment == old.encode()


@pytest.mark.row("3.0/check-member", "3.3/other", "1.6/2")
def test_the_old_id_is_fenced_everywhere() -> None:
    world = World()
    old, _ = group_with_static(world)
    world.join(instance="i")
    assert world.heartbeat("g", old, instance="i") == ErrorCode.FENCED_INSTANCE_ID
    assert world.sync("g", old, instance="i").error == ErrorCode.FENCED_INSTANCE_ID
    assert world.join("g", old, instance="i").error == ErrorCode.FENCED_INSTANCE_ID
    assert world.commit_errors("g", None, old, 1, instance="i") == [ErrorCode.FENCED_INSTANCE_ID]
    left = world.leave("g", (old, "i")).reply
    assert left.members[0].error_code == ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.row("3.0/check-member")
def test_the_old_id_without_its_instance_id_is_unknown() -> None:
    world = World()
    old, _ = group_with_static(world)
    world.join(instance="i")
    assert world.heartbeat("g", old) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.row("2.9/1", "1.6/7")
def test_a_parked_join_of_the_old_id_is_fenced_while_preparing() -> None:
    world = World()
    first = world.join(instance="i")
    second = world.join(instance="i")
    assert first.error == ErrorCode.FENCED_INSTANCE_ID
    assert second.parked
    world.advance(0)
    assert second.reply.generation_id == 1


@pytest.mark.row("2.9/3", "9/34")
def test_while_completing_the_round_starts_over_and_the_old_sync_is_fenced_kafka_9801() -> None:
    world = World()
    leader, _ = world.new_member()
    world.join(instance="i")
    world.advance(0)
    old = world.groups["g"].static_members["i"]
    parked = world.sync("g", old, instance="i")
    assert world.join(instance="i").parked
    assert parked.error == ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat("g", leader) == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.row("2.9/topics", "9/32")
def test_other_topics_rebalance_although_the_protocol_stays_kafka_12759() -> None:
    world = World()
    group_with_static(world)
    assert world.join(instance="i", offers=protocols(range=subscription("t", "u"))).parked
    assert world.state() == "PreparingRebalance"


@pytest.mark.row("2.9/topics")
def test_another_generation_or_owned_partitions_in_the_same_subscription_do_not() -> None:
    world = World()
    group_with_static(world)
    newer = encode_subscription(Subscription(("t",), b"x", generation=7), version=2)
    assert world.join(instance="i", offers=protocols(range=newer)).error == 0
    assert world.state() == "Stable"


@pytest.mark.row("2.9/topics")
def test_for_other_protocol_types_the_bytes_decide() -> None:
    world = World()
    world.join(instance="i", type_="connect", offers=protocols(default=b"url-1"))
    world.advance(0)
    world.settle([world.groups["g"].static_members["i"]])
    assert world.join(instance="i", type_="connect", offers=protocols(default=b"url-1")).error == 0
    changed = world.join(instance="i", type_="connect", offers=protocols(default=b"url-2"))
    assert changed.reply.generation_id == 2


@pytest.mark.row("2.9/5")
def test_a_replacement_that_cannot_be_written_is_undone() -> None:
    world = World()
    old, _ = group_with_static(world)
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    refused = world.join(instance="i", session_ms=20_000, host="/10.0.0.1").reply
    assert (refused.error_code, refused.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    assert world.heartbeat("g", old, instance="i") == 0
    member = world.groups["g"].members[old]
    assert (member.session_timeout_ms, member.client_host) == (10_000, "/127.0.0.1")
    assert world.groups["g"].leader_id == old


def test_a_rebalance_during_the_write_takes_the_parked_join_with_it() -> None:
    world = World()
    _, follower = group_with_static(world)
    world.hold_writes = True
    back = world.join(instance="i")
    world.leave("g", (follower, None))
    assert back.reply.generation_id == 2
    world.write_all()
    assert world.state() == "CompletingRebalance"


def test_the_session_of_a_returned_member_runs_from_its_answer_on_however_long_the_write_took() -> None:
    world = World()
    _, follower = group_with_static(world)
    world.hold_writes = True
    back = world.join(instance="i")
    for _ in range(4):
        world.advance(4_000)
        assert world.heartbeat("g", follower) == 0
    assert back.parked
    world.write()
    assert back.error == 0
    world.advance(9_000)
    assert world.heartbeat("g", follower) == 0
    assert back.reply.member_id in world.groups["g"].members
    world.advance(1_001)
    assert back.reply.member_id not in world.groups["g"].members


@pytest.mark.row("2.9/2")
def test_the_session_of_a_returned_member_runs_with_its_new_timeout() -> None:
    world = World()
    group_with_static(world)
    member = world.join(instance="i", session_ms=30_000).reply.member_id
    assert world.shard.timers.deadline(("session", "g", member)) == world.now + 30_000


@pytest.mark.row("2.9/pending-sync")
def test_the_sync_timer_knows_a_replaced_member_by_its_new_id() -> None:
    world = World()
    leader, _ = world.new_member(session_ms=100_000)
    world.join(instance="i", session_ms=100_000)
    world.advance(0)
    world.sync("g", leader)
    assert world.state() == "Stable"
    back = world.join(instance="i", session_ms=100_000).reply
    assert list(world.groups["g"].pending_sync) == [back.member_id]
    assert world.sync("g", back.member_id, instance="i").error == 0
    world.advance(60_000)
    assert world.state() == "Stable"


@pytest.mark.row("2.9/absent", "1.6/4")
def test_an_absent_static_member_keeps_its_seat_and_is_not_waited_for_at_sync() -> None:
    world = World()
    static, follower = group_with_static(world)
    world.join("g", follower, offers=protocols(range=subscription("u")))
    for _ in range(12):
        world.advance(5_000)
        world.heartbeat("g", static, instance="i")
    live = world.groups["g"]
    assert live.state.value == "CompletingRebalance"
    assert static in live.members
    assert list(live.pending_sync) == [follower]
    assert live.leader_id == follower, "the leader must be one that joined"


def test_a_return_that_cannot_be_written_leaves_a_later_one_alone() -> None:
    world = World()
    group_with_static(world)
    world.hold_writes = True
    first, second = world.join(instance="i"), world.join(instance="i")
    assert first.error == ErrorCode.FENCED_INSTANCE_ID
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.write()
    assert second.parked
    world.write()
    assert second.error == 0
    assert world.groups["g"].static_members["i"] == second.reply.member_id


@pytest.mark.row("2.9/client")
def test_who_came_back_from_where_is_noted() -> None:
    world = World()
    old, _ = group_with_static(world)
    new = world.join(instance="i", host="/10.0.0.9").reply.member_id
    note = next(note for note in reversed(world.notes) if isinstance(note, MemberReplaced))
    assert (note.instance_id, note.old_member, note.member, note.client_host) == ("i", old, new, "/10.0.0.9")
    assert [each.client_host for each in world.describe().members if each.member_id == new] == ["/10.0.0.9"]


def test_a_static_member_is_one_seat_across_a_reload() -> None:
    world = World()
    static, _ = group_with_static(world)
    world.crash()
    assert world.heartbeat("g", static, instance="i") == 0
    assert world.join(instance="i", offers=RANGE_T).error == 0
    assert len(world.groups["g"].members) == 2


def many_static(monkeypatch: pytest.MonkeyPatch) -> World:
    """A stable group of three static members, so large that a record of it is not written for each that
    returns.
    """
    monkeypatch.setattr(static, "MEMBERS_A_MS", 0.1)
    world = World(initial_delay_ms=10)
    joins = [world.join(instance=name) for name in "abc"]
    world.advance(1_000)
    world.settle([join.reply.member_id for join in joins])
    return world


def test_members_that_return_at_once_share_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    world = many_static(monkeypatch)
    writes = len(world.log)
    returned = [world.join(instance=name) for name in "abc"]
    assert [call.parked for call in returned] == [False, True, True]
    assert len(world.log) == writes + 1
    world.advance(1_000)
    assert [call.error for call in returned] == [0, 0, 0]
    assert len(world.log) == writes + 2
    assert {call.reply.generation_id for call in returned} == {world.groups["g"].generation}


def test_a_rebalance_takes_those_along_whose_return_is_still_to_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = many_static(monkeypatch)
    first, second = world.join(instance="a"), world.join(instance="b")
    third = world.join(instance="c", offers=protocols(range=subscription("u")))
    world.join(member=first.reply.member_id, instance="a")
    world.advance(1_000)
    assert (second.error, third.error) == (0, 0)
    assert second.reply.generation_id == third.reply.generation_id == 2
    assert not world.groups["g"].returned
