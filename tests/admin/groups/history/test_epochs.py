"""Past epochs of consumer groups, from records of the offsets topic."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from kohort.admin import Generation, GroupAdmin, GroupHistory, PartitionMove
from kohort.admin.groups.history import group_records
from kohort.admin.groups.history.generations import from_records
from kohort.admin.groups.history.group_records import StoredPast, StoredRecord
from kohort.admin.groups.requests import KeptEvents
from kohort.admin.groups.results import Coordinator, GroupDescription, MemberDescription
from kohort.consumer import AsyncGroupConsumer, Cluster
from kohort.offsets_topic import (
    ConsumerGroupRecord,
    CurrentAssignment,
    GroupDeleted,
    GroupEpoch,
    GroupRecordType,
    GroupRecordValue,
    GroupStored,
    MemberMetadata,
    StoredMember,
    TargetAssignment,
    TargetEpoch,
)
from kohort.protocol import TopicPartition, UnsupportedVersionError, encode_assignment
from kohort.ui.groups.views import GroupView
from tests.admin.conftest import Groups, stable
from tests.consumer.members import Maker

ORDERS, GONE = UUID(int=1), UUID(int=2)
TYPES = GroupRecordType
STABLE, UNREVOKED, UNRELEASED = 0, 1, 2


class Log:
    """Records of a group, each batch a hundred milliseconds after the one before."""

    def __init__(self) -> None:
        self.rows: list[StoredRecord] = []
        self.now_ms = 1_000

    def write(self, *records: ConsumerGroupRecord | GroupStored | GroupDeleted) -> None:
        self.rows += (StoredRecord(self.now_ms, record) for record in records)
        self.now_ms += 100

    def past(self, first: int = 0) -> StoredPast:
        partition = TopicPartition("__consumer_offsets", 3)
        return StoredPast(
            partition, tuple(self.rows[first:]), not first, from_start=not first, topics={ORDERS: "orders"}
        )

    def read(self, first: int = 0, now: GroupDescription | None = None) -> GroupHistory:
        return from_records("shop", self.past(first), 20, now)


def record(
    kind: GroupRecordType, name: str = "", value: GroupRecordValue | None = None
) -> ConsumerGroupRecord:
    return ConsumerGroupRecord(kind, "shop", name, value)


def member(name: str, instance_id: str | None = None, *, topics: Iterable[str] = ("orders",)) -> Any:
    return record(
        TYPES.MEMBER, name, MemberMetadata(instance_id, None, f"app-{name}", "/h", tuple(topics), "", 1)
    )


def epoch(number: int, hash_: int = 7) -> ConsumerGroupRecord:
    return record(TYPES.EPOCH, "", GroupEpoch(number, hash_))


def target(name: str, *numbers: int, topic: UUID = ORDERS) -> ConsumerGroupRecord:
    return record(TYPES.TARGET, name, TargetAssignment({topic: numbers}))


def assigned(number: int) -> ConsumerGroupRecord:
    return record(TYPES.TARGET_EPOCH, "", TargetEpoch(number))


def current(
    name: str, number: int, previous: int, state: int = STABLE, revoking: Iterable[int] = ()
) -> ConsumerGroupRecord:
    gives_up = {ORDERS: dict.fromkeys(revoking, previous)} if revoking else {}
    return record(TYPES.CURRENT, name, CurrentAssignment(number, previous, state, {}, gives_up))


def gone(name: str) -> tuple[ConsumerGroupRecord, ...]:
    return tuple(record(kind, name) for kind in (TYPES.CURRENT, TYPES.TARGET, TYPES.MEMBER))


def two_members() -> Log:
    """As an Apache Kafka writes it: a joins, b joins and waits for a, b leaves, a leaves."""
    log = Log()
    log.write(member("a"), epoch(2), target("a", 0, 1, 2, 3), assigned(2), current("a", 2, 0))
    log.write(
        *(member("b"), epoch(3), target("b", 2, 3), target("a", 0, 1), assigned(3)),
        current("b", 3, 0, UNRELEASED),
    )
    log.write(current("a", 2, 2, UNREVOKED, revoking=(2, 3)))
    log.write(current("a", 3, 2))
    log.write(current("b", 3, 3))
    log.write(*gone("b"), epoch(4))
    log.write(target("a", 0, 1, 2, 3), assigned(4), current("a", 4, 3))
    log.write(*gone("a"), epoch(5, 0))
    return log


def test_epochs_tell_members_targets_and_times() -> None:
    history = two_members().read()
    second, third, fourth, fifth = history.generations
    assert second == Generation(
        generation=2,
        timestamp_ms=1_000,
        state="Stable",
        cause="member a joined",
        member="a",
        client_id="app-a",
        client_host="/h",
        duration_ms=0,
        join_ms=0,
        members=1,
        members_before=0,
        joined=("a",),
        left=(),
        moves=tuple(PartitionMove("orders", number, None, "a") for number in range(4)),
        partitions_moved=4,
    )
    assert (third.generation, third.timestamp_ms, third.duration_ms, third.join_ms) == (3, 1_400, 300, 0)
    assert (third.slowest, third.slowest_ms, third.members_before, third.members) == ("a", 100, 1, 2)
    assert third.moves == tuple(PartitionMove("orders", number, "a", "b") for number in (2, 3))
    assert (fourth.cause, fourth.left, fourth.members) == ("member b is gone", ("b",), 1)
    assert (fourth.duration_ms, fourth.join_ms) == (100, 100)
    assert fourth.moves == tuple(PartitionMove("orders", number, "b", "a") for number in (2, 3))
    assert (fifth.state, fifth.members_before, fifth.members, fifth.duration_ms) == ("Empty", 1, 0, 0)
    assert fifth.moves == tuple(PartitionMove("orders", number, "a", None) for number in range(4))
    lack, where = history.unknown
    assert lack.endswith("whether a member that is gone left or was removed cannot be known")
    assert where.startswith("epochs are read from __consumer_offsets-3")


def test_an_epoch_that_others_overtake_is_told_as_not_reached() -> None:
    log = Log()
    log.write(member("a"), epoch(2), target("a", 0, 1), assigned(2), current("a", 2, 0))
    log.write(
        member("b"), epoch(3), target("a", 0), target("b", 1), assigned(3), current("b", 3, 0, UNRELEASED)
    )
    log.write(*gone("b"), epoch(4))
    assert [(row.generation, row.state) for row in log.read().generations] == [
        (2, "Stable"),
        (3, "Reconciling"),
    ]
    log.write(target("a", 0, 1), assigned(4), current("a", 4, 2))
    third, fourth = log.read().generations[1:]
    assert (third.joined, third.members, third.timestamp_ms) == (("b",), 2, 1_200)
    assert (fourth.state, fourth.left, fourth.members_before, fourth.members) == ("Stable", ("b",), 2, 1)


def test_a_log_that_begins_later_says_no_more_than_it_has() -> None:
    log = two_members()
    first = next(n for n, row in enumerate(log.rows) if row.record == epoch(3)) - 1
    # b joined here, of a's target only the new one is known
    third, *rest = log.read(first, described()).generations
    assert (third.generation, third.joined, third.moves, third.members_before) == (3, None, None, None)
    *others, last = two_members().read().generations[2:]
    # nor is it known who a was
    assert rest == [*others, replace(last, client_id=None, client_host=None)]


def test_members_whose_records_are_older_are_neither_new_nor_uncounted() -> None:
    log = Log()
    log.write(*(member(name, f"pod-{name}") for name in "xyz"), epoch(2), assigned(2))
    log.write(*(target(name, at) for at, name in enumerate("xyz")))
    log.write(*(current(name, 2, 0) for name in "xyz"))
    log.write(member("a"), epoch(3), target("a", 4), assigned(3), current("a", 3, 0))
    for name in "xyz":
        log.write(current(name, 3, 2))
    log.write(member("b"), epoch(4), target("b", 2), target("z"), assigned(4), current("b", 4, 0))
    for name in "xyza":
        log.write(current(name, 4, 3))
    log.write(member("c"), epoch(5), target("c", 5), assigned(5), current("c", 5, 0))
    for name in "xyzab":
        log.write(current(name, 5, 4))
    first = next(n for n, row in enumerate(log.rows) if row.record == epoch(3)) - 1
    now = described(*((name, f"pod-{name}" if name in "xyz" else None) for name in "abcxyz"))
    third, fourth, fifth = log.read(first, now).generations
    assert (third.moves, third.members) == (None, 4)
    # what z had before is unknown
    assert (fourth.joined, fourth.moves, fourth.members_before, fourth.members) == (("b",), None, 4, 5)
    assert (fifth.joined, fifth.members_before, fifth.members) == (("c",), 5, 6)
    assert fifth.moves == (PartitionMove("orders", 5, None, "c"),)
    assert log.read(first, now).generations[2:] == log.read().generations[3:]


def described(*members: tuple[str, str | None]) -> GroupDescription:
    rows = tuple(MemberDescription(name, instance, "app", "/h", ()) for name, instance in members)
    return GroupDescription("shop", "Stable", "consumer", "uniform", "consumer", Coordinator(1, "h", 1), rows)


def test_a_static_member_that_returns_is_the_same_owner() -> None:
    log = Log()
    log.write(member("a", "pod"), epoch(2), target("a", 0), assigned(2), current("a", 2, 0))
    log.write(*gone("a"), member("b", "pod"), target("b", 0), current("b", 2, 2))
    log.write(member("c"), epoch(3), target("c"), assigned(3), current("c", 3, 0))
    log.write(current("b", 3, 2))
    second, third = log.read().generations
    assert second.cause == "static member pod joined"
    assert (third.joined, third.left, third.moves, third.members) == (("c",), (), (), 2)


def test_subscriptions_and_topics_are_causes() -> None:
    log = Log()
    log.write(member("a"), epoch(2), target("a", 0), assigned(2), current("a", 2, 0))
    log.write(epoch(3, 8))
    log.write(target("a", 0, 1), assigned(3), current("a", 3, 2))
    log.write(member("a", topics=("orders", "more")), epoch(4, 9), assigned(4), current("a", 4, 3))
    causes = [row.cause for row in log.read().generations[1:]]
    assert causes == ["the topics that members subscribe to changed", "member a changed its subscription"]


def test_a_group_that_was_deleted_starts_from_nothing() -> None:
    log = two_members()
    log.write(record(TYPES.TARGET_EPOCH), record(TYPES.EPOCH))
    log.write(member("z"), epoch(2), target("z", 0), assigned(2), current("z", 2, 0))
    *_, empty, dead, again = log.read().generations
    assert (empty.state, dead.state, dead.generation, dead.moves) == ("Empty", "Dead", 5, ())
    assert (again.members_before, again.moves) == (0, (PartitionMove("orders", 0, None, "z"),))


def test_a_group_that_changes_its_protocol_goes_on() -> None:
    def classic(generation: int, *numbers: int) -> GroupStored:
        held = encode_assignment([TopicPartition("orders", number) for number in numbers])
        row = StoredMember("a", None, "app", "/h", 1, 1, b"", held)
        return GroupStored("shop", "consumer", generation, "range", "a", 0, (row,))

    log = Log()
    log.write(classic(4, 0, 1))
    log.write(
        *(GroupDeleted("shop"), member("a"), epoch(4), target("a", 0, 1), assigned(4), current("a", 4, 4)),
        *(member("b"), epoch(5), target("a", 0), target("b", 1), assigned(5), current("b", 5, 0, UNRELEASED)),
    )
    log.write(current("a", 5, 4))
    log.write(current("b", 5, 5))
    log.write(*gone("a"), *gone("b"), record(TYPES.TARGET_EPOCH), record(TYPES.EPOCH), classic(6, 0, 1))
    history = log.read()
    assert [(row.generation, row.state, row.members) for row in history.generations] == [
        (4, "Stable", 1),
        (4, "Stable", 1),
        (5, "Stable", 2),
        (6, "Stable", 1),
    ]
    assert history.generations[2].moves == (PartitionMove("orders", 1, "a", "b"),)
    assert history.generations[3].moves == (PartitionMove("orders", 1, "b", "a"),)
    assert "generations and epochs are read" in history.unknown[-1]


def test_partitions_of_topics_that_are_gone_are_said_to_be_left_out() -> None:
    log = Log()
    log.write(member("a"), epoch(2), target("a", 0, topic=GONE), assigned(2), current("a", 2, 0))
    history = log.read()
    assert history.generations[0].moves == ()
    assert "topics that do not exist any more are left out" in history.unknown[-1]


def test_where_nothing_was_found_nothing_is_said_of_compaction() -> None:
    [remark] = Log().read().unknown
    assert remark.endswith("__consumer_offsets-3 has no rebalance of this one")


@pytest.mark.kafka
async def test_a_consumer_group_has_a_past_without_events(
    admin: GroupAdmin, member: Maker, new_topic: Callable[..., str], bootstrap: str
) -> None:
    topic, group = new_topic("shop", 4), f"group-{uuid.uuid4().hex[:8]}"
    one = await member(topic, group=group, protocol="consumer", client_id="one")
    await stable(admin, group, 1)
    two = await member(topic, group=group, protocol="consumer", client_id="two")
    await stable(admin, group, 2)
    await one.close()
    await stable(admin, group, 1)
    now = (await admin.describe([group]))[group]
    await two.close()
    await stable_empty(admin, group)
    async with Cluster(bootstrap) as cluster:
        past = await group_records.read_past(cluster, group, 20, 500_000)
    history = from_records(group, past, 20)
    rows = history.generations
    assert [row.state for row in rows] == ["Stable", "Stable", "Stable", "Empty"]
    assert [row.members for row in rows] == [1, 2, 1, 0]
    assert [row.client_id for row in rows] == ["one", "two", "one", "two"]
    assert [len(row.moves or ()) for row in rows] == [4, 2, 2, 4]
    assert rows[2].generation == now.epoch
    [owner] = {move.to_owner for move in rows[2].moves or ()}
    assert owner == now.members[0].member_id
    assert all(row.duration_ms is not None for row in rows)


async def stable_empty(admin: GroupAdmin, group: str) -> None:
    async with asyncio.timeout(20):
        while True:
            if (await admin.describe([group]))[group].state == "Empty":
                return
            await asyncio.sleep(0.05)


@pytest.mark.kafka
def test_a_timeline_of_a_consumer_group_has_a_row_for_each_epoch(
    groups: Groups, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic, group = new_topic("shop", 2), f"group-{uuid.uuid4().hex[:8]}"

    async def work() -> None:
        async with GroupAdmin(bootstrap) as admin:
            for _ in range(3):
                async with AsyncGroupConsumer(topic, bootstrap=bootstrap, group=group, protocol="consumer"):
                    await stable(admin, group, 1)
                await stable_empty(admin, group)

    asyncio.run(work())
    rows = groups("timeline", group, "--json").document["generations"]
    assert [(row["state"], row["members"]) for row in rows] == [("Stable", 1), ("Empty", 0)] * 3
    assert all(row["cause"] for row in rows)
    assert [len(row["moves"]) for row in rows] == [2] * 6


@pytest.mark.kafka
async def test_a_consumer_group_has_lanes_from_before_anybody_looked(
    admin: GroupAdmin, member: Maker, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_events(*_: object) -> KeptEvents:
        raise UnsupportedVersionError("as other brokers answer")

    monkeypatch.setattr("kohort.admin.groups.requests.ask_history", no_events)
    topic, name = new_topic("shop", 4), f"group-{uuid.uuid4().hex[:8]}"
    one = await member(topic, group=name, protocol="consumer", client_id="one")
    await stable(admin, name, 1)
    await member(topic, group=name, protocol="consumer", client_id="two")
    await stable(admin, name, 2)
    view = GroupView(name)
    await view.look(admin)
    lanes = view.lanes
    assert lanes is not None
    assert [row.members for row in lanes.generations] == [1, 2]
    owners = [
        [lanes.owners[span.owner].name for span in lane.spans if span.owner >= 0] for lane in lanes.lanes
    ]
    assert sorted(owners) == [["one"], ["one"], ["one", "two"], ["one", "two"]]
    await one.close()
    await stable(admin, name, 1)
    await view.look(admin)
    assert view.lanes is not None
    assert [row.members for row in view.lanes.generations] == [1, 2, 1]
    assert "is gone" in (view.lanes.generations[-1].cause or "")
