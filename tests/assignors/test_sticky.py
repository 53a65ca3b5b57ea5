"""sticky and cooperative-sticky: golden answers, other clients' claims, two rounds."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.assignors import (
    CooperativeStickyAssignor,
    GroupAssignment,
    Member,
    RebalanceProtocol,
    StickyAssignor,
    TopicInfo,
    validate_assignment,
)
from kohort.assignors.user_data import encode_sticky
from kohort.protocol import Subscription, TopicPartition

Owned = dict[str, str]


def parse(text: str) -> list[TopicPartition]:
    """ "t0 t12 u-1": partitions of topics whose names are one letter."""
    return [TopicPartition(one[0], int(one[1:])) for one in text.split()]


def show(answer: GroupAssignment) -> Owned:
    return {name: " ".join(f"{topic}{number}" for topic, number in given) for name, given in answer.items()}


def group(wanted: Owned, owned: Owned | None = None, **generations: int) -> dict[str, Member]:
    """Members that say the same in their user data and in the fields of their subscription."""
    members = {}
    for name, topics in wanted.items():
        claims = tuple(parse((owned or {}).get(name, "")))
        generation = generations.get(name, 5)
        data = encode_sticky(claims, generation)
        members[name] = Member(name, Subscription(tuple(topics.split()), data, claims, generation))
    return members


def topics(**counts: int) -> dict[str, TopicInfo]:
    return {topic: TopicInfo(count) for topic, count in counts.items()}


def sticky(counts: dict[str, int], members: dict[str, Member]) -> Owned:
    return show(StickyAssignor().assign(topics(**counts), members))


def cooperative(counts: dict[str, int], members: dict[str, Member]) -> Owned:
    return show(CooperativeStickyAssignor().assign(topics(**counts), members))


GOLDEN = [
    pytest.param(7, {"a": "", "b": "", "c": ""}, {"a": "t0 t3 t6", "b": "t1 t4", "c": "t2 t5"}, id="fresh"),
    pytest.param(
        6, {"a": "t0 t2 t4", "b": "t1 t3 t5", "c": ""}, {"a": "t0 t2", "b": "t1 t3", "c": "t4 t5"}, id="join"
    ),
    pytest.param(6, {"a": "t0 t2", "c": "t4 t5"}, {"a": "t0 t1 t2", "c": "t3 t4 t5"}, id="leave"),
    pytest.param(
        7,
        {"a": "t0 t2", "b": "t1 t3", "c": "t4 t5"},
        {"a": "t0 t2 t6", "b": "t1 t3", "c": "t4 t5"},
        id="grow",
    ),
]


@pytest.mark.parametrize(("count", "owned", "expected"), GOLDEN)
def test_the_golden_answers(count: int, owned: Owned, expected: Owned) -> None:
    assert sticky({"t": count}, group(dict.fromkeys(owned, "t"), owned)) == expected


def test_the_first_cooperative_round_withholds_what_moves_and_the_second_gives_it() -> None:
    wanted = {"a": "t", "b": "t", "c": "t"}
    first = cooperative({"t": 6}, group(wanted, {"a": "t0 t2 t4", "b": "t1 t3 t5"}))
    assert first == {"a": "t0 t2", "b": "t1 t3", "c": ""}
    assert cooperative({"t": 6}, group(wanted, first)) == {"a": "t0 t2", "b": "t1 t3", "c": "t4 t5"}


def test_nothing_is_withheld_when_nobody_claims_anything() -> None:
    assert cooperative({"t": 2}, group({"a": "t", "b": "t"})) == {"a": "t0", "b": "t1"}


CLAIMS = [
    # what is claimed, the generations it is claimed in, and the answer for t:4 (and u:2, which a and b want)
    pytest.param({"a": "t0 t1", "b": "t2 t3"}, {}, {"a": "t0 t1", "b": "t2 t3"}, id="good"),
    pytest.param({"a": "t2 t3", "b": "t2 t3"}, {"a": 4}, {"a": "t0 t1", "b": "t2 t3"}, id="newest-wins"),
    pytest.param(
        {"a": "t2 t3", "b": "t2 t3"}, {"a": 0, "b": -1}, {"a": "t2 t3", "b": "t0 t1"}, id="0-is-real"
    ),
    pytest.param(
        {"a": "t2 t3", "b": "t2 t3"}, {"a": -1, "b": -9}, {"a": "t0 t2", "b": "t1 t3"}, id="below-minus-1"
    ),
    pytest.param({"a": "t3", "b": "t3 t0"}, {}, {"a": "t1 t3", "b": "t0 t2"}, id="rivals-both-lose"),
    pytest.param({"a": "t3 t3 t3", "b": "t0 t0"}, {}, {"a": "t1 t3", "b": "t0 t2"}, id="duplicates"),
    pytest.param({"a": "t9 t-1 x0", "b": "t4 t0"}, {}, {"a": "t1 t3", "b": "t0 t2"}, id="no-such-partition"),
]


@pytest.mark.parametrize(("owned", "generations", "expected"), CLAIMS)
def test_claims_are_other_clients_input(owned: Owned, generations: dict[str, int], expected: Owned) -> None:
    assert sticky({"t": 4}, group({"a": "t", "b": "t"}, owned, **generations)) == expected


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
def test_a_third_rival_settles_nothing_unless_it_is_newer(order: str) -> None:
    owned = dict.fromkeys(order, "t0")
    assert sticky({"t": 3}, group(dict.fromkeys(order, "t"), owned))["a"] == "t0"  # dealt, not kept
    newer = sticky({"t": 3}, group(dict.fromkeys(order, "t"), owned, c=6))
    assert newer == {"a": "t1", "b": "t2", "c": "t0"}
    older = sticky({"t": 3}, group(dict.fromkeys(order, "t"), {**owned, "c": "t0 t1"}, c=4))
    assert older["c"].split() == ["t1"]


def test_what_a_member_no_longer_wants_goes_to_others() -> None:
    assert sticky({"t": 2, "u": 2}, group({"a": "u", "b": "t u"}, {"a": "t0 t1"})) == {
        "a": "u0 u1",
        "b": "t0 t1",
    }


def test_an_idle_member_gets_nothing_and_keeps_nothing() -> None:
    assert sticky({"t": 3}, group({"a": "t", "idle": ""}, {"idle": "t0 t1"})) == {"a": "t0 t1 t2", "idle": ""}
    assert sticky({"t": 3}, group({"idle": "", "gone": "x"}, {"idle": "t0"})) == {"idle": "", "gone": ""}


def test_what_an_idle_member_still_claims_is_withheld_for_a_round() -> None:
    assert cooperative({"t": 3}, group({"a": "t", "idle": ""}, {"idle": "t0 t1"})) == {"a": "t2", "idle": ""}


def test_a_stale_claimant_gets_nothing_its_newest_owner_still_reads_kafka_12984() -> None:
    wanted = {"a": "t", "b": "u", "c": "t u"}
    owned = {"a": "t0 t1", "b": "t0 u0"}
    answer = cooperative({"t": 2, "u": 2}, group(wanted, owned, a=3, b=5))
    assert "t0" not in answer["a"].split() + answer["c"].split()


def test_rivals_both_give_up_before_either_gets_the_partition_again() -> None:
    wanted = {"a": "t", "b": "t"}
    first = cooperative({"t": 2}, group(wanted, {"a": "t0 t1", "b": "t0"}))
    assert first == {"a": "t1", "b": ""}
    assert cooperative({"t": 2}, group(wanted, first)) == {"a": "t1", "b": "t0"}


def test_a_member_that_was_away_does_not_hold_up_the_group() -> None:
    wanted = {"a": "t", "b": "t", "zombie": "t"}
    answer = cooperative({"t": 3}, group(wanted, {"a": "t0 t1", "b": "t2", "zombie": "t0 t1 t2"}, zombie=1))
    assert answer == {"a": "t0", "b": "t2", "zombie": ""}


def test_eager_sticky_reads_user_data_and_cooperative_reads_the_owned_partitions() -> None:
    claims = tuple(parse("t2 t3"))
    user_data = {"a": Member("a", Subscription(("t",), encode_sticky(claims, 1))), **group({"b": "t"})}
    owned = {"a": Member("a", Subscription(("t",), None, claims, 1)), **group({"b": "t"})}
    assert sticky({"t": 4}, user_data)["a"] == "t2 t3"
    assert sticky({"t": 4}, owned)["a"] == "t0 t2"
    assert cooperative({"t": 4}, owned)["a"] == "t2 t3"
    assert cooperative({"t": 4}, user_data)["a"] == "t0 t2"


@pytest.mark.parametrize("counts", [{}, {"t": 0}, {"t": 2}])
def test_the_ends_have_valid_answers(counts: dict[str, int]) -> None:
    assert sticky(counts, {}) == {}
    assert sticky(counts, group({"a": "t t"})) == {"a": " ".join(f"t{n}" for n in range(counts.get("t", 0)))}
    many = sticky(counts, group({f"m{i:02}": "t" for i in range(50)}))
    assert sum(len(given.split()) for given in many.values()) == counts.get("t", 0)


def test_ten_thousand_idle_members_are_no_trouble() -> None:
    members = group({**{f"m{i}": "" for i in range(10_000)}, "a": "t", "b": "t u"})
    answer = StickyAssignor().assign(topics(t=10, u=10), members)
    assert (len(answer["a"]), len(answer["b"]), sum(map(len, answer.values()))) == (10, 10, 20)


@st.composite
def hostile_groups(draw: st.DrawFn) -> tuple[dict[str, TopicInfo], dict[str, Member]]:
    """Few topics and members, so that claims collide; partitions and topics real or not."""
    known = topics(**{name: draw(st.integers(0, 7)) for name in draw(st.sets(st.sampled_from("tuv")))})
    members = {}
    same = draw(st.none() | st.lists(st.sampled_from("tuvx"), max_size=4))
    for name in draw(st.lists(st.sampled_from("abcdefg"), unique=True)):
        wanted = same if same is not None else draw(st.lists(st.sampled_from("tuvx"), max_size=4))
        claim = st.builds(TopicPartition, st.sampled_from("tuvx"), st.integers(-1, 8))
        owned = tuple(draw(st.lists(claim, max_size=8)))
        generation = draw(st.integers(-1, 3))
        data = encode_sticky(owned, generation)
        instance = draw(st.none() | st.just(f"i{name}"))
        members[name] = Member(name, Subscription(tuple(wanted), data, owned, generation), instance)
    return known, members


@given(hostile_groups(), st.randoms(use_true_random=False))
def test_any_claims_lead_to_a_valid_answer_whatever_the_order_of_members(
    case: tuple[dict[str, TopicInfo], dict[str, Member]], rnd: random.Random
) -> None:
    known, members = case
    answer = StickyAssignor().assign(known, members)
    assert answer.keys() == members.keys()
    assert validate_assignment(known, members, answer) == []
    shuffled = list(members)
    rnd.shuffle(shuffled)
    assert StickyAssignor().assign(known, {name: members[name] for name in shuffled}) == answer


@given(hostile_groups())
def test_any_cooperative_group_settles_in_two_rounds(
    case: tuple[dict[str, TopicInfo], dict[str, Member]],
) -> None:
    known, members = case
    answers: list[GroupAssignment] = []
    for generation in (10, 11, 12):
        answer = CooperativeStickyAssignor().assign(known, members)
        assert validate_assignment(known, members, answer, RebalanceProtocol.COOPERATIVE) == []
        answers.append(answer)
        members = {
            name: Member(
                name, Subscription(one.topics, None, tuple(answer[name]), generation), one.instance_id
            )
            for name, one in members.items()
        }
    assert validate_assignment(known, members, answers[1]) == []
    for name, given_first in answers[0].items():
        assert set(given_first) <= set(answers[1][name])
        assert set(answers[1][name]) == set(answers[2][name])
