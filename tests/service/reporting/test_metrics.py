"""What /metrics says of the group is counted from events."""

from __future__ import annotations

import pytest

from kohort.consumer import events
from kohort.protocol import TopicPartition
from kohort.service.reporting.metrics import ServiceCounters, Snapshot, metric_families

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


@pytest.mark.parametrize(("end_s", "shown"), [(None, []), (1_800_000_000.0, [([], 1_800_000_000.0)])])
def test_the_end_of_the_clients_certificate_is_shown_if_it_has_one(
    end_s: float | None, shown: object
) -> None:
    now = Snapshot(
        "g", "STABLE", 1, True, [], ServiceCounters(), {}, {}, certificate_end_s=end_s, outage_s=7.0
    )
    samples = {name: rows for name, _, _, _, rows in metric_families(now)}
    assert samples["kohort_certificate_expiry_timestamp_seconds"] == shown
    assert samples["kohort_client_outage_seconds"] == [([], 7.0)]
