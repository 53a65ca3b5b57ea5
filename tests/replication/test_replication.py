"""A leader's view of its replicas, step by step."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.protocol import ErrorCode, KafkaError
from kohort.replication import IsrChangeRequest, Replication

LAG_MS = 30_000
BROKERS = {1: 100, 2: 200, 3: 300}


def led(**changes: Any) -> Replication:
    """Broker 1 leads 10 records; 2 and 3 are in sync."""
    given: dict[str, Any] = {
        "leader_epoch": 5,
        "partition_epoch": 8,
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
        "log_end_offset": 10,
        "high_watermark": 4,
        "now_ms": 0,
        "lag_time_max_ms": LAG_MS,
        "min_isr": 2,
        "eligible": BROKERS,
        **changes,
    }
    return Replication(1, **given)


def fetch(partition: Replication, node_id: int, offset: int, now_ms: int = 0) -> bool:
    return partition.on_fetch(node_id, offset, now_ms, broker_epoch=BROKERS[node_id])


def isr_is(partition: Replication, *isr: int, now_ms: int = 0, **changes: Any) -> bool:
    given: dict[str, Any] = {
        "partition_epoch": partition.partition_epoch + 1,
        "replicas": (1, 2, 3),
        "isr": isr,
        "recovering": False,
        **changes,
    }
    return partition.on_change(**given, now_ms=now_ms)


def test_the_high_watermark_is_what_all_in_sync_replicas_have() -> None:
    partition = led()
    assert partition.high_watermark == 4
    assert not fetch(partition, 2, 10)
    assert fetch(partition, 3, 7)
    assert partition.high_watermark == 7
    assert fetch(partition, 3, 10)
    assert not partition.on_append(12, 0)
    assert (partition.high_watermark, partition.log_end_offset) == (10, 12)


def test_what_all_in_sync_replicas_have_does_not_depend_on_their_number() -> None:
    partition = led()
    assert partition.in_sync_end < 0, "nobody has fetched"
    fetch(partition, 2, 10)
    fetch(partition, 3, 7)
    assert partition.in_sync_end == 7
    isr_is(partition, 1, 2)
    assert partition.in_sync_end == 10
    partition = led(isr=(1,))
    assert (partition.in_sync_end, partition.high_watermark) == (10, 4)


def test_records_are_deleted_when_live_in_sync_followers_begin_behind_them() -> None:
    partition = led()
    assert not partition.have_deleted(5)
    for node_id in (2, 3):
        partition.on_fetch(node_id, 10, 0, broker_epoch=BROKERS[node_id], start_offset=5)
    assert partition.have_deleted(5)
    assert not partition.have_deleted(6)
    partition.on_fetch(2, 10, 0, broker_epoch=BROKERS[2], start_offset=6)
    partition.brokers_changed({1: 100, 2: 200}, 0)
    assert partition.have_deleted(6), "3 is gone"
    partition.brokers_changed(BROKERS, 0)
    assert not partition.have_deleted(6)
    isr_is(partition, 1, 2)
    assert partition.have_deleted(6), "3 is not in sync"


def test_a_replica_alone_commits_what_it_appends() -> None:
    partition = led(replicas=(1,), isr=(1,), min_isr=3)
    assert partition.high_watermark == 10
    assert partition.on_append(11, 0)
    partition.check_acks_all()
    assert partition.is_acknowledged(11)
    assert partition.take_isr_change() is None


def test_the_high_watermark_does_not_go_back_when_a_follower_does() -> None:
    partition = led()
    fetch(partition, 2, 10)
    fetch(partition, 3, 10)
    assert not fetch(partition, 2, 3)
    assert partition.high_watermark == 10


def test_a_follower_that_lags_too_long_is_to_leave_and_counts_until_it_has() -> None:
    partition = led()
    fetch(partition, 2, 10)
    fetch(partition, 3, 6)
    partition.advance(LAG_MS)
    assert partition.take_isr_change() is None
    partition.advance(LAG_MS + 1)
    assert partition.take_isr_change() == IsrChangeRequest(5, 8, ((1, -1), (2, 200)))
    assert partition.take_isr_change() is None, "it is asked for once"
    assert partition.high_watermark == 6
    assert isr_is(partition, 1, 2, now_ms=LAG_MS + 1)
    assert partition.high_watermark == 10


def test_who_has_what_there_was_at_its_last_fetch_keeps_up() -> None:
    partition = led()
    fetch(partition, 3, 10)
    for second in range(1, 100):
        # never at the end, always where the end was a second ago
        partition.on_append(10 + second, second * 1_000)
        fetch(partition, 2, 9 + second, second * 1_000)
        fetch(partition, 3, 9 + second, second * 1_000)
    partition.advance(99_000)
    assert partition.take_isr_change() is None


def test_a_follower_joins_when_it_has_what_is_committed_and_the_start_of_the_epoch() -> None:
    partition = led(isr=(1, 2))
    fetch(partition, 2, 10)
    partition.on_append(12, 0)
    fetch(partition, 2, 12)
    assert partition.high_watermark == 12
    fetch(partition, 3, 11)
    assert partition.take_isr_change() is None
    fetch(partition, 3, 12)
    assert partition.maximal_isr == {1, 2, 3}
    assert partition.take_isr_change() == IsrChangeRequest(5, 8, ((1, -1), (2, 200), (3, 300)))
    # it counts already: the controller may have taken it in
    partition.on_append(14, 0)
    fetch(partition, 2, 14)
    assert partition.high_watermark == 12


def test_a_follower_below_the_start_of_the_epoch_does_not_join() -> None:
    partition = led(isr=(1, 2), high_watermark=4)
    fetch(partition, 3, 9)
    assert partition.take_isr_change() is None, "it may lack what the last leader had committed"
    fetch(partition, 3, 10)
    assert partition.take_isr_change() is not None


@pytest.mark.parametrize("brokers", [{1: 100, 2: 200}, {1: 100, 2: 200, 3: 299}])
def test_a_follower_whose_broker_is_away_or_known_by_another_epoch_does_not_join(
    brokers: dict[int, int],
) -> None:
    partition = led(isr=(1, 2), eligible=brokers)
    fetch(partition, 3, 10)
    assert partition.take_isr_change() is None
    partition.brokers_changed(BROKERS, 0)
    fetch(partition, 3, 10)
    assert partition.take_isr_change() is not None


def test_a_fetch_from_before_a_broker_registered_anew_is_refused() -> None:
    partition = led(isr=(1, 2, 3), eligible={**BROKERS, 3: 301})
    fetch(partition, 2, 10)
    with pytest.raises(KafkaError) as refused:
        fetch(partition, 3, 10)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.high_watermark == 4, "what it had then may be gone"


def test_followers_that_have_an_offset_are_ordered_by_how_much_they_have() -> None:
    partition = led()
    assert partition.having(0) == []
    partition.on_fetch(2, 8, 0, broker_epoch=200, start_offset=3)
    partition.on_fetch(3, 10, 0, broker_epoch=300, start_offset=5)
    assert [partition.having(offset) for offset in (2, 3, 5, 8, 9, 11)] == [[], [2], [3, 2], [3, 2], [3], []]


def test_one_that_is_about_to_join_is_waited_for() -> None:
    partition = led(isr=(1, 2), min_isr=1)
    fetch(partition, 3, 6)
    partition.on_append(20, 1)
    fetch(partition, 3, 10, 2)
    fetch(partition, 2, 20, 2)
    assert partition.high_watermark == 10
    assert not partition.on_append(21, LAG_MS * 2)
    fetch(partition, 2, 21, LAG_MS * 2)
    assert partition.high_watermark == 10, "it is asked in by now"


def test_who_is_taken_out_of_the_in_sync_replicas_is_waited_for_when_it_has_fetched_again() -> None:
    partition = led()
    for follower in (2, 3):
        fetch(partition, follower, 10)
    partition.on_append(12, 1)
    fetch(partition, 2, 12, 1)
    assert partition.high_watermark == 10
    assert isr_is(partition, 1, 2, now_ms=2)
    assert partition.high_watermark == 12, "its process was killed"
    fetch(partition, 3, 10, 3)
    partition.on_append(13, 4)
    assert not fetch(partition, 2, 13, 4)
    assert fetch(partition, 3, 13, 5), "it was not"
    assert partition.high_watermark == 13


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_a_change_that_is_refused_for_sure_is_over(code: ErrorCode) -> None:
    partition = led(isr=(1, 2))
    fetch(partition, 3, 10)
    request = partition.take_isr_change()
    assert request is not None
    partition.on_refused(request, code, 0)
    assert partition.maximal_isr == {1, 2}
    fetch(partition, 3, 10)
    assert partition.take_isr_change() == request


def test_a_refusal_ends_no_change_of_which_an_earlier_request_may_arrive_yet() -> None:
    """The replica can be used again by then: it would be in sync without what was acknowledged meanwhile."""
    partition = led(isr=(1, 2))
    fetch(partition, 2, 10)
    fetch(partition, 3, 10)
    request = partition.take_isr_change()
    assert request is not None
    partition.on_refused(request, ErrorCode.REQUEST_TIMED_OUT, 0)
    assert partition.take_isr_change() == request
    partition.on_refused(request, ErrorCode.INELIGIBLE_REPLICA, 0)
    assert partition.maximal_isr == {1, 2, 3}
    partition.on_append(11, 0)
    fetch(partition, 2, 11, LAG_MS + 1)
    assert partition.high_watermark == 10, "3 may be in sync"
    # under another epoch of its broker the earlier request is refused
    partition.brokers_changed({**BROKERS, 3: 301}, 0)
    partition.on_refused(request, ErrorCode.INELIGIBLE_REPLICA, LAG_MS + 1)
    assert partition.maximal_isr == {1, 2}
    assert partition.high_watermark == 11


def test_a_change_whose_answer_is_lost_stays_pending_and_is_requested_again() -> None:
    partition = led(isr=(1, 2))
    fetch(partition, 3, 10)
    request = partition.take_isr_change()
    assert request is not None
    partition.on_refused(request, ErrorCode.REQUEST_TIMED_OUT, 0)
    assert partition.maximal_isr == {1, 2, 3}
    assert partition.take_isr_change() == request
    isr_is(partition, 1, 2, 3)
    assert partition.take_isr_change() is None
    assert partition.isr == {1, 2, 3}
    partition.on_refused(request, ErrorCode.INELIGIBLE_REPLICA, 0)
    assert partition.isr == {1, 2, 3}, "an answer about an older state changes nothing"


def test_a_state_that_is_older_than_what_is_known_counts_for_nothing() -> None:
    partition = led()
    isr_is(partition, 1, 2)
    assert not isr_is(partition, 1, partition_epoch=8)
    assert partition.isr == {1, 2}


def test_below_min_isr_nothing_is_taken_and_nothing_is_committed() -> None:
    partition = led()
    partition.check_acks_all()
    isr_is(partition, 1)
    with pytest.raises(KafkaError, match=r"1 replicas are in sync, min\.insync\.replicas is 2") as refused:
        partition.check_acks_all()
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert not partition.on_append(11, 0)
    assert (partition.high_watermark, partition.is_acknowledged(11)) == (4, False)
    assert partition.reconfigure(1, LAG_MS, 0)
    assert partition.high_watermark == 11


def test_records_that_too_few_replicas_have_committed_are_told() -> None:
    partition = led()
    fetch(partition, 2, 10)
    fetch(partition, 3, 10)
    assert partition.is_acknowledged(10)
    isr_is(partition, 1)
    with pytest.raises(KafkaError) as refused:
        partition.is_acknowledged(10)
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_a_leader_that_recovers_says_when_it_has() -> None:
    partition = led(isr=(1,), recovering=True)
    assert partition.take_isr_change() == IsrChangeRequest(5, 8, ((1, -1),))
    assert partition.take_isr_change() is None
    isr_is(partition, 1)
    assert partition.take_isr_change() is None


def test_a_broker_without_a_replica_is_refused_and_new_replicas_are_not() -> None:
    partition = led(replicas=(1, 2), isr=(1, 2))
    with pytest.raises(KafkaError, match="broker 3 has no replica"):
        fetch(partition, 3, 10)
    isr_is(partition, 1, 2)
    fetch(partition, 3, 10)
    assert partition.take_isr_change() is not None


def test_followers_that_may_be_elected_and_have_not_fetched_for_a_while_are_silent() -> None:
    partition = led(isr=(1, 2))
    assert partition.silent(1_000) == {2}
    fetch(partition, 2, 10, now_ms=1_000)
    assert partition.silent(1_000) == set()
    assert partition.silent(1_001) == {2}
    # about to be in sync: the controller may count it already
    fetch(partition, 3, 10, now_ms=900)
    assert partition.silent(1_000) == {3}
