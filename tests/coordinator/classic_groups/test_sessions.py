"""Sessions: what keeps a member, what ends it, and that nobody waits for who is gone.

Covers: coordinator/classic_groups/heartbeat.py.
"""

from __future__ import annotations

import pytest

from kohort.coordinator import MemberGone, RebalanceStarted
from kohort.coordinator.classic_groups.group import CLASSIC_TYPE
from kohort.protocol import ErrorCode
from tests.coordinator.bodies import SESSION_MS
from tests.coordinator.driver import World


def alive_after(world: World, member: str, ms: int) -> bool:
    world.advance(ms)
    return member in world.groups["g"].members


@pytest.mark.row("2.7/heartbeat", "2.7/commit", "2.7/not-sync")
@pytest.mark.parametrize("what", ["heartbeat", "commit", "join of a Stable group", "sync of a Stable group"])
def test_it_is_restarted_by(what: str) -> None:
    world = World()
    _, b = world.stable(2)
    world.advance(SESSION_MS - 1)
    if what == "heartbeat":
        assert world.heartbeat("g", b) == 0
    elif what == "commit":
        assert world.commit_errors("g", None, b, 1) == [0]
    elif what == "join of a Stable group":
        assert world.join("g", b).reply.generation_id == 1
    else:
        assert world.sync("g", b).error == 0
    assert alive_after(world, b, SESSION_MS - 1)
    assert not alive_after(world, b, 1)


@pytest.mark.parametrize("what", ["wrong generation", "fetch"])
def test_it_is_not_restarted_by(what: str) -> None:
    world = World()
    a, _ = world.stable(2)
    world.advance(SESSION_MS - 1)
    if what == "fetch":
        world.fetch()
    else:
        assert world.heartbeat("g", a, 7) == ErrorCode.ILLEGAL_GENERATION
    assert not alive_after(world, a, 1)


@pytest.mark.row("2.7/heartbeat", "3.5/states")
def test_a_heartbeat_while_preparing_counts_although_it_says_rejoin() -> None:
    world = World()
    a, _ = world.stable(2)
    world.new_member()
    world.advance(SESSION_MS - 1)
    assert world.heartbeat("g", a) == ErrorCode.REBALANCE_IN_PROGRESS
    assert alive_after(world, a, SESSION_MS - 1)


@pytest.mark.row("2.7/waits")
def test_a_member_whose_join_is_parked_does_not_expire() -> None:
    world = World()
    a, b = world.stable(2)
    world.new_member()
    parked = world.join("g", a)
    for _ in range(4):
        world.advance(SESSION_MS - 1)
        world.heartbeat("g", b)
    assert parked.parked
    assert a in world.groups["g"].members


@pytest.mark.row("2.7/new-member", "4/new-member")
def test_a_new_member_is_given_up_after_five_minutes_in_one_round() -> None:
    world = World()
    (a,) = world.stable(rebalance_ms=1_000_000)
    b, parked = world.new_member(rebalance_ms=1_000_000)
    for _ in range(59):
        world.advance(5_000)
        world.heartbeat("g", a)
    assert parked.parked
    world.advance(4_999)
    assert b in world.groups["g"].members
    world.advance(1)
    assert parked.error == ErrorCode.UNKNOWN_MEMBER_ID
    assert b not in world.groups["g"].members


@pytest.mark.row("2.7/expire")
def test_the_last_session_that_ends_empties_the_group() -> None:
    world = World()
    world.stable(2)
    world.advance(SESSION_MS)
    assert world.state() == "Empty"
    assert world.reloaded().of_type(CLASSIC_TYPE)["g"].generation == 2
    assert len(world.shard.timers) == 1, "only the retention timer is left"


@pytest.mark.row("2.7/expire", "9/30")
def test_a_session_that_ends_while_preparing_lets_the_round_end_kafka_9752() -> None:
    world = World()
    a, _ = world.stable(2)
    parked = world.join("g", a)
    world.advance(SESSION_MS)
    assert parked.reply.generation_id == 2


@pytest.mark.row("2.7/pending", "2.6/one-guard")
def test_the_initial_delay_is_waited_out_when_an_id_expires_in_it() -> None:
    world = World(initial_delay_ms=8_000)
    _, parked = world.new_member()
    world.join(session_ms=6_000)
    world.advance(7_999)
    assert parked.parked
    world.advance(1)
    assert parked.reply.generation_id == 1


def test_the_note_says_who_and_after_how_long() -> None:
    world = World()
    a, b = world.stable(2)
    world.advance(SESSION_MS - 1)
    world.heartbeat("g", a)
    world.advance(1)
    gone = next(note for note in world.notes if isinstance(note, MemberGone))
    expired = f"session of member {b} expired after 10.0 s"
    assert (gone.member, gone.cause) == (b, expired)
    started = next(note for note in reversed(world.notes) if isinstance(note, RebalanceStarted))
    assert started.cause == expired
