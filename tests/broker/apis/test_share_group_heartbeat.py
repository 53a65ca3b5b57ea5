"""Share groups over the wire: the checks, epochs and descriptions of members.

Covers: broker/apis/share_group_describe.py, broker/apis/alter_share_group_offsets.py.
Covers: broker/apis/delete_share_group_offsets.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.share_requests import describe_share_group, share_beat
from tests.broker.wire import Wire, create_topic

E = ErrorCode
pytestmark = pytest.mark.kafka


def made(wire: Wire, name: str, partitions: int = 2) -> str:
    assert create_topic(wire, name, partitions).error_code == 0
    return name


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"member_id": ""}, None),
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"member_id": "x" * 37}, None),
        ({"subscribed_topic_names": None}, "SubscribedTopicNames must be set in first request."),
        ({"subscribed_topic_names": []}, "SubscribedTopicNames must be set in first request."),
        ({"member_epoch": -2}, "MemberEpoch is invalid."),
    ],
)
def test_a_heartbeat_is_checked(wire: Wire, name: str, fields: dict[str, Any], text: str | None) -> None:
    known = {"group_id": name, "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]}
    answer = wire.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, **{**known, "rack_id": None, **fields})
    assert answer[1:] == (E.INVALID_REQUEST, text, None, 0, 0, None)


def test_a_member_joins_lives_and_leaves(wire: Wire, name: str) -> None:
    topic = made(wire, name)
    answer = share_beat(wire, name, "m", 0, topic, rack="r")
    assert answer[1:6] == (E.NONE, None, "m", 2, 5_000)
    assert list(answer.assignment.topic_partitions) == []
    found = describe_share_group(wire, name)
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", 2, 2)
    assert found.assignor_name == "simple"
    (member,) = found.members
    assert (member.member_id, member.rack_id, member.member_epoch) == ("m", "r", 2)
    assert (member.client_id, member.client_host) == ("wire", "/127.0.0.1")
    assert list(member.subscribed_topic_names) == [topic]
    answer = share_beat(wire, name, "m", -1)
    assert answer[1:] == (E.NONE, None, "m", -1, 0, None)
    found = describe_share_group(wire, name)
    assert (found.group_state, found.group_epoch, list(found.members)) == ("Empty", 3, [])


def test_epochs_and_members_that_are_not_known_are_refused(wire: Wire, name: str) -> None:
    answer = share_beat(wire, name, "m", 1)
    assert answer[1:3] == (E.GROUP_ID_NOT_FOUND, f"Share group {name} not found.")
    answer = share_beat(wire, name, "m", -1)
    assert answer[1:3] == (E.GROUP_ID_NOT_FOUND, f"Group {name} not found.")
    assert share_beat(wire, name, "m", 0, "nowhere").member_epoch == 2
    answer = share_beat(wire, name, "other", 2)
    assert answer[1:3] == (E.UNKNOWN_MEMBER_ID, f"Member other is not a member of group {name}.")
    rest = "The member must abandon all its partitions and rejoin."
    answer = share_beat(wire, name, "m", 9)
    previous = "and it does not match the previous member epoch (0)"
    known = "the one known by the group coordinator (2)"
    assert answer[1:3] == (
        E.FENCED_MEMBER_EPOCH,
        f"The share group member has a greater member epoch (9) than {known}. {rest}",
    )
    answer = share_beat(wire, name, "m", 1)
    assert answer[1:3] == (
        E.FENCED_MEMBER_EPOCH,
        f"The share group member has a smaller member epoch (1) than {known}, {previous}. {rest}",
    )


def test_it_is_no_group_of_another_type(wire: Wire, name: str) -> None:
    share_beat(wire, name, "m", 0, "nowhere")
    heartbeat = {
        "group_id": name,
        "member_id": "c",
        "member_epoch": 0,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["t"],
        "server_assignor": None,
        "topic_partitions": [],
    }
    answer = wire.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, **heartbeat)
    assert answer[1:3] == (E.GROUP_ID_NOT_FOUND, f"Group {name} is not a consumer group.")
    (found,) = wire.call(ApiKey.DESCRIBE_GROUPS, 6, groups=[name]).groups
    assert (found.error_code, found.group_state) == (E.GROUP_ID_NOT_FOUND, "Dead")
    listed = wire.call(ApiKey.LIST_GROUPS, 5, states_filter=[], types_filter=["share"]).groups
    assert (name, "share", "Stable", "share") in [tuple(row) for row in listed]


def test_a_group_is_deleted_when_it_has_no_members(wire: Wire, name: str) -> None:
    share_beat(wire, name, "m", 0, "nowhere")
    for epoch, error in ((None, E.NON_EMPTY_GROUP), (-1, E.NONE), (None, E.GROUP_ID_NOT_FOUND)):
        if epoch is not None:
            share_beat(wire, name, "m", epoch)
        (result,) = wire.call(ApiKey.DELETE_GROUPS, 2, groups_names=[name]).results
        assert (result.group_id, result.error_code) == (name, error)
    found = describe_share_group(wire, name)
    assert found[:4] == (E.GROUP_ID_NOT_FOUND, f"Group {name} not found.", name, "")


def test_a_description_asks_for_a_name(wire: Wire) -> None:
    found = describe_share_group(wire, "")
    assert found[:4] == (E.INVALID_GROUP_ID, None, "", "")


def test_offsets_are_changed_without_members_only(wire: Wire, name: str) -> None:
    topic = made(wire, name)
    share_beat(wire, name, "m", 0, "nowhere")
    alter = {"group_id": name, "topics": [(topic, [(0, 0)])]}
    answer = wire.call(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, **alter)
    assert answer[1:] == (E.NON_EMPTY_GROUP, "The group is not empty.", [])
    answer = wire.call(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, group_id=name, topics=[topic])
    assert answer[1:] == (E.NON_EMPTY_GROUP, "The group is not empty.", [])


def test_partitions_that_there_are_not_cannot_be_altered(wire: Wire, name: str) -> None:
    topic = made(wire, name)
    topics = [(topic, [(9, 0)]), ("nowhere", [(0, 0)])]
    answer = wire.call(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=name, topics=topics)
    assert answer.error_code == E.NONE
    text = "This server does not host this topic-partition."
    assert {(row.topic_name, *map(tuple, row.partitions)) for row in answer.responses} == {
        (topic, (9, E.UNKNOWN_TOPIC_OR_PARTITION, text)),
        ("nowhere", (0, E.UNKNOWN_TOPIC_OR_PARTITION, text)),
    }
    assert describe_share_group(wire, name).error_code == E.GROUP_ID_NOT_FOUND


def test_offsets_that_there_are_not_cannot_be_deleted(wire: Wire, name: str) -> None:
    topic = made(wire, name)
    answer = wire.call(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, group_id=name, topics=[topic])
    assert answer[1:] == (E.GROUP_ID_NOT_FOUND, f"Group {name} not found.", [])
    share_beat(wire, name, "m", 0, "nowhere")
    share_beat(wire, name, "m", -1)
    answer = wire.call(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, group_id=name, topics=[topic, "nowhere"])
    assert {tuple(row) for row in answer.responses} == {
        (topic, None, E.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete."),
        ("nowhere", None, E.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."),
    }


@pytest.mark.parametrize("key", [ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS])
def test_a_group_has_a_name(wire: Wire, key: ApiKey) -> None:
    answer = wire.call(key, 0, group_id="", topics=[])
    assert answer[1:] == (E.INVALID_GROUP_ID, "The group id is invalid.", [])


def test_a_group_of_another_type_has_no_share_offsets(wire: Wire, name: str) -> None:
    topic = made(wire, name)
    heartbeat = {
        "group_id": name,
        "member_id": "c",
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": [topic],
        "topic_partitions": [],
    }
    assert wire.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **heartbeat).error_code == 0
    text = f"Group {name} is not a share group."
    answer = wire.call(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=name, topics=[(topic, [(0, 0)])])
    assert answer[1:3] == (E.GROUP_ID_NOT_FOUND, text)
    answer = wire.call(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, group_id=name, topics=[topic])
    assert answer[1:3] == (E.GROUP_ID_NOT_FOUND, text)
    assert share_beat(wire, name, "m", 0, topic)[1:3] == (E.GROUP_ID_NOT_FOUND, text)
