"""Descriptions of share groups show what a group has when they are made."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kohort.coordinator.groups.groups import GroupRequest
from kohort.coordinator.share_groups.describe import FAN_OUT, describe_error
from kohort.coordinator.shared_responses import GROUP_OPERATIONS
from kohort.protocol import ApiKey, ErrorCode
from tests.coordinator.share_groups.share_world import ShareWorld


def describe(world: ShareWorld, group: str = "g", *, operations: bool = False, error: int = 0) -> Any:
    return world.ask(ApiKey.SHARE_GROUP_DESCRIBE, 1, GroupRequest(group, operations, error))


def test_members_are_shown_as_they_were_with_topics_that_still_exist() -> None:
    world = ShareWorld({"t": 1, "u": 1})
    world.share_join("a", "t", "u")
    world.now_ms += 1_000
    world.share_beat("a", 2)
    found = describe(world)
    assert found[:6] == (0, None, "g", "Stable", 3, 3)
    assert found.assignor_name == "simple"
    world.ids.pop("u")
    world.change_topics(u=None)
    world.share_beat("a", -1)
    (member,) = found.members
    assert found.members[0] == member
    assert len(found.members) == 1
    assert member[:6] == ("a", None, 3, "client", "/host", ("t", "u"))
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_id, topic.topic_name, topic.partitions) == (world.ids["t"], "t", (0,))
    assert describe(world)[3:6] == ("Empty", 4, 3)


def test_a_group_that_cannot_be_described_is_said_with_its_reason() -> None:
    world = ShareWorld()
    world.join("c")
    assert describe(world)[:4] == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a share group.", "g", "")
    assert describe(world, "h")[:4] == (ErrorCode.GROUP_ID_NOT_FOUND, "Group h not found.", "h", "")
    assert describe(world, "")[:4] == (ErrorCode.INVALID_GROUP_ID, None, "", "")
    assert describe(world, error=42)[:4] == (42, None, "g", "")
    request: Any = SimpleNamespace(body=SimpleNamespace(group_id="g"))
    assert describe_error(request, 15)[:3] == (15, None, "g")


def test_operations_are_told_to_those_who_ask() -> None:
    world = ShareWorld()
    world.share_join("a")
    assert describe(world).authorized_operations == -(2**31)
    assert describe(world, operations=True).authorized_operations == GROUP_OPERATIONS


def test_a_group_named_too_often_is_refused() -> None:
    body = SimpleNamespace(group_ids=["g"] * 20, include_authorized_operations=False)
    errors = [each.error for each in FAN_OUT.split(1, body, None)]
    assert errors == [0] * 11 + [ErrorCode.INVALID_REQUEST] * 9
