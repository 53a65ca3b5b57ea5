"""DescribeTopicPartitions, asked of either broker: some partitions at a time, and where to go on."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode, operation_bits
from kohort.protocol.messages.describe_topic_partitions import Cursor
from tests.broker.wire import Wire, create_topic

pytestmark = pytest.mark.kafka

KEY = ApiKey.DESCRIBE_TOPIC_PARTITIONS
NO_OPERATIONS = -(1 << 31)
EVERY_OPERATION = operation_bits({3, 4, 5, 6, 7, 8, 10, 11})


@pytest.fixture(scope="module")
def names(bootstrap: str) -> list[str]:
    """Three topics, of 3, 2 and 1 partitions, in the order of their names."""
    start = f"t-{uuid.uuid4().hex[:10]}"
    made = [f"{start}-{letter}" for letter in "ace"]
    with Wire(bootstrap) as wire:
        for name, partitions in zip(made, (3, 2, 1), strict=True):
            create_topic(wire, name, partitions)
    return made


def ask(link: Wire, topics: list[str], limit: int = 2_000, cursor: tuple[str, int] | None = None) -> Any:
    at = None if cursor is None else Cursor(*cursor)
    return link.call(KEY, 0, topics=topics, response_partition_limit=limit, cursor=at)


def shown(answer: Any) -> tuple[list[tuple[str, list[int]]], tuple[str, int] | None]:
    topics = [(topic.name, [one.partition_index for one in topic.partitions]) for topic in answer.topics]
    return topics, None if answer.next_cursor is None else tuple(answer.next_cursor)


def test_a_topic_is_described_with_its_id_leaders_and_operations(link: Wire, names: list[str]) -> None:
    answer = ask(link, [names[1]])
    (topic,) = answer.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, names[1], False)
    (known,) = link.call(ApiKey.METADATA, 12, topics=[{"name": names[1]}]).topics
    assert topic.topic_id == known.topic_id
    assert topic.topic_authorized_operations == EVERY_OPERATION
    for index, (one, same) in enumerate(zip(topic.partitions, known.partitions, strict=True)):
        assert (one.error_code, one.partition_index) == (0, index)
        assert (one.leader_id, one.leader_epoch) == (same.leader_id, same.leader_epoch)
        assert list(one.replica_nodes) == list(one.isr_nodes) == [one.leader_id]
        assert not one.eligible_leader_replicas
        assert not one.last_known_elr
        assert not one.offline_replicas


def test_topics_come_by_name_each_once(link: Wire, names: list[str]) -> None:
    a, c, e = names
    assert shown(ask(link, [e, a, c, a])) == ([(a, [0, 1, 2]), (c, [0, 1]), (e, [0])], None)


@pytest.mark.parametrize(
    ("limit", "counts", "on"),
    [(1, [1], (0, 1)), (2, [2], (0, 2)), (3, [3], (1, 0)), (4, [3, 1], (1, 1)), (6, [3, 2, 1], None)],
)
def test_more_than_the_limit_is_for_the_next_question(
    link: Wire, names: list[str], limit: int, counts: list[int], on: tuple[int, int] | None
) -> None:
    described, cursor = shown(ask(link, names, limit))
    expected = [(name, list(range(count))) for name, count in zip(names, counts, strict=False)]
    assert (described, cursor) == (expected, None if on is None else (names[on[0]], on[1]))


@pytest.mark.parametrize("limit", [0, -5])
def test_a_limit_below_one_is_one(link: Wire, names: list[str], limit: int) -> None:
    assert shown(ask(link, names, limit)) == ([(names[0], [0])], (names[0], 1))


def test_the_cursor_says_where_to_go_on(link: Wire, names: list[str]) -> None:
    a, c, e = names
    assert shown(ask(link, names, 2, (a, 2))) == ([(a, [2]), (c, [0])], (c, 1))
    assert shown(ask(link, names, 2, (a, 9))) == ([(a, []), (c, [0, 1])], (e, 0))
    assert shown(ask(link, names, 9, (c, 1))) == ([(c, [1]), (e, [0])], None)


def test_all_partitions_come_page_by_page(link: Wire, names: list[str]) -> None:
    found: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = None
    while True:
        described, cursor = shown(ask(link, names, 2, cursor))
        found += [(name, index) for name, indexes in described for index in indexes]
        if cursor is None:
            break
    assert found == [
        (name, index) for name, count in zip(names, (3, 2, 1), strict=True) for index in range(count)
    ]


def test_all_topics_are_described_where_none_is_named(link: Wire, names: list[str]) -> None:
    answer = ask(link, [], 9, (names[0] + "-b", 5))
    described, _ = shown(answer)
    assert described[:2] == [(names[1], [0, 1]), (names[2], [0])]
    assert shown(ask(link, [], 9, ("zzzz", 0))) == ([], None)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("nothing-is-named-so", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("__cluster_metadata", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_topic_that_is_not_there_stands_beside_the_others(
    link: Wire, names: list[str], name: str, code: ErrorCode
) -> None:
    answer = ask(link, [name, names[2]], 1)
    found = {topic.name: topic for topic in answer.topics}
    assert (found[name].error_code, found[name].topic_id, found[name].partitions) == (code, None, [])
    assert found[names[2]].error_code == 0
    assert answer.next_cursor is None


def test_internal_topics_are_told_as_such(link: Wire) -> None:
    answer = ask(link, ["__transaction_state", "__share_group_state", "t"])
    assert [topic.is_internal for topic in answer.topics] == [True, True, False]


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize(("cursor", "partition"), [("own", -1), ("other", 0)])
def test_a_cursor_that_cannot_be_meant_is_an_error_of_every_topic(
    link: Wire, names: list[str], cursor: str, partition: int, place: int
) -> None:
    asked = [names[place], names[1]]
    answer = ask(link, asked, 9, (names[place] if cursor == "own" else "another", partition))
    assert {topic.name: topic.error_code for topic in answer.topics} == dict.fromkeys(
        asked, ErrorCode.INVALID_REQUEST
    )
    assert {topic.topic_authorized_operations for topic in answer.topics} == {NO_OPERATIONS}
    assert answer.next_cursor is None


def test_an_empty_name_is_an_unknown_error_for_all_topics_of_a_request(link: Wire, names: list[str]) -> None:
    answer = ask(link, ["", names[0]])
    assert [(topic.error_code, topic.name) for topic in answer.topics] == [(-1, ""), (-1, names[0])]
    assert {topic.topic_authorized_operations for topic in answer.topics} == {NO_OPERATIONS}


def test_an_empty_name_that_a_cursor_points_at_is_a_wrong_name(link: Wire, names: list[str]) -> None:
    answer = ask(link, ["", names[2]], cursor=("", 0))
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_TOPIC_EXCEPTION, 0]
