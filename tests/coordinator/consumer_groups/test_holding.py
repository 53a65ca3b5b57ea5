"""Heartbeats that are held until there is news of their members.

Covers: coordinator/consumer_groups/configs.py, coordinator/consumer_groups/holding.py.
Covers: coordinator/consumer_groups/shard_state.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from kohort.coordinator.classic_groups.group import ClassicGroup
from kohort.coordinator.consumer_groups import holding
from kohort.coordinator.consumer_groups.changes import Changes
from kohort.coordinator.consumer_groups.group import HOLD, SESSION
from kohort.coordinator.consumer_groups.heartbeat import replace_member
from kohort.coordinator.consumer_groups.shard_state import state_of
from kohort.coordinator.engine.effects import Reply, Request
from kohort.coordinator.offsets.commit import CommitRequest, CommitTopic
from kohort.offsets_topic import OffsetCommitted
from kohort.protocol import ApiKey, ErrorCode, RequestContext
from kohort.protocol.messages.consumer_group_heartbeat import GivenUpPartition, GivenUpTopic
from kohort.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitResponsePartition
from tests.coordinator.consumer_groups.group_world import Answers, Classic, World
from tests.coordinator.consumer_groups.test_assigning import PLUG_IN
from tests.coordinator.consumer_groups.test_heartbeat import INTERVAL_MS, SESSION_MS, settled
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
    assert not state_of(world.shard).held


def test_who_gives_up_at_once_is_told_of_too() -> None:
    world = settled("a")
    world.join("b")
    held = hold(world, "b", 3)
    world.beat("a", 2, (0, 1))
    world.advance(0)
    assert world.told(held[0]) == {"t": (2, 3)}


def test_it_hears_of_it_with_the_write_by_which_it_is_free() -> None:
    world, held = moving()
    world.held = []
    world.beat("a", 2, (0, 1))
    world.shard.fire_before_write(world.now_ms)
    world._carry_out()
    assert len(world.held) == 2, "one batch"
    world.release()
    assert world.told(held[0]) == {"t": (2, 3)}
    world.advance(0)
    assert len(held) == 1


def test_it_hears_of_it_before_who_gave_it_up_hears_that_it_did() -> None:
    world, held = moving()
    world.held = []
    make = request_of(ApiKey.CONSUMER_GROUP_HEARTBEAT)
    owned = [(world.ids["t"], [0, 1])]
    body = make(group_id="g", member_id="a", member_epoch=2, topic_partitions=owned)
    gave_up = world.begin(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, body)
    world.shard.fire_before_write(world.now_ms)
    world._carry_out()
    writes, world.held = world.held, None
    for write in writes:
        world._write(write)
    replies = [effect.handle for effect in world.shard.take_effects() if isinstance(effect, Reply)]
    assert len(replies) == 2
    assert replies[0] is held
    assert replies[1] is gave_up


def test_but_not_while_others_of_the_group_wait_for_that_write_who_may_give_it_more() -> None:
    world, held = moving()
    world.held = []
    world.beat("a", 2, (0, 1))
    other = Request(ApiKey.OFFSET_FETCH, 8, SimpleNamespace(group_id="g"), RequestContext(), Answers())
    world.shard.defer(other, 0)
    world.shard.fire_before_write(world.now_ms)
    world._carry_out()
    assert len(world.held) == 1
    world.shard._deferred.clear()
    world.shard.fire_before_write(world.now_ms)
    world._carry_out()
    world.release()
    assert world.told(held[0]) == {"t": (2, 3)}


def test_who_is_at_the_target_and_waits_keeps_its_heartbeat_when_all_are_told() -> None:
    world, held = moving()
    holding.answer_held(world.shard, world.group(), world.now_ms, everyone=True)
    world.advance(holding.NO_MOVE_MS)
    assert not held
    world.beat("a", 2, (0, 1))
    world.advance(0)
    assert world.told(held[0]) == {"t": (2, 3)}


def test_one_heartbeat_computes_a_target_that_had_to_wait_and_who_has_all_of_it_hears_of_it_last() -> None:
    world = settled("a", "b", "c")
    # the last target is too recent
    world.group().target_ms, epoch = world.now_ms, world.group().target_epoch
    world.join("d")
    moves = next(name for name in "abc" if len(world.has(name)["t"]) == 2)
    first, last = sorted({*"abc"} - {moves})
    held = {name: hold(world, name, epoch, MOST_MS) for name in (first, last, moves)}
    world.advance(INTERVAL_MS)
    assert world.group().target_epoch == world.group().epoch > epoch
    assert {name for name, answers in held.items() if answers} == {first, moves}
    world.advance(holding.NO_MOVE_MS)
    assert held[last]


def test_only_those_who_hold_a_heartbeat_are_answered() -> None:
    world = settled("a")
    for name in "bc":
        world.join(name)
        world.advance(INTERVAL_MS)
    world.beat("a", 2)
    for name in "bc":
        world.beat(name, world.group().members[name].current.epoch)
    epoch = world.group().members["c"].current.epoch
    held = hold(world, "c", epoch, MOST_MS)
    assert not held
    world.beat("a", 2, world.has("a"))
    world.advance(0)
    assert world.group().members.keys() == {"a", "b", "c"}


def calls_of_a_revocation(size: int) -> int:
    """Calls of Python for the heartbeat by which one of ``size`` members gives up one partition, while as
    many wait for one each.
    """
    world = World({"t": 2 * size}, group_consumer_assignment_interval_ms=0)
    old, new = ([f"{kind}{number}" for number in range(size)] for kind in ("old", "new"))
    for name in old:
        world.join(name)
    for name in (*old, *old):
        world.live(name)
    for name in new:
        world.join(name)
    members = world.group().members
    for name in (*old, *new):
        world.beat(name, members[name].current.epoch)
    held = [hold(world, name, members[name].current.epoch) for name in new]
    assert not any(held)
    # the first one since there was a target looks up who is to have what
    world.beat("old1", members["old1"].current.epoch, world.has("old1"))
    epoch, keeps = members["old0"].current.epoch, world.has("old0")
    count = 0

    def called(frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event == "call" and "tests" not in Path(frame.f_code.co_filename).parts

    sys.setprofile(called)
    world.beat("old0", epoch, keeps)
    sys.setprofile(None)
    world.advance(0)
    assert sum(map(len, held)) == 2
    return count


def test_who_gives_something_up_costs_no_more_the_more_members_are_waiting() -> None:
    assert calls_of_a_revocation(12) == calls_of_a_revocation(3)


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
    assert [bool(answers) for answers in held] == [False, True], "who has to give something up comes first"
    world.advance(holding.NO_MOVE_MS)
    assert all(held), "both have another epoch"
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


def held_up(world: World, duration_ms: int = 2 * SESSION_MS) -> None:
    """The process stands still; then all that is due fires, as of when it goes on."""
    world.now_ms += duration_ms
    world.shard.advance(world.now_ms)
    world._carry_out()


def test_a_process_that_was_held_up_removes_nobody_whose_heartbeat_it_held() -> None:
    world = settled("a", "b")
    world.beat("b", 3)
    held = hold(world, "a", 3)
    world.advance(HOLD_MS - 1)
    held_up(world)
    assert held[0].error_code == ErrorCode.NONE
    assert world.group().members.keys() == {"a"}, "b was silent"
    rest_ms = SESSION_MS - SESSION_MS // 3
    assert world.shard.timers.deadline((SESSION, "g", "a")) == world.now_ms + rest_ms
    world.advance(rest_ms)
    assert "g" not in world.shard.state.groups or world.group().is_empty, "it is silent too"


def test_nor_does_one_that_lets_go_what_it_held_because_an_old_request_has_arrived_behind_it() -> None:
    world = settled("a")
    held = hold(world, "a", 2)
    world.now_ms += SESSION_MS - 1
    assert world.beat("a", 7).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert held
    rest_ms = SESSION_MS - SESSION_MS // 3
    assert world.shard.timers.deadline((SESSION, "g", "a")) == world.now_ms + rest_ms


def test_a_request_behind_one_that_was_held_for_a_moment_leaves_the_session_as_it_was() -> None:
    world = settled("a")
    came_ms = world.now_ms
    hold(world, "a", 2)
    world.now_ms += 10
    world.beat("a", 7)
    assert world.shard.timers.deadline((SESSION, "g", "a")) == came_ms + SESSION_MS


def test_news_after_a_hold_up_comes_before_the_end_of_sessions() -> None:
    world = settled("a", "b", "c")
    epoch = world.group().target_epoch
    # the silent one's session ends first, and all are told of the new epoch before they were answered
    world.advance(1)
    held = [hold(world, member, epoch) for member in "bc"]
    world.shard.timers.start((SESSION, "g", "a"), world.now_ms + 1)
    held_up(world)
    assert [[answer.error_code for answer in answers] for answers in held] == [[0], [0]]
    assert world.group().members.keys() == {"b", "c"}


def test_who_was_told_to_hear_news_at_once_and_then_not_heard_for_long_stays_too() -> None:
    world = settled("a", "b")
    held = hold(world, "b", 3)
    world.join("c")
    held_up(world)
    assert held[0].member_epoch >= 3
    assert "b" in world.group().members


@pytest.mark.parametrize(("session_ms", "most_ms"), [(45_000, MOST_MS), (6_000, 2_000)])
def test_no_heartbeat_is_held_for_longer_than_the_group_allows(session_ms: int, most_ms: int) -> None:
    world = settled("a")
    world.configs["g"] = {"consumer.session.timeout.ms": session_ms}
    came_ms = world.now_ms
    hold(world, "a", 2, 2**31 - 1)
    assert world.shard.timers.deadline((HOLD, "g", "a")) == came_ms + most_ms


def test_while_a_target_is_computed_it_is_held_until_that_is_there() -> None:
    world = World({"t": 4}, group_consumer_assignors=f"{PLUG_IN},uniform")
    held = hold(world, "m", world.join("m").member_epoch, MOST_MS)
    world.advance(MOST_MS - 1)
    assert (held, len(world.asked)) == ([], 1)
    world.compute()
    world.advance(0)
    assert world.told(held[0]) == {"t": (0, 1, 2, 3)}


def test_where_a_session_leaves_no_time_nothing_is_held() -> None:
    world = settled("a")
    world.configs["g"] = {"consumer.session.timeout.ms": 2}
    assert hold(world, "a", 2)


def test_without_a_target_it_is_held_no_longer_than_it_asks_for() -> None:
    world = settled("a", "b")
    world.join("c")
    world.join("d")
    held = hold(world, "c", world.group().members["c"].current.epoch, 10)
    assert not held
    world.advance(9)
    assert not held
    world.advance(1)
    assert held


def test_of_each_member_one_is_held_and_its_next_request_lets_it_go() -> None:
    world = settled("a")
    first, second = hold(world, "a", 2), hold(world, "a", 2)
    assert [answer.member_epoch for answer in first] == [2]
    assert not second
    world.beat("a", 2)
    assert second
    assert not state_of(world.shard).held
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
    world.advance(holding.NO_MOVE_MS)
    assert held[0].member_epoch == 4


def test_who_is_not_in_the_group_any_more_hears_it_at_once() -> None:
    world = World()
    world.join("a")
    classic = Classic(world)
    classic.join()
    classic.sync()
    held = hold(world, "a", world.live("a"))
    assert not held
    asked = SimpleNamespace(member_id="a", group_instance_id=None, reason="removed")
    classic.send(ApiKey.LEAVE_GROUP, 5, members=[asked])
    assert isinstance(world.shard.state.find("g"), ClassicGroup)
    world.advance(0)
    assert held[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_static_member_that_another_has_replaced_hears_it_at_once() -> None:
    world = World()
    epoch = world.join("a", instance_id="i").member_epoch
    held = hold(world, "a", epoch, instance_id="i")
    state_of(world.shard).held["g"]["other"] = state_of(world.shard).held["g"]["a"]
    assert not held
    # for Apache Kafka a member that is away has no requests; one of a stopped process may be on its way
    group = world.group()
    changes = Changes(world.shard, group, world.now_ms)
    replace_member(changes, group.members["a"], "b", epoch)
    changes.commit()
    world._carry_out()
    world.advance(0)
    assert held[0].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert state_of(world.shard).held["g"].keys() == {"other"}


def test_a_shard_that_goes_refuses_what_it_holds() -> None:
    world = settled("a")
    held = hold(world, "a", 2)
    world.shard.unload(world.now_ms)
    world._carry_out()
    assert held[0].error_code == ErrorCode.NOT_COORDINATOR
    assert not state_of(world.shard).held


def test_a_write_that_fails_lets_all_of_the_group_look_again() -> None:
    world, held = moving()
    world.failing = True
    assert world.beat("a", 2, (0, 1)).error_code
    world.failing = False
    world.advance(0)
    assert held[0].assignment is None
    assert world.has("a") == {"t": (0, 1)}


# where to begin


def commit(world: World, *offsets: int, producer_id: int = -1) -> None:
    """Offsets of the first partitions are committed, in a transaction if a producer is given."""
    records = tuple(
        OffsetCommitted("g", "t", number, offset, 9, "m", world.now_ms, -1)
        for number, offset in enumerate(offsets)
    )
    world.shard.append("g", records, producer_id=producer_id, producer_epoch=0)
    world._carry_out()


def told_starts(answer: Any) -> dict[int, tuple[int, int, str | None]]:
    return {row[0]: tuple(row[1:]) for topic in answer.offsets for row in topic.partitions}


def test_who_asks_for_it_hears_with_new_partitions_what_is_committed_for_them() -> None:
    world = settled("a")
    commit(world, 5, 6, 7)
    world.join("b")
    world.beat("a", 2)
    held = hold(world, "b", 3, wants_offsets=True)
    world.beat("a", 2, (0, 1))
    world.advance(0)
    assert told_starts(held[0]) == {2: (7, 9, "m"), 3: (-1, -1, "")}
    again = hold(world, "b", 3, 0, wants_offsets=True, topic_partitions=[(world.ids["t"], [2])])
    assert (again[0].assignment, again[0].offsets) == (None, ())
    full = {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 30_000, "topic_partitions": []}
    whole = hold(world, "b", 3, 0, wants_offsets=True, **full)
    assert told_starts(whole[0]).keys() == {2, 3}
    assert not hold(world, "b", 3, 0, **full)[0].offsets


def test_a_new_member_hears_it_with_its_first_answer() -> None:
    world = settled("a")
    commit(world, 5)
    world.beat("a", -1)
    fields = {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 30_000, "topic_partitions": []}
    (answer,) = hold(world, "b", 0, 0, wants_offsets=True, **fields)
    assert told_starts(answer)[0] == (5, 9, "m")


def test_only_what_is_new_is_told_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "MOST_OFFSETS", 2)
    world = settled("a", "b")
    commit(world, 5, 6, 7, 8)
    has = world.has("a")["t"]
    world.beat("b", -1)
    (answer,) = hold(world, "a", 3, wants_offsets=True)
    assert world.told(answer) == {"t": (0, 1, 2, 3)}
    assert told_starts(answer).keys() == {0, 1, 2, 3} - set(has)


def test_nothing_is_said_of_what_is_being_committed_or_of_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    full = {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 30_000, "topic_partitions": []}
    world = settled("a")
    commit(world, 5)
    commit(world, 1, 2, producer_id=77)
    assert told_starts(hold(world, "a", 2, 0, wants_offsets=True, **full)[0]).keys() == {2, 3}
    commit(world, 1, 2, 3, 4, producer_id=78)
    assert hold(world, "a", 2, 0, wants_offsets=True, **full)[0].offsets == []
    world.shard.end_transaction(78, committed=False)
    world.held = []
    rows = [OffsetCommitRequestPartition(2, 8)], [OffsetCommitResponsePartition(2)]
    body = CommitRequest("g", 2, "a", None, -1, [CommitTopic("t", world.ids["t"], *rows)], False)
    committed = world.begin(ApiKey.OFFSET_COMMIT, 9, body)
    answers = hold(world, "a", 2, 0, wants_offsets=True, **full)
    world.release()
    assert committed
    assert told_starts(answers[0]).keys() == {3}
    assert told_starts(hold(world, "a", 2, 0, wants_offsets=True, **full)[0])[2][0] == 8
    monkeypatch.setattr(holding, "MOST_OFFSETS", 4)
    assert hold(world, "a", 2, 0, wants_offsets=True, **full)[0].offsets
    monkeypatch.setattr(holding, "MOST_OFFSETS", 3)
    assert not hold(world, "a", 2, 0, wants_offsets=True, **full)[0].offsets


# giving up behind a commit


def commit_behind(
    world: World, *rows: tuple[int, int, int, str], member: str = "a", epoch: int = 2
) -> Answers:
    """A member's commit, which is not written yet: partitions, offsets, leader epochs and metadata."""
    asked = [OffsetCommitRequestPartition(*row) for row in rows]
    outcomes = [OffsetCommitResponsePartition(row[0]) for row in rows]
    body = CommitRequest(
        "g", epoch, member, None, -1, [CommitTopic("t", world.ids["t"], asked, outcomes)], False
    )
    return world.begin(ApiKey.OFFSET_COMMIT, 9, body)


def give_up(world: World, *rows: tuple[int, int, int, str], epoch: int = 2, **fields: Any) -> Answers:
    told = [GivenUpTopic(world.ids["t"], [GivenUpPartition(*row) for row in rows])]
    return hold(world, "a", epoch, 0, gives_up=told, **fields)


def test_what_is_given_up_behind_its_commit_goes_on_when_that_is_stored() -> None:
    world, held = moving()
    world.held = []
    committed = commit_behind(world, (2, 7, 9, "m"))
    answers = give_up(world, (2, 7, 9, "m"), (3, -1, -1, ""))
    world.advance(0)
    assert not committed
    assert not answers
    assert not held
    world.release()
    world.advance(0)
    assert (answers[0].member_epoch, answers[0].assignment) == (3, None)
    assert world.told(held[0]) == {"t": (2, 3)}
    assert not committed[0].topics[0].partitions[0].error_code


@pytest.mark.parametrize("row", [(2, 8, 9, "m"), (2, 7, 8, "m"), (2, 7, 9, ""), (3, 0, -1, "")])
def test_nothing_is_given_up_of_which_something_else_is_committed(row: tuple[int, int, int, str]) -> None:
    world, held = moving()
    commit_behind(world, (2, 7, 9, "m"))
    (answer,) = give_up(world, (2, 7, 9, "m"), row)
    world.advance(0)
    assert (answer.member_epoch, answer.assignment, held) == (2, None, [])
    (answer,) = give_up(world, (2, 7, 9, "m"), (3, -1, -1, ""))
    assert answer.member_epoch == 3


@pytest.mark.parametrize(("former", "epoch"), [(False, 3), (True, 2)])
def test_nothing_is_given_up_whose_offset_is_that_of_a_former_topic(former: bool, epoch: int) -> None:
    world, _ = moving()
    topic_id = UUID(int=1) if former else world.ids["t"]
    world.shard.state.durable.commit(
        [OffsetCommitted("g", "t", 2, 7, 9, "m", world.now_ms, -1, topic_id.bytes)], 0, -1
    )
    (answer,) = give_up(world, (2, 7, 9, "m"), (3, -1, -1, ""))
    assert answer.member_epoch == epoch


@pytest.mark.parametrize("full", [True, False])
def test_nothing_is_given_up_whose_commit_is_refused(full: bool) -> None:
    world, held = moving()
    fields: dict[str, Any] = {"topic_partitions": [(world.ids["t"], [0, 1, 2, 3])]} if full else {}
    if full:
        fields |= {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 30_000}
    refused = commit_behind(world, (2, 7, 9, "m"), epoch=1)
    assert refused[0].topics[0].partitions[0].error_code == ErrorCode.STALE_MEMBER_EPOCH
    (answer,) = give_up(world, (2, 7, 9, "m"), (3, -1, -1, ""), **fields)
    world.advance(0)
    assert (answer.member_epoch, held) == (2, [])


def test_nothing_is_given_up_whose_commit_the_log_refuses() -> None:
    world, held = moving()
    world.held = []
    committed = commit_behind(world, (2, 7, 9, "m"))
    answers = give_up(world, (2, 7, 9, "m"), (3, -1, -1, ""))
    (append,) = world.held
    world.shard.append_failed(append.ticket, ErrorCode.KAFKA_STORAGE_ERROR, world.now_ms)
    world.held = []
    world.release()
    world.advance(0)
    assert committed[0].topics[0].partitions[0].error_code
    assert (answers[0].member_epoch, held) == (2, [])


def test_who_did_not_hear_that_it_counted_says_it_again_even_after_the_next_one_has_committed() -> None:
    world, _ = moving()
    commit_behind(world, (2, 7, 9, "m"))
    rows = (2, 7, 9, "m"), (3, -1, -1, "")
    assert give_up(world, *rows)[0].member_epoch == 3
    world.advance(0)
    commit_behind(world, (2, 8, 9, "m"), member="b", epoch=3)
    assert give_up(world, *rows)[0].member_epoch == 3
    late = commit_behind(world, (2, 7, 9, "m"))
    assert late[0].topics[0].partitions[0].error_code == ErrorCode.STALE_MEMBER_EPOCH


def test_nothing_is_given_up_by_which_the_epoch_would_stay() -> None:
    """Its commit may come once more, and would not be refused."""
    world, _ = moving()
    for more in "cd":
        world.advance(INTERVAL_MS)
        world.join(more)
    commit_behind(world, (2, 7, 9, "m"))
    rows = (2, 7, 9, "m"), (3, -1, -1, "")
    assert give_up(world, *rows)[0].member_epoch == 2
    assert world.group().members["a"].current.revoking == {world.ids["t"]: {2: 2, 3: 2}}
    assert world.told(world.beat("a", 2, (0, 1))) == {"t": (0,)}


def test_what_is_told_of_partitions_of_others_and_by_strangers_changes_nothing() -> None:
    world, held = moving()
    (answer,) = hold(world, "x", 2, 0, gives_up=[GivenUpTopic(world.ids["t"], [GivenUpPartition(2, -1)])])
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    (answer,) = hold(world, "a", 2, 0, gives_up=[GivenUpTopic(UUID(int=1), [GivenUpPartition(2, 5)])])
    assert answer.member_epoch == 2
    assert not held
