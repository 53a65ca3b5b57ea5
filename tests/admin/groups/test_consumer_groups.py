"""Consumer groups (KIP-848), as `kohort groups` and `kohort assignors` show them.

Covers: admin/assignors/group_snapshot.py, admin/groups/requests.py.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from kohort.admin import GroupAdmin
from kohort.protocol import ApiKey, TopicPartition
from tests.admin.conftest import Groups, Ran, ran
from tests.broker.wire import Wire


class Group:
    """A consumer group of two members; the first holds the second up."""

    def __init__(self, wire: Wire, topic: str) -> None:
        self.wire, self.topic, self.name = wire, topic, f"group-{uuid.uuid4().hex[:8]}"
        self.joined("m1", "shop-1")
        asyncio.run(asyncio.sleep(1.1))
        self.joined("m2", "shop-2")

    def joined(self, member: str, rack: str) -> Any:
        return self.beat(
            member, 0, rack_id=rack, rebalance_timeout_ms=60_000, subscribed_topic_names=[self.topic]
        )

    def beat(self, member: str, epoch: int, **fields: Any) -> Any:
        fields = {"topic_partitions": None if epoch else [], "subscribed_topic_names": None, **fields}
        answer = self.wire.call(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            group_id=self.name,
            member_id=member,
            member_epoch=epoch,
            **fields,
        )
        assert answer.error_code == 0, answer
        return answer

    def settle(self) -> None:
        answer = self.beat("m1", 2)
        if answer.assignment is not None:
            parts = [(each.topic_id, list(each.partitions)) for each in answer.assignment.topic_partitions]
            self.parts = parts
        self.beat("m1", 2, topic_partitions=self.parts)
        self.beat("m2", 3)


@pytest.fixture
def group(bootstrap: str, new_topic: Callable[..., str]) -> Any:
    with Wire(bootstrap) as wire:
        yield Group(wire, new_topic("shop", 4))


def test_who_holds_up_whom_is_described(group: Group, bootstrap: str) -> None:
    answer = group.beat("m1", 2)
    group.parts = [(each.topic_id, list(each.partitions)) for each in answer.assignment.topic_partitions]

    async def look() -> Any:
        async with GroupAdmin(bootstrap) as admin:
            return (await admin.describe([group.name]))[group.name]

    found = asyncio.run(look())
    assert (found.state, found.group_type, found.protocol) == ("Reconciling", "consumer", "uniform")
    assert (found.epoch, found.target_epoch, found.members_known) == (3, 3, True)
    members = {member.member_id: member for member in found.members}
    assert [members[name].epoch for name in ("m1", "m2")] == [2, 3]
    assert members["m1"].rack == "shop-1"
    assert (members["m2"].topics, members["m2"].regex, members["m2"].protocol) == (
        (group.topic,),
        None,
        "consumer",
    )
    moving = tuple(TopicPartition(group.topic, number) for number in (2, 3))
    assert (members["m2"].assignment, members["m2"].target) == ((), moving)
    (wait,) = found.hold_ups
    assert (wait.member, wait.waits_for, wait.partitions) == ("m2", "m1", moving)
    assert wait.since_ms is not None
    assert 0 <= wait.since_ms < 60_000
    group.settle()
    found = asyncio.run(look())
    assert (found.state, found.hold_ups) == ("Stable", ())


@pytest.fixture
def run(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def command(room: str, action: str, *words: str) -> Ran:
        # names in commands have their options behind them
        return ran(capsys, [room, action, *words, "--bootstrap", bootstrap])

    return command


def test_each_epoch_is_in_the_timeline_with_who_took_longest(group: Group, groups: Groups) -> None:
    answer = group.beat("m1", 2)
    group.parts = [(each.topic_id, list(each.partitions)) for each in answer.assignment.topic_partitions]
    shown = groups("describe", group.name)
    assert "WAITS FOR" in shown.out
    group.settle()
    rows = groups("timeline", group.name, "--json").document["generations"]
    assert [(row["generation"], row["cause"]) for row in rows] == [
        (2, "member m1 joined"),
        (3, "member m2 joined"),
    ]
    assert (rows[0]["slowest"], rows[1]["slowest"]) == (None, "m1")
    assert [(move["from_owner"], move["to_owner"]) for move in rows[1]["moves"]] == [("m1", "m2")] * 2
    assert "m1 gave up after" in groups("timeline", group.name).out


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_an_assignor_is_scored_on_a_live_group(group: Group, run: Callable[..., Ran], assignor: str) -> None:
    shown = run("assignors", "try", "--assignor", assignor, "--group", group.name, "--join", "2", "--json")
    assert shown.code == 0, shown.err
    (trial,) = shown.document["trials"]
    assert (trial["before"]["members"], trial["after"]["most"], trial["problems"]) == (2, 1, [])
    explained = run("assignors", "explain", "--group", group.name)
    assert explained.code == 0
    assert "2 members (m1, m2) share the 4 partitions" in explained.out
