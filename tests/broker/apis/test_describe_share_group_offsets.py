"""Offsets of share groups over the wire: initialized, altered, described with their lag, deleted.

Covers: broker/apis/describe_share_group_offsets.py.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.share_requests import (
    describe_share_group,
    join_share_group,
    share_beat,
)
from tests.broker.wire import Wire, batch, create_topic, produce

E = ErrorCode
pytestmark = pytest.mark.kafka

WAIT_S = 60.0


@pytest.fixture
def share(wire: Wire, name: str) -> Wire:
    """A connection, and a topic of two partitions."""
    assert create_topic(wire, name, 2).error_code == 0
    return wire


def described(wire: Wire, group: str, topics: Any = None, *, version: int = 1) -> dict[Any, Any]:
    """Start offset, leader epoch and lag by topic and partition."""
    answer = wire.call(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, version, groups=[{"group_id": group, "topics": topics}]
    )
    (found,) = answer.groups
    assert (found.group_id, found.error_code, found.error_message) == (group, E.NONE, None)
    rows = {}
    for topic in found.topics:
        for row in topic.partitions:
            assert (row.error_code, row.error_message) == (E.NONE, None)
            rows[topic.topic_name, row.partition_index] = (row.start_offset, row.leader_epoch, row.lag)
    return rows


def alter(wire: Wire, group: str, topic: str, *starts: tuple[int, int]) -> list[tuple[int, int, str | None]]:
    answer = wire.call(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=group, topics=[(topic, list(starts))])
    assert (answer.error_code, answer.error_message) == (E.NONE, None)
    (row,) = answer.responses
    assert row.topic_name == topic
    return [tuple(each) for each in row.partitions]


def settle(done: Any) -> Any:
    """Wait until something is so."""
    deadline = time.monotonic() + WAIT_S
    while not (found := done()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def test_partitions_come_when_their_state_is_initialized(share: Wire, name: str) -> None:
    member = join_share_group(share, name, "m", name)
    assert member.assignment == {name: [0, 1]}
    assert member.epoch == 3
    assert described(share, name) == {(name, number): (-1, 0, -1) for number in (0, 1)}
    found = describe_share_group(share, name)
    (row,) = found.members
    assert [(t.topic_name, sorted(t.partitions)) for t in row.assignment.topic_partitions] == [(name, [0, 1])]


def test_a_group_made_by_altering_is_described_with_its_lag(share: Wire, name: str) -> None:
    settle(lambda: produce(share, name, batch(9)).error_code == 0)
    assert alter(share, name, name, (0, 4)) == [(0, 0, None)]
    found = describe_share_group(share, name)
    assert (found.group_state, found.group_epoch) == ("Empty", 1)
    assert settle(lambda: described(share, name))[name, 0] == (4, 0, 5)
    assert described(share, name, version=0) == {(name, 0): (4, 0, -1)}
    assert described(share, name, [(name, [1]), ("nowhere", [0])]) == {
        (name, 1): (-1, 0, -1),
        ("nowhere", 0): (-1, 0, -1),
    }
    answer = share_beat(share, name, "m", 0, name)
    (topic,) = answer.assignment.topic_partitions
    assert (answer.member_epoch, list(topic.partitions)) == (2, [0])


def test_a_partition_may_be_altered_to_begin_where_the_rule_says(share: Wire, name: str) -> None:
    assert alter(share, name, name, (0, 4), (1, 2)) == [(0, 0, None), (1, 0, None)]
    assert alter(share, name, name, (0, -1)) == [(0, 0, None)]
    assert described(share, name) == {(name, 0): (-1, 0, -1), (name, 1): (2, 0, -2)}
    # again: it has begun nowhere yet
    assert alter(share, name, name, (0, -1)) == [(0, 0, None)]
    assert described(share, name)[name, 0] == (-1, 0, -1)


def test_deleted_offsets_are_gone(share: Wire, name: str) -> None:
    alter(share, name, name, (0, 0), (1, 0))
    answer = share.call(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, group_id=name, topics=[name])
    assert [(row.topic_name, row.error_code) for row in answer.responses] == [(name, E.NONE)]
    assert described(share, name) == {}
    assert described(share, name, [(name, [0])]) == {(name, 0): (-1, 0, -1)}


def test_deleting_a_group_deletes_its_offsets(share: Wire, name: str) -> None:
    alter(share, name, name, (0, 3))
    (result,) = share.call(ApiKey.DELETE_GROUPS, 2, groups_names=[name]).results
    assert result.error_code == E.NONE
    assert described(share, name) == {}
    alter(share, name, name, (1, 1))
    assert list(described(share, name)) == [(name, 1)]


def test_groups_that_there_are_not_have_no_offsets(share: Wire, name: str) -> None:
    assert described(share, name) == {}
    assert described(share, "") == {}
    assert described(share, name, [(name, [0])]) == {(name, 0): (-1, 0, -1)}


def test_a_deleted_topic_takes_its_offsets_along(share: Wire, name: str) -> None:
    other = f"{name}-other"
    assert create_topic(share, other, 1).error_code == 0
    join_share_group(share, name, "m", name, other)
    (row,) = share.call(ApiKey.DELETE_TOPICS, 3, topic_names=[other], timeout_ms=10_000).responses
    assert row.error_code == 0
    settle(lambda: {topic for topic, _ in described(share, name)} == {name})
    epoch = describe_share_group(share, name).group_epoch
    settle(lambda: share_beat(share, name, "m", 0, name, other).member_epoch > 3)
    assert describe_share_group(share, name).group_epoch == epoch + 1
