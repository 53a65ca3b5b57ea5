"""ElectLeaders, asked of either broker: one broker leads all it can, so nothing is to be elected."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.wire import Wire, create_topic

pytestmark = pytest.mark.kafka

KEY = ApiKey.ELECT_LEADERS
NOT_NEEDED, UNKNOWN = ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def elect(link: Wire, version: int, topics: Any, kind: int = 0) -> Any:
    return link.call(KEY, version, election_type=kind, topic_partitions=topics, timeout_ms=5_000)


def results(answer: Any) -> list[tuple[str, list[tuple[int, int]]]]:
    return [
        (topic.topic, [(one.partition_id, one.error_code) for one in topic.partition_result])
        for topic in answer.replica_election_results
    ]


@pytest.mark.parametrize(("version", "kind"), [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)])
def test_every_partition_has_its_leader(link: Wire, name: str, version: int, kind: int) -> None:
    create_topic(link, name, 2)
    answer = elect(link, version, [(name, [1, 0, 1])], kind)
    assert answer.error_code == 0
    assert results(answer) == [(name, [(1, NOT_NEEDED), (0, NOT_NEEDED), (1, NOT_NEEDED)])]
    assert all(one.error_message for one in answer.replica_election_results[0].partition_result)


def test_what_is_not_there_has_no_leader(link: Wire, name: str) -> None:
    create_topic(link, name, 1)
    answer = elect(link, 2, [("nothing-is-named-so", [0]), (name, [7]), (name, [-1]), ("..", [0])])
    assert answer.error_code == 0
    assert results(answer) == [
        ("nothing-is-named-so", [(0, UNKNOWN)]),
        (name, [(7, UNKNOWN)]),
        (name, [(-1, UNKNOWN)]),
        ("..", [(0, UNKNOWN)]),
    ]


@pytest.mark.parametrize("kind", [0, 1])
def test_of_all_partitions_only_those_are_told_that_need_an_election(
    link: Wire, name: str, kind: int
) -> None:
    create_topic(link, name, 2)
    answer = elect(link, 2, None, kind)
    assert answer.error_code == 0
    found = dict(results(answer))
    assert found[name] == []
    assert not any(found.values())
    assert results(elect(link, 2, [], kind)) == []


@pytest.mark.parametrize("kind", [2, -1])
def test_another_kind_of_election_is_refused_with_each_partition(link: Wire, name: str, kind: int) -> None:
    create_topic(link, name, 1)
    answer = elect(link, 2, [(name, [0])], kind)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert results(answer) == [(name, [(0, ErrorCode.INVALID_REQUEST)])]
    every = elect(link, 2, None, kind)
    assert (every.error_code, results(every)) == (ErrorCode.INVALID_REQUEST, [])
