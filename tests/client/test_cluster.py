"""The cluster client: retries, coordinators that move, nodes that go away.

Covers: client/errors.py, client/offsets.py, client/pool.py, client/waiting.py.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import UUID

import pytest

from kohort.client import BrokerConnectionError, Cluster, CommittedOffset, ConsumerClosedError
from kohort.client.connection import Connection
from kohort.client.metadata import Address
from kohort.client.pool import Channel, ConnectionPool
from kohort.client.waiting import Backoff
from kohort.protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from tests.client.fake_broker import FakeBroker
from tests.messages import request_of, response_of

ORDERS = TopicPartition("orders", 0)


def _commit_answer(*codes: int) -> Any:
    """Answers OffsetCommit with one code after the other, the last one for ever."""
    left = list(codes)

    def answer(request: Any) -> Any:
        code = left.pop(0) if len(left) > 1 else left[0]
        make = response_of(ApiKey.OFFSET_COMMIT)
        topic, partition = (
            make.OffsetCommitResponseTopic,
            make.OffsetCommitResponseTopic.OffsetCommitResponsePartition,
        )
        return make(
            throttle_time_ms=0,
            topics=[
                topic(
                    name=row.name,
                    partitions=[
                        partition(partition_index=p.partition_index, error_code=code) for p in row.partitions
                    ],
                )
                for row in request.topics
            ],
        )

    return answer


async def test_no_broker_within_the_time_is_one_error_that_names_all_that_were_tried() -> None:
    cluster = Cluster("127.0.0.1:1,127.0.0.1:2", reconnect_backoff_ms=10)
    began = time.monotonic()
    with pytest.raises(BrokerConnectionError, match=r"127\.0\.0\.1:1: .*127\.0\.0\.1:2: "):
        await cluster.connect(timeout_ms=300)
    assert time.monotonic() - began < 30


async def test_a_bootstrap_broker_that_is_down_is_passed_over() -> None:
    async with FakeBroker() as broker, Cluster(f"127.0.0.1:1,{broker.address}") as cluster:
        assert list(cluster.known_metadata.nodes) == [0]


async def test_topics_that_do_not_exist_are_no_exception() -> None:
    async with FakeBroker() as broker, Cluster(broker.address) as cluster:
        broker.topics["orders"] = 2
        known = await cluster.metadata(["orders", "missing"])
        assert known.partitions("orders") == [TopicPartition("orders", 0), TopicPartition("orders", 1)]
        assert known.errors == {"missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert (cluster.leader(ORDERS), cluster.leader(TopicPartition("missing", 0))) == (0, None)


async def test_the_coordinator_is_looked_up_once_and_again_when_it_has_moved() -> None:
    async with FakeBroker() as broker, Cluster(broker.address, retry_backoff_ms=1) as cluster:
        broker.coordinator_is_here()
        broker.answers[ApiKey.OFFSET_COMMIT] = _commit_answer(0, ErrorCode.NOT_COORDINATOR, 0)
        for _ in range(2):
            await cluster.commit("billing", {ORDERS: 5})
        assert broker.asked.count(ApiKey.FIND_COORDINATOR) == 2
        assert broker.asked.count(ApiKey.OFFSET_COMMIT) == 3


async def test_a_known_and_connected_coordinator_is_asked_before_anything_else_runs() -> None:
    async with FakeBroker() as broker, Cluster(broker.address, retry_backoff_ms=1) as cluster:
        broker.coordinator_is_here()
        broker.answers[ApiKey.HEARTBEAT] = lambda _: response_of(ApiKey.HEARTBEAT)()
        body = request_of(ApiKey.HEARTBEAT)(group_id="billing", generation_id=1, member_id="m")
        assert cluster.ask_coordinator("billing", body) is None, "it is not known yet"
        await cluster.request_coordinator("billing", body)
        order: list[str] = []
        asyncio.get_running_loop().call_soon(order.append, "another")
        await cluster.request_coordinator("billing", body, sent=lambda: order.append("sent"))
        assert order == ["sent", "another"]
        answer = cluster.ask_coordinator("billing", body)
        assert answer is not None
        assert (await answer).error_code == 0
        assert cluster.ask_coordinator("billing", body, channel=Channel.GROUP) is None, "not connected"
        await cluster.close()
        assert cluster.ask_coordinator("billing", body) is None


async def test_a_coordinator_that_is_not_there_yet_is_asked_for_again() -> None:
    async with FakeBroker() as broker, Cluster(broker.address, retry_backoff_ms=1) as cluster:
        broker.coordinator_is_here()
        here = broker.answers[ApiKey.FIND_COORDINATOR]
        refusals = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3

        def later(request: Any) -> Any:
            body = here(request)
            if refusals:
                body.coordinators[0].error_code = refusals.pop()
            return body

        broker.answers[ApiKey.FIND_COORDINATOR] = later
        assert (await cluster.coordinator("billing")).address == Address("127.0.0.1", broker.port)
        assert broker.asked.count(ApiKey.FIND_COORDINATOR) == 4


async def test_an_answer_that_cannot_change_is_raised_at_once() -> None:
    async with FakeBroker() as broker, Cluster(broker.address) as cluster:
        broker.coordinator_is_here()
        broker.answers[ApiKey.OFFSET_COMMIT] = _commit_answer(ErrorCode.ILLEGAL_GENERATION)
        with pytest.raises(KafkaError, match="orders") as caught:
            await cluster.commit("billing", {ORDERS: CommittedOffset(5)}, generation=3, member_id="m")
        assert caught.value.code is ErrorCode.ILLEGAL_GENERATION
        assert broker.asked.count(ApiKey.OFFSET_COMMIT) == 1


async def test_retrying_ends_with_the_last_error_when_time_is_up() -> None:
    async with FakeBroker() as broker:
        cluster = Cluster(broker.address, retry_backoff_ms=10, default_api_timeout_ms=1_000)
        broker.coordinator_is_here()
        broker.answers[ApiKey.OFFSET_COMMIT] = _commit_answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        with pytest.raises(KafkaError, match="COORDINATOR_LOAD_IN_PROGRESS"):
            await cluster.commit("billing", {ORDERS: 5})
        assert 2 <= broker.asked.count(ApiKey.OFFSET_COMMIT) <= 12
        await cluster.close()


async def test_a_broker_that_comes_back_is_found_again() -> None:
    async with FakeBroker() as broker:
        cluster = Cluster(broker.address, retry_backoff_ms=10)
        await cluster.connect()
        await broker.stop()
        asking = asyncio.create_task(cluster.metadata([]))
        await asyncio.sleep(0.1)
        assert not asking.done()
        await broker.start()
        assert list((await asking).nodes) == [0]
        await cluster.close()


async def test_brokers_that_were_all_away_are_believed_though_they_name_an_earlier_leader_epoch() -> None:
    async with FakeBroker() as broker:
        make, topic_id, epoch = response_of(ApiKey.METADATA), UUID(int=1), 7

        def answer(_request: Any) -> Any:
            topic = make.MetadataResponseTopic
            partition = topic.MetadataResponsePartition(
                error_code=0, partition_index=0, leader_id=0, leader_epoch=epoch, replica_nodes=[0]
            )
            return make(
                brokers=[
                    make.MetadataResponseBroker(node_id=0, host="127.0.0.1", port=broker.port, rack=None)
                ],
                cluster_id="c",
                controller_id=0,
                topics=[topic(error_code=0, name="orders", topic_id=topic_id, partitions=[partition])],
            )

        broker.answers[ApiKey.METADATA] = answer
        cluster = Cluster(broker.address, retry_backoff_ms=10)
        await cluster.connect(topics=["orders"])
        epoch = 3
        assert (await cluster.metadata(["orders"])).leader_epoch(ORDERS) == 7
        await broker.stop()
        asking = asyncio.create_task(cluster.metadata(["orders"]))
        async with asyncio.timeout(30):
            while cluster.known_metadata.leader_epoch(ORDERS) == 7:  # noqa: ASYNC110 - until it was tried in vain
                await asyncio.sleep(0.01)
        assert cluster.leader(ORDERS) == 0
        await broker.start()
        assert (await asking).leader_epoch(ORDERS) == 3
        await cluster.close()


async def test_a_broker_that_is_away_is_not_called_in_a_busy_loop() -> None:
    tries = 0

    async def refuse(address: Address) -> Connection:
        nonlocal tries
        tries += 1
        raise BrokerConnectionError(str(address), "refused")

    pool = ConnectionPool(refuse, Backoff(40, 40, jitter=0.0))

    async def knock() -> None:
        with pytest.raises(BrokerConnectionError):
            await pool.get(Address("127.0.0.1", 1), Channel.DATA)

    began = time.monotonic()
    for _ in range(4):
        await knock()
    assert time.monotonic() - began >= 0.11
    assert tries == 4
    assert pool.failing(Address("127.0.0.1", 1))


async def test_whoever_wants_a_connection_at_the_same_time_shares_it() -> None:
    async with FakeBroker() as broker, Cluster(broker.address) as cluster:
        before = broker.connections
        await asyncio.gather(*(cluster.metadata([]) for _ in range(10)))
        assert broker.connections == before
        cluster.break_connections()
        await asyncio.gather(*(cluster.metadata([]) for _ in range(10)))
        assert broker.connections == before + 1


async def test_a_closed_cluster_says_so() -> None:
    async with FakeBroker() as broker:
        async with Cluster(broker.address) as cluster:
            pass
        with pytest.raises(ConsumerClosedError):
            await cluster.metadata([])
