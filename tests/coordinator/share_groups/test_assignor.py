"""The counts that the assignor of share groups promises, and that members keep what they have."""

from __future__ import annotations

import uuid
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.share_groups.assignor import assign_partitions
from kohort.offsets_topic import Partitions

IDS = [uuid.UUID(int=number) for number in range(1, 6)]


def counts(given_out: dict[str, Partitions]) -> tuple[Counter[tuple[uuid.UUID, int]], list[int]]:
    """How many members each partition has, and how many partitions each member."""
    places: Counter[tuple[uuid.UUID, int]] = Counter()
    for topics in given_out.values():
        mine = [(topic_id, number) for topic_id, numbers in topics.items() for number in numbers]
        assert len(mine) == len(set(mine)), "a member has a partition once"
        places.update(mine)
    return places, sorted(sum(map(len, topics.values())) for topics in given_out.values())


def check_alike(topics: dict[uuid.UUID, range], given_out: dict[str, Partitions]) -> None:
    """What holds where all members read the same topics."""
    places, loads = counts(given_out)
    total = sum(map(len, topics.values()))
    if total and given_out:
        sharing = -(-len(given_out) // total)
        assert set(places.values()) == {sharing}
        assert len(places) == total
        assert loads[-1] - loads[0] <= 1


@pytest.mark.parametrize(
    ("members", "partitions", "sharing", "loads"),
    [
        (1, 4, 1, {4: 1}),
        (3, 4, 1, {1: 2, 2: 1}),
        (4, 4, 1, {1: 4}),
        (8, 3, 3, {1: 7, 2: 1}),
        (30, 12, 3, {1: 24, 2: 6}),
        (5, 1, 5, {1: 5}),
    ],
)
def test_as_many_members_and_partitions_each_as_in_kafka(
    members: int, partitions: int, sharing: int, loads: dict[int, int]
) -> None:
    """Measured on Apache Kafka 4.3.1."""
    readers = {f"m{number}": {IDS[0]} for number in range(members)}
    places, found = counts(assign_partitions({IDS[0]: range(partitions)}, readers, {}))
    assert (set(places.values()), Counter(found)) == ({sharing}, loads)


TOPICS = st.dictionaries(st.sampled_from(IDS), st.integers(1, 9).map(range), max_size=4)


@given(st.data(), TOPICS, st.lists(st.integers(0, 25), min_size=1, max_size=6))
def test_the_counts_hold_from_one_assignment_to_the_next(
    data: st.DataObject, topics: dict[uuid.UUID, range], sizes: list[int]
) -> None:
    """Members come and go, whichever they are."""
    before: dict[str, Partitions] = {}
    for size in sizes:
        names = data.draw(st.permutations([f"m{number}" for number in range(30)]))[:size]
        before = assign_partitions(topics, {name: set(topics) for name in names}, before)
        assert before.keys() == set(names)
        check_alike(topics, before)


@given(
    st.dictionaries(
        st.sampled_from([f"m{number}" for number in range(9)]), st.sets(st.sampled_from(IDS)), max_size=9
    ),
    TOPICS,
    st.integers(0, 10_000),
)
def test_with_different_topics_each_is_spread_over_those_that_read_it(
    members: dict[str, set[uuid.UUID]], topics: dict[uuid.UUID, range], seed: int
) -> None:
    had = {name: {IDS[seed % 5]: tuple(range(seed % 7))} for name in list(members)[: seed % 4]}
    found = assign_partitions(topics, members, had)
    assert all(found[name].keys() <= members[name] for name in members)
    if len({frozenset(wanted & topics.keys()) for wanted in members.values()} - {frozenset()}) < 2:
        return
    for topic_id, numbers in topics.items():
        readers = [name for name, wanted in members.items() if topic_id in wanted]
        held = Counter(number for name in readers for number in found[name].get(topic_id, ()))
        loads = [len(found[name].get(topic_id, ())) for name in readers]
        if readers:
            assert held == dict.fromkeys(numbers, -(-len(readers) // len(numbers)))
            assert max(loads) - min(loads) <= 1


def test_a_newcomer_takes_only_its_share() -> None:
    topics = {IDS[0]: range(6)}
    before = assign_partitions(topics, {"a": {IDS[0]}, "b": {IDS[0]}}, {})
    after = assign_partitions(topics, {"a": {IDS[0]}, "b": {IDS[0]}, "c": {IDS[0]}}, before)
    for old in ("a", "b"):
        assert set(after[old][IDS[0]]) < set(before[old][IDS[0]])


def test_when_a_member_goes_the_others_keep_what_they_have() -> None:
    topics = {IDS[0]: range(6)}
    three = {name: {IDS[0]} for name in "abc"}
    before = assign_partitions(topics, three, {})
    after = assign_partitions(topics, {name: {IDS[0]} for name in "ac"}, before)
    for left in ("a", "c"):
        assert set(after[left][IDS[0]]) > set(before[left][IDS[0]])


def test_topics_with_one_partition_each_do_not_all_go_to_one_member() -> None:
    topics = {each: range(1) for each in IDS[:4]}
    _, loads = counts(assign_partitions(topics, {"a": set(topics), "b": set(topics)}, {}))
    assert loads == [2, 2]


def test_what_is_gone_is_given_to_nobody() -> None:
    before = {"a": {IDS[1]: (0, 1), IDS[0]: (0, 5)}}
    assert assign_partitions({IDS[0]: range(1)}, {"a": {IDS[0], IDS[1]}}, before) == {"a": {IDS[0]: (0,)}}
    assert assign_partitions({}, {"a": {IDS[0]}}, before) == {"a": {}}
