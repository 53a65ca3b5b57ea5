"""The share coordinator over the wire, as a group coordinator and the leader of a partition ask it.

Covers: broker/apis/initialize_share_group_state.py.
Covers: broker/apis/read_share_group_state.py.
Covers: broker/apis/write_share_group_state.py.
Covers: broker/apis/delete_share_group_state.py.
Covers: broker/apis/read_share_group_state_summary.py.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from kohort.protocol import ApiKey, ErrorCode, SharePartitionKey
from kohort.testing import running_broker
from tests.broker.share_requests import set_share_version
from tests.broker.wire import Wire, batch, create_topic, produce

pytestmark = pytest.mark.kafka

_E = ErrorCode
SHARE = 2
OF_COORDINATOR = [
    (ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0),
    (ApiKey.READ_SHARE_GROUP_STATE, 0),
    (ApiKey.WRITE_SHARE_GROUP_STATE, 1),
    (ApiKey.DELETE_SHARE_GROUP_STATE, 0),
    (ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1),
]
READ_FIRST = "Read operation on uninitialized share partition not allowed."
WRITE_FIRST = "Write operation on uninitialized share partition not allowed."
STATE_FENCED = "The share coordinator rejected the request because the share-group state epoch did not match."
LEADER_FENCED = "The leader epoch in the request is older than the epoch on the broker."


@dataclass
class Asking:
    """A share partition of a test's own; each method gives the row of the response."""

    wire: Wire
    group: str
    topic_id: UUID

    def initialize(self, state_epoch: int, start: int = -1, partition: int = 0) -> Any:
        row = {"partition": partition, "state_epoch": state_epoch, "start_offset": start}
        return self.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, row)

    def read(self, leader_epoch: int, partition: int = 0) -> Any:
        return self.ask(
            ApiKey.READ_SHARE_GROUP_STATE, 0, {"partition": partition, "leader_epoch": leader_epoch}
        )

    def summarize(self, version: int = 1) -> Any:
        return self.ask(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, version, {"partition": 0, "leader_epoch": 0})

    def write(
        self,
        state_epoch: int,
        leader_epoch: int,
        *batches: tuple[int, int, int, int],
        start: int = -1,
        done: int = -1,
        version: int = 1,
    ) -> Any:
        row = {
            "partition": 0,
            "state_epoch": state_epoch,
            "leader_epoch": leader_epoch,
            "start_offset": start,
            "delivery_complete_count": done,
            "state_batches": list(batches),
        }
        return self.ask(ApiKey.WRITE_SHARE_GROUP_STATE, version, row)

    def delete(self) -> Any:
        return self.ask(ApiKey.DELETE_SHARE_GROUP_STATE, 0, {"partition": 0})

    def ask(self, api: ApiKey, version: int, row: dict[str, Any]) -> Any:
        topics = [(self.topic_id, [row])]
        answer = self.wire.call(api, version, group_id=self.group, topics=topics)
        ((topic_id, (told,)),) = answer.results
        assert topic_id == self.topic_id
        assert told.partition == row["partition"]
        return told


@pytest.fixture
def asking(link: Wire, name: str) -> Iterator[Asking]:
    """A share partition that is not initialized yet, at a coordinator that serves."""
    topic_id = create_topic(link, name, 2).topic_id
    found = Asking(link, f"g:{uuid.uuid4().hex[:10]}", topic_id)
    keys = [str(SharePartitionKey(found.group, topic_id, 0))]
    deadline = time.monotonic() + 20
    while True:
        (row,) = link.call(ApiKey.FIND_COORDINATOR, 6, key_type=SHARE, coordinator_keys=keys).coordinators
        if not row.error_code and found.summarize().error_code == _E.NONE:
            break
        assert time.monotonic() < deadline, row
        time.sleep(0.1)
    yield found
    found.delete()


def batches(row: Any) -> list[tuple[int, int, int, int]]:
    return [tuple(each) for each in row.state_batches]


def test_what_is_not_initialized_is_neither_read_nor_written(asking: Asking) -> None:
    told = asking.read(0)
    assert (told.error_code, told.error_message) == (_E.INVALID_REQUEST, READ_FIRST)
    told = asking.write(0, 0)
    assert (told.error_code, told.error_message) == (_E.INVALID_REQUEST, WRITE_FIRST)
    told = asking.summarize()
    assert told[1:] == (_E.NONE, None, 0, 0, -1, -1)
    assert asking.delete().error_code == _E.NONE


def test_state_is_initialized_with_an_epoch_that_only_rises(asking: Asking) -> None:
    assert asking.initialize(5).error_code == _E.NONE
    assert asking.summarize()[1:] == (0, None, 5, 0, -1, -1)
    told = asking.initialize(4, 3)
    assert (told.error_code, told.error_message) == (_E.FENCED_STATE_EPOCH, STATE_FENCED)
    assert asking.initialize(5, 7).error_code == _E.NONE
    assert asking.summarize()[1:] == (0, None, 5, 0, 7, 0)
    told = asking.read(0)
    assert (told.state_epoch, told.start_offset, batches(told)) == (5, 7, [])


@pytest.mark.parametrize("version", [0, 1])
def test_what_a_leader_writes_goes_on_top(asking: Asking, version: int) -> None:
    asking.initialize(5, 0)
    assert asking.write(5, 0, (10, 20, 2, 1), start=10, done=11, version=version).error_code == _E.NONE
    assert asking.write(6, 0, (15, 16, 0, 2), version=version).error_code == _E.NONE
    told = asking.read(0)
    assert (told.state_epoch, told.start_offset) == (5, 10)
    assert batches(told) == [(10, 14, 2, 1), (15, 16, 0, 2), (17, 20, 2, 1)]
    assert asking.write(5, 0, (30, 31, 4, 1), (5, 8, 0, 3), start=18, done=3).error_code == _E.NONE
    told = asking.read(0)
    assert (told.start_offset, batches(told)) == (18, [(18, 20, 2, 1), (30, 31, 4, 1)])
    assert asking.summarize().delivery_complete_count == 3


def test_a_lower_count_takes_nothing_back(asking: Asking) -> None:
    asking.initialize(1, 0)
    asking.write(1, 0, (0, 4, 0, 1), (5, 9, 0, 1), (12, 12, 4, 1))
    assert batches(asking.read(0)) == [(0, 9, 0, 1), (12, 12, 4, 1)]
    asking.write(1, 0, (0, 2, 4, 3))
    asking.write(1, 0, (1, 1, 0, 1))
    asking.write(1, 0, (1, 1, 0, 3))
    assert batches(asking.read(0)) == [(0, 2, 4, 3), (3, 9, 0, 1), (12, 12, 4, 1)]


def test_a_read_fences_earlier_leaders_and_a_write_does_not(asking: Asking) -> None:
    asking.initialize(5, 0)
    assert asking.write(5, 9).error_code == _E.NONE
    assert asking.summarize().leader_epoch == 0
    assert asking.read(7).error_code == _E.NONE
    assert asking.summarize().leader_epoch == 7
    for told in (asking.read(6), asking.write(5, 6, (0, 1, 2, 1))):
        assert (told.error_code, told.error_message) == (_E.FENCED_LEADER_EPOCH, LEADER_FENCED)
    told = asking.write(4, 7, (0, 1, 2, 1))
    assert (told.error_code, told.error_message) == (_E.FENCED_STATE_EPOCH, STATE_FENCED)
    assert batches(asking.read(7)) == []


def test_a_fence_outlives_the_state(asking: Asking) -> None:
    asking.initialize(5, 0)
    asking.read(7)
    asking.initialize(6, 0)
    assert asking.summarize().leader_epoch == 0
    assert asking.read(6).error_code == _E.FENCED_LEADER_EPOCH
    assert asking.read(7).error_code == _E.NONE


def test_after_many_writes_all_of_it_is_there(asking: Asking) -> None:
    asking.initialize(1, 0)
    for offset in range(600):
        asking.write(1, 0, (3 * offset, 3 * offset, 2, 1), start=0, done=offset)
    told = asking.read(0)
    assert batches(told) == [(3 * offset, 3 * offset, 2, 1) for offset in range(600)]
    assert asking.summarize().delivery_complete_count == 599


def test_deleted_state_is_gone(asking: Asking) -> None:
    asking.initialize(1, 0)
    assert asking.delete().error_code == _E.NONE
    assert asking.delete().error_code == _E.NONE
    assert asking.read(0).error_code == _E.INVALID_REQUEST


def test_a_partition_that_does_not_exist_gets_no_state(asking: Asking) -> None:
    assert asking.initialize(1, 0, partition=7).error_code == _E.UNKNOWN_TOPIC_OR_PARTITION
    assert asking.initialize(1, 0, partition=-1).error_code == _E.INVALID_REQUEST
    asking.topic_id = uuid.uuid4()
    assert asking.initialize(1, 0).error_code == _E.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("api", "version"), OF_COORDINATOR)
def test_without_a_group_or_a_partition_there_is_nothing_to_answer(
    asking: Asking, api: ApiKey, version: int
) -> None:
    topics = [(asking.topic_id, [{"partition": 0}])]
    assert asking.wire.call(api, version, group_id="", topics=topics).results == []
    assert asking.wire.call(api, version, group_id="g", topics=[(asking.topic_id, [])]).results == []
    assert asking.wire.call(api, version, group_id="g", topics=[]).results == []


def test_clients_cannot_write_to_the_topic_of_the_states(asking: Asking) -> None:
    told = produce(asking.wire, "__share_group_state", batch())
    assert told.error_code == _E.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(("api", "version"), OF_COORDINATOR)
def test_while_share_groups_are_off_nothing_is_kept_and_no_topic_made(api: ApiKey, version: int) -> None:
    """Apache Kafka 4.3.1 serves brokers, or whoever says to be one, at level 0 too."""
    with running_broker() as broker, Wire(broker.bootstrap) as wire:
        set_share_version(wire, 0)
        topic_id = create_topic(wire, "t").topic_id
        key = str(SharePartitionKey("g", topic_id, 0))
        found = wire.call(ApiKey.FIND_COORDINATOR, 6, key_type=SHARE, coordinator_keys=[key, "x"])
        assert [row.error_code for row in found.coordinators] == [_E.UNSUPPORTED_VERSION] * 2
        told = Asking(wire, "g", topic_id).ask(api, version, {"partition": 0})
        assert told.error_code == _E.UNSUPPORTED_VERSION
        topics = {topic.name for topic in wire.call(ApiKey.METADATA, 8, topics=None).topics}
        assert "__share_group_state" not in topics
        set_share_version(wire, 1)
        (row,) = wire.call(ApiKey.FIND_COORDINATOR, 6, key_type=SHARE, coordinator_keys=[key]).coordinators
        assert row.error_code == _E.NONE
        told = Asking(wire, "g", topic_id).ask(api, version, {"partition": 0})
        assert told.error_code != _E.UNSUPPORTED_VERSION
