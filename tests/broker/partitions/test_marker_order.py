"""Markers that arrive late, after their sender has given them up: they end nothing any more.

Covers: broker/partitions/marker_order.py, broker/coordinators/transactions.py.
Covers: broker/apis/write_txn_markers.py.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer

from kohort.broker.coordinators import transactions as _transactions
from kohort.broker.coordinators.transactions import end_in
from kohort.broker.metadata.cluster_node import ClusterNode
from kohort.broker.partitions import marker_order as _marker_order
from kohort.broker.partitions.marker_order import MarkerOrder
from kohort.client import BrokerTimeoutError
from kohort.log import ProducerEntry
from kohort.offsets_topic import partition_for
from kohort.protocol import ErrorCode, TopicPartition
from kohort.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kohort.transactions import TransactionMarker
from tests.broker.clusters import Nodes, cluster, in_sync
from tests.broker.replicas.test_replicas import producer

ORDERS = TopicPartition("orders", 0)


def marker(producer_id: int, coordinator_epoch: int, attempt: int) -> TransactionMarker:
    return TransactionMarker(producer_id, 0, False, coordinator_epoch, attempt)


def test_a_marker_that_was_sent_before_another_one_of_its_producer_is_refused() -> None:
    order = MarkerOrder(list)
    assert order.admit(marker(1, 3, 5))
    assert order.admit(marker(1, 3, 5)), "the same one may come twice"
    assert not order.admit(marker(1, 3, 4))
    assert order.admit(marker(2, 3, 4)), "another producer"
    assert order.admit(marker(1, 4, 0)), "the next coordinator begins anew"
    assert not order.admit(marker(1, 3, 9))
    assert order.admit(marker(1, 0, -1)), "other brokers and tools number none"
    assert not order.admit(marker(1, 3, 9))


def test_producers_that_the_log_has_forgotten_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_marker_order, "_LEAST", 3)
    order = MarkerOrder(lambda: [ProducerEntry(1)])
    order._most = 3
    for producer_id in range(1, 5):
        assert order.admit(marker(producer_id, 0, 1))
    assert sorted(order._newest) == [1, 4]
    assert not order.admit(marker(1, 0, 0))
    assert not order.admit(marker(4, 0, 0)), "its marker is not in the log yet"


def part_of(nodes: Nodes, node_id: int) -> ClusterNode:
    found = nodes.brokers[node_id].cluster
    assert found is not None
    return found


def request(attempt: int, leader_epoch: int) -> WriteTxnMarkersRequest:
    topic = WritableTxnMarkerTopic("orders", [0], [leader_epoch] if leader_epoch >= 0 else [])
    return WriteTxnMarkersRequest([WritableTxnMarker(7, 0, False, [topic], 0, attempt=attempt)])


def error_of(answer: Any) -> int:
    error: int = answer.markers[0].topics[0].partitions[0].error_code
    return error


async def test_a_marker_that_was_given_up_does_not_end_the_next_transaction() -> None:
    """Its connection delivers it when the producer, which keeps its epoch, has another transaction open."""
    async with cluster() as nodes:
        await nodes.create("orders")
        leader = nodes.state("orders").leader
        async with producer(nodes, transactional_id="first") as sender:
            await sender.begin_transaction()
            await sender.abort_transaction()
        name = next(
            name
            for name in map(str, range(100))
            if nodes.state("__transaction_state", partition_for(name, 3)).leader != leader
        )
        coordinator = part_of(nodes, nodes.state("__transaction_state", partition_for(name, 3)).leader)
        ask = coordinator.ask
        held: list[WriteTxnMarkersRequest] = []

        async def give_up_first(node_id: int, body: Any, *, timeout_ms: float) -> Any:
            if isinstance(body, WriteTxnMarkersRequest) and not held:
                held.append(body)
                raise BrokerTimeoutError("the leader", "no answer")
            return await ask(node_id, body, timeout_ms=timeout_ms)

        coordinator.ask = give_up_first  # type: ignore[method-assign]
        async with producer(nodes, transactional_id=name) as sender:
            await sender.begin_transaction()
            await sender.send_and_wait("orders", b"aborted", partition=0)
            await sender.abort_transaction()
            await sender.begin_transaction()
            await sender.send_and_wait("orders", b"committed", partition=0)
            late = await ask(leader, held[0], timeout_ms=5_000)
            assert error_of(late) == ErrorCode.INVALID_TXN_STATE
            await sender.commit_transaction()
        options = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        async with AIOKafkaConsumer("orders", bootstrap_servers=nodes.bootstrap(), **options) as consumer:
            assert (await consumer.getone()).value == b"committed"


async def test_a_marker_for_an_older_leader_epoch_is_refused() -> None:
    async with cluster() as nodes:
        await nodes.create("orders")
        await in_sync(nodes)
        former = nodes.state("orders")
        await nodes.kill(former.leader)
        await nodes.until(lambda: nodes.state("orders").leader not in (-1, former.leader))
        now = nodes.state("orders")
        asking = part_of(nodes, next(n for n in nodes.brokers if n != now.leader))
        await nodes.until(lambda: nodes.state("orders", at=now.leader) == now)

        async def answer(attempt: int, leader_epoch: int) -> int:
            return error_of(await asking.ask(now.leader, request(attempt, leader_epoch), timeout_ms=5_000))

        assert await answer(5, former.leader_epoch) == ErrorCode.FENCED_LEADER_EPOCH
        assert await answer(5, now.leader_epoch) == ErrorCode.NONE
        assert await answer(4, now.leader_epoch) == ErrorCode.INVALID_TXN_STATE
        assert await answer(-1, -1) == ErrorCode.NONE, "as other brokers and tools send it"


async def test_a_marker_waits_for_a_leader_only_as_long_as_it_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_transactions, "_ASK_MS", 3_600_000)
    async with cluster() as nodes:
        await nodes.create("orders")
        await in_sync(nodes)
        leader = nodes.state("orders").leader
        number = leader % 3 + 1
        coordinator = part_of(nodes, number)
        ask, asked = coordinator.ask, asyncio.Event()

        async def hang(node_id: int, body: Any, *, timeout_ms: float) -> Any:
            if node_id == leader:
                asked.set()
                await asyncio.Event().wait()
            return await ask(node_id, body, timeout_ms=timeout_ms)

        coordinator.ask = hang  # type: ignore[method-assign]
        node = nodes.brokers[number]._require_running().node
        ended = asyncio.create_task(end_in(node, ORDERS, marker(7, 0, 0)))
        await asked.wait()
        await nodes.kill(leader)
        async with asyncio.timeout(30):
            while not await ended:
                ended = asyncio.create_task(end_in(node, ORDERS, marker(7, 0, 1)))


async def test_a_broker_out_of_reach_keeps_nobody_from_the_others() -> None:
    async with cluster() as nodes:
        part = part_of(nodes, 1)
        connect = part.connect

        async def hang(node_id: int) -> Any:
            if node_id == 2:
                await asyncio.Event().wait()
            return await connect(node_id)

        part.connect = hang  # type: ignore[method-assign]
        await nodes.create("orders")
        first = asyncio.create_task(part.ask(2, request(0, 0), timeout_ms=60_000))
        await asyncio.sleep(0)
        async with asyncio.timeout(30):
            answer = await part.ask(3, request(0, 0), timeout_ms=60_000)
        assert error_of(answer) in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        first.cancel()
