"""Who owns what: the group by index, and claims settled."""

from __future__ import annotations

from kohort.assignors import Member, TopicInfo
from kohort.assignors._group import CONTESTED, UNCLAIMED, IndexedGroup
from kohort.assignors._owned_partitions import owned_partitions
from kohort.assignors._ownership import ListOwnership
from kohort.assignors.user_data import cooperative_claim
from kohort.protocol import Subscription, TopicPartition

TOPICS = {"t": TopicInfo(3), "u": TopicInfo(1), "empty": TopicInfo(0), "unwanted": TopicInfo(5)}


def member(
    member_id: str, topics: str, owned: str = "", generation: int = 1, instance_id: str | None = None
) -> Member:
    claims = tuple(TopicPartition(one[0], int(one[1:])) for one in owned.split())
    return Member(member_id, Subscription(tuple(topics.split()), None, claims, generation), instance_id)


def by_id(*members: Member) -> dict[str, Member]:
    return {one.member_id: one for one in members}


def test_a_group_has_only_topics_that_exist_are_wanted_and_have_partitions() -> None:
    group = IndexedGroup.of(
        TOPICS, by_id(member("b", "t u u gone empty"), member("a", "u"), member("idle", "gone"))
    )
    assert group == IndexedGroup(["a", "b", "idle"], ["t", "u"], [3, 1], [[1], [0, 1]], [[1], [0, 1], []])
    assert group.active == [0, 1]


def test_static_members_stand_first() -> None:
    group = IndexedGroup.of(TOPICS, by_id(member("a", "t"), member("b", "t", instance_id="z")))
    assert group.member_ids == ["b", "a"]


def newest(group: IndexedGroup, members: dict[str, Member]) -> list[int]:
    claims = [owned_partitions(cooperative_claim(members[one].subscription)) for one in group.member_ids]
    return ListOwnership(group, claims).newest


def test_newest_claimants_are_told_from_rivals_and_from_nobody() -> None:
    members = by_id(member("a", "t", "t0 t1", 5), member("b", "t", "t1 t2", 5), member("c", "t", "t2", 6))
    assert newest(IndexedGroup.of(TOPICS, members), members) == [0, CONTESTED, 2]


def test_a_rivalry_is_over_when_someone_is_newer_and_not_before() -> None:
    for generations, expected in (
        ((5, 5, 5), CONTESTED),
        ((5, 5, 4), CONTESTED),
        ((5, 5, 6), 2),
        ((4, 5, 5), CONTESTED),
    ):
        members = by_id(*(member(name, "t", "t0", g) for name, g in zip("abc", generations, strict=True)))
        assert newest(IndexedGroup.of(TOPICS, members), members) == [expected, UNCLAIMED, UNCLAIMED]


def test_an_owner_that_dropped_the_topic_is_known_as_the_newest_claimant() -> None:
    members = by_id(member("a", "u", "t0 u0"), member("b", "t"))
    assert newest(IndexedGroup.of(TOPICS, members), members) == [0, UNCLAIMED, UNCLAIMED, 0]
