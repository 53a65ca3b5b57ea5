"""range: runs of consecutive partitions, in member order.

Covers: assignors/_range_and_roundrobin.py.
"""

from __future__ import annotations

import pytest

from kohort.assignors import Member, RangeAssignor, TopicInfo
from kohort.protocol import Subscription, TopicPartition


def member(member_id: str, *topics: str, instance_id: str | None = None, rack: str | None = None) -> Member:
    return Member(member_id, Subscription(topics, rack=rack), instance_id)


def assign(topics: dict[str, int], *members: Member) -> dict[str, list[tuple[str, int]]]:
    infos = {topic: TopicInfo(count) for topic, count in topics.items()}
    answer = RangeAssignor().assign(infos, {one.member_id: one for one in members})
    return {member_id: [(topic, number) for topic, number in given] for member_id, given in answer.items()}


def test_static_members_come_first_and_the_first_members_get_one_more() -> None:
    assert assign(
        {"t": 7, "u": 3}, member("a", "t"), member("b", "t", "u"), member("z", "t", "u", instance_id="i1")
    ) == {
        "z": [("t", 0), ("t", 1), ("t", 2), ("u", 0), ("u", 1)],
        "a": [("t", 3), ("t", 4)],
        "b": [("t", 5), ("t", 6), ("u", 2)],
    }


def test_no_member_is_dropped_when_static_and_dynamic_ones_alternate() -> None:
    members = (member("a", "t", instance_id="s1"), member("b", "t"), member("c", "t", instance_id="s2"))
    assert assign({"t": 6}, *members) == {
        "a": [("t", 0), ("t", 1)],
        "c": [("t", 2), ("t", 3)],
        "b": [("t", 4), ("t", 5)],
    }


def test_members_are_compared_as_text() -> None:
    assert list(assign({"t": 2}, member("c2", "t"), member("c10", "t"))) == ["c10", "c2"]


def test_members_are_compared_by_utf_16_units() -> None:
    # U+1F600 is above U+FF5E, but its first UTF-16 unit, 0xD83D, is below
    assert list(assign({"t": 2}, member("\uff5e", "t"), member("\U0001f600", "t"))) == [
        "\U0001f600",
        "\uff5e",
    ]


def test_topics_that_do_not_exist_or_nobody_wants_are_passed_over() -> None:
    assert assign({"t": 1, "unwanted": 3}, member("a", "t", "gone")) == {"a": [("t", 0)]}


def test_a_topic_named_twice_counts_once() -> None:
    assert assign({"t": 4}, member("a", "t", "t"), member("b", "t")) == {
        "a": [("t", 0), ("t", 1)],
        "b": [("t", 2), ("t", 3)],
    }


@pytest.mark.parametrize("topics", [{}, {"t": 0}])
def test_without_partitions_everyone_gets_nothing(topics: dict[str, int]) -> None:
    assert assign(topics, member("a", "t")) == {"a": []}
    assert assign(topics) == {}


def test_members_read_from_replicas_in_their_own_rack_where_shares_allow() -> None:
    racks = tuple(frozenset({rack}) for rack in ("r2", "r1", "r2", "r1"))
    members = [member("a", "t", rack="r1"), member("b", "t", rack="r2")]
    answer = RangeAssignor().assign({"t": TopicInfo(4, racks)}, {one.member_id: one for one in members})
    assert answer == {"a": [TopicPartition("t", 1), TopicPartition("t", 3)], "b": [("t", 0), ("t", 2)]}


def test_topics_of_one_size_keep_equal_numbers_together_in_racks() -> None:
    racks = tuple(frozenset({rack}) for rack in ("r2", "r1"))
    topics = {"t": TopicInfo(2, racks), "u": TopicInfo(2, racks)}
    members = [member("a", "t", "u", rack="r1"), member("b", "t", "u", rack="r2")]
    answer = RangeAssignor().assign(topics, {one.member_id: one for one in members})
    assert answer == {"a": [("t", 1), ("u", 1)], "b": [("t", 0), ("u", 0)]}


def test_racks_count_for_nothing_when_every_partition_is_in_all_of_them() -> None:
    racks = (frozenset({"r1", "r2"}),) * 2
    members = [member("a", "t", rack="r2"), member("b", "t", rack="r1")]
    answer = RangeAssignor().assign({"t": TopicInfo(2, racks)}, {one.member_id: one for one in members})
    assert answer == {"a": [("t", 0)], "b": [("t", 1)]}
