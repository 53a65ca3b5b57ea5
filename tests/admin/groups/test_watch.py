"""What a watcher tells."""

from __future__ import annotations

import pytest

from kohort.admin import Coordinator, GroupDescription, HistoryEntry, MemberDescription
from kohort.admin.groups.watch import differences, event_line
from kohort.protocol import TopicPartition

WHERE = Coordinator(1, "localhost", 9092)


def described(state: str, **held: tuple[int, ...]) -> GroupDescription:
    """A group whose members are named as the arguments and hold these partitions."""
    members = tuple(
        MemberDescription(
            f"{name}-id", name, "app", "/10.0.0.1", tuple(TopicPartition("orders", n) for n in numbers)
        )
        for name, numbers in held.items()
    )
    return GroupDescription("billing", state, "consumer", "range", "classic", WHERE, members)


def test_the_first_look_is_no_news() -> None:
    assert list(differences(None, described("Stable", a=(0,)))) == []


def test_nothing_new_is_no_news() -> None:
    assert list(differences(described("Stable", a=(0,)), described("Stable", a=(0,)))) == []


def test_members_that_come_and_go_and_what_moves() -> None:
    assert list(
        differences(described("Stable", a=(0, 1), b=(2,)), described("Stable", a=(0,), c=(1, 2)))
    ) == [
        "b left [app at /10.0.0.1]",
        "c joined [app at /10.0.0.1]",
        "orders-1 a > c",
        "orders-2 b > c",
    ]


def test_moves_are_told_when_the_group_is_stable_again() -> None:
    under_way = differences(described("Stable", a=(0,)), described("PreparingRebalance", a=()))
    assert list(under_way) == ["state Stable > PreparingRebalance"]


@pytest.mark.parametrize(
    ("kind", "details", "expected"),
    [
        ("MemberJoined", {}, "the cause [app at /h]"),
        ("RebalanceStarted", {}, "rebalance begins: the cause [app at /h]"),
        ("RebalanceCompleted", {"members": 3}, "generation 4, members 3: the cause [app at /h]"),
        ("GenerationAbandoned", {"members": 3}, "generation 4 is abandoned: the cause [app at /h]"),
        (
            "CommitRefused",
            {"error": "ILLEGAL_GENERATION", "error_code": 22},
            "refused with ILLEGAL_GENERATION: the cause [app at /h]",
        ),
        ("AnythingNew", {}, "the cause [app at /h]"),
    ],
)
def test_events_in_words(kind: str, details: dict[str, object], expected: str) -> None:
    assert event_line(HistoryEntry(1, 0, kind, 4, "the cause", "m", "app", "/h", details)) == expected


def test_an_event_about_nobody_names_nobody() -> None:
    assert event_line(HistoryEntry(1, 0, "OffsetsRemoved", -1, "expired", "", "", "")) == "expired"
