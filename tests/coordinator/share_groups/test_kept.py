"""Topics with state at share coordinators: initialized, asked for again, deleted; what fails, what is late.

Covers: coordinator/share_groups/commands.py, coordinator/share_groups/delete.py.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.coordinator.groups.events import GroupRemoved, ShareStateFailed
from kohort.coordinator.share_groups.commands import DeleteShareState, InitializeShareState
from kohort.coordinator.share_groups.kept import (
    MOST_TOPICS_BYTES,
    NoShareCoordinators,
    remove_deleted_topics,
    result_step,
    topic_bytes,
)
from kohort.offsets_topic import ShareTopic
from kohort.protocol import ApiKey, ErrorCode, KafkaError
from kohort.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from tests.coordinator.share_groups.share_world import ShareWorld

E = ErrorCode
DOWN = KafkaError(E.COORDINATOR_NOT_AVAILABLE, "down")


def kept(world: ShareWorld) -> dict[str, dict[str, tuple[int, ...]]]:
    """Partitions by what is noted of them, and by topic."""
    told = world.share_group().kept._asdict()
    return {
        what: {row.name: row.partitions for row in topics.values()} for what, topics in told.items() if topics
    }


def delete_group(world: ShareWorld) -> Any:
    return world.begin(ApiKey.DELETE_GROUPS, 2, SimpleNamespace(group_id="g"))


def test_partitions_are_initialized_once() -> None:
    world = ShareWorld({"t": 2})
    world.share_beat("a", 0, "t")
    assert kept(world) == {"initializing": {"t": (0, 1)}}
    world.share_beat("a", 2)
    assert len(world.commands) == 1
    world.finish()
    assert kept(world) == {"initialized": {"t": (0, 1)}}
    world.share_beat("a", 2)
    assert world.commands == []


def test_what_has_failed_is_asked_for_with_the_next_heartbeat_and_told() -> None:
    world = ShareWorld({"t": 2})
    world.share_beat("a", 0, "t")
    world.finish({(world.ids["t"], 1): DOWN})
    assert kept(world) == {"initializing": {"t": (1,)}, "initialized": {"t": (0,)}}
    (told,) = [event for event in world.events if isinstance(event, ShareStateFailed)]
    assert (told.error_code, told.generation) == (E.COORDINATOR_NOT_AVAILABLE, 2)
    assert (
        told.cause == f"state of 1 share partitions was not initialized, such as 1 of {world.ids['t']}: down"
    )
    at = len(world.log)
    world.share_beat("a", 2)
    assert world.commands[0].topics == {world.ids["t"]: {1: -1}}
    assert 15 not in [kind for kind, _, _ in world.share_records(at)]
    world.finish()
    assert kept(world) == {"initialized": {"t": (0, 1)}}


def test_what_waits_for_other_heartbeats_waits_no_longer_where_these_are_too_few() -> None:
    names = [f"t{number}" for number in range(200)]
    world = ShareWorld(dict.fromkeys([*names, "late"], 1))
    epoch = world.share_join("a", *names).member_epoch
    world.share_beat("a", epoch, *names, "late")
    for _ in range(3):
        # each within the pause that the one before began
        world.advance(150)
        world.share_beat("a", world.share_group().members["a"].current.epoch)
    assert "late" in kept(world)["initializing"]


def test_partitions_that_the_groups_record_has_no_room_for_are_left_out_and_told_once() -> None:
    world = ShareWorld({"t": 10, "u": 5})
    world.share_join("a", "t", "u")
    world.change_topics(t=90_000)
    for _ in range(3):
        world.share_beat("a", world.share_group().members["a"].current.epoch)
        while world.commands:
            world.finish()
    initialized = world.share_group().kept.initialized.values()
    size = sum(topic_bytes(row.name, len(row.partitions)) for row in initialized)
    assert MOST_TOPICS_BYTES - 100 < size <= MOST_TOPICS_BYTES
    (told,) = [event for event in world.events if isinstance(event, ShareStateFailed)]
    left_out = 90_005 - sum(len(row.partitions) for row in initialized)
    assert told.cause.startswith(f"{left_out} partitions are not read")


def test_topics_of_members_of_their_own_are_asked_for_together_and_wait_no_longer_than_some_ms() -> None:
    many, few = [f"m{number}" for number in range(40)], [f"f{number}" for number in range(4)]
    world = ShareWorld(dict.fromkeys([*many, *few], 1))
    world.share_beat("many", 0, *many)
    assert len(world.finish().topics) == 40, "topics of one subscription do not wait for others"
    for name in few[:3]:
        world.share_beat(name, 0, name)
    (together,) = world.commands
    assert set(together.topics) == {world.ids[name] for name in few[:2]}
    world.advance(100)
    assert [set(each.topics) for each in world.commands[1:]] == [{world.ids[few[2]]}]
    # who leaves meanwhile takes its topic along
    world.share_beat(few[3], 0, few[3])
    world.share_beat(few[3], -1)
    world.advance(100)
    assert len(world.commands) == 2


def test_a_command_without_a_result_is_given_again_after_the_retry_interval() -> None:
    world = ShareWorld(group_share_initialize_retry_interval_ms=20_000)
    world.share_beat("a", 0, "t")
    world.now_ms += 19_999
    world.share_beat("a", 2)
    assert len(world.commands) == 1
    world.now_ms += 1
    world.share_beat("a", 2)
    assert len(world.commands) == 2
    world.finish({(world.ids["t"], 0): DOWN})
    assert "initialized" not in kept(world), "only the newest command counts"
    world.finish()
    assert kept(world) == {"initialized": {"t": (0, 1, 2, 3)}}


def test_after_a_restart_the_first_heartbeat_asks_again() -> None:
    world = ShareWorld()
    world.share_beat("a", 0, "t")
    late = world.commands[0]
    world.restart()
    world.events.clear()
    world.share_beat("a", 2)
    (command,) = world.commands
    assert isinstance(command, InitializeShareState)
    assert set(command.unknown) == {world.ids["t"]}, "if it is there already and in use, it stays"
    result_step(late, {})(world.shard, world.now_ms)
    assert "initialized" not in kept(world)


def test_nothing_is_asked_before_the_log_has_the_records() -> None:
    world = ShareWorld()
    world.held = []
    world.share_beat("a", 0, "t")
    assert world.commands == []
    world.failing = True
    world.release()
    assert world.commands == []


def test_a_result_for_a_group_that_is_gone_changes_nothing() -> None:
    world = ShareWorld()
    world.share_beat("a", 0, "t")
    world.share_beat("a", -1)
    delete_group(world)
    world.finish(at=1)
    assert not world.shard.state.knows("g")
    world.finish()
    assert not world.shard.state.knows("g")


def test_deleting_a_group_deletes_its_state_first() -> None:
    world = ShareWorld({"t": 2})
    world.share_join("a")
    refused = delete_group(world)
    assert [answer.error_code for answer in refused] == [E.NON_EMPTY_GROUP]
    world.share_beat("a", -1)
    at = len(world.log)
    answers = delete_group(world)
    assert (answers, kept(world)) == ([], {"deleting": {"t": ()}})
    assert world.share_records(at) == [(15, "", False)]
    command = world.finish()
    assert (type(command), command.topics) == (DeleteShareState, {world.ids["t"]: (0, 1)})
    assert [(answer.group_id, answer.error_code) for answer in answers] == [("g", E.NONE)]
    assert world.share_records(at)[2:] == [(12, "", True), (15, "", True), (11, "", True)]
    assert not world.shard.state.knows("g")
    assert isinstance(world.events[-1], GroupRemoved)
    assert world.share_beat("a", 0, "t").member_epoch == 2, "a new group begins anew"


def test_a_group_without_state_is_deleted_at_once() -> None:
    world = ShareWorld()
    world.share_beat("a", 0, "nowhere")
    world.share_beat("a", -1)
    assert [answer.error_code for answer in delete_group(world)] == [E.NONE]
    assert world.commands == []


def test_what_cannot_be_deleted_keeps_the_group_and_is_deleted_with_the_next_request() -> None:
    world = ShareWorld({"t": 2})
    world.share_join("a")
    world.share_beat("a", -1)
    answers = delete_group(world)
    world.finish({(world.ids["t"], 0): DOWN})
    assert [answer.error_code for answer in answers] == [E.COORDINATOR_NOT_AVAILABLE]
    assert kept(world) == {"deleting": {"t": ()}}
    world.restart()
    answers = delete_group(world)
    assert world.finish().topics == {world.ids["t"]: (0, 1)}
    assert [answer.error_code for answer in answers] == [E.NONE]


def test_a_member_that_joins_while_its_group_is_being_deleted_keeps_it() -> None:
    world = ShareWorld()
    world.share_join("a")
    world.share_beat("a", -1)
    answers = delete_group(world)
    world.share_beat("b", 0, "t")
    assert len(world.commands) == 1, "nothing is initialized while it is being deleted"
    world.finish()
    assert [answer.error_code for answer in answers] == [E.NON_EMPTY_GROUP]
    world.share_beat("b", world.share_group().members["b"].current.epoch)
    assert isinstance(world.commands[0], InitializeShareState)
    assert set(world.commands[0].unknown) == {world.ids["t"]}


def test_a_state_that_could_not_be_deleted_begins_anew() -> None:
    world = ShareWorld()
    world.share_join("a")
    world.share_beat("a", -1)
    delete_group(world)
    world.finish({(world.ids["t"], 0): DOWN})
    world.share_beat("b", 0, "t")
    assert isinstance(world.commands[0], InitializeShareState)
    assert not world.commands[0].unknown


def test_of_two_deletions_of_a_group_the_later_one_removes_it_with_what_has_begun_in_between() -> None:
    world = ShareWorld({"t": 2})
    world.share_join("a", "t")
    world.share_beat("a", -1)
    first = delete_group(world)
    body = AlterShareGroupOffsetsRequest(
        "g",
        [AlterShareGroupOffsetsRequestTopic("t", [AlterShareGroupOffsetsRequestPartition(1, 7)])],
    )
    world.begin(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, body)
    second = delete_group(world)
    world.finish()
    assert [answer.error_code for answer in first] == [E.COORDINATOR_NOT_AVAILABLE], "it is to be retried"
    assert kept(world) == {"deleting": {"t": ()}}
    while world.commands:
        world.finish()
    assert [answer.error_code for answer in second] == [E.NONE]
    assert not world.shard.state.knows("g")


def test_a_group_whose_offsets_are_altered_while_it_is_being_deleted_leaves_no_state_behind() -> None:
    world = ShareWorld({"t": 2})
    world.share_join("a")
    world.share_beat("a", -1)
    answers = delete_group(world)
    body = AlterShareGroupOffsetsRequest(
        "g",
        [AlterShareGroupOffsetsRequestTopic("t", [AlterShareGroupOffsetsRequestPartition(1, 7)])],
    )
    altered = world.begin(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, body)
    world.finish(at=1)
    world.finish()
    assert len(altered) == 1
    assert (answers, kept(world)) == ([], {"deleting": {"t": ()}})
    assert isinstance(world.finish(), DeleteShareState)
    assert [answer.error_code for answer in answers] == [E.NONE]
    assert not world.shard.state.knows("g")


def test_two_requests_to_delete_a_group_are_both_answered() -> None:
    world = ShareWorld()
    world.share_join("a")
    world.share_beat("a", -1)
    first, second = delete_group(world), delete_group(world)
    world.finish()
    world.finish()
    assert [answer.error_code for answer in (*first, *second)] == [E.COORDINATOR_NOT_AVAILABLE, E.NONE]


def test_a_shard_that_moves_away_refuses_what_waits_and_takes_in_nothing() -> None:
    world = ShareWorld()
    world.share_join("a")
    world.share_beat("a", -1)
    answers = delete_group(world)
    command = world.commands[0]
    world.shard.unload(world.now_ms)
    world._carry_out()
    assert [answer.error_code for answer in answers] == [E.NOT_COORDINATOR]
    result_step(command, {})(world.shard, world.now_ms)
    assert len(answers) == 1


def test_the_state_of_deleted_topics_is_forgotten_in_every_group() -> None:
    world = ShareWorld({"t": 1, "u": 1})
    world.share_join("a", "t", "u")
    world.share_beat("a", -1)
    other = ShareTopic("u", (0,))
    gone = world.ids.pop("t")
    world.change_topics(t=None)
    at = len(world.log)
    remove_deleted_topics(world.shard, {"t"}, world.now_ms)
    world._carry_out()
    assert world.share_group().kept.initialized == {world.ids["u"]: other}
    assert gone not in world.share_group().kept.initialized
    assert world.share_records(at) == [(15, "", False)]
    remove_deleted_topics(world.shard, {"u"}, world.now_ms)
    world._carry_out()
    assert world.share_group().kept.initialized == {world.ids["u"]: other}, "a topic of that name exists"


def test_an_alteration_whose_coordinator_was_lost_is_not_kept_for_ever() -> None:
    world = ShareWorld({"t": 2})
    world.share_join("a", "t")
    world.share_beat("a", -1)
    body = AlterShareGroupOffsetsRequest(
        "g",
        [AlterShareGroupOffsetsRequestTopic("t", [AlterShareGroupOffsetsRequestPartition(1, 7)])],
    )
    world.begin(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, body)
    assert kept(world) == {"initialized": {"t": (0, 1)}, "initializing": {"t": (1,)}}
    world.restart()
    world.events.clear()
    world.share_beat("b", 0, "t")
    assert kept(world) == {"initialized": {"t": (0, 1)}}
    assert world.commands == [], "the state is there"


def test_topics_that_were_deleted_while_nobody_led_the_group_are_forgotten_after_a_load() -> None:
    world = ShareWorld({"t": 1, "u": 1})
    world.share_join("a", "t", "u")
    world.ids.pop("t")
    world.change_topics(t=None)
    world.restart()
    world.advance(4_000)
    assert len(world.share_group().kept.initialized) == 2, "who has just taken over may not know all topics"
    world.advance(1_000)
    assert list(world.share_group().kept.initialized) == [world.ids["u"]]
    at = len(world.log)
    world.advance(20_000)
    assert not [record for record in world.share_records(at) if record[0] == 15], "there is no more to forget"


def test_a_topic_that_was_deleted_before_the_log_had_its_record_is_forgotten() -> None:
    world = ShareWorld({"t": 1, "u": 1})
    world.share_beat("a", 0, "t", "u")
    gone = world.ids.pop("t")
    world.change_topics(t=None)
    world.finish({(gone, 0): KafkaError(E.UNKNOWN_TOPIC_OR_PARTITION, "gone")})
    assert list(world.share_group().kept.initializing) == [gone]
    world.advance(5_000)
    assert world.share_group().kept == ({}, {world.ids["u"]: ShareTopic("u", (0,))}, {})


def test_deleted_topics_are_forgotten_though_the_log_has_refused_that_once() -> None:
    world = ShareWorld({"t": 1, "u": 1})
    world.share_join("a", "t", "u")
    world.ids.pop("t")
    world.change_topics(t=None)
    world.failing = True
    remove_deleted_topics(world.shard, {"t"}, world.now_ms)
    world._carry_out()
    world.failing = False
    assert len(world.share_group().kept.initialized) == 2
    world.advance(5_000)
    assert list(world.share_group().kept.initialized) == [world.ids["u"]]


@pytest.mark.parametrize("kind", [InitializeShareState, DeleteShareState])
def test_without_connections_every_command_fails(kind: type[Any]) -> None:
    world = ShareWorld({"t": 2})
    world.share_beat("a", 0, "t")
    steps: list[Any] = []

    async def run() -> None:
        worker = NoShareCoordinators()
        command = world.commands[0]
        if kind is DeleteShareState:
            command = DeleteShareState("g", {world.ids["t"]: (0, 1)})
        worker.carry_out(SimpleNamespace(steer=steps.append), command)  # type: ignore[arg-type]
        await worker.stop()

    asyncio.run(run())
    (step,) = steps
    step(world.shard, world.now_ms)
    world._carry_out()
    assert kept(world) == {"initializing": {"t": (0, 1)}}
