"""Every cell of the table "request, sender, state" is asked of a real shard."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from kohort.coordinator.replies import LeaveReply
from kohort.statemachine import GROUP_ANSWERS, PARKED, GroupAnswer, GroupState
from tests.coordinator.bodies import RANGE_T, protocols, subscription
from tests.coordinator.driver import Call, World, errors_of


class Scene(NamedTuple):
    """A group with a leader, a follower and a static member "i" that was restarted once."""

    world: World
    leader: str
    follower: str
    fenced: str
    generation: int


def scene(state: GroupState, type_: str = "consumer") -> Scene:
    world = World()
    leader, follower = (world.new_member(type_=type_)[0] for _ in range(2))
    world.join(instance="i", type_=type_)
    world.advance(0)
    live = world.shard.groups["g"]
    fenced = live.static_members["i"]
    world.settle([leader, follower, fenced])
    world.join(instance="i", type_=type_)
    static = live.static_members["i"]
    assert live.state is GroupState.STABLE
    if state is GroupState.EMPTY:
        world.leave("g", *((member, None) for member in (leader, follower, static)))
    elif state is not GroupState.STABLE:
        newcomer, _ = world.new_member(type_=type_)
        if state is GroupState.COMPLETING_REBALANCE:
            for member in (leader, follower):
                world.join("g", member, type_=type_)
            world.join("g", static, instance="i", type_=type_)
            assert newcomer in live.pending_sync
    assert live.state is state
    return Scene(world, leader, follower, fenced, live.generation)


CHANGED = protocols(range=subscription("u"))

#: How each row is asked; every request of the table must be here.
ASK: dict[tuple[str, str], Callable[[Scene], Call | int]] = {
    ("JoinGroup", "new, v4+ without instance id"): lambda s: s.world.join(),
    ("JoinGroup", "new, v0-3"): lambda s: s.world.join(version=3),
    ("JoinGroup", "new static member"): lambda s: s.world.join(instance="other"),
    ("JoinGroup", "unknown member id"): lambda s: s.world.join("g", "nobody"),
    ("JoinGroup", "new, without protocols"): lambda s: s.world.join(offers=[]),
    ("JoinGroup", "leader, nothing changed"): lambda s: s.world.join("g", s.leader),
    ("JoinGroup", "follower, nothing changed"): lambda s: s.world.join("g", s.follower),
    ("JoinGroup", "follower, other metadata"): lambda s: s.world.join("g", s.follower, offers=CHANGED),
    ("SyncGroup", "follower"): lambda s: s.world.sync("g", s.follower, s.generation),
    ("SyncGroup", "unknown member id"): lambda s: s.world.sync("g", "nobody", s.generation),
    ("SyncGroup", "old generation"): lambda s: s.world.sync("g", s.follower, s.generation - 1),
    ("Heartbeat", "member"): lambda s: s.world.heartbeat("g", s.follower, s.generation),
    ("Heartbeat", "unknown member id"): lambda s: s.world.heartbeat("g", "nobody", s.generation),
    ("Heartbeat", "old generation"): lambda s: s.world.heartbeat("g", s.follower, s.generation - 1),
    ("Heartbeat", "fenced static member"): lambda s: s.world.heartbeat(
        "g", s.fenced, s.generation, instance="i"
    ),
    ("LeaveGroup", "member"): lambda s: s.world.leave("g", (s.follower, None)),
    ("LeaveGroup", "unknown member id"): lambda s: s.world.leave("g", ("nobody", None)),
    ("OffsetCommit", "member"): lambda s: s.world.commit("g", None, s.follower, s.generation),
    ("OffsetCommit", "unknown member id"): lambda s: s.world.commit("g", None, "nobody", s.generation),
    ("OffsetCommit", "old generation"): lambda s: s.world.commit("g", None, s.follower, s.generation - 1),
    ("OffsetCommit", "no member, no generation"): lambda s: s.world.commit(),
    ("OffsetFetch", "anyone"): lambda s: s.world.fetch_call(),
    ("OffsetDelete", "topic the group reads"): lambda s: s.world.offset_delete("g", ("t", 0)),
    ("OffsetDelete", "group of another type"): lambda s: s.world.offset_delete("g", ("t", 0)),
    ("DescribeGroups", "anyone"): lambda s: int(s.world.describe().error_code),
    ("DeleteGroups", "anyone"): lambda s: s.world.delete(),
}


def answer(asked: Call | int) -> int | str:
    if isinstance(asked, int):
        return asked
    if asked.parked:
        return PARKED
    if isinstance(asked.reply, LeaveReply):
        return int(asked.reply.members[0].error_code)
    error = int(getattr(asked.reply, "error_code", 0))
    return error or next((code for code in errors_of(asked) if code), 0)


@pytest.mark.parametrize("state", [state for state in GroupState if state is not GroupState.DEAD])
@pytest.mark.parametrize("row", GROUP_ANSWERS, ids=lambda row: f"{row.request}, {row.sender}")
def test_the_answer_is_that_of_the_table(row: GroupAnswer, state: GroupState) -> None:
    played = scene(state, "connect" if row.sender == "group of another type" else "consumer")
    assert answer(ASK[row.request, row.sender](played)) == row.answers[state]


def test_every_row_is_asked() -> None:
    assert list(ASK) == [(row.request, row.sender) for row in GROUP_ANSWERS]


def test_a_follower_of_a_group_offers_what_the_scene_expects() -> None:
    played = scene(GroupState.STABLE)
    live = played.world.shard.groups["g"]
    assert live.leader_id == played.leader
    assert [p.metadata for p in RANGE_T] == [live.members[played.follower].metadata("range")]
