"""A process that stood still for longer than its session may last believes in it again when the metadata
store has answered.

Covers: broker/event_loop/standstill.py, broker/replicas/replicas.py.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kohort.broker.clients.fetch_sessions import FetchSessions
from kohort.broker.event_loop.standstill import StandstillWatch
from kohort.broker.replicas.replicas import LeaderDoubts
from kohort.broker.settings import BrokerSettings
from tests.broker.clusters import Nodes, cluster, in_sync
from tests.waiting import until


class _Store:
    """Answers when it is told to, or fails."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[None]] = []

    async def sync(self) -> None:
        self.asked.append(asyncio.get_running_loop().create_future())
        await self.asked[-1]


class _Loop:
    """The running loop, whose clock a test moves."""

    def __init__(self) -> None:
        self.skipped_s = 0.0
        self._loop = asyncio.get_running_loop()

    def time(self) -> float:
        return self._loop.time() + self.skipped_s

    def create_task(self, work: Any) -> asyncio.Task[None]:
        return self._loop.create_task(work)


def in_doubt(watch: StandstillWatch) -> bool:
    return watch.is_in_doubt


@pytest.fixture
def store() -> _Store:
    return _Store()


async def test_the_session_is_in_doubt_at_once_and_until_the_store_has_answered(
    store: _Store, caplog: pytest.LogCaptureFixture
) -> None:
    made: Any = store
    watch, loop = StandstillWatch(made, 600.0), _Loop()
    faked: Any = loop
    watch._loop, watch._pause_s = faked, 0.001
    watch.start()
    await asyncio.sleep(0.05)
    assert (in_doubt(watch), store.asked) == (False, [])
    loop.skipped_s += 299
    assert not in_doubt(watch)
    await asyncio.sleep(0.05)
    loop.skipped_s += 301
    assert in_doubt(watch), "before anything else has run"
    await until(lambda: len(store.asked) == 1)
    store.asked[0].set_exception(ConnectionError("gone"))
    await until(lambda: len(store.asked) == 2)
    assert in_doubt(watch)
    loop.skipped_s += 301
    store.asked[1].set_result(None)
    await until(lambda: len(store.asked) == 3)
    assert in_doubt(watch), "the answer may be from before the second standstill"
    store.asked[2].set_result(None)
    await until(lambda: not watch.is_in_doubt)
    told = [record.message for record in caplog.records if record.name == "kohort.broker"]
    assert [text.split(".")[0] for text in told] == ["this process stood still for up to 301"]
    watch.stop()


def may_be_replaced(nodes: Nodes, node_id: int, partition: int) -> bool:
    return nodes.brokers[node_id]._require_running()._moving["__consumer_offsets"].may_be_replaced(partition)


async def test_a_coordinator_that_stood_still_and_hears_of_no_follower_may_be_replaced() -> None:
    async with cluster(replica_lag_time_max_ms=600_000) as nodes:
        await nodes.create("__consumer_offsets")
        await in_sync(nodes, "__consumer_offsets")
        leader = nodes.state("__consumer_offsets").leader
        node = nodes.brokers[leader].cluster
        assert node is not None
        assert not may_be_replaced(nodes, leader, 0)
        stand_still(node._standstill)
        assert may_be_replaced(nodes, leader, 0), "before anything else has run"
        await nodes.until(lambda: not node._standstill.is_in_doubt)
        assert not may_be_replaced(nodes, leader, 0)
        nodes.stores[leader].suspend()
        stand_still(node._standstill)
        assert may_be_replaced(nodes, leader, 0)
        # followers that go on fetching have no other leader
        await nodes.until(lambda: not may_be_replaced(nodes, leader, 0))
        for node_id, broker in nodes.brokers.items():
            replicas = broker._require_running()._replicas
            if node_id != leader and replicas is not None:
                await replicas.stop()
        await nodes.until(lambda: may_be_replaced(nodes, leader, 0))
        nodes.stores[leader].resume()
        await nodes.until(lambda: not may_be_replaced(nodes, leader, 0))


def stand_still(watch: StandstillWatch) -> None:
    """Let it look as if the process had stood still until now."""
    watch._pause_s = 0.01
    watch.stop()
    watch.start()
    watch._seen_s -= 100


class _Follower:
    """A replica's leadership, and the metadata store's reach; ``fetched_s`` is when a follower fetched."""

    def __init__(self) -> None:
        self.awake_s = 0.0
        self.fetched_s = 0.0
        self.leadership = self.replication = self.topic = self
        self.id, self.index = None, 0

    def hears_of_leaders(self) -> bool:
        return False

    def awake_since_s(self) -> float:
        return self.awake_s

    def silent(self, since_ms: int) -> set[int]:
        return {2} if self.fetched_s * 1_000 < since_ms else set()


async def test_fetches_that_are_read_at_the_end_of_a_standstill_may_have_been_sent_before_it() -> None:
    made: Any = _Follower()
    doubts = LeaderDoubts(made, BrokerSettings(replica_fetch_wait_max_ms=500), FetchSessions(0))
    now_s = asyncio.get_running_loop().time()
    made.fetched_s = now_s - 0.4
    assert not doubts.may_be_replaced(made)
    made.awake_s = now_s - 0.41
    assert doubts.may_be_replaced(made)
    made.awake_s = now_s - 0.95
    assert not doubts.may_be_replaced(made)
