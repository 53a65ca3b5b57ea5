"""Offsets of share groups: which partitions are asked for, altered and deleted by commands."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kohort.coordinator.engine.effects import Request
from kohort.coordinator.share_groups.commands import DeleteShareState
from kohort.coordinator.share_groups.offsets import (
    DESCRIBE_FAN_OUT,
    AskedOffsets,
    AskedTopic,
    OffsetsRequest,
    alter_refusal,
    delete_refusal,
    describe_refusal,
    handle_describe_offsets,
)
from kohort.coordinator.share_groups.shard_state import state_of
from kohort.protocol import ApiKey, ErrorCode, KafkaError, RequestContext
from tests.coordinator.consumer_groups.group_world import Answers
from tests.coordinator.share_groups.share_world import ShareWorld
from tests.messages import request_of

E = ErrorCode
DOWN = KafkaError(E.COORDINATOR_NOT_AVAILABLE, "down")
NO_PARTITION = "This server does not host this topic-partition."


def emptied(topics: dict[str, int] | None = None) -> ShareWorld:
    """A group without members whose topics have state."""
    world = ShareWorld(topics or {"t": 2})
    world.share_join("a", *world.topics)
    world.share_beat("a", -1)
    return world


def alter(world: ShareWorld, *topics: tuple[str, list[tuple[int, int]]], group: str = "g") -> Answers:
    body = request_of(ApiKey.ALTER_SHARE_GROUP_OFFSETS)(group_id=group, topics=list(topics))
    return world.begin(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, body)


def delete_state(world: ShareWorld, *topics: str, group: str = "g") -> Answers:
    body = request_of(ApiKey.DELETE_SHARE_GROUP_OFFSETS)(group_id=group, topics=list(topics))
    return world.begin(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, body)


def altered(answers: Answers) -> dict[tuple[str, int], tuple[int, str | None]]:
    (answer,) = answers
    assert answer.error_code == E.NONE
    return {
        (topic.topic_name, row.partition_index): (row.error_code, row.error_message)
        for topic in answer.responses
        for row in topic.partitions
    }


def asked(world: ShareWorld, topics: Any, group: str = "g") -> AskedOffsets:
    answers = Answers()
    body = OffsetsRequest(group, topics)
    request = Request(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, body, RequestContext(), answers)
    handle_describe_offsets(world.shard, request, world.now_ms)
    world._carry_out()
    (answer,) = answers
    assert isinstance(answer, AskedOffsets)
    return answer


def test_what_the_log_does_not_take_is_answered_at_once() -> None:
    world = emptied()
    world.failing = True
    (answer,) = alter(world, ("t", [(0, 5)]), group="new")
    assert [row.error_code for row in answer.responses[0].partitions] == [E.NOT_COORDINATOR]
    (answer,) = delete_state(world, "t")
    assert answer.responses[0].error_code == E.NOT_COORDINATOR
    answers = world.begin(ApiKey.DELETE_GROUPS, 2, SimpleNamespace(group_id="g"))
    assert len(answers) == 1
    assert world.commands == []
    assert not state_of(world.shard).pending


def test_altering_begins_partitions_anew_at_the_groups_epoch() -> None:
    world = emptied()
    at, epoch = len(world.log), world.share_group().epoch
    answers = alter(world, ("t", [(1, 7), (5, 0)]), ("nowhere", [(0, 0)]))
    assert answers == []
    command = world.finish()
    assert (command.topics, command.state_epoch) == ({world.ids["t"]: {1: 7}}, epoch)
    unknown = (E.UNKNOWN_TOPIC_OR_PARTITION, NO_PARTITION)
    assert altered(answers) == {("t", 1): (0, None), ("t", 5): unknown, ("nowhere", 0): unknown}
    assert world.share_records(at) == [(15, "", False), (15, "", False)]
    assert world.share_group().epoch == epoch
    assert [topic.partitions for topic in world.share_group().kept.initialized.values()] == [(0, 1)]


def test_an_alteration_that_the_group_forgot_when_the_log_refused_a_record_is_no_success() -> None:
    world = emptied()
    answers = alter(world, ("t", [(1, 7)]))
    world.failing = True
    world.begin(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        request_of(ApiKey.SHARE_GROUP_HEARTBEAT)(
            group_id="g", member_id="b", member_epoch=0, rack_id=None, subscribed_topic_names=["t"]
        ),
    )
    world.failing = False
    world.finish()
    code, text = altered(answers)["t", 1]
    assert code == E.COORDINATOR_NOT_AVAILABLE
    assert text is not None
    assert "try again" in text


def test_an_alteration_whose_end_the_log_refuses_is_no_success() -> None:
    world = ShareWorld({"t": 2})
    answers = alter(world, ("t", [(1, 7)]))
    world.failing = True
    world.finish()
    (answer,) = answers
    assert answer.error_code == E.NOT_COORDINATOR


def test_of_two_alterations_at_once_the_later_one_is_done() -> None:
    world = emptied()
    first, second = alter(world, ("t", [(1, 7)])), alter(world, ("t", [(0, 3), (1, 9)]))
    world.finish()
    world.finish()
    assert [altered(first)["t", 1][0], altered(second)["t", 1][0]] == [E.COORDINATOR_NOT_AVAILABLE, E.NONE]


def test_altering_makes_a_group_which_can_be_joined_and_goes_on_from_there() -> None:
    world = ShareWorld({"t": 2})
    answers = alter(world, ("t", [(1, 7)]))
    world.finish()
    assert altered(answers) == {("t", 1): (0, None)}
    group = world.share_group()
    assert (group.state_name, group.epoch, group.target_epoch) == ("Empty", 1, 1)
    world.restart()
    assert world.share_group().epoch == 1
    answer = world.share_beat("a", 0, "t")
    assert (answer.member_epoch, world.share_told(answer)) == (2, {"t": (1,)})
    assert world.finish().topics == {world.ids["t"]: {0: -1}}


def test_a_start_where_the_rule_says_raises_the_epoch_of_state_that_there_is() -> None:
    """Share coordinators take -1 of an epoch that they know for a first initialization that comes late."""
    world = emptied()
    epoch = world.share_group().epoch
    answers = alter(world, ("t", [(0, -1), (1, 3)]))
    command = world.finish()
    assert (command.topics, command.state_epoch) == ({world.ids["t"]: {0: -1, 1: 3}}, epoch + 1)
    assert altered(answers) == {("t", 0): (0, None), ("t", 1): (0, None)}
    world.restart()
    group = world.share_group()
    assert (group.epoch, group.state_name) == (epoch + 1, "Empty")
    alter(world, ("t", [(0, -1)]), group="new")
    assert world.finish().state_epoch == 1


def test_nothing_to_alter_makes_no_group() -> None:
    world = ShareWorld()
    assert altered(alter(world)) == {}
    assert list(altered(alter(world, ("nowhere", [(0, 0)])))) == [("nowhere", 0)]
    assert not world.shard.state.knows("g")
    assert world.log == []


def test_a_group_has_no_more_partitions_than_its_record_holds() -> None:
    world = ShareWorld({"t": 80_000, "u": 80_000})
    alter(world, ("t", [(number, 0) for number in range(80_000)]))
    world.finish()
    (answer,) = alter(world, ("u", [(number, 0) for number in range(3_000)]))
    assert answer.error_code == E.INVALID_REQUEST
    assert answer.error_message == "The topics of the group would take more than 330000 bytes."
    alter(world, ("t", [(5, 7)]), ("u", [(1, 7)]))
    assert world.commands[0].topics == {world.ids["t"]: {5: 7}, world.ids["u"]: {1: 7}}


def test_what_could_not_be_altered_is_said_and_keeps_its_state() -> None:
    world = emptied()
    answers = alter(world, ("t", [(0, 3), (1, 3)]))
    world.finish({(world.ids["t"], 1): DOWN})
    assert altered(answers) == {("t", 0): (0, None), ("t", 1): (E.COORDINATOR_NOT_AVAILABLE, "down")}
    assert world.share_group().kept.initializing == {}
    assert [topic.partitions for topic in world.share_group().kept.initialized.values()] == [(0, 1)]


def test_deleting_offsets_forgets_topics_that_begin_anew_with_the_next_member() -> None:
    world = emptied({"t": 2, "u": 1})
    answers = delete_state(world, "t", "t", "nowhere")
    command = world.finish()
    assert (type(command), command.topics) == (DeleteShareState, {world.ids["t"]: (0, 1)})
    (answer,) = answers
    assert [tuple(row) for row in answer.responses] == [
        ("nowhere", None, E.UNKNOWN_TOPIC_OR_PARTITION, NO_PARTITION),
        ("t", world.ids["t"], E.NONE, None),
    ]
    assert list(world.share_group().kept.initialized) == [world.ids["u"]]
    (answer,) = delete_state(world, "t")
    assert answer.responses[0][1:] == (
        None,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        "There is no offset information to delete.",
    )
    world.share_beat("a", 0, "t")
    assert world.finish().topics == {world.ids["t"]: {0: -1, 1: -1}}


def test_what_could_not_be_deleted_is_said_by_topic() -> None:
    world = emptied({"t": 2, "u": 1})
    answers = delete_state(world, "t", "u")
    world.finish({(world.ids["t"], 1): DOWN})
    (answer,) = answers
    assert {row.topic_name: row.error_code for row in answer.responses} == {
        "t": E.COORDINATOR_NOT_AVAILABLE,
        "u": E.NONE,
    }
    assert list(world.share_group().kept.deleting) == [world.ids["t"]]


def test_what_could_not_be_deleted_goes_with_its_group_also_if_others_of_its_topic_were_altered_since() -> (
    None
):
    world = emptied()
    delete_state(world, "t")
    world.finish({(world.ids["t"], 1): DOWN})
    alter(world, ("t", [(0, 5)]))
    world.finish()
    answers = world.begin(ApiKey.DELETE_GROUPS, 2, SimpleNamespace(group_id="g"))
    assert world.finish().topics == {world.ids["t"]: (0, 1)}
    assert [answer.error_code for answer in answers] == [E.NONE]


def test_a_deletion_whose_end_the_log_refuses_is_no_success_and_is_done_when_it_is_asked_for_again() -> None:
    world = emptied()
    answers = delete_state(world, "t")
    world.failing = True
    world.finish()
    (answer,) = answers
    assert answer.error_code == E.NOT_COORDINATOR
    assert list(world.share_group().kept.deleting) == [world.ids["t"]]
    world.failing = False
    answers = delete_state(world, "t")
    world.finish()
    (answer,) = answers
    assert [row.error_code for row in answer.responses] == [E.NONE]
    assert not any(world.share_group().kept)


def test_members_types_and_names_are_checked_first() -> None:
    world = ShareWorld()
    world.share_join("a")
    world.join("c", group="consumers")
    checks = (
        ("g", E.NON_EMPTY_GROUP, "The group is not empty."),
        ("consumers", E.GROUP_ID_NOT_FOUND, "Group consumers is not a share group."),
        ("", E.INVALID_GROUP_ID, "The group id is invalid."),
    )
    for group, error, text in checks:
        for answers in (alter(world, ("t", [(0, 0)]), group=group), delete_state(world, "t", group=group)):
            assert [answer[1:] for answer in answers] == [(error, text, ())]
    assert [answer[1:3] for answer in delete_state(world, "t", group="new")] == [
        (E.GROUP_ID_NOT_FOUND, "Group new not found.")
    ]


def test_all_initialized_partitions_are_asked_for_if_no_topics_are_named() -> None:
    world = emptied({"t": 2, "gone": 1})
    world.ids.pop("gone")
    world.change_topics(gone=None)
    topic = AskedTopic("t", world.ids["t"], (0, 1), frozenset({0, 1}))
    assert asked(world, None) == AskedOffsets("g", (topic,))
    assert asked(world, None, group="new") == AskedOffsets("new", ())


def test_named_partitions_are_answered_whether_they_have_state_or_not() -> None:
    world = emptied()
    named = [SimpleNamespace(topic_name=name, partitions=[1, 9, 1]) for name in ("t", "nowhere")]
    t, nowhere = asked(world, named).topics
    assert (t.id, t.partitions, t.kept) == (world.ids["t"], (1, 9), frozenset({1}))
    assert (nowhere.id, nowhere.partitions, nowhere.kept) == (None, (1, 9), frozenset())


def test_a_group_named_too_often_is_refused() -> None:
    make = request_of(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)
    parts = DESCRIBE_FAN_OUT.split(1, make(groups=[("g", None)] * 20), None)
    assert [part.error for part in parts] == [0] * 11 + [E.INVALID_REQUEST] * 9
    assert ShareWorld().ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, parts[-1]) == AskedOffsets("g", (), 42)


def test_refusals_are_the_error_alone() -> None:
    request: Any = SimpleNamespace(body=SimpleNamespace(group_id="g"))
    assert describe_refusal(request, 15) == AskedOffsets("g", (), 15)
    assert alter_refusal(request, 15)[1:] == (15, None, ())
    assert delete_refusal(request, 15)[1:] == (15, None, ())
