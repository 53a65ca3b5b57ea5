"""Events are counted."""

from __future__ import annotations

from kohort.broker.metrics._groups import GroupCounters
from kohort.coordinator import (
    AssignorFailed,
    CauseKind,
    CoordinatorEvent,
    GroupEvent,
    MemberGone,
    OffsetsRemoved,
    RebalanceCompleted,
)
from kohort.protocol import ErrorCode


def test_events_are_counted_and_handed_on() -> None:
    seen: list[CoordinatorEvent] = []
    counters = GroupCounters(seen.append)
    events: list[GroupEvent] = [
        RebalanceCompleted(
            "g",
            cause="member joined-7 left",
            cause_kind=CauseKind.LEAVE,
            members=1,
            members_before=0,
            duration_ms=250,
            join_ms=1,
            sync_ms=1,
        ),
        MemberGone("g", cause_kind=CauseKind.SESSION_EXPIRED),
        MemberGone("g", cause="session of member a", cause_kind=CauseKind.LEAVE),
        OffsetsRemoved("g", cause="expired", count=7),
        AssignorFailed("g", assignor="own", error_code=ErrorCode.UNKNOWN_SERVER_ERROR),
    ]
    for event in events:
        counters.count_event(event)
    assert seen == events
    assert counters.rebalances == {"leave": 1}
    assert counters.rebalance_times.figures().max_ms == 250.0
    assert (counters.expired_members, counters.offsets_removed) == (1, 7)
    assert (counters.refusals, counters.assignor_failures) == (1, 1)
