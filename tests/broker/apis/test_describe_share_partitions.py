"""DescribeSharePartitions: what the leader knows of a share group's records. kohort's own."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from kohort.protocol import ApiKey, EventName
from kohort.testing import RunningBroker, running_broker
from tests.broker.apis.share_members import ACCEPT, REJECT, RELEASE, ShareMember, acquired, initialize
from tests.broker.wire import Wire, batch, create_topic, produce


@pytest.fixture(scope="module")
def own() -> Iterator[RunningBroker]:
    with running_broker(group_share_delivery_count_limit=2) as running:
        yield running


@pytest.fixture
def wire(own: RunningBroker) -> Iterator[Wire]:
    with Wire(own.bootstrap) as made:
        yield made


@pytest.fixture
def group() -> str:
    return f"g-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topic(wire: Wire, group: str) -> tuple[str, UUID]:
    """A topic with ten records, which the group reads from the start on."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    made = create_topic(wire, name).topic_id
    initialize(wire, group, made, 0, start=0)
    produce(wire, name, batch(10))
    return name, made


def describe(wire: Wire, group: str) -> Any:
    answer = wire.call(ApiKey.DESCRIBE_SHARE_PARTITIONS, 0, group_id=group)
    assert answer.error_code == 0
    return answer


def test_records_in_flight_are_told_by_member_and_delivery_count(
    own: RunningBroker, wire: Wire, group: str, topic: tuple[str, UUID]
) -> None:
    name, place = topic
    with ShareMember(own.bootstrap, group, "a") as one, ShareMember(own.bootstrap, group, "b") as other:
        one.fetch(place, 0, max_records=4, share_acquire_mode=1)
        other.fetch(place, 0, max_records=3, share_acquire_mode=1)
        one.acknowledge(place, (1, 1, [ACCEPT]), (2, 2, [RELEASE]))
        (told,) = describe(wire, group).topics
        (row,) = told.partitions
        assert (told.topic_name, row.partition_index) == (name, 0)
        assert (row.start_offset, row.end_offset, row.available, row.done) == (0, 7, 1, 1)
        assert [tuple(each) for each in row.held] == [("b", 3), ("a", 2)]
        assert [tuple(each) for each in row.deliveries] == [(1, 6)]
        assert (row.rejected, row.exhausted, row.lost_locks, row.stalled_since_ms) == (0, 0, 0, -1)
        assert acquired(other.fetch(max_records=1, share_acquire_mode=1)) == [(2, 2, 2)]
        ((row,),) = [topic.partitions for topic in describe(wire, group).topics]
        assert [tuple(each) for each in row.deliveries] == [(1, 5), (2, 1)]
        assert row.last_delivery == 1


def test_what_became_of_records_is_told_at_once_and_stays_when_nobody_reads_any_more(
    own: RunningBroker, wire: Wire, group: str, topic: tuple[str, UUID]
) -> None:
    name, place = topic
    with ShareMember(own.bootstrap, group, "a") as one:
        one.fetch(place, 0, max_records=2, share_acquire_mode=1)
        one.acknowledge(place, (0, 0, [REJECT]), (1, 1, [RELEASE]))
        (entry,) = describe(wire, group).entries
        assert (entry.kind, entry.member) == (EventName.SHARE_RECORDS_REJECTED, "a")
        assert (entry.topic_name, entry.partition_index, entry.sequence) == (name, 0, 1)
        assert json.loads(entry.details)["first_offset"] == 0
        assert acquired(one.fetch(max_records=1, share_acquire_mode=1)) == [(1, 1, 2)]
        one.acknowledge(place, (1, 1, [RELEASE]))
        one.acknowledge_all(place, epoch=-1)
    answer = describe(wire, group)
    assert [each.kind for each in answer.entries] == [
        EventName.SHARE_RECORDS_REJECTED,
        EventName.SHARE_LAST_DELIVERY,
        EventName.SHARE_RECORDS_EXHAUSTED,
    ]
    assert answer.topics == [], "it has left memory"


def test_a_group_that_nobody_knows_has_no_share_partitions(wire: Wire, group: str) -> None:
    answer = describe(wire, group)
    assert (answer.topics, answer.entries) == ([], [])
