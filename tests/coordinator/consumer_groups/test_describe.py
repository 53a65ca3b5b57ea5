"""Consumer groups as ConsumerGroupDescribe tells them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kohort.coordinator.consumer_groups.describe import FAN_OUT
from kohort.coordinator.groups.groups import GroupRequest
from kohort.coordinator.shared_responses import GROUP_OPERATIONS
from kohort.protocol import ApiKey
from kohort.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tests.coordinator.consumer_groups.group_world import World


def described(world: World, group: str = "g") -> Any:
    return world.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, GroupRequest(group))


def test_a_member_has_what_it_is_to_give_up_until_it_has_proved_it() -> None:
    world = World()
    world.join("m", rack_id="r", instance_id="i", server_assignor="range")
    world.advance(1_000)
    world.join("n")
    world.beat("m", 2)
    told = described(world)._asdict()
    assert (told["group_state"], told["group_epoch"], told["assignment_epoch"]) == ("Reconciling", 3, 3)
    assert told["assignor_name"] == "range"
    member = next(each for each in told["members"] if each.member_id == "m")
    assert (member.instance_id, member.rack_id, member.member_epoch, member.member_type) == ("i", "r", 2, 1)
    assert (member.client_id, member.client_host) == ("client", "/host")
    ((topic,), (target,)) = member.assignment.topic_partitions, member.target_assignment.topic_partitions
    assert (topic.topic_name, sorted(topic.partitions)) == ("t", [0, 1, 2, 3])
    assert len(target.partitions) == 2


def test_operations_are_told_if_they_are_asked_for() -> None:
    world = World()
    world.join("m")
    asked = GroupRequest("g", with_operations=True)
    answer = world.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, asked)
    assert (answer.authorized_operations, described(world).authorized_operations) == (
        GROUP_OPERATIONS,
        -(2**31),
    )


@pytest.mark.parametrize(("group", "error", "message"), [("", 24, None), ("x", 69, "Group x not found.")])
def test_what_is_no_consumer_group_is_told_so(group: str, error: int, message: str | None) -> None:
    answer = described(World(), group)
    assert (answer.error_code, answer.error_message) == (error, message)


def test_each_group_of_a_request_is_asked_alone() -> None:
    body = ConsumerGroupDescribeRequest(["a", "b"], True)
    assert [(one.group_id, one.with_operations) for one in FAN_OUT.split(1, body, None)] == [
        ("a", True),
        ("b", True),
    ]


def test_partitions_are_listed_member_by_member_when_the_response_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_up: list[Any] = []
    world = World({"a": 5, "b": 5})
    for number in range(5):
        world.join(f"m{number}", "a", "b")
    directory = world.shard.state.topics
    group = world.shard.state.groups["g"]

    def topic_of_id(topic_id: Any) -> Any:
        looked_up.append(topic_id)
        return directory.topic_of_id(topic_id)

    monkeypatch.setattr(group, "topics", SimpleNamespace(topic_of_id=topic_of_id, version=directory.version))
    members = described(world).members
    assert (len(members), looked_up) == (5, [])
    looks = []
    for _ in members:
        looks.append(len(looked_up))
        looked_up.clear()
    assert 0 < max(looks) <= 4, "of one member: the topics that it has, and those of its target"


def test_a_response_that_is_written_later_has_the_members_as_they_were() -> None:
    world = World()
    world.join("m")
    answer = described(world)
    before = list(answer.members)
    world.advance(1_000)
    world.join("n")
    world.beat("m", 2)
    assert list(answer.members) == [answer.members[0]] == before
    assert list(described(world).members) != before
