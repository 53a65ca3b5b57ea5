"""DescribeGroups: what tools see, in each state and version.

Covers: coordinator/groups/describing.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from kohort.coordinator.classic_groups.describe import FAN_OUT
from kohort.coordinator.groups.groups import GroupRequest
from kohort.coordinator.shared_responses import GROUP_OPERATIONS
from kohort.protocol import ApiKey, ErrorCode
from kohort.protocol.messages.describe_groups import DescribedGroupMember, DescribeGroupsRequest
from tests.coordinator.bodies import subscription
from tests.coordinator.driver import World


def split_describe(body: DescribeGroupsRequest) -> list[GroupRequest]:
    """One request for each group, as the coordinator makes them."""
    return list(FAN_OUT.split(6, body, None))


@pytest.mark.row("3.10/missing", "3.1/DescribeGroups-v6")
def test_a_missing_group_is_dead_below_version_6_and_not_found_from_it_on() -> None:
    old, new = World().describe("missing", 5), World().describe("missing", 6)
    assert (old.error_code, old.group_state, old.error_message) == (0, "Dead", None)
    assert (new.error_code, new.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert new.error_message == "Group missing not found."
    assert (old.group_id, new.group_id) == ("missing", "missing")


@pytest.mark.row("3.10/states")
def test_stable_shows_everything() -> None:
    world = World()
    (a,) = world.stable()
    group = world.describe()
    assert (group.group_id, group.group_state) == ("g", "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    assert group.members == [DescribedGroupMember(a, None, "c", "/127.0.0.1", subscription("t"), a.encode())]


@pytest.mark.row("3.10/states")
def test_other_states_show_no_metadata_and_the_last_assignment() -> None:
    world = World()
    (a,) = world.stable()
    world.new_member()
    group = world.describe()
    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    shown = [(m.member_id, m.member_metadata, m.member_assignment) for m in group.members]
    assert shown == [(a, b"", a.encode()), ("c-2", b"", b"")]


def test_a_first_generation_that_has_written_nothing_is_completing() -> None:
    world = World()
    world.new_member()
    world.advance(0)
    assert world.state() == "CompletingRebalance"


@pytest.mark.row("3.10/operations", "3.1/DescribeGroups-v3")
@pytest.mark.parametrize(
    ("group", "version", "expected"),
    [("s", 6, GROUP_OPERATIONS), ("missing", 5, GROUP_OPERATIONS), ("missing", 6, -(1 << 31))],
)
def test_operations_are_told_when_asked_for_and_nothing_is_wrong(
    group: str, version: int, expected: int
) -> None:
    world = World()
    world.commit("s")
    assert world.describe(group, version).authorized_operations == -(1 << 31)
    assert world.describe(group, version, operations=True).authorized_operations == expected


def test_a_group_that_is_not_looked_up_has_an_error_and_no_state() -> None:
    world = World()
    world.stable()
    world.unload()
    group = world.describe()
    assert (group.error_code, group.group_id) == (ErrorCode.NOT_COORDINATOR, "g")
    assert (group.group_state, group.members) == ("", ())


def test_a_group_that_is_asked_about_again_and_again_is_refused() -> None:
    world = World()
    world.stable()
    body = DescribeGroupsRequest(["g"] * 13)
    asked = [world.send(ApiKey.DESCRIBE_GROUPS, 6, request).reply for request in split_describe(body)]
    assert [group.error_code for group in asked] == [0] * 11 + [ErrorCode.INVALID_REQUEST] * 2
    assert (asked[-1].group_id, asked[-1].members) == ("g", ())


def test_many_groups_may_be_asked_about_once_each() -> None:
    body = DescribeGroupsRequest([f"g{n}" for n in range(40)], True)
    asked = split_describe(body)
    assert [request.group_id for request in asked] == body.groups
    assert {(request.with_operations, request.error) for request in asked} == {(True, 0)}


def test_no_name_is_the_empty_name() -> None:
    names: Any = [None]
    assert [request.group_id for request in split_describe(DescribeGroupsRequest(names))] == [""]
