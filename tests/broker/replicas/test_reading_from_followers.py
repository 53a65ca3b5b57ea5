"""Consumers read from replicas in their racks (KIP-392), up to what is committed; epochs are looked at first.

Covers: broker/apis/fetch.py, broker/apis/_lookup.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kohort.broker.partitions.partition import Partition
from kohort.consumer import AsyncGroupConsumer
from kohort.protocol import ApiKey, ErrorCode, build_batch
from kohort.protocol.messages.fetch import ReplicaState
from tests.broker.clusters import Nodes, cluster, in_sync
from tests.broker.wire import Wire

BY_RACK = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def replica(nodes: Nodes, node_id: int) -> Partition:
    return nodes.brokers[node_id].topics.logs.partition("orders", 0)


def batch(number: int) -> bytes:
    return bytes(build_batch([(None, b"%d" % number, ())], timestamp_ms=0))


async def written(nodes: Nodes, count: int, first: int = 0) -> None:
    """Write records, and wait until every replica knows that they are committed."""
    leader = replica(nodes, nodes.state("orders").leader)
    for number in range(first, first + count):
        leader.append(batch(number), now_ms=0)
    await nodes.until(lambda: all(replica(nodes, n).high_watermark == first + count for n in nodes.brokers))


@asynccontextmanager
async def ten_records(**settings: Any) -> AsyncIterator[Nodes]:
    async with cluster(
        **{"replica_selector_class": BY_RACK, "group_initial_rebalance_delay_ms": 0, **settings}
    ) as nodes:
        await nodes.create("orders")
        await written(nodes, 10)
        yield nodes


async def asked(nodes: Nodes, node_id: int, version: int = 12, offset: int = 0, **fields: Any) -> Any:
    """The answer for the partition to a Fetch of a client."""
    row = {
        "partition": 0,
        "fetch_offset": offset,
        "partition_max_bytes": 100_000,
        "current_leader_epoch": fields.pop("epoch", -1),
        "log_start_offset": -1,
        "last_fetched_epoch": -1,
    }

    def ask() -> Any:
        with Wire(nodes.brokers[node_id].bootstrap) as wire:
            body = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 100_000, "session_epoch": -1, **fields}
            topic = {"topic": "orders", "topic_id": nodes.any().topics.id_of("orders"), "partitions": [row]}
            return wire.call(ApiKey.FETCH, version, topics=[topic], **body).responses[0].partitions[0]

    return await asyncio.to_thread(ask)


async def test_a_consumer_reads_from_the_replica_in_its_rack_and_from_the_leader_when_that_is_gone() -> None:
    async with ten_records() as nodes:
        near = nodes.state("orders").replicas[1]
        async with AsyncGroupConsumer(
            "orders",
            bootstrap=nodes.bootstrap(),
            group="g",
            auto_offset_reset="earliest",
            client_rack=f"rack-{near}",
        ) as consumer:
            got = [record.value async for record in _first(consumer, 10)]
            assert got == [b"%d" % number for number in range(10)]
            given = {n: replica(nodes, n).topic.traffic.bytes_out for n in nodes.brokers}
            assert [n for n, size in given.items() if size] == [near]
            await nodes.kill(near)
            await in_sync(nodes, count=2)
            await written(nodes, 5, 10)
            got = [record.value async for record in _first(consumer, 5)]
            assert got == [b"%d" % number for number in range(10, 15)]
            assert replica(nodes, nodes.state("orders").leader).topic.traffic.bytes_out


async def _first(consumer: AsyncGroupConsumer, count: int) -> AsyncIterator[Any]:
    async for record in consumer:
        yield record
        count -= 1
        if not count:
            return


async def test_a_leader_names_a_replica_in_the_clients_rack_that_has_the_offset() -> None:
    async with ten_records() as nodes:
        leader, near, _ = nodes.state("orders").replicas
        rack = f"rack-{near}"
        told = await asked(nodes, leader, rack_id=rack)
        assert (told.preferred_read_replica, told.error_code, told.records or b"") == (near, 0, b"")
        assert told.high_watermark == 10
        for there, fields in (
            # no rack, one without a replica, the leader's own, an offset that nobody has, another version
            (leader, {}),
            (leader, {"rack_id": "elsewhere"}),
            (leader, {"rack_id": f"rack-{leader}"}),
            (leader, {"rack_id": rack, "offset": 11}),
            (leader, {"version": 10}),
            (near, {"rack_id": rack}),
        ):
            told = await asked(nodes, there, **fields)
            assert told.preferred_read_replica == -1
        await nodes.kill(near)
        await in_sync(nodes, count=2)
        assert (await asked(nodes, leader, rack_id=rack)).preferred_read_replica == -1


async def test_without_the_selector_clients_are_sent_nowhere() -> None:
    async with ten_records(replica_selector_class="") as nodes:
        leader, near, _ = nodes.state("orders").replicas
        told = await asked(nodes, leader, rack_id=f"rack-{near}")
        assert told.preferred_read_replica == -1
        assert told.records


async def test_a_follower_gives_what_is_committed_and_refuses_what_it_does_not_have() -> None:
    async with ten_records(min_insync_replicas=3) as nodes:
        leader, follower, third = nodes.state("orders").replicas
        assert (await asked(nodes, follower)).records == (await asked(nodes, leader)).records
        # what it has beyond is not committed while too few are in sync
        await nodes.kill(third)
        await in_sync(nodes, count=2)
        replica(nodes, leader).append(batch(10), now_ms=0)
        await nodes.until(lambda: replica(nodes, follower).log_end_offset == 11)
        told = await asked(nodes, follower, offset=10)
        assert (told.error_code, told.records or b"", told.high_watermark) == (0, b"", 10)
        assert (await asked(nodes, follower, offset=12)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        # clients of old do not know of followers
        assert (await asked(nodes, follower, version=10)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_another_leader_epoch_is_refused_before_it_is_asked_who_leads() -> None:
    async with ten_records() as nodes:
        await nodes.kill(nodes.state("orders").leader)
        left = set(nodes.brokers)
        await nodes.until(lambda: all(replica(nodes, n).leader_epoch == 1 for n in left))
        await nodes.until(lambda: nodes.state("orders").leader_epoch == 1)
        state = nodes.state("orders")
        for node_id in left:
            fenced = await asked(nodes, node_id, epoch=state.leader_epoch - 1)
            unknown = await asked(nodes, node_id, epoch=state.leader_epoch + 1)
            known = await asked(nodes, node_id, epoch=state.leader_epoch)
            assert fenced.error_code == ErrorCode.FENCED_LEADER_EPOCH
            assert unknown.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
            assert known.error_code == ErrorCode.NONE
        # another broker that copies is sent to the leader
        copying: dict[str, Any] = {"version": 15, "replica_state": ReplicaState(state.leader, -1)}
        told = await asked(nodes, (left - {state.leader}).pop(), **copying)
        assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_follower_that_has_registered_anew_is_not_believed_what_it_had_before() -> None:
    async with ten_records() as nodes:
        leader, follower, _ = nodes.state("orders").replicas
        epoch = nodes.brokers[leader].topics.image.brokers[follower].epoch
        for given, error in (
            (epoch - 1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
            (epoch, ErrorCode.NONE),
            (-1, ErrorCode.NONE),
        ):
            copying: dict[str, Any] = {"version": 15, "replica_state": ReplicaState(follower, given)}
            assert (await asked(nodes, leader, offset=10, **copying)).error_code == error
