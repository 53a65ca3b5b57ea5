"""AlterPartitionReassignments, asked of either broker, which is the only one: it has all replicas already."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.wire import Wire, create_topic, part

pytestmark = pytest.mark.kafka

KEY = ApiKey.ALTER_PARTITION_REASSIGNMENTS


def reassign(link: Wire, topics: Any, version: int = 1, **fields: Any) -> list[tuple[str, int, str]]:
    answer = link.call(KEY, version, timeout_ms=5_000, topics=topics, **fields)
    assert answer.error_code == 0
    return [
        (topic.name, one.partition_index, ErrorCode(one.error_code).name)
        for topic in answer.responses
        for one in topic.partitions
    ]


@pytest.fixture
def own(link: Wire) -> int:
    """The broker's number."""
    [only] = link.call(ApiKey.METADATA, 8, topics=[]).brokers
    return int(only.node_id)


@pytest.mark.parametrize("version", [0, 1])
def test_a_partition_stays_on_its_only_broker(link: Wire, name: str, own: int, version: int) -> None:
    create_topic(link, name, 2)
    found = reassign(link, [(name, [(1, [own]), (0, [own])])], version)
    assert found == [(name, 1, "NONE"), (name, 0, "NONE")]
    topics = link.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, timeout_ms=5_000, topics=None).topics
    assert topics == []
    wanted = part(ApiKey.METADATA, 8, "MetadataRequestTopic", name=name)
    [topic] = link.call(ApiKey.METADATA, 8, topics=[wanted]).topics
    assert [(one.leader_id, one.replica_nodes) for one in topic.partitions] == [(own, [own])] * 2


@pytest.mark.parametrize("allowed", [True, False])
def test_replicas_that_cannot_be_are_refused(link: Wire, name: str, own: int, allowed: bool) -> None:
    create_topic(link, name, 1)
    for replicas in ([own + 98], [own, own + 98], [own, own], [], [-1]):
        found = reassign(link, [(name, [(0, replicas)])], allow_replication_factor_change=allowed)
        assert found == [(name, 0, "INVALID_REPLICA_ASSIGNMENT")], replicas


def test_no_reassignment_can_be_cancelled(link: Wire, name: str) -> None:
    create_topic(link, name, 1)
    assert reassign(link, [(name, [(0, None)])]) == [(name, 0, "NO_REASSIGNMENT_IN_PROGRESS")]


def test_what_is_not_there_cannot_be_reassigned(link: Wire, name: str, own: int) -> None:
    create_topic(link, name, 1)
    other = "nothing-is-named-so"
    asked = [(name, [(7, [own]), (-1, None)]), (other, [(0, [own + 98])]), ("..", [(0, None)])]
    assert reassign(link, asked) == [
        (topic, index, "UNKNOWN_TOPIC_OR_PARTITION")
        for topic, index in ((name, 7), (name, -1), (other, 0), ("..", 0))
    ]


def test_every_element_has_its_own_answer(link: Wire, name: str, own: int) -> None:
    create_topic(link, name, 1)
    asked = [(name, [(0, [own]), (0, [own + 98])]), (name, [(0, None)]), (name, [])]
    assert [code for _topic, _index, code in reassign(link, asked)] == [
        "NONE",
        "INVALID_REPLICA_ASSIGNMENT",
        "NO_REASSIGNMENT_IN_PROGRESS",
    ]
    assert reassign(link, []) == []


@pytest.mark.parametrize("allowed", [True, False])
def test_the_answer_repeats_whether_the_replication_factor_may_change(
    link: Wire, name: str, allowed: bool
) -> None:
    asked = [(name, [(0, None)])]
    answer = link.call(KEY, 1, timeout_ms=5_000, topics=asked, allow_replication_factor_change=allowed)
    assert answer.allow_replication_factor_change is allowed
