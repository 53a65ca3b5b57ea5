"""What the lag of groups tells is wrong."""

from __future__ import annotations

from kohort.lag import GroupLag, LagTracker, PartitionLag
from kohort.problems import ShareSeen, find_in_groups, find_in_rebalances, find_in_shares


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


def test_share_groups_are_told_with_what_stands_still_and_what_is_delivered_for_the_last_time() -> None:
    found = find_in_shares(
        [
            ShareSeen("queue", "jobs", 0, 60_000, 0),
            ShareSeen("queue", "jobs", 1, 90_000, 4),
            ShareSeen("queue", "jobs", 2, None, 3),
            ShareSeen("well", "jobs", 0, None, 0),
        ]
    )
    assert [(each.kind, each.about) for each in found] == [
        ("SharePartitionStalls", "group queue"),
        ("LastDeliveries", "group queue"),
    ]
    stalled, last = (each.text for each in found)
    assert stalled == (
        "2 partitions (jobs-0, jobs-1) have records in flight and no progress for 90 s; "
        "`kohort groups describe` names who has them"
    )
    assert last == (
        "2 partitions (jobs-1, jobs-2) have 7 records on their last delivery: what fails once more is given "
        "to nobody again"
    )


def test_a_group_that_has_lost_its_members_is_a_problem_where_it_was_seen_at_work() -> None:
    tracker = LagTracker()

    def looked(at_ms: int, members: int, offset: int = 5) -> list[str]:
        row = PartitionLag("orders", 0, offset, 20, 20 - offset, at_ms)
        lags = [
            GroupLag("lost", "classic", "Stable", at_ms, (row,), members),
            lag_of("old", 7, 400_000, members=0),
        ]
        return [each.text for each in find_in_groups(tracker.track(lags), worked=tracker.worked)]

    assert looked(1_000, 1) == []
    assert looked(301_000, 0) == ["15 records are unread, the oldest for 301 s, and it has no members"]
    assert looked(302_000, 0)[0].endswith(
        "no offset of a partition has moved for 301 s, and it has no members"
    )
    # a job without members, which moves
    tracker = LagTracker()
    assert [looked(at_ms, 0, at_ms // 100_000) for at_ms in (100_000, 302_000)] == [
        [],
        ["17 records are unread, the oldest for 302 s, and it has no members"],
    ]
    assert tracker.track([]) == []
    assert tracker.worked == set()


def test_a_group_rebalances_too_often_from_the_sixth_time_in_ten_minutes_on() -> None:
    assert [(each.kind, each.about, each.text) for each in find_in_rebalances({"b": 5, "a": 6})] == [
        ("RebalancesTooOften", "group a", "6 rebalances within ten minutes")
    ]
