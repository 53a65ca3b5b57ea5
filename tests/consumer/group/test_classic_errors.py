"""What a member does about refusals, silence and loss.

Covers: consumer/errors.py, consumer/group/errors.py.
"""

from __future__ import annotations

import pytest

from kohort.assignors import RangeAssignor
from kohort.consumer import FatalGroupError
from kohort.consumer.events import RebalanceRetried, SessionInDoubt, StateChanged
from kohort.consumer.group.classic import REJOIN_SPREAD_MS
from kohort.consumer.group.effects import (
    Assign,
    Fail,
    ForgetCoordinator,
    NeedTopics,
    Revoke,
    Send,
    SessionAtRisk,
)
from kohort.protocol import ApiKey, ErrorCode, KafkaError
from kohort.statemachine import MemberState
from tests.consumer.configs import config
from tests.consumer.talk import P0, P1, Talk, stable, subscription_in


@pytest.mark.parametrize(
    ("code", "keeps_id"), [(ErrorCode.ILLEGAL_GENERATION, True), (ErrorCode.UNKNOWN_MEMBER_ID, False)]
)
def test_what_was_owned_is_lost_when_the_group_went_on_without_the_member(
    code: ErrorCode, keeps_id: bool
) -> None:
    talk = stable(P0, P1)
    talk.advance(1_000)
    talk.answer(talk.sent(ApiKey.HEARTBEAT), error_code=code)
    release = talk.next(Revoke)
    assert (release.partitions, release.lost) == ((P0, P1), True)
    assert (talk.membership.generation, talk.membership.owned) == (-1, frozenset())
    talk.released()
    assert talk.quiet()
    talk.advance_to_deadline()
    join = talk.sent(ApiKey.JOIN_GROUP)
    assert join.body.member_id == ("m1" if keeps_id else "")
    assert (subscription_in(join).owned, subscription_in(join).generation) == ((), -1)


def test_rejoining_after_a_loss_waits_a_moment() -> None:
    talk = stable(P0)
    talk.advance(1_000)
    talk.answer(talk.sent(ApiKey.HEARTBEAT), error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    talk.next(Revoke)
    talk.released()
    (retried,) = [event for event in talk.events if isinstance(event, RebalanceRetried)]
    assert 80 <= retried.delay_ms <= 120


def test_a_loss_while_partitions_are_given_up_is_told_and_waited_for() -> None:
    talk = stable(P0, assignors=[RangeAssignor()])
    talk.told_to_rejoin()
    talk.next(Revoke)
    talk.advance(1_000)
    talk.answer(talk.sent(ApiKey.HEARTBEAT), error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    assert talk.next(Revoke).lost
    talk.released()
    talk.advance(5_000)
    assert talk.quiet()
    talk.released()
    assert talk.sent(ApiKey.JOIN_GROUP).body.member_id == ""


def test_a_join_answered_after_the_member_was_forgotten_is_ignored() -> None:
    talk = Talk()
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), leader="other")
    sync = talk.sent(ApiKey.SYNC_GROUP)
    talk.advance(1_000)
    talk.answer(talk.sent(ApiKey.HEARTBEAT), error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    talk.next(Revoke)
    talk.synced(sync, P0)
    assert talk.quiet()
    assert (talk.membership.state, talk.membership.owned) == (MemberState.UNJOINED, frozenset())


def test_a_heartbeat_of_an_older_generation_changes_nothing() -> None:
    talk = stable(P0)
    talk.advance(1_000)
    old = talk.sent(ApiKey.HEARTBEAT)
    talk.membership.rejoin("a test", talk.now)
    talk.take()
    talk.follow(P0, generation=2)
    talk.next(Assign)
    talk.answer(old, error_code=ErrorCode.ILLEGAL_GENERATION)
    assert talk.quiet()
    assert talk.membership.owned == {P0}


def test_a_right_that_is_withdrawn_for_a_session_is_final() -> None:
    talk = stable(P0)
    started = talk.now
    while not any(isinstance(effect, Fail) for effect in talk.effects):
        talk.advance_to_deadline()
        if any(isinstance(effect, SessionAtRisk) for effect in talk.effects):
            talk.next(SessionAtRisk)
        if any(isinstance(effect, Send) for effect in talk.effects):
            talk.answer(talk.sent(ApiKey.HEARTBEAT), error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        assert talk.now < started + 60_000
    assert talk.now >= started + 10_000, "a shorter withdrawal is survived"
    assert talk.membership.state is MemberState.FAILED


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_commit_that_is_refused_says_the_same_as_a_heartbeat(code: ErrorCode) -> None:
    talk = stable(P0)
    talk.membership.commit_refused(code, 1, talk.now)
    talk.take()
    assert talk.next(Revoke).lost


def test_a_commit_that_is_refused_while_a_newer_round_is_on_changes_nothing() -> None:
    talk = stable(P0)
    talk.told_to_rejoin()
    talk.sent(ApiKey.JOIN_GROUP)
    talk.membership.commit_refused(ErrorCode.ILLEGAL_GENERATION, 1, talk.now)
    talk.take()
    assert talk.quiet()
    assert talk.membership.owned == {P0}


_RETRIED = [
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REBALANCE_IN_PROGRESS,
]
_NEW_COORDINATOR = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}


@pytest.mark.parametrize("api_key", [ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP])
@pytest.mark.parametrize("code", _RETRIED)
def test_what_may_pass_is_tried_again_after_a_pause(api_key: ApiKey, code: ErrorCode) -> None:
    talk = Talk()
    if api_key is ApiKey.SYNC_GROUP:
        talk.joined(talk.sent(ApiKey.JOIN_GROUP), leader="other")
    talk.answer(talk.sent(api_key), error_code=code)
    if code in _NEW_COORDINATOR:
        talk.next(ForgetCoordinator)
    assert talk.quiet()
    talk.advance_to_deadline()
    talk.sent(ApiKey.JOIN_GROUP)


def test_pauses_grow_while_joining_goes_on_failing() -> None:
    talk = Talk()
    for _ in range(6):
        talk.answer(talk.sent(ApiKey.JOIN_GROUP), error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        talk.advance_to_deadline()
    delays = [event.delay_ms for event in talk.events if isinstance(event, RebalanceRetried)]
    assert delays[0] <= 120
    assert delays[4] >= 800
    assert max(delays) <= 1_200


def test_a_connection_that_breaks_finds_the_coordinator_anew() -> None:
    talk = Talk()
    talk.fail(talk.sent(ApiKey.JOIN_GROUP))
    talk.next(ForgetCoordinator)
    talk.advance_to_deadline()
    talk.sent(ApiKey.JOIN_GROUP)


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "assignor"),
        (ErrorCode.INVALID_SESSION_TIMEOUT, "session_timeout_ms"),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, "group.max.size"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "billing"),
        (ErrorCode.INVALID_GROUP_ID, "billing"),
        (ErrorCode.INVALID_REQUEST, "INVALID_REQUEST"),
    ],
)
def test_what_cannot_pass_ends_the_membership_with_advice(code: ErrorCode, word: str) -> None:
    talk = Talk()
    talk.answer(talk.sent(ApiKey.JOIN_GROUP), error_code=code, member_id="")
    if code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
        talk.fail(talk.sent(ApiKey.DESCRIBE_GROUPS))
        talk.next(ForgetCoordinator)
    talk.next(Revoke)
    error = talk.next(Fail).error
    assert isinstance(error, FatalGroupError)
    assert word in str(error)
    assert isinstance(error.__cause__, KafkaError)
    assert error.__cause__.code is code
    assert talk.membership.state is MemberState.FAILED
    assert talk.events[-1] == StateChanged(MemberState.FAILED, str(error))
    talk.released()
    talk.advance(100_000)
    assert talk.quiet()
    assert talk.membership.next_deadline() is None


def test_a_protocol_that_the_member_does_not_have_ends_the_membership() -> None:
    talk = Talk()
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), leader="other", protocol_name="unknown")
    talk.next(Revoke)
    error = talk.next(Fail).error
    assert str(error) == "the group agreed on the protocol 'unknown', which this member does not have"
    assert error.__cause__ is None
    assert talk.membership.state is MemberState.FAILED


@pytest.mark.parametrize(
    ("code", "member_id", "least_ms", "most_ms"),
    [
        # a newer rebalance has begun: members join it in a moment, and not all at once
        (ErrorCode.REBALANCE_IN_PROGRESS, "m1", 0, REJOIN_SPREAD_MS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "m1", 80, 120),
        (ErrorCode.ILLEGAL_GENERATION, "m1", 80, 120),
        (ErrorCode.UNKNOWN_MEMBER_ID, "", 80, 120),
    ],
)
def test_a_sync_that_is_refused_says_why_the_member_joins_again_when_and_as_whom(
    code: ErrorCode, member_id: str, least_ms: float, most_ms: float
) -> None:
    talk = Talk()
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), leader="other")
    talk.answer(talk.sent(ApiKey.SYNC_GROUP), error_code=code)
    retried = talk.events[-1]
    assert isinstance(retried, RebalanceRetried)
    assert retried.reason == f"SYNC_GROUP was refused: {code.name}"
    assert least_ms <= retried.delay_ms <= most_ms
    if code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID):
        assert talk.next(Revoke) == Revoke((), lost=True, reason=retried.reason)
        talk.released()
    assert talk.quiet()
    deadline = talk.membership.next_deadline()
    assert deadline == talk.now + retried.delay_ms
    talk.advance_to_deadline()
    join = talk.sent(ApiKey.JOIN_GROUP).body
    assert (join.member_id, join.reason) == (member_id, retried.reason)


def test_a_fenced_member_fails_and_what_it_owned_is_lost() -> None:
    settings = config(group_instance_id="a", session_timeout_ms=10_000, heartbeat_interval_ms=1_000)
    talk = stable(P0, settings=settings)
    talk.advance(1_000)
    talk.answer(talk.sent(ApiKey.HEARTBEAT), error_code=ErrorCode.FENCED_INSTANCE_ID)
    assert talk.next(Revoke) == Revoke((P0,), lost=True, reason=str(talk.effects[0].error))  # type: ignore[attr-defined]
    assert "'a'" in str(talk.next(Fail).error)


def test_a_seat_that_is_still_taken_at_start_up_is_waited_for_one_session() -> None:
    settings = config(group_instance_id="a", session_timeout_ms=10_000)
    talk = Talk(settings=settings)
    while talk.now < 10_000:
        talk.answer(talk.sent(ApiKey.JOIN_GROUP), error_code=ErrorCode.FENCED_INSTANCE_ID, member_id="")
        assert talk.membership.state is MemberState.PREPARING
        talk.advance(1_500)
    talk.answer(talk.sent(ApiKey.JOIN_GROUP), error_code=ErrorCode.FENCED_INSTANCE_ID, member_id="")
    talk.next(Revoke)
    talk.next(Fail)


def test_heartbeats_come_at_their_interval_by_their_own_connection() -> None:
    talk = stable(P0)
    for _ in range(3):
        talk.advance(999)
        assert talk.quiet()
        talk.advance(1)
        beat = talk.sent(ApiKey.HEARTBEAT)
        assert (beat.body.generation_id, beat.body.member_id, beat.channel) == (1, "m1", "heartbeat")
        talk.answer(beat)


def test_one_heartbeat_is_under_way_at_a_time() -> None:
    talk = stable(P0)
    talk.advance(1_000)
    talk.sent(ApiKey.HEARTBEAT)
    talk.advance(5_000)
    assert talk.quiet()


def test_the_leader_heartbeats_while_topics_are_asked_for() -> None:
    talk = Talk()
    talk.joined(talk.sent(ApiKey.JOIN_GROUP))
    talk.next(NeedTopics)
    talk.advance(1_000)
    talk.sent(ApiKey.HEARTBEAT)


def test_no_heartbeats_while_a_join_is_parked() -> None:
    talk = stable(P0)
    talk.told_to_rejoin()
    talk.sent(ApiKey.JOIN_GROUP)
    talk.advance(50_000)
    assert talk.quiet()


def test_a_failed_heartbeat_is_sent_again_soon() -> None:
    talk = stable(P0)
    talk.advance(1_000)
    talk.fail(talk.sent(ApiKey.HEARTBEAT))
    talk.next(ForgetCoordinator)
    talk.advance(130)
    talk.answer(talk.sent(ApiKey.HEARTBEAT), error_code=ErrorCode.NOT_COORDINATOR)
    talk.next(ForgetCoordinator)
    assert talk.membership.owned == {P0}


def test_after_a_session_of_silence_delivery_is_in_doubt_until_a_heartbeat_is_answered() -> None:
    talk = stable(P0)
    talk.advance(1_000)
    beat = talk.sent(ApiKey.HEARTBEAT)
    talk.advance(9_000)
    assert talk.next(SessionAtRisk).at_risk
    assert any(isinstance(event, SessionInDoubt) for event in talk.events)
    assert talk.membership.owned == {P0}
    talk.answer(beat)
    assert not talk.next(SessionAtRisk).at_risk
