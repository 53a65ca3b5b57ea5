"""A single link between two brokers that is cut: nothing waits for longer than a session, and what followers
that are out of reach may take.

Covers: broker/metadata/broker_watch.py.
"""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Final

import pytest

from kohort.protocol import TopicPartition
from kohort.testing.simulation.cluster._plan import BROKERS, TOPIC, ClusterPlan, draw_cluster_plan
from kohort.testing.simulation.cluster._world import ClusterWorld
from kohort.testing.simulation.engine._plan import Incident
from tests.simulation.planted import Bug

CUT_MS, LENGTH_MS, SESSION_MS, LAG_MS = 500, 6_000, 600, 600
_ALL = range(1, BROKERS + 1)
LINKS: Final = [
    *(("cut", *pair) for pair in combinations(_ALL, 2)),
    *(("cut-one-way", *pair) for pair in permutations(_ALL, 2)),
]
#: Until a change is decided, clients have found the new leader, and tried it.
THEN_MS = 1_000
LONGEST_MS = SESSION_MS + LAG_MS + THEN_MS
BUGS: Final = [
    Bug(
        "who does not answer the controller goes on leading",
        "broker.metadata.broker_watch:BrokerWatch._watch_broker",
        "self._on_failure(node_id, epoch, silent=True)",
        "pass",
    ),
]


class TimedWorld(ClusterWorld):
    """Notes when records are acknowledged in each partition."""

    def __init__(self, plan: ClusterPlan) -> None:
        super().__init__(plan)
        self.acknowledged: dict[TopicPartition, list[int]] = {}
        known = self.ledger.was_acknowledged

        def was_acknowledged(value: bytes, partition: TopicPartition, offset: int) -> None:
            known(value, partition, offset)
            self.acknowledged.setdefault(partition, []).append(self.heap.now)

        self.ledger.was_acknowledged = was_acknowledged  # type: ignore[method-assign]

    def longest_silence_ms(self) -> dict[TopicPartition, int]:
        """The longest time without an acknowledgement in each partition, until the link was whole again."""
        over = self.over_ms
        return {
            partition: max(
                (min(after, over) - before for before, after in zip(at, [*at[1:], over], strict=True)),
            )
            for partition, at in self.acknowledged.items()
        }


def plan_of(kind: str, source: int, target: int, lag_ms: int = LAG_MS) -> ClusterPlan:
    """A schedule with three partitions, each led by another broker, in which nothing else goes wrong."""
    plan = draw_cluster_plan(1)
    plan.network, plan.incidents, plan.inputs = {}, [], ()
    plan.topics = {TOPIC: BROKERS}
    plan.lost_writes = plan.late = 0.0
    plan.flips, plan.group_members, plan.producers, plan.unclean = 0, 0, 2, False
    plan.session_ms, plan.faults_ms = SESSION_MS, CUT_MS + LENGTH_MS
    plan.producer = {**plan.producer, "request_timeout_ms": 300, "delivery_timeout_ms": 100_000}
    plan.settings |= {
        "min_insync_replicas": 2,
        "zookeeper_session_timeout_ms": SESSION_MS,
        "replica_lag_time_max_ms": lag_ms,
    }
    others = [number for number in range(1, BROKERS + 1) if number != source]
    draw = (others.index(target) + 0.5) / 1_000
    plan.incidents = [Incident("i0", CUT_MS, kind, source - 1, draw, LENGTH_MS)]
    return plan


def longest_silence_ms(kind: str, source: int, target: int, lag_ms: int = LAG_MS) -> int:
    """Of any partition, while the link is cut."""
    world = TimedWorld(plan_of(kind, source, target, lag_ms))
    world.run()
    silence = world.longest_silence_ms()
    world.close()
    assert len(silence) == BROKERS
    return max(silence.values())


@pytest.mark.parametrize(("kind", "source", "target"), LINKS)
def test_no_cut_link_keeps_a_partition_for_longer_than_a_session(kind: str, source: int, target: int) -> None:
    """The brokers are controller, leader, follower and bystander to each other, by partition."""
    assert longest_silence_ms(kind, source, target) < LONGEST_MS


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.what.replace(" ", "-"))
def test_a_planted_bug_makes_a_cut_link_last(bug: Bug) -> None:
    with bug.planted():
        assert any(longest_silence_ms(*link) >= LENGTH_MS for link in LINKS)


@pytest.mark.parametrize(("kind", "source", "target"), LINKS)
def test_a_follower_out_of_reach_holds_up_writes_for_little_more_than_its_lag(
    kind: str, source: int, target: int
) -> None:
    lag_ms = 2_000
    assert longest_silence_ms(kind, source, target, lag_ms) < 9 / 8 * lag_ms
