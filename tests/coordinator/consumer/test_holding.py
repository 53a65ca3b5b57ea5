"""Heartbeats that are held until there is news of their members.

Covers: coordinator/consumer/holding.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from kohort.coordinator.consumer.group import HOLD, SESSION
from kohort.protocol import ApiKey, ErrorCode
from tests.coordinator.consumer.group_world import Answers, World
from tests.coordinator.consumer.test_heartbeat import INTERVAL_MS, SESSION_MS, settled
from tests.messages import request_of

HOLD_MS = 400
#: The broker's heartbeat interval is the longest time.
MOST_MS = 5_000


def hold(world: World, member: str, epoch: int, hold_ms: int = HOLD_MS, **fields: Any) -> Answers:
    """A heartbeat that may be held."""
    make = request_of(ApiKey.CONSUMER_GROUP_HEARTBEAT)
    body = make(group_id="g", member_id=member, member_epoch=epoch, hold_ms=hold_ms, **fields)
    return world.begin(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, body)


def moving() -> tuple[World, Answers]:
    """A member that is to give up two partitions, and another one that waits for them with a heartbeat."""
    world = settled("a")
    assert world.join("b").member_epoch == 3
    assert world.told(world.beat("a", 2)) == {"t": (0, 1)}
    held = hold(world, "b", 3)
    assert not held
    return world, held


def test_who_waits_for_a_partition_hears_of_it_when_it_is_free() -> None:
    world, held = moving()
    world.advance(1)
    world.beat("a", 2, (0, 1))
    world.advance(0)
    (answer,) = held
    assert (answer.member_epoch, world.told(answer)) == (3, {"t": (2, 3)})
    assert not world.shard.state.held


def test_nothing_is_told_before_the_revocation_is_written() -> None:
    world, held = moving()
    world.held = []
    world.beat("a", 2, (0, 1))
    world.advance(0)
    assert not held
    world.release()
    assert world.told(held[0]) == {"t": (2, 3)}


def test_all_hear_of_a_new_target_and_of_a_new_epoch_without_one() -> None:
    world = settled("a", "b")
    held = [hold(world, member, 3) for member in "ab"]
    world.advance(INTERVAL_MS)
    held = [hold(world, member, 3, MOST_MS) for member in "ab"]
    world.join("c")
    world.advance(0)
    assert all(held), "one has to give something up, both have another epoch"
    world.join("d")
    held = [hold(world, member, world.group().members[member].current.epoch, MOST_MS) for member in "cd"]
    assert not any(held), "there is no target yet"
    world.advance(INTERVAL_MS)
    assert [answer.member_epoch for answers in held for answer in answers] == [5, 5]


def test_without_news_it_is_answered_when_its_time_is_over_and_the_session_counts_from_when_it_came() -> None:
    world = settled("a")
    came_ms = world.now_ms
    held = hold(world, "a", 2)
    world.advance(HOLD_MS - 1)
    assert not held
    world.advance(1)
    (answer,) = held
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 2, None)
    assert world.shard.timers.deadline((SESSION, "g", "a")) == came_ms + SESSION_MS


@pytest.mark.parametrize(("session_ms", "most_ms"), [(45_000, MOST_MS), (6_000, 2_000)])
def test_no_heartbeat_is_held_for_longer_than_the_group_allows(session_ms: int, most_ms: int) -> None:
    world = settled("a")
    world.configs["g"] = {"consumer.session.timeout.ms": session_ms}
    came_ms = world.now_ms
    hold(world, "a", 2, 2**31 - 1)
    assert world.shard.timers.deadline((HOLD, "g", "a")) == came_ms + most_ms


def test_of_each_member_one_is_held_and_its_next_request_lets_it_go() -> None:
    world = settled("a")
    first, second = hold(world, "a", 2), hold(world, "a", 2)
    assert [answer.member_epoch for answer in first] == [2]
    assert not second
    world.beat("a", 2)
    assert second
    assert not world.shard.state.held
    assert (HOLD, "g", "a") not in world.shard.timers


@pytest.mark.parametrize(
    "fields",
    [
        {"topic_partitions": []},
        {"subscribed_topic_names": ["t"]},
        {"rebalance_timeout_ms": 1_000},
        {"hold_ms": 0},
        {"hold_ms": -1},
    ],
)
def test_one_that_tells_something_or_may_not_wait_is_answered_at_once(fields: dict[str, Any]) -> None:
    world = settled("a")
    assert hold(world, "a", 2, **fields)


def test_one_that_is_refused_or_that_leaves_is_answered_at_once() -> None:
    world = settled("a")
    assert hold(world, "a", 7)[0].error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert hold(world, "b", 1)[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert hold(world, "a", -1)[0].member_epoch == -1


def test_a_member_that_is_removed_meanwhile_hears_of_it() -> None:
    world = settled("a", "b")
    held = hold(world, "b", 3)
    world.beat("b", -1)
    assert held, "its own leave lets it go"
    world = settled("a", "b")
    world.configs["g"] = {"consumer.session.timeout.ms": 100}
    world.beat("a", 3)
    world.configs["g"] = {}
    held = hold(world, "b", 3)
    world.advance(100)
    assert "a" not in world.group().members
    assert held[0].member_epoch == 4


def test_a_shard_that_goes_refuses_what_it_holds() -> None:
    world = settled("a")
    held = hold(world, "a", 2)
    world.shard.unload(world.now_ms)
    world._carry_out()
    assert held[0].error_code == ErrorCode.NOT_COORDINATOR


def test_a_write_that_fails_lets_all_of_the_group_look_again() -> None:
    world, held = moving()
    world.failing = True
    assert world.beat("a", 2, (0, 1)).error_code
    world.failing = False
    world.advance(0)
    assert held[0].assignment is None
    assert world.has("a") == {"t": (0, 1)}
