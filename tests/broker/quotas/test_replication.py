"""Throttles of replication: whose bytes count, and when there are too many."""

from __future__ import annotations

import pytest

from kohort.broker.quotas import QuotaWindows, ReplicationThrottle, are_replicas


def test_replicas_are_named_by_partition_and_broker_or_all_of_them() -> None:
    throttle = ReplicationThrottle(2, QuotaWindows(), lambda: 1)
    for replicas, partitions in (("", []), ("none", []), ("*", [0, 1, 2]), ("0:2, 1:1,2:2", [0, 2])):
        assert [n for n in range(3) if throttle.concerns(replicas, n)] == partitions


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("", True),
        ("*", True),
        ("0:1", True),
        ("0:1,12:3", True),
        ("0", False),
        ("0:1,", False),
        ("*,0:1", False),
    ],
)
def test_what_is_no_list_of_replicas_is_told(text: str, is_one: bool) -> None:
    assert are_replicas(text) is is_one


def test_a_rate_is_exceeded_until_the_windows_have_passed_and_may_be_changed_meanwhile() -> None:
    rate = 1_000
    throttle = ReplicationThrottle(1, QuotaWindows(11, 1.0), lambda: rate)
    assert not throttle.is_exceeded(0.0)
    throttle.record(5_000, 0.0)
    assert throttle.is_exceeded(0.5)
    assert throttle.is_exceeded(3.0)
    assert not throttle.is_exceeded(5.0)
    throttle.record(50_000, 5.0)
    assert throttle.is_exceeded(6.0)
    rate = 100_000
    assert not throttle.is_exceeded(6.0)
