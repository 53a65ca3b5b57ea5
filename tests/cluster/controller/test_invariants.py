"""Whatever happens to a cluster, in whatever order: what has to be so after each step.

Covers: cluster/controller/decisions.py, cluster/controller/partitions.py, cluster/controller/writes.py.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kohort.cluster import NO_LEADER, UNKNOWN_EPOCH, PartitionState
from kohort.cluster.controller import (
    IsrChange,
    NewPartitions,
    NewTopic,
    Rules,
    add_partitions,
    alter_isr,
    balance_leaders,
    create_topics,
    delete_topics,
    elect_leaders,
    leaders_to_move,
    reassign,
)
from kohort.cluster.controller.partitions import moved_replicas, transition_of
from kohort.protocol import TopicPartition
from tests.cluster.controller.clusters import Cluster, plain

NODES = range(1, 6)
NAMES = ["a", "b", "c"]
Key = tuple[UUID, int]


class ClusterMachine(RuleBasedStateMachine):
    """Brokers come, go and stop; topics come, grow, move and go; leaders change their in-sync replicas."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.before: dict[Key, PartitionState] = {}
        self.brokers_before: Any = {}
        self.leaders: dict[tuple[Key, int], int] = {}
        # replicas that a leader asked for in the last step
        self.asked: dict[Key, set[int]] = {}
        self.may_be_unclean = False
        self.made = 0

    @initialize(nodes=st.sets(st.sampled_from(NODES), min_size=1), racks=st.booleans())
    def begin(self, nodes: set[int], racks: bool) -> None:
        self.cluster = Cluster(*nodes, racks={node: f"r{node % 2}" for node in NODES} if racks else None)

    @rule(node=st.sampled_from(NODES))
    def start_or_kill(self, node: int) -> None:
        if node in self.cluster.image.brokers:
            self.cluster.kill(node)
        else:
            self.cluster.start(node)

    @rule(node=st.sampled_from(NODES))
    def restart_at_once(self, node: int) -> None:
        if node in self.cluster.image.brokers:
            self.cluster.kill(node)
            self.check()
            self.cluster.start(node)

    @rule(node=st.sampled_from(NODES))
    def shut_down(self, node: int) -> None:
        broker = self.cluster.image.brokers.get(node)
        if broker is not None and not broker.shutting_down:
            self.cluster.shut_down(node)
            assert leaders_to_move(self.cluster.image, node) == 0

    @rule(
        name=st.sampled_from(NAMES),
        partitions=st.integers(1, 4),
        factor=st.integers(1, 4),
        unclean=st.booleans(),
    )
    def create(self, name: str, partitions: int, factor: int, unclean: bool) -> None:
        self.made += 1
        configs = {"unclean.leader.election.enable": "true"} if unclean else {}
        topic = NewTopic(name, UUID(int=self.made), partitions, factor, configs=configs)
        self.cluster.do(create_topics(self.cluster.image, [topic]))

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 6))
    def grow(self, name: str, count: int) -> None:
        self.cluster.do(add_partitions(self.cluster.image, [NewPartitions(name, count)]))

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        self.cluster.do(delete_topics(self.cluster.image, [name]))

    @rule(unclean=st.booleans())
    def elect(self, unclean: bool) -> None:
        self.may_be_unclean = unclean
        image, rules = self.cluster.image, self.cluster.rules
        self.cluster.do(elect_leaders(image, None, rules, unclean=unclean))

    @rule(unclean=st.booleans())
    def change_the_rules(self, unclean: bool) -> None:
        self.cluster.rules = Rules(unclean)
        self.cluster.tidy()

    @rule()
    def balance(self) -> None:
        self.cluster.do(balance_leaders(self.cluster.image, self.cluster.rules))

    @rule(
        name=st.sampled_from(NAMES),
        partition=st.integers(0, 3),
        replicas=st.lists(st.sampled_from(NODES), max_size=4),
    )
    def reassign(self, name: str, partition: int, replicas: list[int]) -> None:
        wanted = {TopicPartition(name, partition): replicas or None}
        self.cluster.do(reassign(self.cluster.image, wanted, self.cluster.rules))

    @rule(data=st.data(), name=st.sampled_from(NAMES), partition=st.integers(0, 3), stale=st.booleans())
    def alter_isr(self, data: st.DataObject, name: str, partition: int, stale: bool) -> None:
        image = self.cluster.image
        topic = image.topic(name)
        if topic is None or partition >= len(topic.partitions):
            return
        state = topic.partitions[partition]
        if state.leader == NO_LEADER:
            return
        isr = data.draw(st.sets(st.sampled_from(state.replicas)))
        change = IsrChange(
            topic.id,
            partition,
            state.leader_epoch - stale,
            state.partition_epoch,
            [
                (each, image.brokers[each].epoch if each in image.brokers else -1)
                for each in {*isr, state.leader}
            ],
        )
        self.asked = {(topic.id, partition): isr}
        epoch = image.brokers[state.leader].epoch
        [answer] = self.cluster.do(alter_isr(image, state.leader, epoch, [change], self.cluster.rules))
        assert not (stale and isinstance(answer, PartitionState))

    @invariant()
    def check(self) -> None:
        image = self.cluster.image
        now: dict[Key, PartitionState] = {}
        for topic in image.topics():
            unclean = self.cluster.rules.unclean_leader_election or bool(topic.configs) or self.may_be_unclean
            for number, state in enumerate(topic.partitions):
                key = topic.id, number
                now[key] = plain(state)
                self.check_state(plain(state))
                if state.leader != NO_LEADER:
                    led = self.leaders.setdefault((key, state.leader_epoch), state.leader)
                    assert led == state.leader, "one leader an epoch"
                before = self.before.get(key)
                if before is not None:
                    self.check_move(key, before, plain(state), unclean=unclean)
        for key, before in self.before.items():
            if key not in now:
                assert transition_of(before, None) is not None
        self.before, self.brokers_before = now, image.brokers
        self.asked, self.may_be_unclean = {}, False

    def check_state(self, state: PartitionState) -> None:
        brokers = self.cluster.image.brokers
        assert len(set(state.replicas)) == len(state.replicas)
        assert set(state.isr) <= set(state.replicas)
        assert set(state.adding) | set(state.removing) <= set(state.replicas)
        assert not set(state.adding) & set(state.removing)
        assert state.leader_epoch != UNKNOWN_EPOCH, "every topic begins with a leader"
        assert state.isr, "the last in-sync replicas are kept"
        if state.leader == NO_LEADER:
            able = [each for each in state.isr if each in brokers and not brokers[each].shutting_down]
            assert able == [], "somebody could lead"
        else:
            assert state.leader in state.isr
            assert state.leader in brokers
            assert set(state.isr) <= brokers.keys(), "who is away is not in sync while others are"

    def check_move(self, key: Key, before: PartitionState, now: PartitionState, *, unclean: bool) -> None:
        transition_of(before, now)
        list(moved_replicas(before, now, self.brokers_before, self.cluster.image.brokers))
        assert now.leader_epoch >= before.leader_epoch
        if now == before:
            return
        assert now.partition_epoch > before.partition_epoch
        if now.leader != before.leader or set(before.replicas) - set(now.replicas):
            assert now.leader_epoch > before.leader_epoch
        else:
            assert now.leader_epoch == before.leader_epoch
        came = set(now.isr) - set(before.isr) - self.asked.get(key, set())
        if came:
            assert unclean
            assert now.recovering
            assert now.isr == (now.leader,)


ClusterMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestClusterMachine = ClusterMachine.TestCase
