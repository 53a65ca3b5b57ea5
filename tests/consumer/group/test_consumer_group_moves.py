"""Members and the coordinator itself, with requests and answers that are lost: nothing is read by two.

Covers: consumer/group/consumer_group.py.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.assignors import TopicInfo
from kohort.consumer.group.consumer_group import ConsumerMembership
from kohort.consumer.group.effects import Fail, NeedTopics, Revoke, Send
from kohort.protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from kohort.statemachine import MemberState
from tests.consumer.configs import config
from tests.coordinator.consumer_groups.group_world import Answers, World

#: Longer than all that a run takes: who is silent for less must never lose anything to another.
LONG_MS = 3_000_000
TOPICS = {"t": 4, "u": 3}


@dataclass
class _Reader:
    """A member, what it has sent, and what it must still give up."""

    membership: ConsumerMembership
    #: Requests on its connection, in order, and where the answers arrive of those that the coordinator has.
    sent: list[Send] = field(default_factory=list)
    arrived: list[Answers] = field(default_factory=list)
    #: Held on a connection that is gone, which the member has not noticed yet.
    broken: list[Send] = field(default_factory=list)
    revoking: list[Revoke] = field(default_factory=list)
    asks: bool = False
    #: What it reads; what it reads as long as a revocation is not over.
    epochs: list[int] = field(default_factory=list)

    def reads(self) -> set[TopicPartition]:
        ending = {p for revoke in self.revoking if not revoke.lost for p in revoke.partitions}
        return set(self.membership.owned) | (ending if self.membership.generation >= 0 else set())


class _Readers:
    def __init__(self) -> None:
        self.world = World(TOPICS, group_consumer_assignment_interval_ms=0)
        self.world.configs["g"] = {"consumer.session.timeout.ms": LONG_MS}
        self.readers: list[_Reader] = []
        self.joined = 0

    def step(self, what: str, who: int) -> None:
        if what == "join":
            if len(self.readers) < 4:
                self._join(who)
            return
        if what == "wait":
            self.world.advance(1 + who * 37)
            for reader in self.readers:
                reader.membership.do_due(self.world.now_ms)
        elif what == "restart":
            for reader in self.readers:
                if reader.arrived:
                    self._break(reader)
            self.world.restart()
        elif what == "grow":
            self.world.change_topics(t=self.world.topics["t"] + 1)
        elif self.readers:
            reader = self.readers[who % len(self.readers)]
            getattr(self, f"_{what}")(reader)
        self._look()

    def _join(self, seed: int) -> None:
        settings_ = config(group="g", rebalance_timeout_ms=LONG_MS, session_timeout_ms=LONG_MS)
        self.joined += 1
        reader = _Reader(ConsumerMembership(settings_, random.Random(self.joined)))
        self.readers.append(reader)
        reader.membership.subscribe(["t"] if seed % 3 else ["t", "u"], self.world.now_ms)
        self._look()

    def _leave(self, reader: _Reader) -> None:
        self.readers.remove(reader)
        reader.membership.owned = frozenset()
        reader.membership.leave("closed")
        for effect in reader.membership.take_effects():
            if isinstance(effect, Send):
                self._begin(effect)

    def _arrive(self, reader: _Reader) -> None:
        """The coordinator gets the next request, even if it holds the one before."""
        if len(reader.arrived) < len(reader.sent):
            reader.arrived.append(self._begin(reader.sent[len(reader.arrived)]))

    def _answer(self, reader: _Reader) -> None:
        if not (reader.arrived and reader.arrived[0]):
            self._arrive(reader)
        if reader.arrived and reader.arrived[0]:
            (body,) = reader.arrived.pop(0)
            reader.membership.on_answer(reader.sent.pop(0), body, self.world.now_ms)

    def _break(self, reader: _Reader) -> None:
        reader.broken += reader.sent
        reader.sent, reader.arrived = [], []
        self._notice(reader)

    def _notice(self, reader: _Reader) -> None:
        broken, reader.broken = reader.broken, []
        for send in broken:
            reader.membership.on_failure(send, ConnectionError("lost"), self.world.now_ms)

    def _lose_request(self, reader: _Reader) -> None:
        self._break(reader)

    def _lose_answer(self, reader: _Reader) -> None:
        self._arrive(reader)
        self._break(reader)

    def _lose_held(self, reader: _Reader) -> None:
        """The connection is gone, and the next request goes over another one."""
        if len(reader.arrived) == len(reader.sent) == 1:
            reader.arrived.clear()
            reader.broken.append(reader.sent.pop())

    def _refuse(self, reader: _Reader) -> None:
        if reader.sent and not reader.arrived:
            error = KafkaError(ErrorCode.NOT_COORDINATOR)
            reader.membership.on_failure(reader.sent.pop(0), error, self.world.now_ms)

    def _revoked(self, reader: _Reader) -> None:
        if reader.revoking:
            reader.revoking.pop(0)
            reader.membership.revocation_done(self.world.now_ms)

    def _topics(self, reader: _Reader) -> None:
        if reader.asks:
            reader.asks = False
            infos = {name: TopicInfo(count) for name, count in self.world.topics.items()}
            ids = {topic_id: name for name, topic_id in self.world.ids.items()}
            reader.membership.on_topics(infos, self.world.now_ms, ids=ids)

    def _other(self, reader: _Reader) -> None:
        topics = {"t"} if reader.membership.subscription == {"t", "u"} else {"t", "u"}
        reader.membership.subscribe(topics, self.world.now_ms)

    def _begin(self, send: Send) -> Answers:
        return self.world.begin(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, send.body)

    def _look(self) -> None:
        for reader in self.readers:
            for effect in reader.membership.take_effects():
                assert not isinstance(effect, Fail), effect
                if isinstance(effect, Send):
                    reader.sent.append(effect)
                elif isinstance(effect, Revoke):
                    if effect.lost:
                        reader.revoking = [Revoke(r.partitions, True, "") for r in reader.revoking]
                    reader.revoking.append(effect)
                elif isinstance(effect, NeedTopics):
                    reader.asks = True
            generation = reader.membership.generation
            assert len(reader.sent) <= 2
            if generation >= 0:
                assert not reader.epochs or reader.epochs[-1] <= generation
                reader.epochs.append(generation)
        everything = [p for reader in self.readers for p in reader.reads()]
        assert len(everything) == len(set(everything)), self.readers

    def settle(self) -> None:
        """Nothing is lost any more: everybody gets what is meant for it, and everything is read."""
        for _ in range(100):
            for reader in list(self.readers):
                self._notice(reader)
                for what in ("answer", "answer", "revoked", "topics"):
                    getattr(self, f"_{what}")(reader)
                    self._look()
            self.world.advance(1_000)
            for reader in self.readers:
                reader.membership.do_due(self.world.now_ms)
            self._look()
        assert {reader.membership.state for reader in self.readers} <= {MemberState.STABLE}
        wanted = {name for reader in self.readers for name in reader.membership.subscription}
        there = {TopicPartition(name, n) for name in wanted for n in range(self.world.topics[name])}
        assert {p for reader in self.readers for p in reader.reads()} == there


_STEPS = (
    *("join", "answer", "answer", "answer", "revoked", "topics", "wait", "wait"),
    *("lose_request", "lose_answer", "lose_held", "notice", "arrive"),
    *("refuse", "leave", "other", "restart", "grow"),
)


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(_STEPS), st.integers(0, 9)), max_size=80))
def test_no_partition_has_two_readers_and_all_have_one_in_the_end(steps: list[tuple[str, int]]) -> None:
    readers = _Readers()
    for what, who in steps:
        readers.step(what, who)
    readers.settle()
