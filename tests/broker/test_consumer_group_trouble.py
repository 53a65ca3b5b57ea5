"""Consumer groups (KIP-848) in trouble: a full disk, other configs, an assignor that is slow."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.assignors import RangeAssignor
from kohort.consumer import AsyncGroupConsumer, FatalGroupError
from kohort.consumer.events import PartitionsLost
from kohort.consumer.group.classic import Membership
from kohort.consumer.group.consumer_group import ConsumerMembership
from kohort.log._files import OsFile
from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import running_broker
from tests.broker.group_members import LEAVE, Member
from tests.broker.wire import Wire, create_topic
from tests.group_configs import change_group_configs
from tests.waiting import wait_until

PARTITIONS = 4
TIMEOUT_S = 30.0
#: While this file is there, assignors in this file wait.
SLOW = "slow"


class Slow(RangeAssignor):
    """An assignor that waits for as long as a file is there, beside the broker's data."""

    name = "slow"

    def assign(self, topics: Any, members: Any) -> Any:
        (topic,) = {topic for member in members.values() for topic in member.topics}
        while Path(topic.replace("..", "/"), SLOW).exists():
            time.sleep(0.01)
        return super().assign(topics, members)


def described(wire: Wire, group: str) -> Any:
    answer = wire.call(
        ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[group], include_authorized_operations=False
    )
    return answer.groups[0]


def test_on_a_full_disk_a_group_stays_what_it_is_and_goes_on_when_there_is_room(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    settings: dict[str, Any] = {"data": tmp_path, "group_consumer_assignment_interval_ms": 0}
    with running_broker(**settings) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "t", PARTITIONS)
        first, second = (Member("g", name, topics=["t"]) for name in "ab")
        first.beat(wire)
        before = described(wire, "g")
        with monkeypatch.context() as full:
            full.setattr(OsFile, "write", fails)
            assert second.ask(wire).error_code == ErrorCode.NOT_COORDINATOR
            assert first.ask(wire, member_epoch=LEAVE).error_code == ErrorCode.NOT_COORDINATOR
            # what writes nothing is answered: nobody loses its session
            assert first.ask(wire).error_code == ErrorCode.NONE
        assert described(wire, "g") == before
        wait_until(lambda: second.ask(wire).error_code == ErrorCode.NONE, "the disk has room")
        second.beat(wire)
        for _ in range(2):
            first.follow(wire)
            second.follow(wire)
        assert sorted((*first.numbers(), *second.numbers())) == list(range(PARTITIONS))
        kept = described(wire, "g")
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert described(wire, "g") == kept


def test_configs_of_a_group_reach_its_members_with_their_next_heartbeat() -> None:
    with running_broker(group_consumer_min_session_timeout_ms=500) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "t", PARTITIONS)
        members = [Member("g", name, topics=["t"]) for name in "ab"]
        assert {member.beat(wire).heartbeat_interval_ms for member in members} == {5_000}
        assert change_group_configs(wire, "g", {"consumer.heartbeat.interval.ms": "6000"}) is ErrorCode.NONE
        assert {member.beat(wire).heartbeat_interval_ms for member in members} == {6_000}
        assert change_group_configs(wire, "g", {"consumer.session.timeout.ms": "50000"}) is ErrorCode.NONE
        members[0].beat(wire)
        # the other has not been heard of since: its session is the one that it was told of
        broker.advance_time(46)
        wait_until(lambda: [each.member_id for each in described(wire, "g").members] == ["a"], "one is gone")
        assert change_group_configs(wire, "g", {"consumer.assignment.interval.ms": "0"}) is ErrorCode.NONE
        wait_until(
            lambda: members[0].beat(wire).member_epoch == described(wire, "g").group_epoch, "it has all"
        )
        assert members[0].numbers() == set(range(PARTITIONS))
        assert members[1].ask(wire).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_of_a_slow_assignor_live_and_a_broker_that_stops_meanwhile_takes_it_up_again(
    tmp_path: Path,
) -> None:
    slow = tmp_path / SLOW
    topic = str(tmp_path).replace("/", "..")
    settings: dict[str, Any] = {
        "data": tmp_path / "data",
        "group_consumer_assignors": f"{__name__}.Slow,uniform",
        "group_consumer_assignment_interval_ms": 0,
    }
    first, second = (Member("g", name, topics=[topic]) for name in "ab")
    with running_broker(**settings) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, topic, PARTITIONS)
        first.beat(wire)
        wait_until(lambda: (first.beat(wire), len(first.numbers()) == PARTITIONS)[1], "the first has all")
        slow.touch()
        second.beat(wire)
        for _ in range(20):
            assert first.beat(wire).assignment is None
        assert (described(wire, "g").group_state, first.epoch) == ("Assigning", 2)
        began = time.monotonic()
    assert time.monotonic() - began < TIMEOUT_S / 2
    slow.unlink()
    with running_broker(**settings) as broker, Wire(broker.bootstrap) as wire:
        assert described(wire, "g").group_state == "Assigning"

        def shared() -> bool:
            first.follow(wire)
            second.follow(wire)
            return len(first.numbers()) == len(second.numbers()) == PARTITIONS // 2

        wait_until(shared, "both have half")
        assert first.numbers() | second.numbers() == set(range(PARTITIONS))


def switch_off(bootstrap: str) -> None:
    """The cluster's features, without the protocol of consumer groups."""
    with Wire(bootstrap) as wire:
        off = [{"feature": "group.version", "max_version_level": 0, "upgrade_type": 3}]
        assert wire.call(ApiKey.UPDATE_FEATURES, 1, feature_updates=off).error_code == 0


async def read_until(consumer: AsyncGroupConsumer, done: Callable[[list[bytes | None]], bool]) -> None:
    values: list[bytes | None] = []
    while not done(values):
        values += [each.value for each in await consumer.getmany(1, 100)]


@pytest.mark.parametrize("protocol", ["auto", "consumer"])
async def test_when_the_protocol_is_switched_off_a_member_that_may_goes_on_with_the_classic_one(
    protocol: str,
) -> None:
    with running_broker() as broker:
        broker.create_topic("orders", 1)
        broker.produce("orders", ["1"])
        settings: dict[str, Any] = {"bootstrap": broker.bootstrap, "group": "g", "protocol": protocol}
        async with AsyncGroupConsumer("orders", auto_offset_reset="earliest", **settings) as consumer:
            (record,) = await consumer.getmany(1, 20_000)
            assert type(consumer.parts.membership) is ConsumerMembership
            consumer.done(record)
            await consumer.commit()
            switch_off(broker.bootstrap)
            broker.produce("orders", ["2"])
            if protocol == "consumer":
                with pytest.raises(FatalGroupError, match="do not offer the protocol"):
                    await read_until(consumer, lambda _: False)
                return
            await read_until(consumer, lambda _: type(consumer.parts.membership) is Membership)
            broker.produce("orders", ["3"])
            await read_until(consumer, lambda values: values[-1:] == [b"3"])
            lost = [event for event in consumer.events.recent if isinstance(event, PartitionsLost)]
            assert [event.partitions for event in lost] == [(record.topic_partition,)]
