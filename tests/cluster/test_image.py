"""The image of the cluster: changed as a whole, and for little."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from kohort.cluster import BrokerRegistration, ClusterImage, PartitionState, TopicImage

LED = PartitionState(1, 0, (1,), (1,))


def image() -> ClusterImage:
    return ClusterImage("cluster", 1, {1: BrokerRegistration(1)})


def topic(name: str, number: int, partitions: int = 1) -> TopicImage:
    return TopicImage(name, UUID(int=number), {}, [LED] * partitions)


def test_a_change_makes_another_image_and_leaves_the_first() -> None:
    empty = image()
    first = empty.with_changes([topic("orders", 1), topic("clicks", 2)])
    orders = first.topic("orders")
    assert orders is not None
    assert first.topic_by_id(UUID(int=1)) is orders
    moved = orders.having(partitions=[LED._replace(leader=2, leader_epoch=5)])
    second = first.with_changes([moved])
    third = second.with_changes(deleted=[moved])
    assert [len(each.topics()) for each in (empty, first, second, third)] == [0, 2, 2, 1]
    assert first.topic("orders") is orders
    assert second.topic("orders") is second.topic_by_id(UUID(int=1)) is moved
    assert third.topic("orders") is third.topic_by_id(UUID(int=1)) is None
    assert second.topic("clicks") is first.topic("clicks")
    assert (second.cluster_id, second.controller_id, list(second.brokers)) == ("cluster", 1, [1])


def test_a_request_that_names_no_topic_id_names_no_topic() -> None:
    assert image().topic_by_id(None) is None


def test_a_topic_with_other_configs_or_partitions_is_the_same_one() -> None:
    before = topic("orders", 1, 3)
    after = before.having(configs={"retention_ms": 1})
    assert (after.name, after.id, after.partitions) == ("orders", before.id, before.partitions)
    assert (before.configs, after.configs) == ({}, {"retention_ms": 1})
    assert after.having(partitions=[LED]).configs == {"retention_ms": 1}


@given(
    st.lists(
        st.tuples(
            st.sets(st.sampled_from("abcdefghij"), max_size=4),
            st.sets(st.sampled_from("abcdefghij"), max_size=4),
        ),
        max_size=12,
    )
)
def test_it_is_what_a_dictionary_would_be(changes: list[tuple[set[str], set[str]]]) -> None:
    now, expected, number = image(), dict[str, TopicImage](), 0
    for there, gone in changes:
        deleted = [expected.pop(name) for name in sorted(gone - there) if name in expected]
        made = []
        for name in sorted(there):
            number += 1
            before = expected.get(name)
            made.append(topic(name, number) if before is None else before.having(partitions=[LED] * 2))
            expected[name] = made[-1]
        now = now.with_changes(made, deleted=deleted)
        assert list(now.topics()) == list(expected.values())
        assert all(now.topic(name) is expected.get(name) for name in "abcdefghij")
        assert all(now.topic_by_id(each.id) is each for each in expected.values())


def test_a_change_of_one_topic_copies_a_small_part_of_ten_thousand() -> None:
    large = image().with_changes([topic(f"topic-{n}", n, 10) for n in range(10_000)])
    one = large.topic("topic-5000")
    assert one is not None
    after = large.with_changes([one.having(partitions=[LED] * 10)])
    shared = [a is b for a, b in zip(large._by_name, after._by_name, strict=True)]
    assert shared.count(False) == 1
    assert max(len(shard) for shard in after._by_name) < 100
