"""Whatever writes of a group fail, and whatever was handed out behind them, the group is what is in the log.

Runs are drawn by seed: members of both protocols, writes that are under way for a while, a quarter of which
fail. Covers: coordinator/consumer_groups/changes.py.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from kohort.coordinator.classic_groups.group import ClassicGroup
from kohort.coordinator.consumer_groups import assigning
from kohort.coordinator.consumer_groups.group import ConsumerGroup
from kohort.coordinator.engine.effects import Request
from kohort.coordinator.groups.groups import GroupRequest
from kohort.coordinator.offsets.commit import resolve_commit
from kohort.protocol import ApiKey, ErrorCode, RequestContext
from tests.coordinator.consumer_groups.group_world import Answers, Classic, World
from tests.coordinator.consumer_groups.test_assigning import PLUG_IN
from tests.messages import request_of

#: More runs: set this to the number of hundreds.
HUNDREDS = int(os.environ.get("KOHORT_FUZZ_HUNDREDS", "2"))
STEPS = 60
LONG_MS = 2_000_000


class Run:
    """One group, its clients, and a log that takes its time and fails now and then."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        policy = self.random.choice(["bidirectional"] * 3 + ["upgrade", "downgrade", "disabled"])
        # of some groups targets are computed beside the shard, and taken in step by step
        assignors = self.random.choice(("uniform,range", f"{PLUG_IN},range"))
        self.world = World(
            {"t": 5, "u": 3},
            group_initial_rebalance_delay_ms=0,
            group_consumer_migration_policy=policy,
            group_consumer_assignors=assignors,
            group_consumer_assignment_interval_ms=self.random.choice((0, 1_000)),
        )
        self.world.held = []
        self.asked: list[tuple[Any, Answers]] = []
        self.epochs: dict[str, tuple[int, Answers | None]] = {}
        self.classic = [Classic(self.world), Classic(self.world), Classic(self.world, instance="i")]

    def draw(self) -> None:
        kind = self.random.choice(
            ["join"] * 3
            + ["beat"] * 4
            + ["leave", "away", "wait", "topics", "delete", "commit"]
            + ["classic join"] * 4
            + ["classic sync"] * 2
            + ["classic beat", "classic leave"]
            + ["write"] * 7
            + ["compute"] * 3
        )
        getattr(self, kind.replace(" ", "_"))()

    def send(self, key: ApiKey, version: int, body: Any) -> Answers:
        answers = Answers()
        request = Request(key, version, body, RequestContext("client", "/host"), answers)
        self.world.shard.handle(request, self.world.now_ms)
        self.world._carry_out()
        self.asked.append((request, answers))
        return answers

    def heartbeat(self, member: str, epoch: int, **fields: Any) -> Answers:
        fields = {"subscribed_topic_names": None, "topic_partitions": None, **fields}
        make = request_of(ApiKey.CONSUMER_GROUP_HEARTBEAT)
        # members c and d are static, and of the same name
        instance_id = "i" if member in "cd" else None
        body = make(group_id="g", member_id=member, member_epoch=epoch, instance_id=instance_id, **fields)
        return self.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, body)

    def member(self) -> str:
        return self.random.choice("abcd")

    def epoch(self, member: str) -> int:
        known, pending = self.epochs.get(member, (1, None))
        if pending:
            answer = pending[0]
            known = 0 if answer.error_code else answer.member_epoch
        return known

    def join(self) -> None:
        member, topics = self.member(), self.random.choice((["t"], ["u"], ["t", "u"]))
        answers = self.heartbeat(
            member, 0, rebalance_timeout_ms=30_000, subscribed_topic_names=topics, topic_partitions=[]
        )
        self.epochs[member] = (1, answers)

    def beat(self) -> None:
        member = self.member()
        epoch = self.epoch(member)
        if epoch > 0:
            owned: list[Any] | None = self.random.choice((None, []))
            self.epochs[member] = (epoch, self.heartbeat(member, epoch, topic_partitions=owned))

    def leave(self) -> None:
        self.heartbeat(self.member(), -1)

    def away(self) -> None:
        self.heartbeat(self.random.choice("cd"), -2)

    def wait(self) -> None:
        self.world.advance(self.random.choice((10, 1_000, 5_000, 12_000, 50_000)))

    def topics(self) -> None:
        self.world.change_topics(t=self.world.topics["t"] + 1)

    def delete(self) -> None:
        self.send(ApiKey.DELETE_GROUPS, 2, GroupRequest("g"))

    def compute(self) -> None:
        if self.world.asked:
            self.world.compute(self.random.choice((-1, -1, 0, 1, 2)))

    def commit(self) -> None:
        member = self.member()
        topics = [("t", [(0, 5, -1, "")])]
        make = request_of(ApiKey.OFFSET_COMMIT)
        body = make(
            group_id="g",
            generation_id_or_member_epoch=self.epoch(member),
            member_id=member,
            group_instance_id=None,
            topics=topics,
        )
        body = resolve_commit(9, body, self.world.shard.state.topics, 100)
        self.send(ApiKey.OFFSET_COMMIT, 9, body)

    def classic_join(self) -> None:
        client = self.random.choice(self.classic)
        answers = client.send_join(protocol="range")
        self.asked.append((client, answers))
        self.learn(client, answers)

    def classic_sync(self) -> None:
        client = self.random.choice(self.classic)
        self.look()
        fields = {"generation_id": client.generation, "member_id": client.id, "assignments": []}
        answers = client.send(
            ApiKey.SYNC_GROUP,
            5,
            group_instance_id=client.instance,
            protocol_type="consumer",
            protocol_name="range",
            **fields,
        )
        self.asked.append((client, answers))

    def classic_beat(self) -> None:
        client = self.random.choice(self.classic)
        self.look()
        answers = client.send(
            ApiKey.HEARTBEAT,
            4,
            generation_id=client.generation,
            member_id=client.id,
            group_instance_id=client.instance,
        )
        self.asked.append((client, answers))

    def classic_leave(self) -> None:
        client = self.random.choice(self.classic)
        if client.id:
            self.asked.append((client, client.send_leave()))
            client.id = ""

    def learn(self, client: Classic, answers: Answers) -> None:
        for answer in answers:
            if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                client.id = answer.member_id
                client.generation = getattr(answer, "generation_id", -1)
            elif answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                client.id = ""

    def look(self) -> None:
        """Classic members read the answers that came late."""
        for who, answers in self.asked:
            if isinstance(who, Classic) and answers and hasattr(answers[0], "generation_id"):
                self.learn(who, answers)

    def write(self) -> None:
        world = self.world
        held = world.held
        assert held is not None
        if held and self.random.random() < 0.15:
            # the log refuses it while those before it are on their way to the replicas
            world.failing = True
            world._write(held.pop())
            world.failing = False
            world._carry_out()
        for _ in range(min(len(held), self.random.choice((1, 1, 2, 5)))):
            world.failing = self.random.random() < 0.25
            world._write(held.pop(0))
            world.failing = False
            world._carry_out()


def state_of(group: Any) -> Any:
    """What a restart must not change."""
    if isinstance(group, ConsumerGroup):
        members = {name: (each.metadata, each.current) for name, each in group.members.items()}
        return (
            group.epoch,
            group.target_epoch,
            members,
            group.targets,
            group.owners,
            group.subscribed.names,
            group.patterns,
            group.unsettled,
            group.static_members,
        )
    if isinstance(group, ClassicGroup):
        return sorted(group.members)
    return None


@pytest.mark.parametrize("hundred", range(HUNDREDS))
def test_the_group_is_what_is_in_the_log(hundred: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assigning, "_STEP", 2)
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        run = Run(seed)
        try:
            for _ in range(STEPS):
                run.draw()
            while run.world.asked:
                run.world.compute()
            # all is written: a consumer group is what a restart makes of it
            for _ in range(3):
                run.world.release()
            group = run.world.shard.state.groups.get("g")
            if isinstance(group, ConsumerGroup):
                live = state_of(group)
                run.world.restart()
                assert state_of(run.world.shard.state.find("g")) == live
            # nobody is heard of any more: nobody stays, and nobody waits
            run.world.advance(LONG_MS)
            found = run.world.shard.state.find("g")
            assert found is None or found.is_empty
            if not isinstance(group, ConsumerGroup):
                assert all(len(answers) == 1 for _, answers in run.asked)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def test_a_group_whose_last_leave_could_not_be_written_is_not_deleted() -> None:
    world = World()
    world.join("m")
    world.held = []
    assert world.beat("m", -1) is None
    deleting = Answers()
    request = Request(ApiKey.DELETE_GROUPS, 2, GroupRequest("g"), RequestContext("client", "/host"), deleting)
    world.shard.handle(request, world.now_ms)
    world._carry_out()
    assert not deleting
    world.failing = True
    world.release()
    world.failing = False
    assert [answer.error_code for answer in deleting] == [ErrorCode.NON_EMPTY_GROUP]
    assert list(world.group().members) == ["m"]
    assert world.beat("m", 2).error_code == 0


def test_offsets_of_a_group_that_loses_its_members_with_a_refused_write_keep_their_age() -> None:
    world = World(group_initial_rebalance_delay_ms=0, group_consumer_migration_policy="bidirectional")
    world.commit_long_ago("quiet")
    member = Classic(world)
    (required,) = member.send_join()
    member.id = required.member_id
    joined = member.send_join()
    world.advance(1)
    assert len(joined) == 1
    assert world.after_retention() == ["quiet"]
    world.failing = True
    assert world.join("m").error_code == ErrorCode.NOT_COORDINATOR
    world.failing = False
    group = world.shard.state.find("g")
    assert isinstance(group, ClassicGroup)
    assert not group.members
    assert world.after_retention() == ["quiet"]
