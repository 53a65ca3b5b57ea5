"""A shard with consumer groups, its log in a list, and a clock by hand."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from kohort.coordinator import GroupSettings, Shard
from kohort.coordinator.consumer_groups.assigning import step_for_failure, steps_to_target
from kohort.coordinator.consumer_groups.group import ConsumerGroup
from kohort.coordinator.consumer_groups.target import ComputeTarget, compute_target
from kohort.coordinator.engine.effects import Append, Reply, Request
from kohort.coordinator.groups.groups import TopicDirectory
from kohort.coordinator.groups.shards import OFFSETS_TOPIC, new_groups
from kohort.coordinator.offsets.expiry import RETENTION, on_retention_timer
from kohort.offsets_topic import NONE, ConsumerGroupRecord, OffsetCommitted, decode, encode
from kohort.protocol import (
    ApiKey,
    ErrorCode,
    RequestContext,
    Subscription,
    TopicPartition,
    decode_assignment,
    encode_subscription,
)
from kohort.statemachine import CONSUMER_GROUP_MOVES
from tests.messages import request_of

START_MS = 1_000_000
CLASSIC_SESSION_MS, CLASSIC_REBALANCE_MS = 10_000, 30_000
ALLOWED = {(move.source.value, move.target.value) for move in CONSUMER_GROUP_MOVES}


class Answers(list[Any]):
    """What a request was answered."""

    def set(self, body: Any) -> None:
        self.append(body)


class World:
    """``topics`` are partitions by name, and may be changed. Answers come when their records are written."""

    def __init__(self, topics: Mapping[str, int] | None = None, **settings: Any) -> None:
        self.topics = dict(topics or {"t": 4})
        self.ids = {name: uuid.uuid5(uuid.NAMESPACE_DNS, name) for name in self.topics}
        self.settings = GroupSettings(**settings)
        self.now_ms = START_MS
        self.log: list[Any] = []
        self.events: list[Any] = []
        self.configs: dict[str, dict[str, int]] = {}
        self.failing = False
        #: Targets that are being computed.
        self.asked: list[ComputeTarget] = []
        #: Writes that are under way; None for a log that writes at once.
        self.held: list[Append] | None = None
        self.states = {"Empty"}
        self._version = object()
        self._last_state: dict[str, str] = {}
        self._count = 0
        self.shard = self._shard()
        self.shard.activate(self.now_ms)

    def _shard(self) -> Any:
        directory = TopicDirectory(
            self.topics.get,
            lambda topic_id: next((name for name, known in self.ids.items() if known == topic_id), None),
            lambda name: self.ids.get(name) if name in self.topics else None,
            lambda: list(self.topics),
            lambda: self._version,
        )
        groups = new_groups(self.settings, self._new_id, directory, lambda group: self.configs.get(group, {}))
        return Shard(OFFSETS_TOPIC, groups)

    def _new_id(self) -> str:
        self._count += 1
        return f"id-{self._count}"

    def change_topics(self, **topics: int | None) -> None:
        """Topics come, go (None) or get other partitions."""
        for name, count in topics.items():
            if count is None:
                del self.topics[name]
            else:
                self.ids.setdefault(name, uuid.uuid4())
                self.topics[name] = count
        self._version = object()

    def restart(self) -> None:
        """Another shard, from the bytes of the log."""
        self.shard = self._shard()
        for offset, record in enumerate(self.log):
            self.shard.apply((decode(*encode(record)),), offset)
        self.shard.activate(self.now_ms)
        self._last_state.clear()

    def advance(self, duration_ms: int) -> None:
        """Time goes by, timer by timer."""
        end = self.now_ms + duration_ms
        while (deadline := self.shard.next_deadline()) is not None and deadline <= end:
            self.now_ms = max(self.now_ms, deadline)
            self.shard.advance(self.now_ms)
            self._carry_out()
        self.now_ms = end

    def ask(self, key: ApiKey, version: int, body: Any) -> Any:
        """The answer to a request about one group; None while its write is under way."""
        answers = self.begin(key, version, body)
        if self.held is not None and not answers:
            return None
        assert len(answers) == 1, "a request is answered once"
        return answers[0]

    def begin(self, key: ApiKey, version: int, body: Any) -> Answers:
        """Where the answer to a request arrives, now or later."""
        answers = Answers()
        context = RequestContext("client", "/host")
        self.shard.handle(Request(key, version, body, context, answers), self.now_ms)
        self._carry_out()
        return answers

    def _carry_out(self) -> None:
        for effect in self.shard.take_effects():
            if isinstance(effect, Append):
                if self.held is None:
                    self._write(effect)
                else:
                    self.held.append(effect)
            elif isinstance(effect, Reply):
                effect.handle.set(effect.body)
            elif isinstance(effect, ComputeTarget):
                self.asked.append(effect)
            else:
                self.events.append(effect)
        if self.shard._effects:
            self._carry_out()
        for group in self.shard.state.groups.values():
            if isinstance(group, ConsumerGroup):
                before, after = self._last_state.get(group.group_id, "Empty"), group.state_name
                assert before == after or (before, after) in ALLOWED, (before, after)
                self._last_state[group.group_id] = after
                self.states.add(after)

    def compute(self, count: int = -1) -> None:
        """The first target that is being computed is there, and taken in, or ``count`` steps of that."""
        asked = self.asked.pop(0)
        try:
            found = list(steps_to_target(asked, compute_target(asked)))
        except Exception as error:
            found = [step_for_failure(asked, str(error))]
        for step in found if count < 0 else found[:count]:
            step(self.shard, self.now_ms)
            self._carry_out()

    def _write(self, append: Append) -> None:
        if not self.shard.awaits(append.ticket):
            return  # one before it failed
        if self.failing:
            self.shard.append_failed(append.ticket, ErrorCode.KAFKA_STORAGE_ERROR, self.now_ms)
        else:
            offset = len(self.log)
            self.log += append.records
            self.shard.on_appended(append.ticket, offset, self.now_ms)

    def release(self) -> None:
        """The writes that are under way are over."""
        held, self.held = self.held or [], None
        for append in held:
            self._write(append)
        self._carry_out()

    # --- requests -----------------------------------------------------------------------------------------

    def beat(self, member: str, epoch: int, owned: Any = None, *, group: str = "g", **fields: Any) -> Any:
        """A heartbeat; ``owned`` are numbers of topic ``t``, or partitions by topic."""
        if isinstance(owned, Mapping):
            fields["topic_partitions"] = [(self.ids[name], list(numbers)) for name, numbers in owned.items()]
        elif owned is not None:
            fields["topic_partitions"] = [(self.ids["t"], list(owned))] if owned else []
        version = fields.pop("version", 1)
        fields = {"subscribed_topic_names": None, "topic_partitions": None, **fields}
        make = request_of(ApiKey.CONSUMER_GROUP_HEARTBEAT)
        body = make(group_id=group, member_id=member, member_epoch=epoch, **fields)
        return self.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, body)

    def join(self, member: str, *topics: str, **fields: Any) -> Any:
        """The first heartbeat; topic ``t`` where none is named."""
        fields.setdefault("rebalance_timeout_ms", 30_000)
        names = None if "subscribed_topic_regex" in fields else topics or ("t",)
        return self.beat(member, 0, (), subscribed_topic_names=names, **fields)

    def live(self, member: str) -> int:
        """A client that follows its answers: heartbeats until there is nothing new; gives its epoch."""
        epoch, owned = self.group().members[member].current.epoch, self.has(member)
        for _ in range(4):
            answer = self.beat(member, epoch, owned)
            assert not answer.error_code, answer
            epoch = answer.member_epoch
            if answer.assignment is not None:
                owned = self.told(answer)
        return int(epoch)

    def told(self, answer: Any) -> dict[str, tuple[int, ...]]:
        """The assignment of an answer, by topic name."""
        names = {topic_id: name for name, topic_id in self.ids.items()}
        return {names[t.topic_id]: tuple(sorted(t.partitions)) for t in answer.assignment.topic_partitions}

    def has(self, member: str) -> dict[str, tuple[int, ...]]:
        names = {topic_id: name for name, topic_id in self.ids.items()}
        assigned = self.group().members[member].current.assigned
        return {names[topic_id]: tuple(sorted(numbers)) for topic_id, numbers in assigned.items()}

    def commit_long_ago(self, topic: str) -> None:
        """The log has an offset of the group that is older than any retention."""
        old = OffsetCommitted("g", topic, 0, 1, NONE, "", self.now_ms - 10**10, NONE)
        self.shard.apply((old,), 0)

    def after_retention(self) -> list[str]:
        """Topics of which the group has offsets after a retention pass."""
        on_retention_timer(self.shard, (RETENTION,), self.now_ms)
        self._carry_out()
        return [each.topic for each in self.shard.state.durable.partitions_of("g")]

    def group(self, group_id: str = "g") -> ConsumerGroup:
        group = self.shard.state.find(group_id)
        assert isinstance(group, ConsumerGroup)
        return group

    def written(self, since: int = 0) -> list[tuple[int, str, bool]]:
        """Type, name and whether it is a tombstone of each record of a consumer group."""
        records: Iterable[Any] = self.log[since:]
        return [
            (int(record.type), record.name, record.value is None)
            for record in records
            if isinstance(record, ConsumerGroupRecord)
        ]


class Classic:
    """A member that speaks the classic protocol."""

    def __init__(self, world: World, member_id: str = "", instance: str | None = None) -> None:
        self.world, self.id, self.instance = world, member_id, instance
        self.generation = -1
        self.owned: tuple[TopicPartition, ...] = ()

    def send(self, key: ApiKey, version: int, **fields: Any) -> Answers:
        answers = Answers()
        body = request_of(key)(group_id="g", **fields)
        request = Request(key, version, body, RequestContext("client", "/host"), answers)
        self.world.shard.handle(request, self.world.now_ms)
        self.world._carry_out()
        return answers

    def send_join(
        self, topics: tuple[str, ...] = ("t",), protocol: str = "range", type_: str = "consumer"
    ) -> Answers:
        metadata = encode_subscription(Subscription(topics, owned=tuple(self.owned)), version=1)
        return self.send(
            ApiKey.JOIN_GROUP,
            9,
            session_timeout_ms=CLASSIC_SESSION_MS,
            rebalance_timeout_ms=CLASSIC_REBALANCE_MS,
            member_id=self.id,
            group_instance_id=self.instance,
            protocol_type=type_,
            protocols=[(protocol, metadata)],
            reason=None,
        )

    def join(self, **fields: Any) -> Any:
        (answer,) = self.send_join(**fields)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
            (answer,) = self.send_join(**fields)
        self.learn(answer)
        return answer

    def learn(self, answer: Any) -> None:
        if not answer.error_code:
            self.id, self.generation = answer.member_id, answer.generation_id

    def sync(self, assignments: Any = ()) -> Any:
        (answer,) = self.send_sync(assignments)
        if not answer.error_code:
            self.owned = decode_assignment(answer.assignment).partitions
        return answer

    def send_sync(self, assignments: Any = ()) -> Answers:
        return self.send(
            ApiKey.SYNC_GROUP,
            5,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )

    def beat(self) -> ErrorCode:
        (answer,) = self.send(
            ApiKey.HEARTBEAT,
            4,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance,
        )
        return ErrorCode(answer.error_code)

    def leave(self) -> int:
        (answer,) = self.send_leave()
        return int(answer.members[0].error_code)

    def send_leave(self) -> Answers:
        leaving = [SimpleNamespace(member_id=self.id, group_instance_id=None, reason="done")]
        return self.send(ApiKey.LEAVE_GROUP, 5, members=leaving)

    def live(self) -> None:
        """Does what a client does until there is nothing to do."""
        for _ in range(4):
            if self.beat() == ErrorCode.REBALANCE_IN_PROGRESS:
                assert self.join().error_code == 0
                assert self.sync().error_code == 0


def partitions(has: Iterable[Mapping[str, Sequence[int]]]) -> list[tuple[str, int]]:
    """All partitions that members have, in order."""
    return sorted((name, number) for one in has for name, numbers in one.items() for number in numbers)
