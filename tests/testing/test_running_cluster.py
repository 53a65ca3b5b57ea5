"""running_cluster: brokers of one cluster, killed, stopped, paused and cut off by the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kohort.client import Cluster
from kohort.testing import RunningCluster, running_cluster

QUICK: dict[str, Any] = {"replica_lag_time_max_ms": 1_000, "replica_fetch_wait_max_ms": 50}


@pytest.fixture
def cluster() -> Iterator[RunningCluster]:
    with running_cluster(3, **QUICK) as running:
        running.create_topic("orders", 3)
        yield running


def values(cluster: RunningCluster) -> set[bytes | None]:
    return {record.value for record in cluster.read("orders")}


def test_every_broker_of_it_is_one_of_the_cluster_and_all_end_with_the_block() -> None:
    before = set(threading.enumerate())
    with running_cluster(2, racks=["a", "b"]) as cluster:
        assert set(cluster.brokers) == {1, 2}
        assert cluster.controller in (1, 2)
        assert len({broker.cluster_id for broker in cluster.brokers.values()}) == 1
        cluster.create_topic("orders", 4)
        assert {cluster.leader_of("orders", number) for number in range(4)} == {1, 2}
        assert cluster.coordinator_of("billing") in (1, 2)
    # other tests of this process may have brokers of their own
    assert "kohort-broker" not in {thread.name for thread in set(threading.enumerate()) - before}


@pytest.mark.parametrize("missed_after_s", [0.0, 0.3])
def test_what_was_acknowledged_is_there_when_its_leader_is_killed(
    cluster: RunningCluster, missed_after_s: float
) -> None:
    cluster.produce("orders", ["a", "b", "c"], partition=0)
    leader = cluster.leader_of("orders", 0)
    cluster.kill(leader, missed_after_s)
    assert cluster.leader_of("orders", 0) != leader
    cluster.produce("orders", ["d"], partition=0)
    assert values(cluster) == {b"a", b"b", b"c", b"d"}
    cluster.restart(leader)
    cluster.wait_in_sync("orders")
    assert leader in cluster.state("orders", 0).isr


def test_a_broker_that_is_stopped_leads_nothing_and_comes_back(cluster: RunningCluster) -> None:
    cluster.produce("orders", ["a"], partition=1)
    leader = cluster.leader_of("orders", 1)
    epoch = cluster.state("orders", 1).leader_epoch
    cluster.stop(leader)
    state = cluster.state("orders", 1)
    assert (state.leader != leader, state.leader_epoch) == (True, epoch + 1)
    cluster.produce("orders", ["b"], partition=1)
    cluster.restart(leader)
    cluster.wait_in_sync("orders")
    assert values(cluster) == {b"a", b"b"}


def test_a_broker_that_is_paused_is_replaced_and_finds_out(cluster: RunningCluster) -> None:
    leader = cluster.leader_of("orders", 0)
    cluster.pause(leader, missed=True)
    assert cluster.leader_of("orders", 0) != leader
    cluster.resume(leader)
    cluster.wait_in_sync("orders")
    cluster.produce("orders", ["a"], partition=0)
    assert values(cluster) == {b"a"}


def test_a_session_that_is_lost_is_followed_by_another(cluster: RunningCluster) -> None:
    for number in list(cluster.brokers):
        cluster.lose_session(number)
        cluster.wait_in_sync("orders")
    cluster.produce("orders", ["a"])
    assert values(cluster) == {b"a"}


def test_a_follower_that_is_cut_off_leaves_the_in_sync_replicas_and_joins_again(
    cluster: RunningCluster,
) -> None:
    leader = cluster.controller
    led = next(number for number in range(3) if cluster.leader_of("orders", number) == leader)
    follower = next(number for number in cluster.brokers if number != leader)
    cluster.cut(leader, follower)
    cluster.produce("orders", ["a"], partition=led)
    cluster._eventually(lambda: follower not in cluster.state("orders", led).isr or None)
    cluster.heal()
    cluster.wait_in_sync("orders")


def test_a_broker_without_others_and_metadata_is_replaced_when_its_session_ends(
    cluster: RunningCluster,
) -> None:
    leader = cluster.leader_of("orders", 0)
    cluster.cut_off(leader)
    cluster.lose_session(leader)
    assert cluster.leader_of("orders", 0) != leader
    cluster.heal()
    cluster.wait_in_sync("orders")


def test_leaders_move_on_command(cluster: RunningCluster) -> None:
    cluster.produce("orders", ["a", "b"], partition=2)
    for number in (1, 2, 3):
        cluster.move_leader("orders", 2, number)
        assert cluster.leader_of("orders", 2) == number
    assert values(cluster) == {b"a", b"b"}


def test_a_group_keeps_its_offsets_when_its_coordinator_is_killed(cluster: RunningCluster) -> None:
    from kohort.consumer import GroupConsumer

    def consume() -> list[bytes | None]:
        with GroupConsumer(
            "orders",
            group="billing",
            bootstrap=cluster.bootstrap,
            auto_offset_reset="earliest",
            session_timeout_ms=6_000,
        ) as consumer:
            found: list[bytes | None] = []
            while len(found) < 2:
                for record in consumer.getmany(timeout_ms=200):
                    found.append(record.value)
                    consumer.done(record)
            consumer.commit()
            return found

    cluster.produce("orders", ["a", "b"], partition=0)
    assert consume() == [b"a", b"b"]
    cluster.kill(cluster.coordinator_of("billing"))
    cluster.produce("orders", ["c", "d"], partition=0)
    assert consume() == [b"c", b"d"]


async def test_a_client_finds_the_next_controller(cluster: RunningCluster) -> None:
    async with Cluster(cluster.bootstrap) as client:
        await client.create_topics({"before": 1})
        await asyncio.to_thread(cluster.kill, cluster.controller)
        await client.create_topics({"behind": 1}, replication_factor=2)
        await client.delete_topics(["before"])


def test_what_does_not_come_to_be_is_told(cluster: RunningCluster) -> None:
    with pytest.raises(KeyError, match="there is no partition orders-9"):
        cluster.state("orders", 9)
    with pytest.raises(TimeoutError, match="as the test waits for it"):
        cluster.wait_in_sync("missing", 0.01)
