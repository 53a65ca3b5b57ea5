"""A member of a group that the coordinator assigns: what it tells, revokes, takes, and does about refusals.

Covers: consumer/group/consumer_group.py, consumer/group/member.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest

from kohort.assignors import TopicInfo
from kohort.client.offsets import CommittedOffset
from kohort.client.pool import Channel
from kohort.consumer.config import ConsumerConfig
from kohort.consumer.errors import FatalGroupError
from kohort.consumer.events import RebalanceCompleted, RebalanceRetried, RebalanceStarted
from kohort.consumer.group.consumer_group import LOOK_MS, SLACK_MS, ConsumerMembership
from kohort.consumer.group.effects import (
    Assign,
    Fail,
    ForgetCoordinator,
    NeedTopics,
    ResolvePattern,
    Revoke,
    Send,
    SessionAtRisk,
    SpeakClassic,
)
from kohort.protocol import ApiKey, ErrorCode, UnsupportedVersionError
from kohort.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)
from kohort.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    PartitionOffset,
    TopicOffsets,
    TopicPartitions,
)
from kohort.statemachine import MemberState
from tests.consumer.configs import config
from tests.consumer.talk import P0, P1, P2, AnyTalk

BEAT = ApiKey.CONSUMER_GROUP_HEARTBEAT
ID, OTHER_ID = UUID(int=7), UUID(int=8)
IDS = {ID: "orders", OTHER_ID: "payments"}
BROKERS_MS = 5_000
ORDERS = {"orders": TopicInfo(3)}


class Talk(AnyTalk[ConsumerMembership]):
    """The coordinator tells epochs and assignments."""

    def __init__(
        self, topics: Iterable[str] = ("orders",), *, takes_patterns: bool = True, **settings: Any
    ) -> None:
        config_ = _config(**settings)
        member = ConsumerMembership(config_, random.Random(1), takes_patterns=takes_patterns)
        super().__init__(member, topics)

    def beat(self) -> Any:
        """The next request, which must be a heartbeat."""
        self.request = self.sent(BEAT)
        return self.request.body

    def told(
        self,
        epoch: int,
        *numbers: int,
        topic: UUID = ID,
        nothing: bool = False,
        starts: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        """The pending heartbeat is answered with an assignment of one topic, or with no word of it.

        ``starts`` are the committed offsets that are told with it.
        """
        offsets = [PartitionOffset(number, offset, 3, "m") for number, offset in starts.items()]
        rows = [TopicPartitions(topic, list(numbers))] if numbers else []
        self.answer(
            self.request,
            member_epoch=epoch,
            heartbeat_interval_ms=BROKERS_MS,
            assignment=None if nothing else Assignment(rows),
            offsets=[TopicOffsets(topic, offsets)] if offsets else [],
        )

    def idle(self, epoch: int) -> None:
        """The heartbeat after one with news has none, and is answered at once."""
        assert self.beat().topic_partitions is None
        self.told(epoch, nothing=True)

    def refused(self, code: ErrorCode, message: str | None = None) -> None:
        self.answer(self.request, error_code=code, error_message=message)

    def owned(self, request: Any) -> dict[UUID, Sequence[int]] | None:
        rows = request.topic_partitions
        return None if rows is None else {row.topic_id: row.partitions for row in rows}

    def completed(self) -> list[RebalanceCompleted]:
        return [event for event in self.events if isinstance(event, RebalanceCompleted)]


def _config(**settings: Any) -> ConsumerConfig:
    return config(**{"rebalance_timeout_ms": 60_000, "session_timeout_ms": 10_000, **settings})


def joined(*numbers: int, epoch: int = 5, **settings: Any) -> Talk:
    """A member that has these partitions of the topic."""
    talk = Talk(**settings)
    talk.topics(ORDERS, IDS)
    talk.beat()
    talk.told(epoch, *numbers)
    talk.next(Assign)
    talk.beat()
    talk.told(epoch, nothing=True)
    assert talk.membership.state is MemberState.STABLE
    assert talk.quiet()
    return talk


# joining


def test_the_first_heartbeat_tells_everything_and_the_member_has_an_id_of_its_own() -> None:
    talk = Talk(client_rack="r1", protocol="consumer", assignor="range")
    body = talk.beat()
    assert (body.group_id, body.member_epoch, body.instance_id, body.rack_id) == ("billing", 0, None, "r1")
    assert (body.subscribed_topic_names, body.subscribed_topic_regex) == (("orders",), "")
    assert (body.rebalance_timeout_ms, body.server_assignor) == (60_000, "range")
    assert body.topic_partitions == []
    assert body.member_id == talk.membership.member_id != ""
    assert talk.membership.state is MemberState.PREPARING


def test_partitions_are_taken_when_the_name_of_their_topic_is_known() -> None:
    talk = Talk()
    talk.beat()
    talk.told(2, 0, 2)
    assert talk.next(NeedTopics) == NeedTopics(frozenset(), frozenset({ID}))
    talk.beat()
    assert (talk.membership.state, talk.membership.owned) == (MemberState.RECONCILING, frozenset())
    talk.topics({}, {OTHER_ID: "payments"})
    assert talk.quiet()
    talk.topics(ORDERS, IDS)
    assert talk.next(Assign) == Assign(2, (P0, P2), ())
    assert talk.quiet(), "it is told with the next heartbeat"
    assert talk.membership.state is MemberState.STABLE
    assert talk.membership.owned == {P0, P2}
    (completed,) = talk.completed()
    assert (completed.generation, completed.assigned, completed.leader) == (2, (P0, P2), False)


def test_where_new_partitions_begin_comes_with_them_if_the_coordinator_tells_it() -> None:
    talk = Talk()
    talk.beat()
    assert talk.request.body.wants_offsets
    talk.told(2, 0, 1, 2, starts={0: 7, 2: -1})
    talk.next(NeedTopics)
    talk.beat()
    talk.topics(ORDERS, IDS)
    at = {P0: CommittedOffset(7, 3, "m"), P2: None}
    assert talk.next(Assign) == Assign(2, (P0, P1, P2), (), at)


def test_where_a_partition_began_is_forgotten_when_it_is_given_up_or_the_answers_are_not_certain() -> None:
    talk = Talk()
    talk.beat()
    talk.told(2, 0, starts={0: 7})
    talk.next(NeedTopics)
    talk.beat()
    talk.fail(talk.request)
    talk.topics(ORDERS, IDS)
    sends = [effect for effect in talk.effects if isinstance(effect, Assign)]
    assert sends == [Assign(2, (P0,), ())]
    talk = joined(0)
    talk.advance_to_deadline()
    talk.beat()
    talk.told(6, 0, 1, starts={0: 5, 1: 8})
    assert talk.next(Assign) == Assign(6, (P1,), (P0,), {P1: CommittedOffset(8, 3, "m")})
    talk.beat()
    talk.told(7, 0)
    talk.next(Revoke)
    talk.released()
    while not any(isinstance(effect, Assign) for effect in talk.effects):
        talk.beat()
        talk.told(8, 0, 1)
    assert talk.next(Assign) == Assign(8, (P1,), (P0,)), "others have read it since"


def test_a_member_without_partitions_is_told_so_once() -> None:
    talk = Talk()
    talk.beat()
    talk.told(2)
    assert talk.next(Assign) == Assign(2, (), ())
    talk.beat()
    talk.told(3, nothing=True)
    talk.idle(3)
    assert talk.quiet()
    assert talk.membership.generation == 3


def test_nothing_is_sent_before_there_is_something_to_subscribe_to() -> None:
    talk = Talk(())
    assert talk.quiet()
    talk.membership.subscribe(["orders"], talk.now)
    talk.take()
    assert talk.beat().subscribed_topic_names == ("orders",)


# heartbeats


def test_a_heartbeat_tells_only_what_has_changed() -> None:
    talk = joined(0, 1)
    talk.advance_to_deadline()
    body = talk.beat()
    assert body[2:-3] == (5, None, None, -1, None, None, None, None)


def test_what_was_taken_is_told_with_the_next_heartbeat() -> None:
    talk = Talk()
    talk.beat()
    talk.told(2, 0)
    talk.next(NeedTopics)
    talk.beat()
    talk.topics(ORDERS, IDS)
    talk.next(Assign)
    talk.told(2, nothing=True)
    talk.advance_to_deadline()
    assert talk.owned(talk.beat()) == {ID: [0]}


def test_after_a_request_without_an_answer_the_next_one_tells_everything() -> None:
    talk = joined(0)
    talk.advance_to_deadline()
    talk.beat()
    talk.fail(talk.request)
    talk.next(ForgetCoordinator)
    talk.advance_to_deadline()
    body = talk.beat()
    assert (body.member_epoch, body.subscribed_topic_names, talk.owned(body)) == (5, ("orders",), {ID: [0]})
    assert body.rebalance_timeout_ms == 60_000


@pytest.mark.parametrize(
    ("partitions", "held", "settings", "expected_ms"),
    [
        (3, (0, 1, 2), {}, 200),
        (300, (0,), {}, 900),
        (9_000, (0,), {}, BROKERS_MS),
        # who has nothing cannot tell how many they are
        (300, (), {}, BROKERS_MS),
        (3, (0,), {"heartbeat_interval_ms": 1_000}, 1_000),
        (3, (0,), {"heartbeat_interval_ms": 9_000}, BROKERS_MS),
    ],
)
def test_heartbeats_come_as_often_as_the_size_of_the_group_allows(
    partitions: int, held: tuple[int, ...], settings: Mapping[str, int], expected_ms: float
) -> None:
    talk = joined(*held, **settings)
    talk.topics({"orders": TopicInfo(partitions)}, IDS)
    for _ in range(100):
        talk.advance_to_deadline()
        talk.beat()
        talk.told(5, nothing=True)
    deadline = talk.membership.next_deadline()
    assert deadline is not None
    assert deadline - talk.now == pytest.approx(expected_ms)


@pytest.mark.parametrize(("partitions", "pause_ms", "steady_ms"), [(3, 10, 200), (400, 60, 1_200)])
def test_after_a_new_epoch_heartbeats_come_often_until_all_know_of_it_and_then_ever_less_often(
    partitions: int, pause_ms: float, steady_ms: float
) -> None:
    talk = joined(0)
    talk.topics({"orders": TopicInfo(partitions)}, IDS)
    talk.advance_to_deadline()
    talk.beat()
    talk.told(6, nothing=True)
    began, at = talk.now, []
    for _ in range(24):
        talk.beat()
        at.append(talk.now - began)
        talk.told(6, nothing=True)
        talk.advance_to_deadline()
    steady = [pause_ms * number for number in range(round(steady_ms / pause_ms) + 1)]
    assert at[: len(steady)] == pytest.approx(steady)
    assert at[len(steady)] - at[len(steady) - 1] == pytest.approx(1.1 * pause_ms)


def test_a_session_of_silence_stops_delivery_until_a_heartbeat_is_answered() -> None:
    talk = joined(0)
    talk.advance(200)
    talk.beat()
    talk.advance(10_000)
    assert talk.next(SessionAtRisk).at_risk
    talk.told(5, nothing=True)
    assert not talk.next(SessionAtRisk).at_risk


# heartbeats that the coordinator holds


def test_a_heartbeat_without_news_may_be_held_until_the_next_one_is_due() -> None:
    talk = joined(0)
    talk.advance_to_deadline()
    assert talk.beat().hold_ms == 200
    assert talk.request.timeout_ms == 10_200
    talk.advance(200)
    assert talk.quiet()
    talk.told(5, nothing=True)
    assert talk.beat().hold_ms == 200


def test_one_that_tells_something_is_not_to_be_held_nor_one_that_asks_for_names() -> None:
    talk = Talk()
    assert talk.beat().hold_ms == 0
    talk.told(2, 0)
    talk.next(NeedTopics)
    assert talk.beat().hold_ms == 0
    talk.topics(ORDERS, IDS)
    talk.next(Assign)
    talk.told(2, nothing=True)
    assert (talk.owned(talk.beat()), talk.request.body.hold_ms) == ({ID: [0]}, 0), (
        "the one under way did not know"
    )
    talk.told(2, nothing=True)
    assert talk.beat().hold_ms, "at once: what comes next is to be known at once"


def test_news_of_the_member_do_not_wait_for_a_heartbeat_that_is_held() -> None:
    talk = joined(0, 1)
    talk.advance_to_deadline()
    talk.beat()
    talk.told(5, 0)
    talk.next(Revoke)
    talk.advance_to_deadline()
    assert talk.beat().hold_ms
    held = talk.request
    talk.released()
    assert talk.owned(talk.beat()) == {ID: [0]}
    told, talk.request = talk.request, held
    talk.told(6, 0, 2)
    assert talk.membership.owned == {P0}, "not before the other is answered: it says who owns what"
    talk.request = told
    talk.told(6, nothing=True)
    assert talk.next(Assign) == Assign(6, (P2,), (P0,))


def test_what_overtakes_a_held_heartbeat_says_what_is_owned_since_the_epoch_may_be_another_by_then() -> None:
    talk = joined(0)
    talk.advance_to_deadline()
    assert talk.beat().hold_ms
    talk.membership.subscribe(["orders", "payments"], talk.now)
    talk.take()
    body = talk.beat()
    assert (body.subscribed_topic_names, talk.owned(body)) == (("orders", "payments"), {ID: [0]})


def test_news_that_were_lost_with_a_held_heartbeat_are_asked_for_again() -> None:
    talk = joined(0, 1)
    talk.advance_to_deadline()
    talk.beat()
    talk.told(5, 0)
    talk.next(Revoke)
    talk.advance_to_deadline()
    talk.beat()
    held = talk.request
    talk.released()
    talk.beat()
    talk.fail(held)
    talk.told(6, nothing=True)
    assert talk.beat().rebalance_timeout_ms == 60_000, "a full request is answered with all that is assigned"


def test_the_session_counts_from_when_a_held_heartbeat_was_sent() -> None:
    talk = joined(0)
    talk.advance_to_deadline()
    talk.beat()
    talk.advance(5_000)
    talk.told(5, nothing=True)
    talk.beat()
    talk.advance(4_999)
    assert talk.quiet()
    talk.advance(1)
    assert talk.next(SessionAtRisk).at_risk


# another assignment


def test_partitions_are_revoked_first_then_told_then_others_are_taken() -> None:
    talk = joined(0, 1)
    talk.advance_to_deadline()
    talk.beat()
    talk.told(5, 0)
    assert talk.next(Revoke) == Revoke((P1,), lost=False, reason="moves to another member")
    assert talk.membership.state is MemberState.RECONCILING
    assert talk.membership.owned == {P0}
    # heartbeats go on, and say nothing of it
    talk.advance_to_deadline()
    assert talk.owned(talk.beat()) is None
    talk.told(5, nothing=True)
    talk.released()
    assert talk.owned(talk.beat()) == {ID: [0]}
    talk.told(6, 0, 2)
    assert talk.next(Assign) == Assign(6, (P2,), (P0,))
    assert [e.revoked for e in talk.completed()[1:]] == [(P1,), ()]


def test_what_was_not_taken_is_given_up_at_once_when_it_is_assigned_no_longer() -> None:
    talk = joined(0)
    talk.advance_to_deadline()
    talk.beat()
    talk.told(6, 0, 1)
    assert talk.next(Assign).added == (P1,)
    talk.beat()
    talk.answer(
        talk.request,
        member_epoch=7,
        heartbeat_interval_ms=BROKERS_MS,
        assignment=Assignment([TopicPartitions(ID, [0, 1]), TopicPartitions(OTHER_ID, [0])]),
    )
    talk.next(NeedTopics)
    talk.beat()
    talk.told(7, 0, 1)
    assert talk.owned(talk.beat()) == {ID: [0, 1]}


def test_a_full_request_in_the_middle_of_a_revocation_does_not_prove_it() -> None:
    talk = joined(0, 1)
    talk.advance_to_deadline()
    talk.beat()
    talk.told(5, 0)
    talk.next(Revoke)
    talk.advance_to_deadline()
    talk.beat()
    talk.fail(talk.request)
    talk.next(ForgetCoordinator)
    talk.advance_to_deadline()
    assert talk.owned(talk.beat()) == {ID: [0, 1]}


# giving up behind a commit


def giving(*numbers: int, starts: Mapping[int, int] = MappingProxyType({0: 3}), **settings: Any) -> Talk:
    """A member that has partitions 0 and 1 and gives these up; a heartbeat is held."""
    talk = Talk(**settings)
    talk.topics(ORDERS, IDS)
    talk.beat()
    talk.told(5, 0, 1, starts=starts)
    talk.next(Assign)
    talk.beat()
    talk.told(5, *{0, 1} - {*numbers})
    talk.next(Revoke)
    assert talk.quiet(), "there will be more to tell soon"
    return talk


def give_up(talk: Talk, offset: int = 7) -> None:
    """The commit of partition 1 is on its way."""
    talk.membership.gives_up((P1,), {P1: CommittedOffset(offset, 4, "m")}, talk.now)
    talk.take()


def given_up(body: Any) -> dict[tuple[UUID, int], tuple[int, int, str]]:
    return {(row.topic_id, p[0]): tuple(p[1:]) for row in body.gives_up for p in row.partitions}


def test_what_is_given_up_is_told_behind_its_commit_and_not_again_if_it_counted() -> None:
    talk = giving(1)
    give_up(talk)
    body = talk.beat()
    assert (given_up(body), body.topic_partitions, body.hold_ms) == ({(ID, 1): (7, 4, "m")}, None, 0)
    assert talk.request.channel is Channel.CONTROL, "the commit's connection"
    talk.told(6, nothing=True)
    assert talk.membership.given_up == {P1}
    assert talk.quiet(), "its next owner's requests come first"
    talk.advance_to_deadline()
    held = talk.beat()
    assert (held.member_epoch, held.topic_partitions, held.gives_up) == (6, None, [])
    assert held.hold_ms
    talk.released()
    assert talk.quiet()
    assert talk.membership.given_up == frozenset()


def test_what_did_not_count_is_told_when_it_is_given_up() -> None:
    talk = giving(1)
    give_up(talk)
    talk.beat()
    talk.told(5, nothing=True)
    talk.released()
    assert (talk.owned(talk.beat()), talk.request.body.gives_up) == ({ID: [0]}, [])


@pytest.mark.parametrize("counted", [True, False])
def test_the_commit_may_be_answered_first(counted: bool) -> None:
    talk = giving(1)
    give_up(talk)
    talk.beat()
    talk.released()
    assert talk.quiet()
    talk.told(6 if counted else 5, nothing=True)
    if counted:
        talk.advance_to_deadline()
    assert talk.owned(talk.beat()) == (None if counted else {ID: [0]})


def test_one_that_was_not_answered_is_repeated_as_long_as_the_commit_is_under_way() -> None:
    talk = giving(1)
    give_up(talk)
    talk.beat()
    talk.fail(talk.request)
    talk.next(ForgetCoordinator)
    give_up(talk, 8)
    body = talk.beat()
    assert (given_up(body), talk.owned(body)) == ({(ID, 1): (8, 4, "m")}, {ID: [0, 1]})
    talk.told(6, 0)
    assert talk.membership.given_up == {P1}


def test_it_is_told_of_all_partitions_at_once() -> None:
    talk = giving(0, 1)
    give_up(talk)
    assert talk.quiet()
    talk.membership.gives_up((P0,), {}, talk.now)
    talk.take()
    assert given_up(talk.beat()) == {(ID, 1): (7, 4, "m"), (ID, 0): (-1, -1, "")}


def test_only_a_coordinator_that_has_told_offsets_is_told_before_the_commit_is_answered() -> None:
    talk = giving(1, starts={})
    give_up(talk)
    assert talk.quiet()


def test_what_stays_assigned_is_not_given_up() -> None:
    talk = giving(1)
    talk.membership.gives_up((P0,), {P0: CommittedOffset(7)}, talk.now)
    talk.take()
    assert talk.quiet()


def test_an_older_answer_that_comes_late_over_another_connection_changes_nothing() -> None:
    talk = joined(0, 1)
    talk.advance_to_deadline()
    talk.beat()
    held = talk.request
    talk.membership.subscribe(["orders", "payments"], talk.now)
    talk.take()
    talk.beat()
    talk.told(6, nothing=True)
    talk.beat()
    talk.request = held
    talk.told(5, 0)
    assert talk.membership.generation == 6
    assert talk.quiet()


def test_a_topic_made_anew_is_given_up_and_taken_again() -> None:
    talk = joined(0)
    talk.advance_to_deadline()
    talk.beat()
    talk.told(6, 0, topic=OTHER_ID)
    assert talk.next(Revoke).partitions == (P0,)
    talk.released()
    assert talk.next(NeedTopics).ids == {OTHER_ID}
    assert talk.owned(talk.beat()) == {}
    talk.topics(ORDERS, {OTHER_ID: "orders"})
    assert talk.quiet(), "what was told of it may be news to the coordinator"
    talk.told(6, nothing=True)
    assert talk.next(Assign).added == (P0,)


def test_another_subscription_is_told_at_once_and_has_its_reason() -> None:
    talk = joined(0)
    talk.membership.subscribe(["payments"], talk.now)
    talk.take()
    body = talk.beat()
    assert (body.subscribed_topic_names, body.topic_partitions) == (("payments",), None)
    talk.told(5)
    assert talk.next(Revoke).reason == "the subscription changed"
    assert RebalanceStarted(5, "the subscription changed") in talk.events


# regular expressions


def test_a_regular_expression_is_the_coordinators_to_resolve() -> None:
    talk = Talk(())
    talk.membership.subscribe_pattern("ord.*", talk.now)
    talk.take()
    body = talk.beat()
    assert (body.subscribed_topic_names, body.subscribed_topic_regex) == ((), "ord.*")
    talk.told(1, 0)
    talk.next(NeedTopics)
    talk.idle(1)
    talk.topics(ORDERS, IDS)
    assert talk.membership.subscription == {"orders"}
    talk.membership.subscribe(["payments"], talk.now)
    talk.advance_to_deadline()
    talk.next(NeedTopics)
    talk.next(Assign)
    body = talk.beat()
    assert (body.subscribed_topic_names, body.subscribed_topic_regex) == (("payments",), "")


def test_one_that_it_does_not_take_is_resolved_here() -> None:
    talk = Talk(())
    talk.membership.subscribe_pattern("(?=x)", talk.now)
    talk.take()
    talk.beat()
    talk.refused(ErrorCode.INVALID_REGULAR_EXPRESSION, "invalid or unsupported Perl syntax")
    assert talk.next(ResolvePattern) == ResolvePattern("invalid or unsupported Perl syntax")
    talk.advance(1_000)
    assert talk.quiet()
    talk.membership.subscribe(["orders"], talk.now)
    talk.take()
    body = talk.beat()
    assert (body.member_epoch, body.subscribed_topic_names) == (0, ("orders",))


# refusals


@pytest.mark.parametrize(
    "code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND]
)
def test_a_member_that_the_group_goes_on_without_loses_all_and_joins_again(code: ErrorCode) -> None:
    talk = joined(0)
    talk.advance_to_deadline()
    talk.beat()
    talk.refused(code, "no more")
    revoke = talk.next(Revoke)
    assert (revoke.partitions, revoke.lost) == ((P0,), True)
    assert (talk.membership.generation, talk.membership.owned) == (-1, frozenset())
    assert talk.quiet(), "not before that is over"
    talk.released()
    body = talk.beat()
    assert (body.member_epoch, body.topic_partitions) == (0, [])


def test_names_that_come_after_it_has_left_give_it_nothing() -> None:
    talk = Talk()
    talk.beat()
    talk.told(2, 0)
    talk.next(NeedTopics)
    talk.beat()
    talk.membership.pause("no poll")
    talk.take()
    assert talk.beat().member_epoch == -1
    assert talk.next(Revoke).lost
    talk.released()
    talk.topics(ORDERS, IDS)
    assert talk.quiet()
    assert talk.membership.owned == frozenset()


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ],
)
def test_what_may_pass_is_tried_again_and_nothing_is_lost(code: ErrorCode) -> None:
    talk = joined(0)
    talk.advance_to_deadline()
    talk.beat()
    talk.refused(code)
    if code is ErrorCode.NOT_COORDINATOR:
        talk.next(ForgetCoordinator)
    assert talk.quiet()
    talk.advance_to_deadline()
    assert talk.beat().subscribed_topic_names == ("orders",)
    assert talk.membership.owned == {P0}


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (ErrorCode.GROUP_MAX_SIZE_REACHED, "is full"),
        (ErrorCode.UNSUPPORTED_ASSIGNOR, "does not have the assignor.*Supported assignors: uniform"),
        (ErrorCode.INVALID_REQUEST, "INVALID_REQUEST"),
        (ErrorCode.UNSUPPORTED_VERSION, "use 'classic'"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Read and Describe"),
    ],
)
def test_what_will_not_pass_is_final_and_says_what_to_change(code: ErrorCode, text: str) -> None:
    talk = Talk()
    talk.beat()
    talk.refused(code, "Supported assignors: uniform, range.")
    talk.next(Revoke)
    error = talk.next(Fail).error
    assert isinstance(error, FatalGroupError)
    with pytest.raises(FatalGroupError, match=text):
        raise error
    assert (talk.membership.state, talk.membership.next_deadline()) == (MemberState.FAILED, None)


def test_a_right_that_is_withdrawn_for_a_session_is_final() -> None:
    talk = joined(0)
    started = talk.now
    while not any(isinstance(effect, Fail) for effect in talk.effects):
        talk.advance_to_deadline()
        if any(isinstance(effect, SessionAtRisk) for effect in talk.effects):
            talk.next(SessionAtRisk)
        if any(isinstance(effect, Send) for effect in talk.effects):
            talk.beat()
            talk.refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        assert talk.now < started + 60_000
    assert talk.now >= started + 10_000, "a shorter withdrawal is survived"
    assert talk.membership.state is MemberState.FAILED


@pytest.mark.parametrize(
    ("code", "least_ms"),
    # the session of the seat's owner is the broker's, and may be longer than this member's
    [(ErrorCode.UNRELEASED_INSTANCE_ID, 60_000), (ErrorCode.GROUP_ID_NOT_FOUND, 10_000)],
)
def test_a_seat_that_is_taken_is_waited_for_as_long_as_a_session(code: ErrorCode, least_ms: int) -> None:
    talk = Talk(group_instance_id="i")
    tries = 0
    while not any(isinstance(effect, Fail) for effect in talk.effects):
        assert talk.beat().member_epoch == 0
        talk.refused(code)
        tries += 1
        talk.advance_to_deadline() if talk.quiet() else None
    assert least_ms <= talk.now < least_ms + 10_000
    assert tries > 5
    assert any(isinstance(event, RebalanceRetried) for event in talk.events)


def test_brokers_without_the_protocol_are_final() -> None:
    talk = Talk()
    talk.beat()
    talk.membership.on_failure(talk.request, UnsupportedVersionError("too old"), talk.now)
    talk.take()
    talk.next(Revoke)
    assert "'auto'" in str(talk.next(Fail).error)


@pytest.mark.parametrize("instance_id", [None, "pod"])
def test_where_either_protocol_will_do_a_member_gives_all_up_and_goes_on_with_the_classic_one(
    instance_id: str | None,
) -> None:
    talk = joined(0, protocol="auto", group_instance_id=instance_id)
    talk.advance(BROKERS_MS)
    talk.beat()
    talk.refused(ErrorCode.UNSUPPORTED_VERSION)
    if instance_id is None:
        assert talk.sent(ApiKey.LEAVE_GROUP).body.member_id == talk.membership.member_id
    assert talk.next(Revoke).lost
    assert talk.quiet()
    talk.released()
    talk.next(SpeakClassic)
    talk.advance(600_000)
    assert talk.quiet()


def test_a_static_member_that_another_replaces_is_fenced_for_good() -> None:
    talk = joined(0, group_instance_id="i")
    talk.advance_to_deadline()
    talk.beat()
    talk.refused(ErrorCode.FENCED_INSTANCE_ID)
    assert talk.next(Revoke).lost
    talk.next(Fail)


# commits


def test_a_commit_at_a_stale_epoch_asks_for_the_new_one() -> None:
    talk = joined(0)
    assert talk.membership.can_commit()
    assert talk.membership.identity == (talk.membership.member_id, 5)
    talk.membership.commit_refused(ErrorCode.STALE_MEMBER_EPOCH, 5, talk.now)
    talk.take()
    assert talk.beat().member_epoch == 5


def test_a_commit_of_an_unknown_member_loses_all_unless_it_is_of_before() -> None:
    talk = joined(0)
    talk.membership.commit_refused(ErrorCode.UNKNOWN_MEMBER_ID, 4, talk.now)
    talk.take()
    assert talk.quiet()
    talk.membership.commit_refused(ErrorCode.UNKNOWN_MEMBER_ID, 5, talk.now)
    talk.take()
    assert talk.next(Revoke).lost
    assert not talk.membership.can_commit()
    assert talk.membership.identity == (None, -1)


def test_a_commit_of_a_static_member_that_another_replaced_is_final() -> None:
    talk = joined(0, group_instance_id="i")
    talk.membership.commit_refused(ErrorCode.FENCED_INSTANCE_ID, 5, talk.now)
    talk.take()
    assert talk.next(Revoke).lost
    talk.next(Fail)


# leaving


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i", -2)])
def test_leaving_is_a_heartbeat_and_static_members_keep_their_seat(
    instance_id: str | None, epoch: int
) -> None:
    talk = joined(0, group_instance_id=instance_id)
    talk.membership.leave("closed")
    talk.take()
    body = talk.beat()
    assert (body.member_epoch, body.instance_id) == (epoch, instance_id)
    assert (talk.membership.state, talk.membership.next_deadline()) == (MemberState.UNJOINED, None)


def test_who_leaves_before_its_join_is_answered_says_so() -> None:
    talk = Talk()
    talk.beat()
    talk.membership.leave("closed")
    talk.take()
    assert talk.beat().member_epoch == -1


@pytest.mark.parametrize(
    ("code", "says_so"),
    [
        (ErrorCode.FENCED_MEMBER_EPOCH, True),
        (ErrorCode.UNKNOWN_MEMBER_ID, False),
        (ErrorCode.GROUP_ID_NOT_FOUND, False),
    ],
)
def test_who_leaves_before_it_has_rejoined_says_so_if_the_coordinator_may_know_it(
    code: ErrorCode, says_so: bool
) -> None:
    talk = joined(0)
    talk.advance(BROKERS_MS)
    talk.beat()
    talk.refused(code)
    assert talk.next(Revoke).lost
    talk.membership.leave("closed")
    talk.take()
    if says_so:
        assert talk.beat().member_epoch == -1
    assert talk.quiet()


def test_who_does_not_poll_leaves_with_all_lost_and_comes_back_when_asked() -> None:
    talk = joined(0)
    talk.membership.pause("no poll")
    talk.take()
    assert talk.beat().member_epoch == -1
    assert talk.next(Revoke).lost
    talk.released()
    talk.advance(60_000)
    assert talk.quiet()
    talk.membership.resume(talk.now)
    talk.take()
    assert talk.beat().member_epoch == 0
    assert RebalanceStarted(-1, "polled again") in talk.events


def described(*epochs: int, group: int, assignment: int | None = None) -> ConsumerGroupDescribeResponse:
    members = [Member(member_id=f"m{n}", member_epoch=epoch) for n, epoch in enumerate(epochs)]
    row = DescribedGroup(
        group_epoch=group, assignment_epoch=group if assignment is None else assignment, members=members
    )
    return ConsumerGroupDescribeResponse(groups=[row])


def leaving(talk: Talk) -> Send:
    assert talk.membership.announce_leave("closed", talk.now)
    talk.take()
    return talk.sent(ApiKey.CONSUMER_GROUP_DESCRIBE)


def look(talk: Talk, request: Send, response: ConsumerGroupDescribeResponse) -> None:
    talk.membership.on_answer(request, response, talk.now)
    talk.take()


def looks_again(talk: Talk) -> Send:
    """The next request that is no heartbeat; those before it are answered with nothing new."""
    asked_at, look = talk.now, None
    while look is None:
        talk.advance_to_deadline()
        while not talk.quiet():
            send = talk.next(Send)
            if send.api_key is BEAT:
                talk.request = send
                talk.told(5, nothing=True)
            else:
                look = send
    assert talk.now >= asked_at + LOOK_MS
    return look


def test_who_is_about_to_leave_withdraws_its_subscription_and_reads_on_until_the_others_are_ready() -> None:
    talk = joined(0)
    look(talk, leaving(talk), described(5, 5, group=5))
    body = talk.beat()
    assert (body.member_epoch, body.subscribed_topic_names) == (5, ())
    talk.told(5)
    talk.idle(5)
    assert talk.quiet()
    assert talk.membership.owned == {P0}
    for epochs, assignment in (((5, 6), 6), ((6, 6), 5)):
        look(talk, looks_again(talk), described(*epochs, group=6, assignment=assignment))
        assert not talk.membership.may_leave
    look(talk, looks_again(talk), described(6, 6, group=6))
    assert talk.membership.may_leave
    talk.membership.leave("closed")
    talk.take()
    assert talk.beat().member_epoch == -1


@pytest.mark.parametrize(
    ("rebalance_timeout_ms", "most_ms"),
    # a twentieth of it, where nine tenths are for undone records
    [(300_000, BROKERS_MS + SLACK_MS), (60_000, 3_000)],
)
def test_it_waits_no_longer_than_a_heartbeat_interval_of_the_brokers(
    rebalance_timeout_ms: int, most_ms: float
) -> None:
    talk = joined(0, rebalance_timeout_ms=rebalance_timeout_ms)
    request = leaving(talk)
    talk.membership.on_failure(request, UnsupportedVersionError("no such API"), talk.now)
    talk.take()
    talk.beat()
    talk.told(5)
    told_at = talk.now
    while not talk.membership.may_leave:
        talk.advance_to_deadline()
        for effect in talk.effects:
            assert isinstance(effect, Send)
            if effect.api_key is BEAT:
                talk.request = effect
                talk.told(5, nothing=True)
            else:
                talk.membership.on_failure(effect, ConnectionError("gone"), talk.now)
        talk.effects.clear()
        talk.take()
    assert talk.now == told_at + most_ms


def test_a_heartbeat_from_before_does_not_tell_that_a_pattern_is_withdrawn() -> None:
    talk = Talk(())
    talk.membership.subscribe_pattern("ord.*", talk.now)
    talk.take()
    talk.beat()
    talk.told(5, 0)
    talk.next(NeedTopics)
    talk.idle(5)
    talk.next(NeedTopics)
    talk.topics(ORDERS, IDS)
    talk.next(Assign)
    talk.advance_to_deadline()
    talk.beat()
    look(talk, leaving(talk), described(5, 5, group=5))
    talk.told(5, nothing=True)
    assert talk.beat().subscribed_topic_regex == ""
    talk.advance(2 * LOOK_MS)
    assert talk.quiet(), "the coordinator may not know yet: the others are ready for nothing"
    talk.told(5)
    look(talk, looks_again(talk), described(6, 6, group=6))
    assert talk.membership.may_leave


def test_who_is_fenced_on_the_way_out_does_not_come_back() -> None:
    talk = joined(0)
    look(talk, leaving(talk), described(5, 5, group=5))
    talk.beat()
    talk.refused(ErrorCode.UNKNOWN_MEMBER_ID)
    assert talk.next(Revoke).lost
    talk.released()
    talk.advance(60_000)
    assert talk.quiet()
    assert talk.membership.may_leave


def test_alone_nobody_waits() -> None:
    talk = joined(0)
    request = leaving(talk)
    me = Member(member_id=talk.membership.member_id, member_epoch=5)
    look(talk, request, ConsumerGroupDescribeResponse(groups=[DescribedGroup(members=[me])]))
    assert talk.membership.may_leave
    assert talk.quiet()


@pytest.mark.parametrize("talk", [joined(0, group_instance_id="i"), joined()])
def test_static_members_and_those_with_nothing_announce_nothing(talk: Talk) -> None:
    assert not talk.membership.announce_leave("closed", talk.now)
    assert talk.quiet()
