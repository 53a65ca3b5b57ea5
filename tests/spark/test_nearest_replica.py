"""Reading from a replica in the rack of the machine that reads (KIP-392).

Covers: spark/_fetch.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.client import BrokerConnectionError, FetchedPartition
from kohort.protocol import ErrorCode, KafkaError, TopicPartition
from kohort.spark import GroupBatches
from kohort.spark._fetch import Replica, fetch_records, rack_here
from kohort.spark._offsets import OffsetRange
from kohort.spark._source_options import read_source_options
from kohort.spark._stream import SourceOffsets
from tests.spark.loops import NO_SPARK

PARTITION = TopicPartition("orders", 0)
LEADER, NEAR, GONE = 1, 2, 3


def row(code: int = 0, records: bytes = b"", preferred: int = -1) -> FetchedPartition:
    return FetchedPartition(code, 10, 10, 0, records, preferred_replica=preferred)


FROM_LEADER, FROM_NEAR = row(records=b"of the leader"), row(records=b"of the follower")


class Brokers:
    """A leader, which names node ``named`` to readers with a rack, and a follower."""

    def __init__(self, named: int = NEAR, near: FetchedPartition | Exception = FROM_NEAR) -> None:
        self._named, self._near = named, near
        self.known_metadata = SimpleNamespace(nodes={LEADER: None, NEAR: None})
        self.asked: list[int] = []

    async def fetch(
        self, start: Mapping[TopicPartition, int], *, node_id: int | None, rack: str, **_: Any
    ) -> dict[TopicPartition, FetchedPartition]:
        assert start == {PARTITION: 5}
        self.asked.append(LEADER if node_id is None else node_id)
        if node_id is None:
            return {PARTITION: row(preferred=self._named) if rack == "east" else FROM_LEADER}
        if isinstance(self._near, Exception):
            raise self._near
        return {PARTITION: self._near}

    async def retrying(self, call: Callable[[], Awaitable[Any]]) -> Any:
        return await call()


async def read(brokers: Any, replica: Replica) -> bytes | memoryview:
    return (await fetch_records(brokers, PARTITION, 5, 1_000, False, replica)).records


async def test_the_replica_that_the_leader_names_is_asked_from_then_on() -> None:
    brokers, replica = Brokers(), Replica("east")
    assert await read(brokers, replica) == await read(brokers, replica) == b"of the follower"
    assert brokers.asked == [LEADER, NEAR, NEAR]


@pytest.mark.parametrize(
    "near",
    [
        BrokerConnectionError("b:9092", "gone"),
        KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "no such node"),
        row(code=ErrorCode.OFFSET_OUT_OF_RANGE),
        row(),
    ],
    ids=["away", "refused", "without the offset", "behind"],
)
async def test_what_the_replica_does_not_give_comes_from_the_leader_for_the_rest_of_the_range(
    near: FetchedPartition | Exception,
) -> None:
    brokers, replica = Brokers(near=near), Replica("east")
    assert await read(brokers, replica) == await read(brokers, replica) == b"of the leader"
    assert brokers.asked == [LEADER, NEAR, LEADER, LEADER]


async def test_a_replica_that_is_not_known_is_not_asked() -> None:
    brokers = Brokers(named=GONE)
    assert await read(brokers, Replica("east")) == b"of the leader"
    assert brokers.asked == [LEADER, LEADER]


async def test_without_a_rack_the_leader_is_asked() -> None:
    brokers = Brokers()
    assert await read(brokers, Replica()) == b"of the leader"
    assert brokers.asked == [LEADER]


def test_a_rack_may_be_a_variable_of_the_machine_that_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACK_OF_THIS_MACHINE", "east")
    monkeypatch.delenv("RACK_OF_NONE", raising=False)
    racks = [rack_here(given) for given in ("west", "", "env:RACK_OF_THIS_MACHINE", "env:RACK_OF_NONE")]
    assert racks == ["west", "", "east", ""]


def test_tasks_of_both_modes_have_the_rack() -> None:
    ranges = (OffsetRange("orders", 0, 0, 10),)
    given = {"kafka.bootstrap.servers": "localhost:9092", "groupId": "etl", "subscribe": "orders"}
    options = read_source_options(given | {"kafka.client.rack": "env:RACK"}, stream=True)
    assert [task.client_rack for task in SourceOffsets(options).tasks(list(ranges))] == ["env:RACK"]
    with GroupBatches(
        NO_SPARK, bootstrap="localhost:9092", group="etl", topics="orders", client_rack="east"
    ) as batches:
        assert batches._make_task(ranges).client_rack == "east"
