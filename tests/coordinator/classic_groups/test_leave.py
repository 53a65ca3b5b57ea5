"""LeaveGroup: outcomes by identity, one rebalance for a batch, an answer that waits when it must."""

from __future__ import annotations

import pytest

from kohort.coordinator import MemberFenced, MemberGone, RebalanceStarted
from kohort.coordinator.classic_groups.leave import MOST_FENCED_TOLD
from kohort.coordinator.classic_groups.members import remove_member
from kohort.coordinator.groups.events import Cause
from kohort.protocol import ErrorCode
from tests.coordinator.driver import World


def outcomes(world: World, *members: tuple[str, str | None], group: str = "g") -> list[int]:
    reply = world.leave(group, *members).reply
    assert reply.error_code == 0
    return [m.error_code for m in reply.members]


@pytest.mark.row("3.6/old")
@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_old_leave_is_of_one_member_and_its_error_is_the_answer(version: int) -> None:
    world = World()
    (a,) = world.stable()
    assert world.leave("g", ("nobody", None), version=version).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.leave("g", (a, None), version=version).error == 0
    assert world.state() == "Empty"


@pytest.mark.row("3.6/missing")
def test_of_a_missing_group_everyone_is_unknown() -> None:
    assert outcomes(World(), ("a", None), ("b", "i"), group="missing") == [25, 25]


@pytest.mark.row("3.0/group-id")
def test_without_a_group_id_it_is_refused() -> None:
    assert World().leave("", ("a", None)).error == ErrorCode.INVALID_GROUP_ID


@pytest.mark.row("3.6/identity", "3.6/one-rebalance", "3.6/by-instance", "3.1/LeaveGroup-v3")
def test_each_identity_has_its_own_outcome_and_one_rebalance_follows() -> None:
    world = World()
    a, b = world.stable(2)
    world.join(instance="i")
    world.join("g", a)
    world.join("g", b)
    static = world.groups["g"].static_members["i"]
    world.settle([a, b, static])
    pending = world.join().reply.member_id
    world.notes.clear()
    members = [("", "i"), ("", "other"), ("", None), (pending, None), (b, None), (a, "i"), ("x", None)]
    reply = world.leave("g", *members).reply
    assert [m.error_code for m in reply.members] == [0, 25, 25, 0, 0, 25, 25]
    assert [(m.member_id, m.group_instance_id) for m in reply.members] == members
    assert list(world.groups["g"].members) == [a]
    assert sum(isinstance(note, RebalanceStarted) for note in world.notes) == 1


@pytest.mark.row("3.6/identity")
def test_a_static_member_may_leave_with_both_its_names() -> None:
    world = World()
    world.join(instance="i")
    world.advance(0)
    static = world.groups["g"].static_members["i"]
    world.settle([static])
    assert outcomes(world, ("wrong", "i"), (static, "i")) == [ErrorCode.FENCED_INSTANCE_ID, 0]


@pytest.mark.row("3.6/pending-only")
def test_pending_ids_that_leave_do_not_disturb_a_stable_group() -> None:
    world = World()
    world.stable()
    pending = world.join().reply.member_id
    assert outcomes(world, (pending, None)) == [0]
    assert world.state() == "Stable"
    assert ("session", "g", pending) not in world.shard.timers


@pytest.mark.row("3.6/pending")
def test_a_pending_id_leaves_whatever_instance_id_comes_with_it() -> None:
    world = World()
    pending = world.join().reply.member_id
    assert outcomes(world, (pending, "i")) == [0]
    assert outcomes(world, (pending, None)) == [ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.row("9/30", "2.2/all-joined")
def test_a_pending_id_that_leaves_lets_the_round_end_kafka_7909() -> None:
    world = World()
    (a,) = world.stable()
    pending = world.join().reply.member_id
    parked = world.join("g", a)
    assert parked.parked
    outcomes(world, (pending, None))
    assert parked.reply.generation_id == 2


@pytest.mark.row("2.3/remove")
def test_a_parked_join_of_a_member_that_leaves_is_answered() -> None:
    world = World()
    a, parked = world.new_member()
    assert outcomes(world, (a, None)) == [0]
    assert (parked.error, parked.reply.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")


@pytest.mark.row("2.3/remove")
def test_a_parked_sync_of_a_member_that_leaves_is_answered() -> None:
    world = World()
    _, b = (world.new_member()[0] for _ in range(2))
    world.advance(0)
    parked = world.sync("g", b)
    outcomes(world, (b, None))
    assert parked.error == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.row("3.6/record", "5.4/empty")
def test_the_answer_waits_for_the_record_of_an_emptied_group() -> None:
    world = World()
    (a,) = world.stable()
    world.hold_writes = True
    left = world.leave("g", (a, None))
    assert left.parked
    world.write()
    assert left.reply.members[0].error_code == 0


def test_if_that_record_fails_the_leave_says_so() -> None:
    world = World()
    (a,) = world.stable()
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.leave("g", (a, None)).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.state() == "Empty"


@pytest.mark.row("1.6/4")
def test_the_lead_passes_to_the_member_that_joined_first() -> None:
    world = World()
    a, b, c = world.stable(3)
    outcomes(world, (a, None))
    assert world.groups["g"].leader_id == b
    world.settle([b, c])
    assert world.groups["g"].leader_id == b


@pytest.mark.row("3.1/LeaveGroup-v5")
def test_the_reason_is_noted() -> None:
    world = World()
    a, _ = world.stable(2)
    world.leave("g", (a, None), reason="the consumer is being closed")
    gone = next(note for note in world.notes if isinstance(note, MemberGone))
    assert gone.cause == f"member {a} left (the consumer is being closed)"
    started = next(note for note in reversed(world.notes) if isinstance(note, RebalanceStarted))
    assert started.cause == f"member {a} left (the consumer is being closed)"


def test_of_many_refused_leavers_some_are_told_of() -> None:
    """A request may name a hundred thousand, and each event is kept in the group's history."""
    world = World()
    world.stable()
    before = len(world.notes)
    assert outcomes(world, *((f"nobody-{number}", None) for number in range(1_000))) == [25] * 1_000
    assert [type(event) for event in world.notes[before:]] == [MemberFenced] * MOST_FENCED_TOLD


def test_what_those_that_leave_together_had_is_added_to_what_is_known_of_the_others() -> None:
    world = World()
    members = world.stable(3)
    group, cause = world.groups["g"], Cause("left")
    known = group.leaving
    for member_id in members[:2]:
        remove_member(world.shard, group, group.members[member_id], cause)
    # a copy for each of them would take thousands long
    assert group.leaving is known
    assert known == {member_id: member_id.encode() for member_id in members[:2]}
