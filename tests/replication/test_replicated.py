"""A replicated partition under every order of events: kills, lost sessions, late images, lost answers.

Three brokers with logs in memory, the controller's decisions as they ship, ``Replication`` at who believes to
lead and ``truncation`` at who follows. Whatever was acknowledged with acks=all has to be in the log of every
in-sync replica, and so of every later leader.

Covers: replication/_replication.py, replication/_truncation.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from kohort.cluster import NO_LEADER, UNKNOWN_EPOCH, BrokerRegistration, PartitionState
from kohort.cluster.controller import IsrChange, NewTopic, alter_isr, create_topics, elect_leaders
from kohort.protocol import ErrorCode, KafkaError
from kohort.replication import IsrChangeRequest, Replication, diverging_epoch, truncation_for
from tests.cluster.controller.clusters import Cluster

#: What happens, and how often beside the others.
WEIGHTS = {
    "see": 10,
    "all_see": 16,
    "fetch": 40,
    "all_fetch": 6,
    "produce": 20,
    "pass_time": 6,
    "request_changes": 10,
    "deliver_requests": 10,
    "kill_or_start": 9,
    "lose_or_renew_session": 3,
    "shut_down": 1,
    "elect_the_preferred_leader": 2,
}
STEPS = 150
ID = UUID(int=1)
LAG_MS = 100
NOTHING_SEEN = PartitionState(NO_LEADER, UNKNOWN_EPOCH, (), ())

Record = tuple[int, int]


@dataclass(eq=False)
class Node:
    """A broker: its log of (leader epoch, value), and what it believes."""

    node_id: int
    epoch: int
    log: list[Record] = field(default_factory=list)
    high_watermark: int = 0
    runs: bool = True
    seen: PartitionState = NOTHING_SEEN
    replication: Replication | None = None
    # records that wait to be acknowledged: where they end
    waiting: list[int] = field(default_factory=list)
    request: tuple[Replication, IsrChangeRequest] | None = None

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        begins: dict[int, int] = {}
        for offset, (each, _) in enumerate(self.log):
            begins.setdefault(each, offset)
        if self.replication is not None:
            # a leader notes its epoch before its first record
            begins.setdefault(self.replication.leader_epoch, self.replication.start_offset)
        known = max((each for each in begins if each <= epoch), default=-1)
        later = min((each for each in begins if each > epoch), default=None)
        if known == epoch and later is None:
            return epoch, len(self.log)
        if later is None:
            return -1, -1
        return (known if known >= 0 else epoch), begins[later]

    def stop(self) -> None:
        self.runs, self.seen = False, NOTHING_SEEN
        self.replication, self.waiting, self.request = None, [], None


class Schedule:
    """Everything that one seed lets happen."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = 0
        self.value = 0
        self.min_isr = self.random.choice((1, 2, 2, 3))
        self.cluster = Cluster(1, 2, 3)
        new = NewTopic("orders", ID, assignments=[[1, 2, 3]])
        self.cluster.do(create_topics(self.cluster.image, [new]))
        self.nodes = {each: Node(each, broker.epoch) for each, broker in self.brokers.items()}
        self.acknowledged: dict[int, Record] = {}

    @property
    def brokers(self) -> dict[int, BrokerRegistration]:
        return dict(self.cluster.image.brokers)

    @property
    def eligible(self) -> dict[int, int]:
        return {each: broker.epoch for each, broker in self.brokers.items() if not broker.shutting_down}

    def run(self) -> None:
        self.all_see()
        steps = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS)
        for step in steps:
            getattr(self, step)()
            self.check()
        self.heal()

    def any_node(self) -> int:
        return self.random.randint(1, 3)

    def any_or_one_of(self, away: list[int]) -> int:
        """Mostly one that is away: else most would be."""
        return self.random.choice(away) if away and self.random.random() < 0.7 else self.any_node()

    # -- brokers ---------------------------------------------------------------------------------------------

    def see(self, node_id: int | None = None) -> None:
        """A broker gets the image that is current."""
        node_id = node_id or self.any_node()
        node = self.nodes[node_id]
        if not node.runs:
            return
        state = node.seen = self.cluster.state("orders")
        leads = node.replication
        if state.leader != node_id:
            node.replication, node.waiting = None, []
        elif leads is not None and leads.leader_epoch == state.leader_epoch:
            leads.on_change(
                partition_epoch=state.partition_epoch,
                replicas=state.replicas,
                isr=state.isr,
                recovering=state.recovering,
                now_ms=self.now_ms,
            )
            leads.brokers_changed(self.eligible, self.now_ms)
        else:
            node.waiting = []
            node.replication = Replication(
                node_id,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                replicas=state.replicas,
                isr=state.isr,
                log_end_offset=len(node.log),
                high_watermark=node.high_watermark,
                now_ms=self.now_ms,
                lag_time_max_ms=LAG_MS,
                min_isr=self.min_isr,
                eligible=self.eligible,
            )
        self.acknowledge(node)

    def all_see(self) -> None:
        for node_id in self.nodes:
            self.see(node_id)

    def kill_or_start(self) -> None:
        away = [each for each, node in self.nodes.items() if not node.runs]
        leader = self.cluster.state("orders").leader
        node_id = self.any_or_one_of(away or [each for each in self.nodes if each == leader])
        node = self.nodes[node_id]
        if node.runs:
            node.stop()
            # the one on the disk is older
            node.high_watermark = max(node.high_watermark - self.random.randint(0, 3), 0)
            if node_id in self.brokers:
                self.cluster.kill(node_id)
        else:
            self.cluster.start(node_id)
            node.runs, node.epoch = True, self.brokers[node_id].epoch

    def lose_or_renew_session(self) -> None:
        """The broker runs on, and does not know."""
        node_id = self.any_or_one_of([each for each in self.nodes if each not in self.brokers])
        node = self.nodes[node_id]
        if not node.runs:
            return
        if node_id in self.brokers:
            self.cluster.kill(node_id)
        else:
            self.cluster.start(node_id)
            node.epoch = self.brokers[node_id].epoch

    def shut_down(self) -> None:
        node_id = self.any_node()
        if node_id in self.brokers and not self.brokers[node_id].shutting_down:
            self.cluster.shut_down(node_id)

    def elect_the_preferred_leader(self) -> None:
        self.cluster.do(elect_leaders(self.cluster.image, None, self.cluster.rules, unclean=False))

    def pass_time(self) -> None:
        self.now_ms += self.random.choice((1, LAG_MS // 2, LAG_MS + 1))
        for node in self.nodes.values():
            if node.replication is not None:
                node.replication.advance(self.now_ms)

    # -- records ---------------------------------------------------------------------------------------------

    def produce(self) -> None:
        for node in self.nodes.values():
            if node.replication is not None:
                self.append(node, node.replication, self.random.randint(1, 3))

    def append(self, node: Node, leads: Replication, count: int) -> None:
        for _ in range(count):
            if leads.is_under_min_isr:
                return  # NOT_ENOUGH_REPLICAS
            self.value += 1
            node.log.append((leads.leader_epoch, self.value))
            node.waiting.append(len(node.log))
            leads.on_append(len(node.log), self.now_ms)
        self.acknowledge(node)

    def fetch(self) -> None:
        self.fetch_once(self.nodes[self.any_node()], self.random.choice((0, 1, 1, 2)))

    def all_fetch(self, count: int | None = None) -> None:
        for node in self.nodes.values():
            for _ in range(2 if count else 1):
                self.fetch_once(node, self.random.randint(1, 2) if count is None else count)

    def fetch_once(self, node: Node, count: int) -> None:
        leader = self.nodes.get(node.seen.leader)
        if not node.runs or leader is None or leader is node or leader.replication is None:
            return
        leads = leader.replication
        if leads.leader_epoch != node.seen.leader_epoch:
            return  # FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH
        offset = len(node.log)
        if node.log:
            diverging = diverging_epoch(offset, node.log[-1][0], leader.end_of_epoch)
            if diverging is not None:
                cut = truncation_for(
                    *diverging, node.end_of_epoch, log_end=offset, high_watermark=node.high_watermark
                )
                assert not cut.below_high_watermark, "only an unclean election takes committed records"
                assert cut.offset < offset, "or it would ask for ever"
                del node.log[cut.offset :]
                return
        leads.on_fetch(node.node_id, offset, self.now_ms, broker_epoch=node.epoch)
        self.acknowledge(leader)
        node.log += leader.log[offset : offset + count]
        node.high_watermark = max(node.high_watermark, min(leads.high_watermark, len(node.log)))

    def acknowledge(self, node: Node) -> None:
        leads = node.replication
        if leads is None:
            return
        assert leads.high_watermark >= node.high_watermark, "it does not go back"
        node.high_watermark = leads.high_watermark
        for end in list(node.waiting):
            try:
                if leads.is_acknowledged(end):
                    self.acknowledged[end - 1] = node.log[end - 1]
                    node.waiting.remove(end)
            except KafkaError:
                node.waiting.remove(end)

    # -- in-sync replicas ------------------------------------------------------------------------------------

    def request_changes(self) -> None:
        for node in self.nodes.values():
            request = None if node.replication is None else node.replication.take_isr_change()
            if node.replication is not None and request is not None:
                node.request = node.replication, request

    def deliver_requests(self) -> None:
        arrives = self.random.random() < 0.8
        is_answered = self.random.random() < 0.6
        for node in self.nodes.values():
            self.deliver_request(node, arrives=arrives, is_answered=is_answered)

    def deliver_request(self, node: Node, *, arrives: bool, is_answered: bool) -> None:
        node_id = node.node_id
        if node.request is None:
            return
        (leads, request), node.request = node.request, None
        refused: Callable[[ErrorCode], bool] = lambda code: leads.on_refused(request, code, self.now_ms)  # noqa: E731
        if not arrives:
            refused(ErrorCode.REQUEST_TIMED_OUT)
            return
        change = IsrChange(ID, 0, request.leader_epoch, request.partition_epoch, request.isr)
        change = change._replace(
            isr=[(each, node.epoch if each == node_id else epoch) for each, epoch in request.isr]
        )
        try:
            decision = alter_isr(self.cluster.image, node_id, node.epoch, [change], self.cluster.rules)
        except KafkaError as error:
            refused(error.code)
            return
        [answer] = self.cluster.do(decision)
        if not is_answered:
            refused(ErrorCode.REQUEST_TIMED_OUT)
        elif isinstance(answer, KafkaError):
            refused(answer.code)
        else:
            leads.on_change(
                partition_epoch=answer.partition_epoch,
                replicas=answer.replicas,
                isr=answer.isr,
                recovering=answer.recovering,
                now_ms=self.now_ms,
            )
        if node.replication is leads:
            self.acknowledge(node)

    # -- what has to be so -----------------------------------------------------------------------------------

    def check(self) -> None:
        self.in_sync_replicas_have_all_that_was_acknowledged()
        self.replicas_agree_below_their_high_watermarks()
        self.an_epoch_has_one_leader()
        self.the_leader_knows_all_that_the_controller_may_take_for_in_sync()

    def in_sync_replicas_have_all_that_was_acknowledged(self) -> None:
        for node_id in self.cluster.state("orders").isr:
            log = self.nodes[node_id].log
            for offset, record in self.acknowledged.items():
                assert log[offset : offset + 1] == [record], f"broker {node_id} lacks offset {offset}"

    def replicas_agree_below_their_high_watermarks(self) -> None:
        nodes = list(self.nodes.values())
        for one in nodes:
            for other in nodes:
                end = min(one.high_watermark, other.high_watermark)
                assert one.log[:end] == other.log[:end]

    def an_epoch_has_one_leader(self) -> None:
        epochs = [node.replication.leader_epoch for node in self.nodes.values() if node.replication]
        assert len(set(epochs)) == len(epochs)

    def the_leader_knows_all_that_the_controller_may_take_for_in_sync(self) -> None:
        state = self.cluster.state("orders")
        for node in self.nodes.values():
            leads = node.replication
            if leads is not None and leads.leader_epoch == state.leader_epoch:
                assert set(state.isr) <= leads.maximal_isr

    def heal(self) -> None:
        """Once all are well, everything is replicated and acknowledged."""
        for node_id, node in self.nodes.items():
            if node_id in self.brokers:
                self.cluster.kill(node_id)
            self.cluster.start(node_id)
            node.runs, node.epoch = True, self.brokers[node_id].epoch
        for _ in range(12):
            self.now_ms += 1
            self.all_see()
            self.all_fetch(100)
            self.request_changes()
            for node in self.nodes.values():
                self.deliver_request(node, arrives=True, is_answered=True)
        state = self.cluster.state("orders")
        leader = self.nodes[state.leader]
        self.produce()
        self.all_fetch(100)
        assert set(state.isr) == {1, 2, 3}
        assert leader.waiting == []
        assert all(node.log == leader.log for node in self.nodes.values())
        self.in_sync_replicas_have_all_that_was_acknowledged()


@pytest.mark.parametrize("seed", range(150))
def test_what_was_acknowledged_outlives_every_schedule(seed: int) -> None:
    Schedule(seed).run()
