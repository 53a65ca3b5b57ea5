"""What the leader finds wrong with an assignment before it is sent."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.assignors import Member, ProblemKind, RebalanceProtocol, TopicInfo, validate_assignment
from kohort.protocol import Subscription, TopicPartition

TOPICS = {"t": TopicInfo(2), "u": TopicInfo(1), "unwanted": TopicInfo(1)}


def parts(text: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(one[0], int(one[1:])) for one in text.split())


def member(member_id: str, topics: str, owned: str = "", generation: int = 1) -> Member:
    return Member(member_id, Subscription(tuple(topics.split()), None, parts(owned), generation))


MEMBERS = {one.member_id: one for one in (member("a", "t"), member("b", "t u"))}


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ({"a": "t0", "b": "t1 u0"}, []),
        ({"a": "t0", "b": "t1 u0", "c": ""}, ["'c' is assigned partitions and is no member of the group"]),
        ({"a": "t0", "b": "t0 t1 u0"}, ["t-0 is given to a and to b"]),
        ({"a": "t0 t0", "b": "t1 u0"}, ["t-0 is given to a and to a"]),
        ({"a": "t0 u0", "b": "t1"}, ["u-0 is given to a, which does not want it"]),
        ({"a": "t0 t2", "b": "t1 u0"}, ["t-2 is given to a, but does not exist"]),
        ({"a": "t-1", "b": "t0 t1 u0"}, ["t--1 is given to a, but does not exist"]),
        ({"a": "t0"}, ["t-1 is given to nobody", "u-0 is given to nobody"]),
    ],
)
def test_each_problem_is_told(assignment: dict[str, str], expected: list[str]) -> None:
    given = {member_id: parts(text) for member_id, text in assignment.items()}
    assert [str(problem) for problem in validate_assignment(TOPICS, MEMBERS, given)] == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (None, "the answer is of type NoneType: give a dict of member id to partitions"),
        ([("a", [])], "the answer is of type list: give a dict of member id to partitions"),
        ({"a": None}, "a is given None: give a list of TopicPartition"),
        ({"a": [0, 1]}, r"a is given [0, 1]: give a list of TopicPartition"),
        ({"a": [("t", "0")]}, "a is given [('t', '0')]: give a list of TopicPartition"),
        ({"a": [("t", 0.0)]}, "a is given [('t', 0.0)]: give a list of TopicPartition"),
        ({"a": [("t", 0), ([], 1)]}, "a is given [('t', 0), ([], 1)]: give a list of TopicPartition"),
        ({"a": ["t" * 200]}, "a is given ['ttt"),
        ({"a": iter(parts("t0"))}, "a is given <tuple_iterator"),
        ({3: []}, "3 is assigned partitions and is no member of the group"),
    ],
)
def test_an_answer_of_the_wrong_types_is_told_and_never_raises(answer: Any, expected: str) -> None:
    problems = validate_assignment(TOPICS, MEMBERS, answer)
    assert str(problems[0]).startswith(expected)
    assert problems[0].kind.unsafe


def test_only_missing_partitions_are_safe_to_send() -> None:
    assert [kind for kind in ProblemKind if not kind.unsafe] == [ProblemKind.MISSING]


def test_a_problem_names_its_member_and_partition() -> None:
    (problem,) = validate_assignment(TOPICS, MEMBERS, {"a": parts("t0 u0"), "b": parts("t1")})
    assert (problem.kind, problem.member_id) == (ProblemKind.NOT_SUBSCRIBED, "a")
    assert problem.partition == TopicPartition("u", 0)


@pytest.mark.parametrize(
    ("claims", "assignment", "expected"),
    [
        ({"a": ("t0 t1", 1)}, {"a": "t0", "b": ""}, []),
        ({"a": ("t0 t1", 1)}, {"a": "t0", "b": "t1"}, ["t-1 is given to b while still claimed by a"]),
        ({"a": ("t0 t1", 1), "b": ("t1", 2)}, {"a": "t0", "b": "t1"}, []),
        ({"a": ("t1", 2), "b": ("t1", 2)}, {"a": "t0", "b": "t1"}, []),
        (
            {"a": ("t1", 2), "b": ("t1", 2)},
            {"a": "t0", "b": "", "c": "t1"},
            ["t-1 is given to c while still claimed by others"],
        ),
        ({"a": ("t1", 2)}, {"a": "", "b": ""}, ["t-0 is given to nobody"]),
    ],
)
def test_a_cooperative_assignment_takes_nothing_from_its_newest_claimant(
    claims: dict[str, tuple[str, int]], assignment: dict[str, str], expected: list[str]
) -> None:
    members = {name: member(name, "t", *claims.get(name, ("", -1))) for name in assignment}
    given = {name: parts(text) for name, text in assignment.items()}
    problems = validate_assignment({"t": TopicInfo(2)}, members, given, RebalanceProtocol.COOPERATIVE)
    assert [str(problem) for problem in problems] == expected
