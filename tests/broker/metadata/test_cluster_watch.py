"""What a broker says of partitions without a leader or replicas, and of a controller that is missing."""

from __future__ import annotations

import pytest

from kohort.broker.metadata.cluster_watch import ClusterWatch
from kohort.protocol import TopicPartition
from kohort.testing import RunningBroker, running_broker, running_cluster
from tests.waiting import wait_until


def test_partitions_without_a_leader_or_replicas_are_told_and_when_they_have_them_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kohort.broker.background.LOOK_S", 0.02)
    with running_cluster(3) as cluster:
        cluster.create_topic("orders", 3)
        cluster.create_topic("lone", 1)
        controller = cluster.controller
        other = next(number for number in cluster.brokers if number != controller)
        cluster._at_controller(lambda part: part.control.reassign({TopicPartition("lone", 0): [other]}))
        cluster._eventually(lambda: cluster.state("lone", 0).replicas == (other,) or None)
        cluster.kill(other)
        wait_until(lambda: "1 partitions have no leader, nobody can read or write them: lone" in caplog.text)
        wait_until(lambda: "partitions that this broker leads lack replicas in sync: orders-" in caplog.text)
        cluster.restart(other)
        cluster.wait_in_sync("orders")
        wait_until(lambda: "no partition that this broker leads lacks replicas any more" in caplog.text)
        wait_until(lambda: "all partitions have leaders again" in caplog.text)
    assert caplog.text.count("have no leader, nobody") == 1
    assert "has no controller" not in caplog.text


async def _looks(broker: RunningBroker, controllers: list[int]) -> None:
    topics = broker._broker.topics
    watch = ClusterWatch(topics, 1)
    for controller in controllers:
        topics.image = topics.image.with_changes({}, controller_id=controller)
        await watch.look()


@pytest.mark.parametrize(
    ("controllers", "told"),
    [([1, -1, 1], []), ([-1, -1, -1, 1], ["has no controller: leaders", "has a controller again, after"])],
)
def test_a_controller_that_is_missing_for_longer_than_an_election_is_told(
    caplog: pytest.LogCaptureFixture, controllers: list[int], told: list[str]
) -> None:
    with running_broker() as broker:
        broker._wait(_looks(broker, controllers))
    found = [each.getMessage() for each in caplog.records if "controller" in each.getMessage()]
    assert len(found) == len(told)
    assert all(words in line for words, line in zip(told, found, strict=True))
