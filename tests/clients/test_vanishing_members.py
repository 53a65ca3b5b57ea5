"""A member that joins and vanishes at any step delays the others by the timeouts it asked for, and no longer.

It vanishes in two ways: its connection is closed, or stays open and is silent. A coordinator does not look at
connections, so that both must come to the same.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kohort.protocol import ErrorCode
from tests.clients.members import Group
from tests.clients.raw import RawMember

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

SESSION_S = 0.7
REBALANCE_S = 1.4
LONG_S = 30.0

#: What a busy machine may add, and how far the clocks of two processes may be apart.
SLACK_S = 5.0
EARLY_S = 0.05

Vanish = Callable[[RawMember], None]
NewMember = Callable[..., RawMember]


def close(member: RawMember) -> None:
    member.wire.close()


def fall_silent(member: RawMember) -> None:
    """Its connection stays open, nothing is read or sent any more."""


@pytest.fixture(params=[close, fall_silent], ids=["closed", "silent"])
def vanish(request: pytest.FixtureRequest) -> Vanish:
    way: Vanish = request.param
    return way


@pytest.fixture
def new_member(
    bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> Iterator[NewMember]:
    """A member of the test's group. Its session is long: only one that is to vanish has a short one."""
    topic, group_id = new_topic("vanish", partitions=1), group("vanish")
    with ExitStack() as stack:

        def make(
            *,
            session_s: float = LONG_S,
            rebalance_s: float = LONG_S,
            join_version: int = 9,
            instance: str | None = None,
        ) -> RawMember:
            return stack.enter_context(
                RawMember(
                    bootstrap,
                    group_id,
                    topic,
                    session_ms=int(session_s * 1000),
                    rebalance_ms=int(rebalance_s * 1000),
                    join_version=join_version,
                    instance=instance,
                )
            )

        yield make


@pytest.fixture
def stayer(new_member: NewMember) -> RawMember:
    """The leader of a settled group of one."""
    member = new_member(rebalance_s=REBALANCE_S)
    member.settle()
    return member


def brief(new_member: NewMember, **options: int | str) -> RawMember:
    """One that is to vanish."""
    return new_member(session_s=SESSION_S, rebalance_s=REBALANCE_S, **options)


def undisturbed(member: RawMember) -> None:
    """Nobody asks it to rejoin, for longer than any timeout of who vanished."""
    generation = member.generation
    assert not member.heartbeat_until_asked(REBALANCE_S + 0.3)
    assert (member.generation, member.heartbeat()) == (generation, ErrorCode.NONE)


def alone_after(member: RawMember, seconds: float, since: float) -> None:
    """It is alone and settled when these seconds are over, not before."""
    member.live_until_alone(seconds + SLACK_S)
    took = time.monotonic() - since
    assert seconds - EARLY_S <= took <= seconds + SLACK_S


def test_before_it_has_asked_to_join(stayer: RawMember, new_member: NewMember, vanish: Vanish) -> None:
    """After FindCoordinator, and in the middle of the frame of its join."""
    asked = brief(new_member)
    asked.find_coordinator()
    vanish(asked)
    frame = asked.join_frame()
    assert len(frame) == 4 + struct.unpack_from(">i", frame)[0]
    for end in (4, 14, len(frame) - 1):
        gone = brief(new_member)
        gone.wire.socket.sendall(frame[:end])
        vanish(gone)
    undisturbed(stayer)


def test_after_member_id_required(stayer: RawMember, new_member: NewMember, vanish: Vanish) -> None:
    gone = brief(new_member)
    assert gone.receive_join(gone.send_join()).error_code == ErrorCode.MEMBER_ID_REQUIRED
    vanish(gone)
    undisturbed(stayer)


def test_a_promised_id_holds_a_rebalance_up_for_one_session(
    stayer: RawMember, new_member: NewMember, vanish: Vanish
) -> None:
    """The rebalance that another member began waits for the id that was given out, until it expires."""
    gone = brief(new_member)
    started = time.monotonic()
    assert gone.receive_join(gone.send_join()).error_code == ErrorCode.MEMBER_ID_REQUIRED
    vanish(gone)
    joining = new_member()
    assert joining.receive_join(joining.send_join()).error_code == ErrorCode.MEMBER_ID_REQUIRED
    number = joining.send_join()
    assert stayer.heartbeat_until_asked(SLACK_S)
    stayer.join()
    joining.receive_join(number)
    assert SESSION_S - EARLY_S <= time.monotonic() - started <= SESSION_S + SLACK_S
    assert stayer.others == [joining.id]


@pytest.mark.parametrize("version", [0, 1, 3])
def test_after_an_old_join_was_sent(
    version: int, stayer: RawMember, new_member: NewMember, vanish: Vanish
) -> None:
    """It is a member at once, whose session runs from the answer that it did not wait for."""
    gone = brief(new_member, join_version=version)
    gone.send_join()
    vanish(gone)
    assert stayer.heartbeat_until_asked(SLACK_S)
    rejoined = time.monotonic()
    stayer.settle()
    assert len(stayer.others) == 1
    alone_after(stayer, SESSION_S, rejoined)


@pytest.mark.parametrize("version", [4, 9])
def test_after_the_second_join_was_sent(
    version: int, stayer: RawMember, new_member: NewMember, vanish: Vanish
) -> None:
    gone = brief(new_member, join_version=version)
    assert gone.receive_join(gone.send_join()).error_code == ErrorCode.MEMBER_ID_REQUIRED
    gone.send_join()
    vanish(gone)
    assert stayer.heartbeat_until_asked(SLACK_S)
    rejoined = time.monotonic()
    stayer.settle()
    assert stayer.others == [gone.id]
    alone_after(stayer, SESSION_S, rejoined)


def join_as_follower(stayer: RawMember, gone: RawMember) -> float:
    """Both have their join answers; when that was, for the session of who is to vanish."""
    assert gone.receive_join(gone.send_join()).error_code == ErrorCode.MEMBER_ID_REQUIRED
    number = gone.send_join()
    assert stayer.heartbeat_until_asked(SLACK_S)
    answered = time.monotonic()
    stayer.join()
    gone.receive_join(number)
    assert (stayer.leads, gone.leads) == (True, False)
    return answered


def test_after_the_join_answer_as_follower(stayer: RawMember, new_member: NewMember, vanish: Vanish) -> None:
    gone = brief(new_member)
    answered = join_as_follower(stayer, gone)
    vanish(gone)
    assert stayer.sync() == ErrorCode.NONE
    alone_after(stayer, SESSION_S, answered)


def test_after_sync(stayer: RawMember, new_member: NewMember, vanish: Vanish) -> None:
    gone = brief(new_member)
    join_as_follower(stayer, gone)
    number = gone.send_sync()
    synced = time.monotonic()
    assert stayer.sync() == ErrorCode.NONE
    assert gone.receive_sync(number) == ErrorCode.NONE
    vanish(gone)
    alone_after(stayer, SESSION_S, synced)


def test_while_its_sync_waits_for_the_leader(
    stayer: RawMember, new_member: NewMember, vanish: Vanish
) -> None:
    """A waiting request keeps its member alive; the session runs from its answer."""
    gone = brief(new_member)
    join_as_follower(stayer, gone)
    gone.send_sync()
    vanish(gone)
    time.sleep(SESSION_S + 0.3)
    synced = time.monotonic()
    assert stayer.sync() == ErrorCode.NONE
    alone_after(stayer, SESSION_S, synced)


def test_in_the_middle_of_a_heartbeat(stayer: RawMember, new_member: NewMember, vanish: Vanish) -> None:
    gone = brief(new_member)
    join_as_follower(stayer, gone)
    number = gone.send_sync()
    assert stayer.sync() == ErrorCode.NONE
    assert gone.receive_sync(number) == ErrorCode.NONE
    last = time.monotonic()
    assert gone.heartbeat() == ErrorCode.NONE
    gone.wire.socket.sendall(struct.pack(">ihhi", 40, 12, 4, 77))
    vanish(gone)
    alone_after(stayer, SESSION_S, last)


def test_the_leader_after_its_join_answer(new_member: NewMember, vanish: Vanish) -> None:
    """The others wait for an assignment that never comes; its session ends that, and they start again."""
    gone = brief(new_member)
    gone.join()
    assert gone.leads
    stayer = new_member(rebalance_s=REBALANCE_S)
    assert stayer.receive_join(stayer.send_join()).error_code == ErrorCode.MEMBER_ID_REQUIRED
    number = stayer.send_join()
    assert gone.heartbeat_until_asked(SLACK_S)
    answered = time.monotonic()
    gone.join()
    stayer.receive_join(number)
    assert (gone.leads, stayer.leads) == (True, False)
    vanish(gone)
    assert stayer.sync() == ErrorCode.REBALANCE_IN_PROGRESS
    assert SESSION_S - EARLY_S <= time.monotonic() - answered <= SESSION_S + SLACK_S
    stayer.settle()
    assert (stayer.leads, stayer.others) == (True, [])


def test_a_settled_leader_that_does_not_rejoin(new_member: NewMember, vanish: Vanish) -> None:
    """Who joins is held up by the rest of the leader's session."""
    gone = brief(new_member)
    settled = time.monotonic()
    gone.settle()
    vanish(gone)
    stayer = new_member(rebalance_s=REBALANCE_S)
    stayer.settle()
    assert SESSION_S - EARLY_S <= time.monotonic() - settled <= SESSION_S + SLACK_S
    assert (stayer.leads, stayer.others) == (True, [])


def test_a_member_that_heartbeats_but_does_not_rejoin_is_waited_for_by_the_rebalance_timeout(
    stayer: RawMember, new_member: NewMember
) -> None:
    gone = new_member(rebalance_s=REBALANCE_S)
    join_as_follower(stayer, gone)
    number = gone.send_sync()
    assert stayer.sync() == ErrorCode.NONE
    assert gone.receive_sync(number) == ErrorCode.NONE
    joining = new_member(rebalance_s=REBALANCE_S)
    assert joining.receive_join(joining.send_join()).error_code == ErrorCode.MEMBER_ID_REQUIRED
    started = time.monotonic()
    number = joining.send_join()
    rejoin = stayer.send_join()
    assert gone.heartbeat_until_asked(SLACK_S)
    while time.monotonic() - started < REBALANCE_S - 0.3:
        assert gone.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        time.sleep(0.05)
    stayer.receive_join(rejoin)
    joining.receive_join(number)
    assert REBALANCE_S - EARLY_S <= time.monotonic() - started <= REBALANCE_S + SLACK_S
    assert stayer.others == [joining.id]
    assert gone.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_heartbeats_but_does_not_sync_is_waited_for_by_the_rebalance_timeout(
    stayer: RawMember, new_member: NewMember
) -> None:
    """The leader of the round heartbeats and never assigns."""
    gone = brief(new_member)
    answered = join_as_follower(stayer, gone)
    number = gone.send_sync()
    while time.monotonic() - answered < REBALANCE_S - 0.3:
        assert stayer.heartbeat() == ErrorCode.NONE
        time.sleep(0.05)
    assert gone.receive_sync(number) == ErrorCode.REBALANCE_IN_PROGRESS
    assert REBALANCE_S - EARLY_S <= time.monotonic() - answered <= REBALANCE_S + SLACK_S
    assert stayer.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    gone.settle()
    assert (gone.leads, gone.others) == (True, [])


def test_a_static_member_is_missed_after_its_session_too(
    bootstrap: str, stayer: RawMember, new_member: NewMember, vanish: Vanish
) -> None:
    gone = brief(new_member, instance="one")
    number = gone.send_join()
    assert stayer.heartbeat_until_asked(SLACK_S)
    stayer.join()
    gone.receive_join(number)
    number = gone.send_sync()
    synced = time.monotonic()
    assert stayer.sync() == ErrorCode.NONE
    assert gone.receive_sync(number) == ErrorCode.NONE
    assert Group(bootstrap, gone.group).members()["one"] == gone.id
    vanish(gone)
    alone_after(stayer, SESSION_S, synced)
