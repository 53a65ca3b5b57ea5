"""What consumer groups tell of their members and rebalances, and why requests are refused."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.coordinator import MemberFenced, RebalanceCompleted, RebalanceStarted
from kohort.coordinator.consumer_groups.group import CONSUMER_TYPE, restore_group
from kohort.protocol import ErrorCode
from tests.coordinator.consumer_groups.group_world import World

INTERVAL_MS = 1_000


def told(world: World, kind: type) -> list[Any]:
    return [event for event in world.events if type(event) is kind]


def sharing(*names: str) -> World:
    """A group whose members have settled, in their order of joining."""
    world = World({"t": 6})
    for name in names:
        world.advance(INTERVAL_MS)
        world.join(name)
        for _ in range(2):
            for each in names[: names.index(name) + 1]:
                world.live(each)
    return world


@pytest.mark.parametrize(
    ("epoch", "group", "error", "generation"),
    [
        (9, "g", ErrorCode.FENCED_MEMBER_EPOCH, 2),
        (1, "g", ErrorCode.FENCED_MEMBER_EPOCH, 2),
        (2, "nowhere", ErrorCode.GROUP_ID_NOT_FOUND, -1),
    ],
)
def test_a_member_that_is_fenced_is_told_of(
    epoch: int, group: str, error: ErrorCode, generation: int
) -> None:
    world = World()
    world.join("m")
    assert world.beat("m", epoch, group=group).error_code == error
    (event,) = told(world, MemberFenced)
    assert (event.group, event.member, event.generation) == (group, "m", generation)
    assert (event.error_code, event.api) == (error, "CONSUMER_GROUP_HEARTBEAT")


def test_nothing_is_told_of_a_request_without_a_group() -> None:
    world = World()
    world.beat("m", 2, group="")
    assert world.events == []


def test_a_rebalance_tells_how_long_it_took_and_who_took_longest() -> None:
    world = sharing("a", "z")
    world.advance(INTERVAL_MS)
    world.events.clear()
    start_ms = world.now_ms
    world.join("n")
    for name in "az":
        assert len(world.told(world.beat(name, 3))["t"]) == 2
    world.advance(100)
    world.beat("z", 3, world.has("z")["t"])
    world.advance(400)
    world.beat("a", 3, world.has("a")["t"])
    assert told(world, RebalanceCompleted) == []
    world.advance(200)
    world.live("n")
    (started,) = told(world, RebalanceStarted)
    (event,) = told(world, RebalanceCompleted)
    assert started.generation == event.generation == 4
    assert (event.slowest, event.slowest_ms) == ("a", 500)
    assert (event.duration_ms, event.join_ms, event.sync_ms) == (world.now_ms - start_ms, 0, 700)


def test_a_rebalance_tells_each_of_its_causes_once() -> None:
    world = sharing("a", "z")
    world.advance(INTERVAL_MS)
    world.events.clear()
    world.join("n")
    world.beat("n", -1)
    world.advance(INTERVAL_MS)
    for name in "azaz":
        world.live(name)
    (event,) = told(world, RebalanceCompleted)
    assert event.cause.count("n joined") == 1
    assert event.cause.count("n left") == 1


def test_why_a_commit_is_refused() -> None:
    world = World()
    world.join("m", instance_id="i")
    group = world.group()
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    fenced = "member x is fenced: static i is member m now"
    assert group.why_refused("x", "i", 2, ErrorCode.FENCED_INSTANCE_ID) == fenced
    assert group.why_refused("x", "i", 2, unknown) == "member x is not in the group"
    assert group.why_refused("", None, 2, unknown) == "a sender without a member id is not in the group"
    old = "member m commits with a version that knows no member epochs"
    assert group.why_refused("m", None, 2, ErrorCode.UNSUPPORTED_VERSION) == old
    stale = "member m is at epoch 1, the group knows it at 2"
    assert group.why_refused("m", None, 1, ErrorCode.STALE_MEMBER_EPOCH) == stale


def test_who_is_no_member_commits_for_a_group_without_members_alone() -> None:
    world = World()
    world.join("m")
    group = world.group()
    assert group.check_commit("", None, -1, 9, ()) == ErrorCode.UNKNOWN_MEMBER_ID
    world.beat("m", -1)
    assert world.group().check_commit("", None, -1, 9, ()) == ErrorCode.NONE
    assert world.group().check_commit("m", None, 2, 9, ()) == ErrorCode.UNKNOWN_MEMBER_ID


def test_records_of_a_group_may_come_in_any_order() -> None:
    world = sharing("a", "z")
    group = world.group()
    records = world.shard.state.durable.of_type(CONSUMER_TYPE)["g"]
    for order in (list(records), list(reversed(records))):
        again = restore_group("g", {key: records[key] for key in order}, group.topics)
        assert (again.owners, again.targets, again.unsettled) == (group.owners, group.targets, set())
        assert {name: m.current for name, m in again.members.items()} == {
            name: m.current for name, m in group.members.items()
        }
