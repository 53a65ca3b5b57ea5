"""Groups as text."""

from __future__ import annotations

from kohort.admin import ListedGroup, MemberDescription, Outcome, PartitionMove
from kohort.admin.groups import tables
from kohort.admin.groups.results import (
    DeliveredRecords,
    HeldRecords,
    HistoryEntry,
    RecordsInFlight,
    ShareOffsets,
)
from kohort.admin.screen import plain
from kohort.protocol import EventName, TopicPartition
from tests.admin.test_tables import printed


def test_moves_between_the_same_owners_are_one() -> None:
    rows = [
        PartitionMove("orders", 0, "a-6e4f58cf-1111-4222-8333-444455556666", "b"),
        PartitionMove("orders", 1, "a-6e4f58cf-1111-4222-8333-444455556666", "b"),
        PartitionMove("orders", 2, None, "b"),
    ]
    assert tables.moves(rows) == "orders 0-1 from a-6e4f58cf to b; orders 2 from nobody to b"


def test_moves_in_a_share_group_name_who_got_a_partition_or_lost_it() -> None:
    rows = [PartitionMove("jobs", 0, None, "b"), PartitionMove("jobs", 1, "a", None)]
    assert tables.moves(rows, shared=True) == "jobs 0 to b; jobs 1 from a"


def test_none_is_a_dash_and_an_outcome_is_said() -> None:
    assert "-" in printed(tables.groups_table([ListedGroup("g", "", None, None, 1)])).split()
    rows: dict[tuple[str, ...], Outcome] = {
        ("a",): Outcome(0, None),
        ("b",): Outcome(68, "NON_EMPTY_GROUP (68)"),
    }
    assert [
        line.split(maxsplit=1) for line in printed(tables.outcomes(["GROUP"], rows)).splitlines()[1:]
    ] == [
        ["a", "deleted" + " " * 13],
        ["b", "NON_EMPTY_GROUP (68)"],
    ]


def test_results_become_objects_with_their_own_names() -> None:
    member = MemberDescription("id", None, "app", "/h", (TopicPartition("orders", 1),))
    others = dict.fromkeys(("epoch", "target", "topics", "regex", "rack", "protocol"))
    assert plain(member) == {
        **others,
        "member_id": "id",
        "instance_id": None,
        "client_id": "app",
        "client_host": "/h",
        "assignment": [{"topic": "orders", "partition": 1}],
    }
    assert plain({"x": (1, 2.5, None, Outcome(3, "no"))}) == {
        "x": [1, 2.5, None, {"error_code": 3, "error": "no"}]
    }


def test_a_share_partition_in_short() -> None:
    held = (HeldRecords("w-6e4f58cf-1111-4222-8333-444455556666", 8), HeldRecords("gone", 1))
    told = RecordsInFlight(20, held, 3, 2, (DeliveredRecords(1, 10), DeliveredRecords(4, 2)), 0, 0, 0, 1_000)
    row = ShareOffsets("jobs", 0, 6, 30, 22, (held[0].member, "idle"), told)
    assert tables.share_cells(row, 76_000) == (9, 3, "10 x 1, 2 x 4", "1 min 15 s")
    assert tables.members_text(row) == "w-6e4f58cf (8), idle, gone (1)"
    unread = ShareOffsets("jobs", 1, None, 30, None, ())
    assert (tables.share_cells(unread, 0), tables.members_text(unread)) == ((None,) * 4, None)


def test_only_events_of_share_partitions_are_told_as_such() -> None:
    rows = [
        HistoryEntry(at, at, kind, -1, f"cause {at}", "", "", "")
        for at, kind in enumerate([EventName.MEMBER_JOINED, *[EventName.SHARE_LOCKS_LOST] * 3])
    ]
    (found,) = tables.share_events(rows, 2)
    text = printed(found)
    assert ("cause 1" in text, "cause 2" in text, "cause 3" in text) == (False, True, True)
    assert tables.share_events(rows[:1], 2) == []
