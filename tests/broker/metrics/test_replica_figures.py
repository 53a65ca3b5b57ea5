"""Metrics of replicas: who leads, what lacks replicas or a leader, who is controller; the session.

Covers: broker/metadata/topics.py.
"""

from __future__ import annotations

import pytest

from kohort import __version__
from kohort.broker.event_loop.stopwatch import clock
from kohort.broker.metrics import MetadataFigures, ReplicaFigures
from kohort.broker.metrics._exposer import exposition
from kohort.protocol import TopicPartition
from kohort.testing import RunningBroker, running_broker, running_cluster


def figures(broker: RunningBroker) -> ReplicaFigures:
    return broker._on_loop(broker._broker.metrics).replicas


def test_one_that_is_alone_leads_all_that_it_has() -> None:
    with running_broker() as broker:
        broker.create_topic("orders", 3)
        broker.produce("orders", ["a", "b", "c"])
        before = figures(broker).partitions
        broker.create_topic("empty", 4)
        assert figures(broker) == ReplicaFigures(leaders=before + 4, partitions=before + 4)


def test_brokers_of_a_cluster_tell_of_what_they_lead_and_the_controller_of_what_nobody_leads() -> None:
    with running_cluster(3) as cluster:
        cluster.create_topic("orders", 3, min_insync_replicas="3")
        controller = cluster.controller
        first, second = (number for number in cluster.brokers if number != controller)
        brokers = cluster.brokers
        assert [figures(brokers[n]).active_controller for n in (controller, first, second)] == [1, 0, 0]
        assert all(figures(each)[:3] == (1, 0, 0) for each in brokers.values())
        assert [figures(each).partitions for each in brokers.values()] == [3, 3, 3]
        for number, side in ((first, "leader"), (second, "follower")):
            throttle = getattr(cluster._part(number), f"{side}_throttle")
            throttle.record(1 << 40, clock())
            told = figures(brokers[number])
            rates = {"leader": told.leader_throttled_rate, "follower": told.follower_throttled_rate}
            assert rates.pop(side) > 0
            assert list(rates.values()) == [0]
        cluster.kill(first)
        found = figures(brokers[controller])
        assert (found.under_replicated, found.under_min_isr) == (found.leaders, found.leaders)
        assert found.leaders + figures(brokers[second]).leaders == 3
        assert found.isr_shrinks + figures(brokers[second]).isr_shrinks == 2
        cluster.restart(first)
        cluster.wait_in_sync("orders")
        assert figures(brokers[controller]).under_replicated == 0
        expands = sum(figures(brokers[number]).isr_expands for number in (controller, second))
        assert expands == 3
        only = {TopicPartition("orders", 1): [second]}
        cluster._at_controller(lambda part: part.control.reassign(only))
        cluster._eventually(lambda: cluster.state("orders", 1).replicas == (second,) or None)
        cluster.kill(second)
        assert cluster.state("orders", 1).leader == -1
        assert figures(brokers[controller]).offline_partitions == 1
        assert figures(brokers[first]).offline_partitions == 0


def test_brokers_of_a_cluster_tell_of_their_session_and_of_the_builds_that_are_registered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running_broker() as alone:
        assert alone._on_loop(alone._broker.metrics).metadata is None
    with running_cluster(3) as cluster:
        number = next(number for number in cluster.brokers if number != cluster.controller)
        broker = cluster.brokers[number]

        def told() -> MetadataFigures:
            found = broker._on_loop(broker._broker.metrics).metadata
            assert found is not None
            return found

        assert told() == MetadataFigures(True, 0, 0, {__version__: 3})
        cluster.cut_off(number)
        cluster._eventually(lambda: not told().connected or None)
        assert told()[1:3] == (1, 0)
        cluster.lose_session(number)
        cluster._eventually(lambda: told()[:3] == (False, 1, 1) or None)
        cluster.heal()
        cluster._eventually(lambda: told() == MetadataFigures(True, 1, 1, {__version__: 3}) or None)
        shown = exposition(broker._on_loop(broker._broker.metrics))[0].decode()
        for line in (
            "kohort_zookeeper_connected 1.0",
            "kafka_server_sessionexpirelistener_zookeeperdisconnects_total 1.0",
            "kafka_server_sessionexpirelistener_zookeeperexpires_total 1.0",
            f'kohort_cluster_brokers{{version="{__version__}"}} 3.0',
        ):
            assert line in shown
        lines = [each.getMessage() for each in caplog.records if each.name == "kohort.broker"]
        assert [line.partition(", after")[0] for line in lines if "ZooKeeper" in line] == [
            "ZooKeeper is out of reach: once its session is over others lead",
            "the session with ZooKeeper is over: others lead what this broker led",
            "ZooKeeper is in reach again",
        ]
    assert caplog.text.count("is over: others lead") == 1
