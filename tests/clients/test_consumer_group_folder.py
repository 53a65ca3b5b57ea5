"""A data folder with consumer groups (KIP-848) in every state: from Apache Kafka to kohort and back."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode, Subscription, encode_subscription
from tests.broker.group_members import AWAY, Member
from tests.broker.wire import Wire, create_topic
from tests.broker_process import BrokerProcess
from tests.clients.test_transaction_folder import Kafka

pytestmark = [pytest.mark.clients, pytest.mark.slow(60)]

NONE = ErrorCode.NONE
PARTITIONS = 6
TIMEOUT_S = 40.0


def described(wire: Wire, group: str) -> dict[str, Any]:
    """The group, in what has to be the same on both brokers."""
    answer = wire.call(
        ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[group], include_authorized_operations=False
    )
    (row,) = answer.groups

    def partitions(assignment: Any) -> list[tuple[str, list[int]]]:
        rows = assignment.topic_partitions
        return sorted((each.topic_name, sorted(each.partitions)) for each in rows if each.partitions)

    return {
        "error": row.error_code,
        "state": row.group_state,
        "epoch": (row.group_epoch, row.assignment_epoch),
        "members": {
            each.member_id: (
                each.instance_id,
                each.member_epoch,
                each.member_type,
                sorted(each.subscribed_topic_names),
                each.subscribed_topic_regex or None,
                partitions(each.assignment),
                partitions(each.target_assignment),
            )
            for each in row.members
        },
    }


def until(done: Any, what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def coordinator(wire: Wire, group: str) -> None:
    """Wait until the group has one that is loaded."""

    def ready() -> bool:
        if wire.call(ApiKey.FIND_COORDINATOR, 3, key=group, key_type=0).error_code:
            return False
        return described(wire, group)["error"] in (NONE, ErrorCode.GROUP_ID_NOT_FOUND)

    until(ready, f"{group} has a coordinator")


class Moved:
    """Groups of one broker, each in another state, to be looked at and gone on with on the next."""

    def __init__(self, name: str) -> None:
        self.topic = f"{name}-topic"
        group = {kind: f"{name}-{kind}" for kind in ("stable", "half", "regex", "mixed", "empty")}
        names = [self.topic]
        self.groups = group
        self.stable = [
            Member(group["stable"], "a", topics=names),
            Member(group["stable"], "away", topics=names, instance="pod"),
        ]
        self.half = [Member(group["half"], each, topics=names) for each in "ab"]
        self.regex = Member(group["regex"], "r", regex=f"{name}-t.*")
        self.mixed = Member(group["mixed"], "new", topics=names)
        self.empty = Member(group["empty"], "gone", topics=names)
        self.old = ""
        self.seen: dict[str, Any] = {}

    def begin(self, wire: Wire) -> None:
        for each in self.groups.values():
            coordinator(wire, each)
        self._settle(wire, self.stable)
        self.commit(wire, self.stable[0], 7)
        # it may come back: what it has stays its own
        self.stable[1].beat(wire, member_epoch=AWAY, topic_partitions=None)
        self._settle(wire, self.half[:1])
        self.half[1].beat(wire)
        # told to give up three partitions, and has not yet
        until(lambda: self.half[0].beat(wire).assignment is not None, "it is told what it may keep")
        self._settle(wire, [self.regex])
        self.old = self._classic(wire)
        self.mixed.beat(wire)
        self._settle(wire, [self.empty])
        self.empty.beat(wire, member_epoch=-1)
        self.look(wire)
        assert self.seen["half"]["state"] == "Reconciling"
        assert self.seen["half"]["members"]["a"][1] < self.seen["half"]["epoch"][1]
        assert self.seen["stable"]["members"]["away"][:2] == ("pod", AWAY)
        assert {each[2] for each in self.seen["mixed"]["members"].values()} == {0, 1}
        assert (self.seen["empty"]["state"], self.seen["regex"]["state"]) == ("Empty", "Stable")

    def look(self, wire: Wire) -> None:
        self.seen = {kind: described(wire, group) for kind, group in self.groups.items()}

    def check(self, wire: Wire) -> None:
        """All is as it was, and goes on from there."""
        for kind, group in self.groups.items():
            coordinator(wire, group)
            assert described(wire, group) == self.seen[kind], kind
        before = [member.epoch for member in (*self.half, self.regex)]
        # static: the same instance under another id has what it had
        old = self.stable[1]
        old.name, old.epoch, had = "back", 0, old.numbers()
        old.beat(wire)
        assert old.numbers() == had
        self.commit(wire, self.stable[0], 9)
        # half done: the proof of the revocation lets the other have the rest
        self._settle(wire, self.half)
        assert [len(each.numbers()) for each in self.half] == [3, 3]
        assert all(each.epoch >= epoch for each, epoch in zip(self.half, before, strict=False))
        self._settle(wire, [self.regex])
        assert self.regex.numbers() == set(range(PARTITIONS))
        answer = wire.call(
            ApiKey.HEARTBEAT, 4, group_id=self.groups["mixed"], generation_id=1, member_id=self.old
        )
        assert answer.error_code in (NONE, ErrorCode.REBALANCE_IN_PROGRESS), answer
        again = Member(self.groups["empty"], "new", topics=[self.topic])
        again.beat(wire)
        assert again.epoch > self.empty_epoch()

    def empty_epoch(self) -> int:
        epoch: int = self.seen["empty"]["epoch"][0]
        return epoch

    def commit(self, wire: Wire, member: Member, offset: int) -> None:
        member.beat(wire)
        number = min(member.numbers())
        partition = {
            "partition_index": number,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        answer = wire.call(
            ApiKey.OFFSET_COMMIT,
            9,
            group_id=member.group,
            generation_id_or_member_epoch=member.epoch,
            member_id=member.name,
            topics=[{"name": self.topic, "partitions": [partition]}],
        )
        assert answer.topics[0].partitions[0].error_code == NONE, answer

    def _settle(self, wire: Wire, members: list[Member]) -> None:
        def settled() -> bool:
            for member in members:
                member.follow(wire)
            return sum(len(member.numbers()) for member in members) == PARTITIONS

        until(settled, f"{[member.name for member in members]} have all partitions")

    def _classic(self, wire: Wire) -> str:
        """The only member of a classic group, with everything: its id."""
        join: dict[str, Any] = {
            "group_id": self.groups["mixed"],
            "session_timeout_ms": 300_000,
            "rebalance_timeout_ms": 300_000,
            "protocol_type": "consumer",
            "protocols": [
                {"name": "range", "metadata": encode_subscription(Subscription((self.topic,)), version=1)}
            ],
        }
        member_id: str = wire.call(ApiKey.JOIN_GROUP, 5, member_id="", **join).member_id
        joined = wire.call(ApiKey.JOIN_GROUP, 5, member_id=member_id, **join)
        assert joined.error_code == NONE, joined
        answer = wire.call(
            ApiKey.SYNC_GROUP,
            5,
            group_id=join["group_id"],
            generation_id=joined.generation_id,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[],
        )
        assert answer.error_code == NONE, answer
        return member_id


@pytest.mark.timeout(300)
def test_consumer_groups_move_from_apache_kafka_to_kohort_and_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    kafka = Kafka(tmp_path, data)
    ours = BrokerProcess(tmp_path, data=data)
    first, second = moves = [Moved("first"), Moved("second")]
    try:
        kafka.start()
        with Wire(kafka.bootstrap, timeout_s=30) as wire:
            for moved in moves:
                assert create_topic(wire, moved.topic, PARTITIONS).error_code == NONE
            first.begin(wire)
        kafka.stop()
        ours.start()
        with Wire(ours.bootstrap, timeout_s=30) as wire:
            first.check(wire)
            second.begin(wire)
        ours.stop()
        kafka.start()
        with Wire(kafka.bootstrap, timeout_s=30) as wire:
            second.check(wire)
    finally:
        ours.stop()
        kafka.stop()
