"""Assignors in a member: offered, run by the leader, replaced when they fail."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from kohort.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    GroupAssignment,
    Member,
    RangeAssignor,
    RoundRobinAssignor,
    TopicInfo,
)
from kohort.assignors.validation import Problem, ProblemKind
from kohort.consumer import ConfigError
from kohort.consumer.events import AssignmentRefused, AssignorFailed
from kohort.consumer.group.assignment import LedGroup, WrongAssignmentError, with_leaving
from kohort.consumer.group.effects import Assign, Fail, ForgetCoordinator, NeedTopics, Revoke, Send
from kohort.protocol import (
    ApiKey,
    ErrorCode,
    Subscription,
    TopicPartition,
    decode_assignment,
    encode_subscription,
)
from kohort.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from kohort.protocol.messages.join_group import JoinGroupResponseMember
from kohort.statemachine import MemberState
from tests.consumer.configs import config
from tests.consumer.talk import ORDERS, P0, P1, P2, Talk, subscription_in


class _Raising(Assignor):
    name = "raising"

    def assign(self, _topics: Mapping[str, TopicInfo], _members: Mapping[str, Member]) -> GroupAssignment:
        raise RuntimeError("a bug")


class _Greedy(Assignor):
    name = "greedy"

    def assign(self, _topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        return {member: [P0, P1, P2] for member in members}


@pytest.mark.parametrize("broken", [_Raising(), _Greedy()])
def test_an_assignor_that_fails_is_reported_replaced_and_offered_no_more(broken: Assignor) -> None:
    talk = Talk(broken, RoundRobinAssignor())
    join = talk.sent(ApiKey.JOIN_GROUP)
    assert [row.name for row in join.body.protocols] == [broken.name, "roundrobin"]
    other = encode_subscription(Subscription(("orders",)))
    talk.joined(join, members=[("m1", join.body.protocols[0].metadata), ("m2", other)])
    talk.next(NeedTopics)
    talk.topics(ORDERS)
    sync = talk.sent(ApiKey.SYNC_GROUP)
    shares = [decode_assignment(row.assignment).partitions for row in sync.body.assignments]
    assert sorted(p for share in shares for p in share) == [P0, P1, P2]
    (failed,) = [event for event in talk.events if isinstance(event, AssignorFailed)]
    assert (failed.assignor, failed.used) == (broken.name, "range")
    talk.synced(sync, P0, P1)
    talk.next(Assign)
    talk.next(Revoke)
    talk.released()
    assert [row.name for row in talk.sent(ApiKey.JOIN_GROUP).body.protocols] == ["roundrobin"]


class _Forgetful(Assignor):
    name = "forgetful"

    def assign(self, _topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        return {member: [P1] if member == "m1" else [] for member in members}


class _Meddler(RangeAssignor):
    name = "meddler"

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        topics["more"] = TopicInfo(1)  # type: ignore[index]
        return super().assign(topics, members)


@pytest.mark.parametrize(
    ("broken", "partitions", "words"),
    [
        (_Raising(), (), "a bug"),
        (_Greedy(), (P0, P1, P2), "greedy: orders-0 is given to m1 and to m2; .* and to m2"),
        (_Forgetful(), (P0, P2), "forgetful: orders-0 is given to nobody; orders-2 is given to nobody"),
        (_Meddler(), (), "does not support item assignment"),
    ],
)
def test_the_report_has_the_partitions_that_the_wrong_answer_is_about(
    broken: Assignor, partitions: tuple[TopicPartition, ...], words: str
) -> None:
    talk = Talk(broken)
    join = talk.sent(ApiKey.JOIN_GROUP)
    other = encode_subscription(Subscription(("orders",)))
    talk.joined(join, members=[("m1", join.body.protocols[0].metadata), ("m2", other)])
    talk.next(NeedTopics)
    talk.topics(ORDERS)
    (failed,) = [event for event in talk.events if isinstance(event, AssignorFailed)]
    assert failed.partitions == partitions
    assert re.search(words, str(failed.error))


def test_what_failed_is_offered_last_when_the_others_have_nothing_else() -> None:
    talk = Talk(_Raising(), RoundRobinAssignor())
    for generation in (1, 2):
        talk.joined(talk.sent(ApiKey.JOIN_GROUP), generation=generation, protocol_name="raising")
        talk.next(NeedTopics)
        talk.topics(ORDERS)
        talk.synced(talk.sent(ApiKey.SYNC_GROUP), P0, P1, P2)
        talk.next(Assign)
        if generation == 1:
            talk.next(Revoke)
            talk.released()
            refused = talk.sent(ApiKey.JOIN_GROUP)
            assert [row.name for row in refused.body.protocols] == ["roundrobin"]
            talk.answer(refused, error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            again = talk.effects[0]
            assert isinstance(again, Send)
            assert [row.name for row in again.body.protocols] == ["roundrobin", "raising"]
    assert talk.quiet(), "it has no other way to ask for"


def test_a_group_without_a_common_assignor_is_still_refused() -> None:
    talk = Talk(RangeAssignor())
    talk.answer(talk.sent(ApiKey.JOIN_GROUP), error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    describe = talk.sent(ApiKey.DESCRIBE_GROUPS)
    members = [
        DescribedGroupMember(f"m{n}", "pod" if n else None, client_id="app", client_host="/h")
        for n in range(5)
    ]
    row = DescribedGroup(protocol_type="consumer", protocol_data="sticky", members=members)
    talk.membership.on_answer(describe, DescribeGroupsResponse(groups=[row]), talk.now)
    talk.take()
    talk.next(Revoke)
    text = str(talk.next(Fail).error)
    assert "no assignor of this consumer is known to all members" in text
    uses = "the group uses 'sticky', by m0 (client 'app' at /h), pod (client 'app' at /h), "
    assert f"{uses}pod (client 'app' at /h) and 2 more; this consumer offers 'range'" in text
    assert talk.membership.state is MemberState.FAILED


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (DescribedGroup(protocol_type="connect"), "protocol type 'connect', which is not a consumer's; this"),
        (
            DescribedGroup(protocol_type="consumer", members=[DescribedGroupMember("m0")]),
            "the group has not agreed on an assignor yet, by m0",
        ),
        (DescribedGroup(error_code=ErrorCode.NOT_COORDINATOR), "for a rolling change"),
        (DescribedGroup(group_state="Dead"), "for a rolling change"),
        (None, "for a rolling change"),
    ],
)
def test_a_refusal_names_what_is_known_of_the_group(row: DescribedGroup | None, words: str) -> None:
    talk = Talk(RangeAssignor())
    talk.answer(talk.sent(ApiKey.JOIN_GROUP), error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    describe = talk.sent(ApiKey.DESCRIBE_GROUPS)
    assert talk.quiet()
    if row is None:
        talk.fail(describe)
        talk.next(ForgetCoordinator)
    else:
        talk.membership.on_answer(describe, DescribeGroupsResponse(groups=[row]), talk.now)
        talk.take()
    talk.next(Revoke)
    text = str(talk.next(Fail).error)
    assert words in text
    assert text.endswith("rolling change") == (words == "for a rolling change")


def test_the_only_assignor_is_kept_although_it_fails() -> None:
    talk = Talk(_Raising())
    talk.joined(talk.sent(ApiKey.JOIN_GROUP))
    talk.next(NeedTopics)
    talk.topics(ORDERS)
    talk.synced(talk.sent(ApiKey.SYNC_GROUP), P0, P1, P2)
    assert talk.next(Assign).added == (P0, P1, P2)
    assert talk.quiet()


def test_a_member_whose_subscription_cannot_be_read_gets_nothing_and_stops_nobody() -> None:
    talk = Talk(RangeAssignor())
    join = talk.sent(ApiKey.JOIN_GROUP)
    talk.joined(join, members=[("m1", join.body.protocols[0].metadata), ("m2", b"\xff")])
    talk.next(NeedTopics)
    talk.topics(ORDERS)
    rows = talk.sent(ApiKey.SYNC_GROUP).body.assignments
    shares = {row.member_id: decode_assignment(row.assignment).partitions for row in rows}
    assert shares == {"m1": (P0, P1, P2), "m2": ()}
    assert any(isinstance(event, AssignmentRefused) for event in talk.events)


def test_mixed_rebalance_protocols_run_under_the_highest_they_share() -> None:
    class Both(CooperativeStickyAssignor):
        name = "both"

    assert Talk(Both()).membership.rebalance_protocol.name == "COOPERATIVE"
    assert Talk(RangeAssignor(), Both()).membership.rebalance_protocol.name == "EAGER"


def test_two_assignors_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="same name"):
        Talk(RangeAssignor(), RangeAssignor())


def test_the_rack_and_both_protocols_are_offered() -> None:
    settings = config(client_rack="r1")
    join = Talk(CooperativeStickyAssignor(), RangeAssignor(), settings=settings).sent(ApiKey.JOIN_GROUP)
    assert [row.name for row in join.body.protocols] == ["cooperative-sticky", "range"]
    assert subscription_in(join, 1).rack == "r1"


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "greedy: p0"),
        (5, "greedy: p0; p1; p2; p3; p4"),
        (6, "greedy: p0; p1; p2; p3; p4; and 1 more"),
        (9, "greedy: p0; p1; p2; p3; p4; and 4 more"),
    ],
)
def test_of_many_problems_of_an_assignment_the_first_are_named_and_the_others_counted(
    count: int, said: str
) -> None:
    problems = [
        Problem(ProblemKind.MISSING, f"p{n}", partition=TopicPartition("orders", count - n) if n else None)
        for n in range(count)
    ]
    error = WrongAssignmentError("greedy", problems)
    assert str(error) == said
    assert error.problems == tuple(problems)
    assert error.partitions == tuple(TopicPartition("orders", n) for n in range(1, count))


@pytest.mark.parametrize("generations", [(3, 7), (7, 3), (7, 7)])
def test_of_two_leaving_members_that_claim_a_partition_the_newer_claim_counts(
    generations: tuple[int, int],
) -> None:
    subscriptions = [
        Subscription(("orders",), with_leaving(None), (P0, own), generation)
        for own, generation in zip((P1, P2), generations, strict=True)
    ]
    rows = [
        JoinGroupResponseMember(member_id=f"m{n}", metadata=encode_subscription(each), group_instance_id=None)
        for n, each in enumerate(subscriptions)
    ]
    led = LedGroup.of(rows)
    assert led.leaving == {"m0", "m1"}
    assert led.still_read() == {P0: 7, P1: generations[0], P2: generations[1]}
