"""SyncGroup: checks in order, what members get, what the log gets.

Covers: coordinator/classic_groups/rebalance.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from kohort.coordinator.classic_groups.group import CLASSIC_TYPE
from kohort.coordinator.classic_groups.rebalance import EMPTY_ASSIGNMENT
from kohort.protocol import ErrorCode, decode_assignment, encode_assignment
from tests.coordinator.bodies import protocols
from tests.coordinator.driver import World


def completing(type_: str = "consumer") -> tuple[World, str, str]:
    world = World()
    a, b = (world.new_member(type_=type_)[0] for _ in range(2))
    world.advance(0)
    return world, a, b


@pytest.mark.row("3.4/order", "3.0/check-member")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"group": "", "type_": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group": "missing"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member": "nobody", "generation": 9}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 9, "protocol": "other"}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol": "other"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"type_": "other"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"type_": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_the_first_check_that_fails_is_the_answer(options: dict[str, Any], error: ErrorCode) -> None:
    world, a, _ = completing()
    reply = world.sync(**{"member": a, **options}).reply
    assert (reply.error_code, reply.assignment, reply.protocol_type) == (error, b"", None)


@pytest.mark.row("3.1/SyncGroup-v5")
@pytest.mark.parametrize("version", range(5))
def test_below_version_5_the_protocol_is_not_checked(version: int) -> None:
    world, _, b = completing()
    assert world.sync("g", b, version=version, type_=None, protocol=None).parked


def test_a_member_that_is_given_nothing_gets_an_empty_assignment_it_can_read() -> None:
    world, a, b = completing()
    follower = world.sync("g", b)
    world.sync("g", a, assignments={a: b"share", b: b""})
    assert follower.reply.assignment == EMPTY_ASSIGNMENT


@pytest.mark.row("3.4/left-out")
def test_a_member_the_leader_left_out_gets_an_empty_assignment_it_can_read() -> None:
    world, a, b = completing()
    follower = world.sync("g", b)
    world.sync("g", a, assignments={a: b"share"})
    assert follower.reply.assignment == EMPTY_ASSIGNMENT == encode_assignment([], version=0)
    assert decode_assignment(follower.reply.assignment).partitions == ()


@pytest.mark.row("3.4/left-out")
def test_for_another_protocol_type_it_gets_no_bytes() -> None:
    world, a, b = completing("connect")
    follower = world.sync("g", b, type_="connect")
    world.sync("g", a, assignments={a: b"share"}, type_="connect")
    assert follower.reply.assignment == b""


@pytest.mark.row("3.4/strangers")
def test_assignments_of_a_follower_and_for_strangers_are_ignored() -> None:
    world, a, b = completing()
    follower = world.sync("g", b, assignments={b: b"all mine"})
    assert follower.parked
    world.sync("g", a, assignments={a: b"1", b: b"2", "stranger": b"3"})
    assert follower.reply.assignment == b"2"
    assert [m.assignment for m in world.reloaded().of_type(CLASSIC_TYPE)["g"].members] == [b"1", b"2"]


@pytest.mark.row("3.4/second", "1.3/parked")
def test_a_second_sync_of_the_leader_waits_for_the_first_and_writes_nothing() -> None:
    world, a, b = completing()
    world.hold_writes = True
    first = world.sync("g", a, assignments={a: b"first", b: b""})
    second = world.sync("g", a, assignments={a: b"second", b: b""})
    assert first.error == ErrorCode.NOT_COORDINATOR
    assert world.held_writes == 1
    world.write()
    assert second.reply.assignment == b"first"
    assert world.reloaded().of_type(CLASSIC_TYPE)["g"].members[0].assignment == b"first"


@pytest.mark.row("3.1/SyncGroup-v5")
def test_the_answer_names_the_protocol() -> None:
    world, a, _ = completing()
    reply = world.sync("g", a).reply
    assert (reply.protocol_type, reply.protocol_name) == ("consumer", "range")


@pytest.mark.row("2.7/answers", "2.3/set-assignment")
def test_a_parked_sync_restarts_the_session_when_it_is_answered() -> None:
    world, a, b = completing()
    world.sync("g", b)
    world.advance(9_000)
    world.heartbeat("g", a)
    world.sync("g", a)
    assert world.shard.timers.deadline(("session", "g", b)) == world.now + 10_000


@pytest.mark.row("2.7/waits")
def test_a_member_with_a_parked_sync_does_not_expire() -> None:
    world, a, b = completing()
    parked = world.sync("g", b)
    for _ in range(5):
        world.advance(8_000)
        assert world.heartbeat("g", a) == 0
    assert parked.parked
    assert b in world.groups["g"].members


@pytest.mark.row("5.4/sync")
def test_the_record_names_the_metadata_of_the_chosen_protocol_only() -> None:
    world = World()
    offers = protocols(range=b"R", sticky=b"S")
    a, _ = world.new_member(offers=offers)
    world.advance(0)
    world.sync("g", a)
    (stored,) = world.reloaded().of_type(CLASSIC_TYPE)["g"].members
    assert stored.subscription == b"R"
    assert (stored.session_timeout_ms, stored.rebalance_timeout_ms) == (10_000, 60_000)
