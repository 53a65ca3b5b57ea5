"""What a test kit does to a group from outside."""

from __future__ import annotations

import pytest

from kohort.coordinator import MemberGone, RebalanceStarted
from kohort.protocol import ErrorCode, KafkaError
from kohort.statemachine import GroupState
from kohort.testing._group_steps import begin_rebalance, end_session, member_of, members_of
from tests.coordinator.consumer_groups.group_world import World as ConsumerWorld
from tests.coordinator.driver import World
from tests.coordinator.share_groups.share_world import ShareWorld


def test_members_come_in_the_order_in_which_they_joined() -> None:
    world = World()
    leader, follower = world.stable(2)
    assert [member.member_id for member in members_of(world.shard, "g")] == [leader, follower]


def test_a_member_is_found_by_each_of_its_names() -> None:
    world = World()
    world.join(instance="i")
    first, _ = world.new_member()
    static = world.groups["g"].static_members["i"]
    found = [member_of(world.shard, "g", name).member_id for name in (static, "i", first)]
    assert found == [static, static, first]


@pytest.mark.parametrize(
    ("group", "code", "text"),
    [
        ("g", ErrorCode.UNKNOWN_MEMBER_ID, "group 'g' has no member 'x'; its members: c-1, c-2"),
        ("s", ErrorCode.UNKNOWN_MEMBER_ID, "group 's' has no member 'x'; its members: nobody"),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND, "there is no group 'none'"),
    ],
)
def test_who_is_not_there_is_told_with_who_is(group: str, code: ErrorCode, text: str) -> None:
    world = World()
    world.stable(2)
    world.commit("s")
    with pytest.raises(KafkaError) as caught:
        end_session(world.shard, group, "x", world.now)
    assert (caught.value.code, str(caught.value).endswith(text)) == (code, True)


def test_a_member_whose_session_is_ended_is_gone_and_the_others_rejoin() -> None:
    world = World()
    leader, follower = world.stable(2)
    end_session(world.shard, "g", follower, world.now)
    world.advance(0)
    gone, started = world.notes[-2:]
    assert isinstance(gone, MemberGone)
    assert isinstance(started, RebalanceStarted)
    assert (gone.member, started.member) == (follower, follower)
    assert gone.cause == started.cause == f"session of member {follower} was ended"
    assert world.heartbeat("g", follower) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("g", leader) == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.settle([leader]) == 2


def test_the_last_member_whose_session_is_ended_leaves_the_group_empty() -> None:
    world = World()
    (a,) = world.stable()
    end_session(world.shard, "g", a, world.now)
    world.advance(0)
    assert world.state() == "Empty"


def test_a_rebalance_can_be_begun_where_none_is_under_way() -> None:
    world = World()
    (a,) = world.stable()
    assert begin_rebalance(world.shard, "g", "a test", world.now)
    world.advance(0)
    assert world.groups["g"].state is GroupState.PREPARING_REBALANCE
    assert not begin_rebalance(world.shard, "g", "again", world.now), "it has begun"
    started = world.notes[-1]
    assert isinstance(started, RebalanceStarted)
    assert started.cause == "a test"
    world.advance(5_000)
    assert world.settle([a]) == 2
    world.leave("g", (a, None))
    assert not begin_rebalance(world.shard, "g", "nobody is there", world.now)
    with pytest.raises(KafkaError, match="there is no group 'none'"):
        begin_rebalance(world.shard, "none", "", world.now)


def test_members_of_a_consumer_group_are_listed_and_their_sessions_ended() -> None:
    world = ConsumerWorld()
    world.join("a")
    world.join("b", instance_id="pod")
    assert [seat[:2] for seat in members_of(world.shard, "g")] == [("a", None), ("b", "pod")]
    end_session(world.shard, "g", "pod", world.now_ms)
    world.advance(0)
    assert world.beat("b", 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.group().epoch == 4
    gone = next(event for event in world.events if isinstance(event, MemberGone))
    assert gone.cause == "session of static member pod was ended"


def test_the_epoch_of_a_consumer_group_can_be_raised_once_until_it_has_a_target() -> None:
    world = ConsumerWorld()
    world.join("a")
    world.advance(5_000)
    assert begin_rebalance(world.shard, "g", "a test", world.now_ms)
    world.advance(0)
    assert not begin_rebalance(world.shard, "g", "again", world.now_ms)
    assert (world.group().epoch, world.live("a")) == (3, 3)
    end_session(world.shard, "g", "a", world.now_ms)
    assert not begin_rebalance(world.shard, "g", "nobody is there", world.now_ms)


def test_members_of_a_share_group_are_listed_their_sessions_ended_and_the_epoch_raised() -> None:
    world = ShareWorld()
    for member in ("a", "b"):
        world.share_join(member)
    assert [seat[:2] for seat in members_of(world.shard, "g")] == [("a", None), ("b", None)]
    epoch = world.share_beat("b", 0, "t").member_epoch
    end_session(world.shard, "g", "a", world.now_ms)
    world.advance(0)
    assert world.share_beat("a", epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    gone = next(event for event in world.events if isinstance(event, MemberGone))
    assert gone.cause == "session of member a was ended"
    world.advance(5_000)
    before = world.share_beat("b", 0, "t").member_epoch
    assert begin_rebalance(world.shard, "g", "a test", world.now_ms)
    world.advance(5_000)
    assert world.share_beat("b", before).member_epoch == before + 1
