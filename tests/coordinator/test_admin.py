"""DescribeGroups, ListGroups, DeleteGroups: what tools see, in each state and version.

Covers: coordinator/classic_groups/describe.py, coordinator/groups/describing.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from kohort.coordinator.admin import GroupRequest, split_delete
from kohort.coordinator.classic_groups.describe import FAN_OUT
from kohort.coordinator.groups.events import append_refused
from kohort.coordinator.shared_responses import GROUP_OPERATIONS
from kohort.protocol import ApiKey, ErrorCode
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest
from kohort.protocol.messages.describe_groups import DescribedGroupMember, DescribeGroupsRequest
from tests.coordinator.bodies import subscription
from tests.coordinator.driver import World


def split_describe(body: DescribeGroupsRequest) -> list[GroupRequest]:
    """One request for each group, as the coordinator makes them."""
    return list(FAN_OUT.split(6, body, None))


class TestDescribe:
    @pytest.mark.row("3.10/missing", "3.1/DescribeGroups-v6")
    def test_a_missing_group_is_dead_below_version_6_and_not_found_from_it_on(self) -> None:
        old, new = World().describe("missing", 5), World().describe("missing", 6)
        assert (old.error_code, old.group_state, old.error_message) == (0, "Dead", None)
        assert (new.error_code, new.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
        assert new.error_message == "Group missing not found."
        assert (old.group_id, new.group_id) == ("missing", "missing")

    @pytest.mark.row("3.10/states")
    def test_stable_shows_everything(self) -> None:
        world = World()
        (a,) = world.stable()
        group = world.describe()
        assert (group.group_id, group.group_state) == ("g", "Stable")
        assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
        assert group.members == [
            DescribedGroupMember(a, None, "c", "/127.0.0.1", subscription("t"), a.encode())
        ]

    @pytest.mark.row("3.10/states")
    def test_other_states_show_no_metadata_and_the_last_assignment(self) -> None:
        world = World()
        (a,) = world.stable()
        world.new_member()
        group = world.describe()
        assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
        shown = [(m.member_id, m.member_metadata, m.member_assignment) for m in group.members]
        assert shown == [(a, b"", a.encode()), ("c-2", b"", b"")]

    def test_a_first_generation_that_has_written_nothing_is_completing(self) -> None:
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
        self, group: str, version: int, expected: int
    ) -> None:
        world = World()
        world.commit("s")
        assert world.describe(group, version).authorized_operations == -(1 << 31)
        assert world.describe(group, version, operations=True).authorized_operations == expected

    def test_a_group_that_is_not_looked_up_has_an_error_and_no_state(self) -> None:
        world = World()
        world.stable()
        world.unload()
        group = world.describe()
        assert (group.error_code, group.group_id) == (ErrorCode.NOT_COORDINATOR, "g")
        assert (group.group_state, group.members) == ("", ())

    def test_a_group_that_is_asked_about_again_and_again_is_refused(self) -> None:
        world = World()
        world.stable()
        body = DescribeGroupsRequest(["g"] * 13)
        asked = [world.send(ApiKey.DESCRIBE_GROUPS, 6, request).reply for request in split_describe(body)]
        assert [group.error_code for group in asked] == [0] * 11 + [ErrorCode.INVALID_REQUEST] * 2
        assert (asked[-1].group_id, asked[-1].members) == ("g", ())

    def test_many_groups_may_be_asked_about_once_each(self) -> None:
        body = DescribeGroupsRequest([f"g{n}" for n in range(40)], True)
        asked = split_describe(body)
        assert [request.group_id for request in asked] == body.groups
        assert {(request.with_operations, request.error) for request in asked} == {(True, 0)}

    def test_no_name_is_the_empty_name(self) -> None:
        names: Any = [None]
        assert [request.group_id for request in split_describe(DescribeGroupsRequest(names))] == [""]
        assert [request.group_id for request in split_delete(DeleteGroupsRequest(names))] == [""]


class TestList:
    @pytest.mark.row("3.11/all")
    def test_every_group_with_its_type_and_state(self) -> None:
        world = World()
        world.stable()
        world.commit("s")
        world.new_member("new", type_="connect")
        world.crash()
        world.new_member("new", type_="connect")
        listed = [(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in world.list_groups()]
        assert sorted(listed) == [
            ("g", "consumer", "Stable", "classic"),
            ("new", "connect", "PreparingRebalance", "classic"),
            ("s", "", "Empty", "classic"),
        ]

    @pytest.mark.row("3.11/filters", "3.1/ListGroups-v4", "3.1/ListGroups-v5")
    @pytest.mark.parametrize(
        ("states", "types", "found"),
        [
            (["Stable"], [], ["g"]),
            ([" stable ", "EMPTY"], [], ["g", "s"]),
            (["nonsense"], [], []),
            ([], ["Classic"], ["g", "s"]),
            ([], [" classic "], []),
            ([], ["consumer"], []),
            (["Empty"], ["classic", "consumer"], ["s"]),
        ],
    )
    def test_filters_are_taken_without_regard_to_case(
        self, states: list[str], types: list[str], found: list[str]
    ) -> None:
        world = World()
        world.stable()
        world.commit("s")
        assert [g.group_id for g in world.list_groups(states, types)] == found


class TestDelete:
    def test_a_missing_group_is_not_found(self) -> None:
        assert World().delete("missing").error == ErrorCode.GROUP_ID_NOT_FOUND

    @pytest.mark.row("3.12/duplicates")
    def test_duplicates_are_folded(self) -> None:
        requests = split_delete(DeleteGroupsRequest(["a", "b", "a"]))
        assert [r.group_id for r in requests] == ["a", "b"]

    def test_it_waits_for_a_commit_that_is_under_way(self) -> None:
        world = World()
        world.commit("s")
        world.hold_writes = True
        world.commit("s", {("t", 1): 2})
        deleted = world.delete("s")
        world.write_all()
        assert deleted.error == 0
        assert world.reloaded().group_ids() == {}

    def test_whoever_comes_during_a_deletion_waits_for_it(self) -> None:
        world = World()
        (a,) = world.stable()
        world.leave("g", (a, None))
        world.hold_writes = True
        deleted = world.delete()
        joining = world.join()
        commit = world.commit("g", {("t", 2): 9})
        again = world.delete()
        assert [call.parked for call in (deleted, joining, commit, again)] == [True] * 4
        world.write_all()
        assert deleted.error == 0
        assert joining.error == ErrorCode.MEMBER_ID_REQUIRED
        assert world.fetch() == {} or again.error == 0
        assert all(not call.parked for call in world.calls)

    def test_a_failed_deletion_leaves_the_group_as_it_was(self) -> None:
        world = World()
        world.commit("s")
        world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
        assert world.delete("s").error == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert world.notes[-1] == append_refused("s", ErrorCode.NOT_ENOUGH_REPLICAS)
        assert world.fetch("s") == {("t", 0): 1}
        world.hold_writes = True
        world.commit("s", {("t", 1): 2})
        assert world.join("s").error == ErrorCode.MEMBER_ID_REQUIRED, "nobody waits for its end any more"
        world.write_all()
        deleted = world.delete("s")
        world.write_all()
        assert deleted.error == 0

    @pytest.mark.row("3.12/pending")
    def test_ids_that_were_handed_out_do_not_protect_an_empty_group(self) -> None:
        world = World()
        member = world.join().reply.member_id
        assert world.delete().error == 0
        assert world.join("g", member).error == ErrorCode.UNKNOWN_MEMBER_ID
        assert len(world.shard.timers) == 1

    def test_a_deleted_group_starts_anew_at_generation_0(self) -> None:
        world = World()
        (a,) = world.stable()
        world.leave("g", (a, None))
        world.delete()
        world.new_member()
        world.advance(0)
        assert world.groups["g"].generation == 1
