"""What /metrics says of the group is counted from events."""

from __future__ import annotations

from kohort.consumer import events
from kohort.protocol import TopicPartition
from kohort.service._metrics import ServiceCounters

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_events_are_counted_and_others_passed_over() -> None:
    counters = ServiceCounters(clock=lambda: 7.0)
    for event in (
        events.RebalanceRetried("refused", 10.0),
        events.RebalanceCompleted(3, "m-1", True, "range", (A, B), (A, B), (), 250.0),
        events.CommitSucceeded({A: 4}),
        events.CommitSucceeded({B: 4}),
        events.CommitFailed((A,), OSError("gone")),
        events.PartitionsLost((A, B), "the session ended"),
        events.OffsetReset(A, 7, "out of range", "earliest", 9),
        events.OffsetReset(B, None, "nothing is committed", "earliest", 0),
        events.LoopBlocked(2_500.0, "bill (billing.py:31)"),
        events.SessionResumed(),
    ):
        counters.count_event(event)
    assert counters.rebalances == 1
    assert counters.rebalance_seconds == 0.25
    assert counters.last_rebalance == 7.0
    assert counters.failed_rebalances == 1
    assert (counters.commits, counters.failed_commits) == (2, 1)
    assert counters.lost_partitions == 2
    assert counters.blocked_seconds == 2.5
    assert counters.resets == {"orders": 2}
