"""Targets: balanced, complete, and as near to the last one as balance allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.assignors import AssignorError
from kohort.assignors.server import OWN as OWN_ASSIGNORS
from kohort.coordinator.consumer_groups.target import (
    OWN,
    ComputeTarget,
    TargetMember,
    compute_target,
    server_assignors,
)
from kohort.coordinator.groups.subscribed_topics import Topic
from kohort.offsets_topic import Partitions

A, B = UUID(int=1), UUID(int=2)
UNIFORM, RANGE = OWN


def target_of(
    assignor: str, members: Mapping[str, TargetMember], topics: Mapping[str, Topic]
) -> dict[str, Partitions]:
    """The whole target."""
    asked = ComputeTarget("g", 1, assignor, assignor, members, topics)
    return {name: member.target for name, member in members.items()} | asked.partitions(
        compute_target(asked).items()
    )


def member(*topics: str, target: Partitions | None = None, instance: str | None = None) -> TargetMember:
    return TargetMember(instance, topics, target or {})


def pairs(target: Partitions) -> set[tuple[UUID, int]]:
    return {(topic_id, number) for topic_id, numbers in target.items() for number in numbers}


def test_uniform_takes_only_from_old_members_when_one_joins() -> None:
    topics = {"a": Topic(A, 7)}
    first = target_of(UNIFORM, {"m1": member("a")}, topics)
    assert first == {"m1": {A: tuple(range(7))}}
    joined = {"m1": member("a", target=first["m1"]), "m2": member("a")}
    second = target_of(UNIFORM, joined, topics)
    assert (len(pairs(second["m1"])), len(pairs(second["m2"]))) == (4, 3)


def test_uniform_gives_only_to_those_that_stay_when_one_leaves() -> None:
    topics = {"a": Topic(A, 6)}
    members = {"m1": member("a", target={A: (0, 1)}), "m3": member("a", target={A: (4, 5)})}
    target = target_of(UNIFORM, members, topics)
    assert pairs(target["m1"]) > {(A, 0), (A, 1)}
    assert pairs(target["m3"]) > {(A, 4), (A, 5)}


def test_partitions_of_topics_that_are_gone_play_no_part() -> None:
    members = {"m1": member("a", "b", target={B: (0, 1, 2)}), "m2": member("a", "b")}
    target = target_of(UNIFORM, members, {"a": Topic(A, 2)})
    assert {name: len(pairs(one)) for name, one in target.items()} == {"m1": 1, "m2": 1}


def test_a_target_is_new_where_topics_of_the_last_one_are_gone() -> None:
    asked = ComputeTarget("g", 1, UNIFORM, UNIFORM, {"m": member("a", "b", target={B: (0,)})}, {})
    assert asked.partitions(compute_target(asked).items()) == {"m": {}}


def test_range_cuts_each_topic_with_static_members_first() -> None:
    members = {"z": member("a", "b", instance="i"), "m": member("a", "b")}
    topics = {"a": Topic(A, 3), "b": Topic(B, 3)}
    target = target_of(RANGE, members, topics)
    assert target == {"z": {A: (0, 1), B: (0, 1)}, "m": {A: (2,), B: (2,)}}


def test_members_without_topics_get_nothing() -> None:
    target = target_of(UNIFORM, {"m1": member(), "m2": member("x")}, {"a": Topic(A, 3)})
    assert target == {"m1": {}, "m2": {}}


@given(
    st.dictionaries(st.sampled_from("mnopqr"), st.sets(st.sampled_from("abc")), min_size=1),
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 9), min_size=1),
    st.dictionaries(st.sampled_from("mnopqr"), st.sets(st.sampled_from("abc")), min_size=1),
)
def test_every_partition_that_somebody_reads_has_one_member_that_reads_it(
    before: Mapping[str, set[str]], counts: Mapping[str, int], after: Mapping[str, set[str]]
) -> None:
    topics = {name: Topic(UUID(int=ord(name)), count) for name, count in counts.items()}
    last: dict[str, Partitions] = {}
    for subscriptions in (before, after):
        members = {
            name: TargetMember(None, tuple(sorted(read)), last.get(name, {}))
            for name, read in subscriptions.items()
        }
        last = target_of(UNIFORM, members, topics)
        assert last.keys() == members.keys()
        given_out = Counter(pair for one in last.values() for pair in pairs(one))
        assert set(given_out.values()) <= {1}
        read = set[str]().union(*subscriptions.values())
        assert set(given_out) == {
            (topic.id, number)
            for name, topic in topics.items()
            if name in read
            for number in range(topic.partition_count)
        }
        for name, one in last.items():
            assert one.keys() <= {topics[topic].id for topic in subscriptions[name] if topic in topics}
        again = {n: TargetMember(None, tuple(sorted(read)), last[n]) for n, read in subscriptions.items()}
        assert target_of(UNIFORM, again, topics) == last


def test_kohorts_own_are_known_by_name_without_being_loaded() -> None:
    assert set(OWN) == OWN_ASSIGNORS.keys()
    assert server_assignors("range, uniform") == {"range": "range", "uniform": "uniform"}
    with pytest.raises(AssignorError, match="no assignor is named 'nobody'"):
        server_assignors("uniform,nobody")
