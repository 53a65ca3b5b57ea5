"""What the lag of groups tells is wrong."""

from __future__ import annotations

from kohort.lag import GroupLag, PartitionLag
from kohort.problems import find_in_groups


def lag_of(
    group: str, records: int, age_ms: int | None, standing_ms: int | None = None, members: int | None = 1
) -> GroupLag:
    row = PartitionLag("orders", 0, 5, 5 + records, records, age_ms, standing_ms=standing_ms)
    return GroupLag(group, "classic", "Stable", 0, (row,), members)


def test_a_group_whose_oldest_record_waits_is_behind_and_one_that_does_not_move_stands_still() -> None:
    found = find_in_groups(
        [
            lag_of("quick", 1_000_000, 300_000),
            lag_of("slow", 1_200, 300_001, 300_000),
            lag_of("stuck", 7, 400_000, 300_001),
            lag_of("unknown", 7, None),
            lag_of("of others", 7, 400_000, members=None),
        ]
    )
    assert [(each.kind, each.about, each.text) for each in found] == [
        ("GroupBehind", "group slow", "1,200 records are unread, the oldest for 300 s"),
        (
            "GroupStandsStill",
            "group stuck",
            "7 records are unread and no offset of a partition has moved for 300 s",
        ),
        ("GroupBehind", "group of others", "7 records are unread, the oldest for 400 s"),
    ]


def test_a_group_without_members_or_that_cannot_be_asked_is_nobodys_problem_here() -> None:
    broken = GroupLag("refused", None, None, 0, error="GROUP_AUTHORIZATION_FAILED")
    assert find_in_groups([lag_of("left", 7, 400_000, members=0), broken]) == []
    assert [each.kind for each in find_in_groups([lag_of("a", 1, 11)], old_ms=10)] == ["GroupBehind"]
