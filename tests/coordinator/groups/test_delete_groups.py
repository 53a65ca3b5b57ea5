"""DeleteGroups, and what waits for it."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.coordinator.groups.delete_groups import split_delete
from kohort.coordinator.groups.events import append_refused
from kohort.protocol import ErrorCode
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.coordinator.driver import World


def test_a_missing_group_is_not_found() -> None:
    assert World().delete("missing").error == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.row("3.12/duplicates")
def test_duplicates_are_folded() -> None:
    requests = split_delete(DeleteGroupsRequest(["a", "b", "a"]))
    assert [r.group_id for r in requests] == ["a", "b"]


def test_it_waits_for_a_commit_that_is_under_way() -> None:
    world = World()
    world.commit("s")
    world.hold_writes = True
    world.commit("s", {("t", 1): 2})
    deleted = world.delete("s")
    world.write_all()
    assert deleted.error == 0
    assert world.reloaded().group_ids() == {}


def test_whoever_comes_during_a_deletion_waits_for_it() -> None:
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


def test_a_failed_deletion_leaves_the_group_as_it_was() -> None:
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
def test_ids_that_were_handed_out_do_not_protect_an_empty_group() -> None:
    world = World()
    member = world.join().reply.member_id
    assert world.delete().error == 0
    assert world.join("g", member).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert len(world.shard.timers) == 1


def test_a_deleted_group_starts_anew_at_generation_0() -> None:
    world = World()
    (a,) = world.stable()
    world.leave("g", (a, None))
    world.delete()
    world.new_member()
    world.advance(0)
    assert world.groups["g"].generation == 1


def test_no_name_is_the_empty_name() -> None:
    names: Any = [None]
    assert [request.group_id for request in split_delete(DeleteGroupsRequest(names))] == [""]
