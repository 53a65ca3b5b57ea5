"""Past generations, from events and from records.

Covers: admin/groups/history/group_records.py, admin/groups/history/moves.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kohort.admin import Generation, GroupAdmin, GroupHistory, HistoryEntry, PartitionMove
from kohort.admin.groups.history.generations import (
    from_events,
    from_records,
    is_shortened,
    is_whole,
    with_every_move,
    with_records,
)
from kohort.admin.groups.history.group_records import StoredPast, StoredRecord
from kohort.admin.groups.history.moves import moves_between
from kohort.admin.groups.requests import KeptEvents
from kohort.consumer import AsyncGroupConsumer, Cluster
from kohort.offsets_topic import GroupDeleted, GroupStored, StoredMember
from kohort.protocol import ErrorCode, KafkaError, TopicPartition, encode_assignment
from kohort.testing import running_broker
from tests.admin.conftest import stable

OFFSETS = TopicPartition("__consumer_offsets", 7)


def holding(*numbers: int) -> bytes:
    return encode_assignment([TopicPartition("orders", number) for number in numbers])


def member(name: str, assignment: bytes, instance_id: str | None = None) -> StoredMember:
    return StoredMember(name, instance_id, "app", "/127.0.0.1", 60_000, 10_000, b"", assignment)


def stored(generation: int, *members: StoredMember, protocol_type: str = "consumer") -> StoredRecord:
    leader = members[0].member_id if members else None
    record = GroupStored("billing", protocol_type, generation, "range", leader, 0, members)
    return StoredRecord(1_000 * generation, record)


def past(*rows: StoredRecord, complete: bool = True) -> StoredPast:
    return StoredPast(OFFSETS, rows, complete)


def test_records_tell_who_came_who_left_and_what_moved() -> None:
    history = from_records(
        "billing",
        past(
            stored(1, member("a", holding(0, 1, 2))),
            stored(2, member("a", holding(0, 1)), member("b", holding(2))),
            stored(3, member("b", holding(0, 1, 2))),
            stored(4),
        ),
        limit=3,
    )
    assert history.source == "offsets topic"
    second, third, fourth = history.generations
    assert (second.generation, second.timestamp_ms, second.state) == (2, 2_000, "Stable")
    assert (second.members_before, second.members, second.leader) == (1, 2, "a")
    assert (second.joined, second.left) == (("b",), ())
    assert second.moves == (PartitionMove("orders", 2, "a", "b"),)
    assert (second.cause, second.duration_ms) == (None, None)
    assert (third.joined, third.left, third.partitions_moved) == ((), ("a",), 2)
    assert (fourth.state, fourth.members, fourth.partitions_moved) == ("Empty", 0, 0)
    assert fourth.moves == tuple(PartitionMove("orders", number, "b", None) for number in range(3))


def test_a_static_member_is_known_by_its_instance_id() -> None:
    rows = past(
        stored(1, member("a-1", holding(0), "pod-a")),
        stored(1, member("a-2", holding(0), "pod-a")),
    )
    [_, again] = from_records("billing", rows, limit=5).generations
    assert (again.joined, again.left, again.moves) == ((), (), ())


def test_the_making_of_a_group_is_no_generation_but_says_that_nobody_was_there() -> None:
    [first] = from_records(
        "billing", past(stored(0), stored(1, member("a", holding(0)))), limit=5
    ).generations
    assert (first.generation, first.members_before) == (1, 0)
    assert first.moves == (PartitionMove("orders", 0, None, "a"),)


def test_nothing_is_said_of_moves_where_nothing_earlier_is_known() -> None:
    [only] = from_records("billing", past(stored(9, member("a", holding(0)))), limit=5).generations
    assert (only.moves, only.joined, only.members_before, only.members) == (None, None, None, 1)


def test_other_protocol_types_are_counted_and_not_read() -> None:
    rows = past(
        stored(1, member("a", b"\xff\xff", None), protocol_type="connect"),
        stored(2, member("a", b"\xff"), member("b", b"\x00"), protocol_type="connect"),
    )
    [_, second] = from_records("billing", rows, limit=5).generations
    assert (second.members, second.joined, second.moves) == (2, ("b",), None)


def test_a_group_that_was_removed_starts_from_nothing() -> None:
    rows = past(
        stored(5, member("a", holding(0))),
        StoredRecord(6_000, GroupDeleted("billing")),
        stored(1, member("b", holding(0))),
    )
    _, removed, again = from_records("billing", rows, limit=5).generations
    assert (removed.state, removed.generation, removed.left) == ("Dead", 5, ("a",))
    assert again.moves == (PartitionMove("orders", 0, None, "b"),)


def test_a_read_that_stopped_early_is_said() -> None:
    whole = from_records("billing", past(stored(1)), limit=5).unknown
    cut = from_records("billing", past(stored(1), complete=False), limit=5).unknown
    assert len(cut) == len(whole) + 1
    assert "there may be older generations" in cut[-1]
    assert "cannot be known" in whole[0]


def test_moves_are_not_guessed_from_assignments_that_cannot_be_read() -> None:
    assert moves_between({"a": None}, {"a": frozenset()}) is None
    assert moves_between({}, {}) == ()


def event(sequence: int, kind: str, generation: int, **details: object) -> HistoryEntry:
    return HistoryEntry(
        sequence, 1_000 * sequence, kind, generation, "member b joined", "b", "app", "/h", details
    )


REBALANCED = {
    "members": 2,
    "members_before": 1,
    "duration_ms": 40,
    "join_ms": 30,
    "protocol_type": "consumer",
    "protocol": "range",
    "leader": "a",
    "partitions_moved": 1,
    "joined": ["b"],
    "left": [],
    "moves": [["orders", 2, "a", "b"]],
}


def test_events_tell_why_and_how_long() -> None:
    entries = [event(1, "MemberJoined", 1), event(2, "RebalanceCompleted", 2, **REBALANCED)]
    history = from_events("billing", entries, 20)
    assert (history.source, history.unknown, history.entries) == ("coordinator", (), tuple(entries))
    assert history.generations == (
        Generation(
            generation=2,
            timestamp_ms=2_000,
            state="Stable",
            cause="member b joined",
            member="b",
            client_id="app",
            client_host="/h",
            duration_ms=40,
            join_ms=30,
            protocol="range",
            leader="a",
            members=2,
            members_before=1,
            joined=("b",),
            left=(),
            moves=(PartitionMove("orders", 2, "a", "b"),),
            partitions_moved=1,
        ),
    )


def test_an_event_that_let_go_of_its_assignments_has_no_moves() -> None:
    details = {"members": 0, "members_before": 2, "duration_ms": 3, "join_ms": 3, "partitions_moved": None}
    [row] = from_events("billing", [event(1, "RebalanceCompleted", 7, **details)], 20).generations
    assert (row.state, row.members, row.moves, row.partitions_moved) == ("Empty", 0, None, None)
    assert (row.joined, row.left, row.protocol, row.leader) == (None, None, None, None)


def test_what_was_before_the_broker_started_is_filled_in_without_causes() -> None:
    recorded = from_records("billing", past(stored(1, member("a", holding(0))), stored(2), stored(5)), 20)
    told = from_events("billing", [event(4, "RebalanceCompleted", 5, **REBALANCED)], 20)
    assert not is_whole(told, 20)
    both = with_records(told, recorded, 20)
    assert [(row.generation, row.cause) for row in both.generations] == [
        (1, None),
        (2, None),
        (5, "member b joined"),
    ]
    assert "2 of these generations ended before the broker began" in both.unknown[0]
    assert "or are no longer in it" in both.unknown[0]
    assert with_records(told, recorded, 2).generations == both.generations[-2:]


def test_a_history_from_the_first_generation_on_needs_no_records() -> None:
    told = from_events("billing", [event(2, "RebalanceCompleted", 1, **REBALANCED)], 20)
    assert is_whole(told, 20)
    assert is_whole(from_events("billing", [event(2, "RebalanceCompleted", 9, **REBALANCED)], 1), 1)


def test_moves_that_an_event_leaves_out_are_taken_from_the_generations_record() -> None:
    details = {**REBALANCED, "partitions_moved": 3}
    told = from_events("billing", [event(9, "RebalanceCompleted", 2, **details)], 20)
    assert is_shortened(told)
    assert not is_shortened(from_events("billing", [event(9, "RebalanceCompleted", 2, **REBALANCED)], 20))
    members = (member("a", holding()), member("b", holding(0, 1, 2)))
    recorded = from_records(
        "billing", past(stored(1, member("a", holding(0, 1, 2))), stored(2, *members)), 20
    )
    [told_at] = [row.timestamp_ms for row in told.generations]
    written = {row.generation: row.timestamp_ms for row in recorded.generations}[2]
    filled = with_every_move(told, recorded)
    assert 0 <= told_at - written < 60_000
    assert [move.partition for move in filled.generations[0].moves or ()] == [0, 1, 2]
    assert filled.generations[0].cause == "member b joined"
    assert not is_shortened(filled)
    # another group of this name had a generation of this number
    late = replace(told, generations=(replace(told.generations[0], timestamp_ms=written + 60_001),))
    assert with_every_move(late, recorded) == late


async def test_events_are_told_where_records_may_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object) -> StoredPast:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "topic '__consumer_offsets'")

    async def kept(*_: object) -> KeptEvents:
        return KeptEvents([event(9, "RebalanceCompleted", 5, **REBALANCED)])

    monkeypatch.setattr("kohort.admin.groups.history.group_records.read_past", refused)
    admin = GroupAdmin("localhost:1", timeout_ms=500)
    monkeypatch.setattr("kohort.admin.groups.requests.ask_history", kept)
    history = await admin.history("billing")
    assert [row.generation for row in history.generations] == [5]
    assert "older generations cannot be read" in history.unknown[-1]


async def test_generations_before_a_restart_are_still_told(tmp_path: Path) -> None:
    async def one_generation(bootstrap: str) -> GroupHistory:
        async with GroupAdmin(bootstrap) as admin:
            async with Cluster(bootstrap) as cluster:
                await cluster.create_topics({"orders": 1})
            async with AsyncGroupConsumer("orders", bootstrap=bootstrap, group="billing"):
                await stable(admin, "billing", 1)
            return await admin.history("billing")

    with running_broker(data=tmp_path, kohort_recording_max_bytes=0) as broker:
        before = await one_generation(broker.bootstrap)
    with running_broker(data=tmp_path, kohort_recording_max_bytes=0) as broker:
        after = await one_generation(broker.bootstrap)
    assert before.unknown == ()
    assert all(row.cause is not None for row in before.generations)
    known = [row.generation for row in before.generations]
    assert [row.generation for row in after.generations if row.cause is None] == known
    assert after.generations[-1].cause is not None
    assert after.generations[-1].generation > known[-1]
    assert "ended before the broker began" in after.unknown[0]
    assert "no longer" not in " ".join(after.unknown)


async def test_generations_whose_events_made_way_are_not_said_to_be_older_than_the_broker() -> None:
    with running_broker(kohort_group_history_size=4) as broker:
        async with GroupAdmin(broker.bootstrap) as admin:
            async with Cluster(broker.bootstrap) as cluster:
                await cluster.create_topics({"orders": 1})
            for _ in range(4):
                async with AsyncGroupConsumer("orders", bootstrap=broker.bootstrap, group="billing"):
                    await stable(admin, "billing", 1)
            history = await admin.history("billing")
    unknown = [row for row in history.generations if row.cause is None]
    assert unknown
    [remark] = history.unknown
    assert remark.startswith(f"{len(unknown)} of these generations are no longer in the broker's history")


def test_moves_of_a_rebalance_of_several_epochs_are_put_together() -> None:
    details = {**REBALANCED, "partitions_moved": 2, "moves": [["orders", 0, "a", "c"]]}
    told = from_events("shop", [event(9, "RebalanceCompleted", 4, **details)], 20)
    told = replace(told, generations=(Generation(2, 8_000, "Stable", moves=()), *told.generations))
    steps = [
        Generation(
            3, 8_970, "Stable", members=2, members_before=1, moves=(PartitionMove("orders", 0, "a", "b"),)
        ),
        Generation(
            4,
            8_990,
            "Stable",
            members=2,
            members_before=2,
            moves=(PartitionMove("orders", 0, "b", "c"), PartitionMove("orders", 1, "a", "b")),
        ),
    ]
    recorded = GroupHistory("shop", "offsets topic", (), tuple(steps))
    filled = with_every_move(told, recorded).generations[-1]
    assert filled.moves == (PartitionMove("orders", 0, "a", "c"), PartitionMove("orders", 1, "a", "b"))
    # records of something else: the moves that are known are not among theirs
    others = replace(recorded, generations=(replace(steps[0], moves=()), replace(steps[1], moves=())))
    assert with_every_move(told, others).generations[-1] == told.generations[-1]
