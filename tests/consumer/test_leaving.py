"""A member that is about to leave tells the group first, and reads on until the others can take over."""

from __future__ import annotations

import pytest

from kohort.assignors import CooperativeStickyAssignor, RangeAssignor, RebalanceProtocol, TopicInfo
from kohort.consumer.group.assignment import (
    ANOTHER_ROUND,
    LISTENING,
    LedGroup,
    MemberAssignors,
    assign_group,
    with_leaving,
    without_leaving,
)
from kohort.consumer.group.classic import GIVE_UP_AFTER_MS
from kohort.consumer.group.effects import Assign, NeedTopics, Revoke
from kohort.protocol import (
    ApiKey,
    ErrorCode,
    Subscription,
    TopicPartition,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from kohort.protocol.messages.join_group import JoinGroupResponseMember
from tests.consumer.configs import config
from tests.consumer.talk import P0, P1, P2, Talk, subscription_in

_TOPICS = {"orders": TopicInfo(3)}


def member(*partitions: TopicPartition, note: bytes = LISTENING, talk: Talk | None = None) -> Talk:
    """A follower in generation 1 whose leader says this with its share."""
    talk = talk or Talk()
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), leader="other")
    talk.answer(talk.sent(ApiKey.SYNC_GROUP), assignment=encode_assignment(partitions, note=note))
    talk.next(Assign)
    return talk


def announce(talk: Talk) -> bool:
    told = talk.membership.announce_leave("closed", talk.now)
    talk.advance(0)
    return told


def leader_of(**members: Subscription) -> LedGroup:
    rows = [
        JoinGroupResponseMember(
            member_id=name, metadata=encode_subscription(subscription), group_instance_id=None
        )
        for name, subscription in members.items()
    ]
    return LedGroup.of(rows)


def shares_of(led: LedGroup) -> dict[str, tuple[tuple[TopicPartition, ...], bytes]]:
    given = assign_group(CooperativeStickyAssignor(), RebalanceProtocol.COOPERATIVE, led, _TOPICS)
    shares = {name: decode_assignment(data) for name, data in given.items()}
    size = b", %d members" % len(led.members)
    return {name: (share.partitions, share.note.removesuffix(size)) for name, share in shares.items()}


def test_the_group_is_told_by_a_join_that_claims_what_is_still_read() -> None:
    talk = member(P0, P1)
    assert announce(talk)
    join = talk.sent(ApiKey.JOIN_GROUP)
    assert join.body.reason == "about to leave: closed"
    assert subscription_in(join).owned == (P0, P1)
    assert not talk.membership.may_leave


def test_it_reads_on_until_the_others_have_joined_the_round_without_it() -> None:
    talk = member(P0, P1)
    announce(talk)
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), generation=2, leader="other")
    talk.answer(talk.sent(ApiKey.SYNC_GROUP), assignment=encode_assignment((), note=ANOTHER_ROUND))
    assert talk.next(Assign) == Assign(2, (), (P0, P1))
    assert talk.membership.owned == {P0, P1}
    talk.advance(GIVE_UP_AFTER_MS - 0.5)
    early = talk.membership.may_leave
    talk.advance(0.5)
    assert (early, talk.membership.may_leave) == (False, True)
    assert talk.quiet(), "whoever drives it gives up, commits and leaves"


def test_it_takes_part_in_no_further_round_and_its_heartbeats_go_on() -> None:
    talk = member(P0)
    announce(talk)
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), generation=2, leader="other")
    talk.answer(talk.sent(ApiKey.SYNC_GROUP), assignment=encode_assignment((), note=ANOTHER_ROUND))
    talk.next(Assign)
    for _ in range(3):
        talk.advance(1_000)
        talk.answer(talk.sent(ApiKey.HEARTBEAT), error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        assert talk.quiet()


def test_a_leader_that_goes_on_as_if_nothing_was_said_is_not_waited_for() -> None:
    talk = member(P0)
    announce(talk)
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), generation=2, leader="other")
    talk.synced(talk.sent(ApiKey.SYNC_GROUP), P0, P2)
    assert talk.next(Assign) == Assign(2, (), (P0,)), "what it is given besides it does not begin to read"
    talk.advance(0)
    assert talk.membership.may_leave
    assert talk.quiet()


def test_what_another_waits_for_is_given_up_before_the_group_is_told() -> None:
    talk = member(P0, P1)
    talk.told_to_rejoin()
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), generation=2, leader="other")
    talk.answer(talk.sent(ApiKey.SYNC_GROUP), assignment=encode_assignment([P0], note=ANOTHER_ROUND))
    talk.next(Assign)
    assert announce(talk)
    assert talk.next(Revoke).partitions == (P1,)
    talk.released()
    assert subscription_in(talk.sent(ApiKey.JOIN_GROUP)).owned == (P0,)


def test_it_may_leave_when_the_group_goes_on_without_it_and_does_not_come_back() -> None:
    talk = member(P0)
    announce(talk)
    talk.answer(talk.sent(ApiKey.JOIN_GROUP), error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id="")
    assert talk.next(Revoke).lost
    assert talk.membership.may_leave
    talk.released()
    talk.advance(10_000)
    assert talk.quiet()


def test_an_announcement_that_gets_no_answer_is_made_again() -> None:
    talk = member(P0)
    announce(talk)
    talk.fail(talk.sent(ApiKey.JOIN_GROUP))
    talk.effects.clear()
    talk.advance(1_000)
    assert talk.sent(ApiKey.JOIN_GROUP).body.protocols[0].metadata.count(b"about to leave") == 1


@pytest.mark.parametrize(
    ("why", "talk"),
    [
        ("it has nothing", lambda: member()),
        ("the leader cannot know", lambda: member(P0, note=b"")),
        (
            "it is static",
            lambda: member(P0, talk=Talk(settings=config(group_instance_id="a"))),
        ),
        ("the protocol is eager", lambda: member(P0, talk=Talk(RangeAssignor()))),
        ("it has not joined", Talk),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_nothing_is_announced_where_it_is_of_no_use(why: str, talk: object) -> None:
    assert callable(talk)
    made: Talk = talk()
    made.effects.clear()
    assert not announce(made), why
    assert made.quiet()
    assert made.membership.may_leave


def test_a_leader_announces_that_it_leaves_unless_it_is_alone() -> None:
    for others in ((), ("m2",)):
        talk = Talk()
        join = talk.sent(ApiKey.JOIN_GROUP)
        data = join.body.protocols[0].metadata
        talk.joined(join, members=[(name, data) for name in ("m1", *others)])
        talk.next(NeedTopics)
        talk.topics(_TOPICS)
        talk.synced(talk.sent(ApiKey.SYNC_GROUP), P0)
        talk.next(Assign)
        assert announce(talk) is bool(others)


def test_a_leader_gives_nothing_to_who_is_about_to_leave_and_what_that_reads_to_nobody() -> None:
    leaving = Subscription(("orders",), with_leaving(None), owned=(P0,), generation=3)
    led = leader_of(a=leaving, b=Subscription(("orders",), owned=(P1, P2), generation=3))
    assert led.leaving == {"a"}
    assert shares_of(led) == {"a": ((), ANOTHER_ROUND), "b": ((P1, P2), ANOTHER_ROUND)}
    del led.members["a"]
    led.leaving.clear()
    assert shares_of(led) == {"b": ((P0, P1, P2), LISTENING)}


def test_what_a_member_owns_by_a_later_generation_it_keeps() -> None:
    late = Subscription(("orders",), with_leaving(None), owned=(P0, P1), generation=2)
    led = leader_of(a=late, b=Subscription(("orders",), owned=(P0,), generation=3))
    assert shares_of(led)["b"] == ((P0, P2), ANOTHER_ROUND)


def test_a_group_that_leaves_as_a_whole_gets_nothing() -> None:
    data = with_leaving(None)
    led = leader_of(
        a=Subscription(("orders",), data, owned=(P0,)), b=Subscription(("orders",), data, owned=(P1, P2))
    )
    assert shares_of(led) == {"a": ((), LISTENING), "b": ((), LISTENING)}


@pytest.mark.parametrize("data", [None, b"", b"\0", b"\1", b"of an assignor"])
def test_an_assignor_gets_its_user_data_back(data: bytes | None) -> None:
    assert without_leaving(with_leaving(data)) == data
    led = leader_of(a=Subscription(("orders",), with_leaving(data)), b=Subscription(("orders",), data))
    assert [member.user_data for member in led.members.values()] == [data, data]
    assert led.leaving == {"a"}


def test_every_assignor_that_is_offered_says_so() -> None:
    strategies = MemberAssignors([CooperativeStickyAssignor(), RangeAssignor()], lambda _: None)
    offered = strategies.offer(("orders",), (), -1, None, leaving=True)
    assert [name for name, _ in offered] == ["cooperative-sticky", "range"]
    for _, data in offered:
        rows = [JoinGroupResponseMember(member_id="a", metadata=data, group_instance_id=None)]
        assert LedGroup.of(rows).leaving == {"a"}
