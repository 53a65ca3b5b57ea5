"""roundrobin: one ring of members over all topics.

Covers: assignors/_range_and_roundrobin.py.
"""

from __future__ import annotations

from kohort.assignors import Member, RoundRobinAssignor, TopicInfo
from kohort.protocol import Subscription

Text = dict[str, str]


def assign(topics: dict[str, int], wanted: Text, instances: Text | None = None) -> Text:
    infos = {topic: TopicInfo(count) for topic, count in topics.items()}
    members = {
        name: Member(name, Subscription(tuple(of.split())), (instances or {}).get(name))
        for name, of in wanted.items()
    }
    answer = RoundRobinAssignor().assign(infos, members)
    return {name: " ".join(f"{topic}{number}" for topic, number in given) for name, given in answer.items()}


def test_partitions_go_round_and_the_ring_goes_on_from_topic_to_topic() -> None:
    assert assign({"t": 3, "u": 3}, {"c0": "t u", "c1": "t u"}) == {"c0": "t0 t2 u1", "c1": "t1 u0 u2"}


def test_members_that_do_not_want_the_topic_are_passed_over() -> None:
    wanted = {"c0": "t", "c1": "t u", "c2": "t u v"}
    assert assign({"t": 1, "u": 2, "v": 3}, wanted) == {"c0": "t0", "c1": "u0", "c2": "u1 v0 v1 v2"}


def test_the_ring_goes_on_behind_the_member_that_took_the_last_partition() -> None:
    wanted = {"a": "t u", "b": "u", "c": "t u"}
    assert assign({"t": 1, "u": 2}, wanted) == {"a": "t0", "b": "u0", "c": "u1"}


def test_static_members_come_first_by_instance_id() -> None:
    assert assign({"t": 3}, {"a": "t", "b": "t", "c": "t"}, {"c": "i1", "b": "i2"}) == {
        "c": "t0",
        "b": "t1",
        "a": "t2",
    }


def test_topics_unknown_named_twice_or_empty_do_no_harm() -> None:
    assert assign({"t": 2, "empty": 0}, {"a": "t t gone", "b": "empty", "c": "t"}) == {
        "a": "t0",
        "b": "",
        "c": "t1",
    }
    assert assign({}, {"a": "t"}) == {"a": ""}
    assert assign({"t": 2}, {}) == {}
