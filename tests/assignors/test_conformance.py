"""The conformance suite: ours pass, and each kind of fault is found and told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest

from kohort.assignors import (
    Assignor,
    GroupAssignment,
    Member,
    RangeAssignor,
    RebalanceProtocol,
    TopicInfo,
    load_assignor,
)
from kohort.assignors.conformance import CHECKS, Case
from kohort.assignors.registry import _OWN
from kohort.protocol import TopicPartition
from kohort.testing.assignors import check_assignor, standard_cases

Topics = Mapping[str, TopicInfo]
Members = Mapping[str, Member]


@pytest.mark.parametrize("name", sorted(_OWN))
def test_our_own_assignors_conform(name: str) -> None:
    check_assignor(lambda: load_assignor(name))


class GivesToAll(Assignor):
    name = "gives-to-all"

    def assign(self, topics: Topics, members: Members) -> GroupAssignment:
        return {
            member_id: [
                TopicPartition(t, n)
                for t in {*member.topics} & topics.keys()
                for n in range(topics[t].partition_count)
            ]
            for member_id, member in members.items()
        }


class IgnoresSubscriptions(RangeAssignor):
    def assign(self, topics: Topics, members: Members) -> GroupAssignment:
        answer: GroupAssignment = {member_id: [] for member_id in members}
        for topic, info in topics.items():
            for number in range(info.partition_count if members else 0):
                answer[min(members)].append(TopicPartition(topic, number))
        return answer


class LeavesOut(RangeAssignor):
    def assign(self, topics: Topics, members: Members) -> GroupAssignment:
        return {member_id: given[:2] for member_id, given in super().assign(topics, members).items()}


class ForgetsIdleMembers(RangeAssignor):
    def assign(self, topics: Topics, members: Members) -> GroupAssignment:
        return {member_id: given for member_id, given in super().assign(topics, members).items() if given}


class FirstComeFirstServed(RangeAssignor):
    def assign(self, topics: Topics, members: Members) -> GroupAssignment:
        answer: GroupAssignment = {member_id: [] for member_id in members}
        for topic, info in topics.items():
            taker = next((m for m in members.values() if topic in m.topics), None)
            if taker is not None:
                answer[taker.member_id] += [
                    TopicPartition(topic, number) for number in range(info.partition_count)
                ]
        return answer


class PassesOn(Assignor):
    """Gives everything to whoever has least of it."""

    name = "passes-on"

    def assign(self, topics: Topics, members: Members) -> GroupAssignment:
        answer: GroupAssignment = {member_id: [] for member_id in members}
        for topic, info in topics.items():
            takers = sorted(
                (len(m.subscription.owned), m.member_id) for m in members.values() if topic in m.topics
            )
            for number in range(info.partition_count if takers else 0):
                answer[takers[0][1]].append(TopicPartition(topic, number))
        return answer


class CooperativeRange(RangeAssignor):
    rebalance_protocols = frozenset({RebalanceProtocol.COOPERATIVE})


class ChangesItsInput(RangeAssignor):
    def assign(self, topics: Topics, members: Members) -> GroupAssignment:
        answer = super().assign(topics, members)
        assert isinstance(members, dict)
        members.clear()
        return answer


@pytest.mark.parametrize(
    ("broken", "story"),
    [
        (GivesToAll, r"more members than partitions: clicks-0 is given to c0 and to c1; .*and 30 more"),
        (IgnoresSubscriptions, "a topic named twice: clicks-0 is given to a, which does not want it"),
        (LeavesOut, "one member: clicks-2 is given to nobody"),
        (ForgetsIdleMembers, r"no topics: has no entry for \['a', 'b'\]"),
        (FirstComeFirstServed, "answers differently when members come as"),
        (PassesOn, "moves partitions although nothing has changed"),
        (CooperativeRange, "still claimed by"),
        (ChangesItsInput, "changed the members it was given"),
    ],
)
def test_each_fault_is_found(broken: type[Assignor], story: str) -> None:
    with pytest.raises(AssertionError, match=story):
        check_assignor(broken)


class TakesTurns(RangeAssignor):
    """Starts with another member each time it is made, as an answer that depends on chance would."""

    made = count()

    def __init__(self) -> None:
        self.turn = next(self.made)

    def assign(self, topics: Topics, members: Members) -> GroupAssignment:
        answer = super().assign(topics, members)
        if len({frozenset(member.topics) for member in members.values()}) != 1:
            return answer
        names = sorted(members)
        turn = self.turn % len(names)
        return {name: answer[other] for name, other in zip(names, names[turn:] + names[:turn], strict=True)}


@pytest.mark.parametrize(
    ("answer", "story"),
    [
        (
            lambda members: {name: ["orders", "clicks"] for name in members},
            r"a is given \['orders', 'clicks'\]: give a",
        ),
        (
            lambda members: dict.fromkeys(members, "orders"),
            "a is given 'orders': give a list of TopicPartition",
        ),
        (dict.fromkeys, "a is given None: give a list of TopicPartition"),
        (lambda members: {name: iter(()) for name in members}, "iterator.*: give a list of TopicPartition"),
        (list, "the answer is of type list: give a dict of member id to partitions"),
    ],
)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_answer_of_the_wrong_form_is_told_by_every_check(
    check: Callable[[Callable[[], Assignor], Case], None], answer: Callable[[Members], Any], story: str
) -> None:
    class Wrong(Assignor):
        name = "wrong"

        def assign(self, topics: Topics, members: Members) -> GroupAssignment:  # noqa: ARG002
            return answer(members)  # type: ignore[no-any-return]

    (case,) = (each for each in standard_cases() if each.name == "one member")
    with pytest.raises(AssertionError, match=f"assignor 'wrong', one member: .*{story}") as raised:
        check(Wrong, case)
    assert "member a wants orders, clicks" in str(raised.value)


def test_an_answer_that_depends_on_chance_is_found() -> None:
    with pytest.raises(AssertionError, match="answers differently"):
        check_assignor(TakesTurns)


def test_the_story_shows_topics_members_claims_and_answer() -> None:
    (case,) = (case for case in standard_cases() if case.name == "claims that are wrong")
    with pytest.raises(AssertionError) as raised:
        check_assignor(LeavesOut, [case])
    story = """\
assignor 'range', claims that are wrong: orders-0 is given to nobody; orders-1 is given to nobody; \
orders-2 is given to nobody; and 1 more
  topic clicks: 3 partitions
  topic orders: 6 partitions
  member a wants orders, clicks owned orders-0, orders-0, orders-1, orders-99, gone-0 got clicks-0, clicks-1
  member b wants orders owned orders-0, orders--1, clicks-2 got orders-3, orders-4
  member c wants clicks owned orders-1, clicks-0, clicks-2 got clicks-2"""
    assert str(raised.value) == story
