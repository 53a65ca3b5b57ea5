"""A share partition: who is given which record, what is stored, and where the start offset is."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest

from kohort.protocol import ErrorCode, KafkaError
from kohort.share_partitions import (
    AcknowledgedRange,
    AcquiredRange,
    BatchOffsets,
    ShareLimits,
    SharePartition,
    StateBatch,
    StateWrite,
    StoredState,
)

LIMITS = ShareLimits(lock_ms=30_000)
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
AVAILABLE, DONE, ARCHIVED = StoredState.AVAILABLE, StoredState.ACKNOWLEDGED, StoredState.ARCHIVED


def log(*sizes: int, start: int = 0) -> list[BatchOffsets]:
    """Return record batches of these sizes, one after the other."""
    batches = []
    for size in sizes:
        batches.append(BatchOffsets(start, start + size - 1))
        start += size
    return batches


def give(
    partition: SharePartition, member: str, batches: Sequence[BatchOffsets], most: int = 500, **more: Any
) -> list[AcquiredRange]:
    """Have a member fetch from ``next_offset`` on; return what it acquired."""
    now_ms, limits = more.pop("now_ms", 0), more.pop("limits", LIMITS)
    read = [batch for batch in batches if batch.last >= partition.next_offset]
    taken = partition.acquire(member, read, limits, now_ms, most=most, **more)
    assert taken.write is None
    return list(taken.ranges)


def say(
    partition: SharePartition, member: str, first: int, last: int, *types: int, **more: Any
) -> StateWrite | None:
    """Have a member acknowledge one range."""
    return partition.acknowledge(
        member, [AcknowledgedRange(first, last, types)], more.get("limits", LIMITS), more.get("now_ms", 0)
    )


def store(partition: SharePartition, write: StateWrite | None) -> None:
    assert write is not None
    partition.complete(write)


@pytest.mark.parametrize(
    ("most", "more", "taken"),
    [
        pytest.param(500, {}, [(0, 29, 1)], id="record batches that come together are one range"),
        pytest.param(7, {}, [(0, 9, 1)], id="the record batch in which MaxRecords is reached comes whole"),
        pytest.param(7, {"strict": True}, [(0, 6, 1)], id="strict: a record batch is cut"),
        pytest.param(500, {"batch_size": 10}, [(0, 9, 1), (10, 19, 1), (20, 29, 1)], id="BatchSize 10"),
        pytest.param(500, {"batch_size": 7}, [(0, 9, 1), (10, 19, 1), (20, 29, 1)], id="BatchSize 7"),
        pytest.param(500, {"batch_size": 7, "strict": True}, [(0, 29, 1)], id="strict: no BatchSize"),
    ],
)
def test_new_records_are_acquired_by_whole_record_batches_unless_strict(
    most: int, more: dict[str, Any], taken: list[tuple[int, int, int]]
) -> None:
    partition = SharePartition(0)
    assert give(partition, "m", log(5, 5, 5, 5, 5, 5), most, **more) == taken
    assert partition.end_offset == taken[-1][1] + 1


def test_one_large_record_batch_is_not_cut_by_batch_size() -> None:
    assert give(SharePartition(0), "m", log(20), batch_size=5) == [(0, 19, 1)]


def test_two_members_get_different_records() -> None:
    partition = SharePartition(0)
    assert give(partition, "a", log(5, 5), 5) == [(0, 4, 1)]
    assert give(partition, "b", log(5, 5), 5) == [(5, 9, 1)]
    assert give(partition, "a", log(5, 5), 5) == []
    assert (partition.acquired_by("a"), partition.acquired_by("b")) == (5, 5)


def test_released_records_come_before_new_ones_with_a_higher_count() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(5, 5, 5), 10)
    store(partition, say(partition, "a", 2, 3, RELEASE))
    assert partition.next_offset == 2
    assert give(partition, "b", log(5, 5, 5)) == [(2, 3, 2), (10, 14, 1)]


def test_neighbours_that_were_released_apart_are_one_range() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(6))
    store(partition, say(partition, "a", 0, 1, RELEASE))
    store(partition, say(partition, "a", 2, 3, RELEASE))
    assert give(partition, "b", log(6)) == [(0, 3, 2)]


def test_what_was_acquired_together_comes_again_together_where_max_records_is_reached() -> None:
    one = SharePartition(0)
    give(one, "a", log(10, 10), 1)
    give(one, "a", log(10, 10))
    for offset in (2, 5, 7, 12):
        store(one, say(one, "a", offset, offset, RELEASE))
    assert give(one, "b", log(10, 10), 1) == [(2, 2, 2), (5, 5, 2), (7, 7, 2)]
    assert give(one, "b", log(10, 10), 1) == [(12, 12, 2)]


def test_strict_holds_for_redelivered_records() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(6))
    store(partition, say(partition, "a", 0, 5, RELEASE))
    assert give(partition, "b", log(6), 4, strict=True) == [(0, 3, 2)]
    assert give(partition, "b", log(6), 4, strict=True) == [(4, 5, 2)]


def test_the_lock_limit_bounds_the_distance_to_the_start_offset() -> None:
    partition, few = SharePartition(0), ShareLimits(record_locks=12)
    assert give(partition, "a", log(10, 10, 10), limits=few) == [(0, 19, 1)]  # begins below the bound
    assert not partition.can_acquire(few)
    store(partition, say(partition, "a", 10, 19, ACCEPT))
    assert not partition.can_acquire(few), "what is done out of order makes no room"
    store(partition, say(partition, "a", 3, 4, RELEASE))
    assert partition.can_acquire(few)
    assert give(partition, "b", log(10, 10, 10), limits=few) == [(3, 4, 2)]
    store(partition, say(partition, "a", 0, 2, ACCEPT))
    store(partition, say(partition, "b", 3, 4, ACCEPT))
    store(partition, say(partition, "a", 5, 9, ACCEPT))
    assert partition.start_offset == 20
    assert partition.can_acquire(few)


def test_the_start_offset_moves_past_what_is_done_without_a_gap_once_it_is_stored() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(10))
    write = say(partition, "a", 5, 9, ACCEPT)
    store(partition, write)
    assert (partition.start_offset, partition.done_count) == (0, 5)
    write = say(partition, "a", 0, 4, *[ACCEPT, REJECT, ACCEPT, GAP, ACCEPT])
    assert write is not None
    assert write.batches == [
        StateBatch(0, 0, DONE, 1),
        StateBatch(1, 1, ARCHIVED, 1),
        StateBatch(2, 2, DONE, 1),
        StateBatch(3, 3, ARCHIVED, 1),
        StateBatch(4, 4, DONE, 1),
    ]
    assert (write.start_offset, write.done_count) == (0, 10)
    assert partition.start_offset == 0
    partition.complete(write)
    assert (partition.start_offset, partition.end_offset, partition.done_count) == (10, 10, 0)


def test_neighbours_of_a_request_with_equal_state_and_count_are_stored_as_one() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(5, 5), 5)
    give(partition, "a", log(5, 5), 5)
    write = partition.acknowledge(
        "a", [AcknowledgedRange(0, 4, [ACCEPT]), AcknowledgedRange(5, 9, [ACCEPT])], LIMITS, 0
    )
    assert write is not None
    assert write.batches == [StateBatch(0, 9, DONE, 1)]


def test_a_failed_write_goes_back_and_keeps_the_lock() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(10))
    write = say(partition, "a", 0, 4, ACCEPT)
    assert write is not None
    partition.undo(write)
    assert (partition.start_offset, partition.done_count, partition.acquired_by("a")) == (0, 0, 10)
    assert partition.expire(LIMITS, 29_999) is None
    late = partition.expire(LIMITS, 30_000)
    assert late is not None
    assert late.batches == [StateBatch(0, 9, AVAILABLE, 1)]


def test_a_lock_that_ends_while_a_write_is_on_the_way_has_ended_when_the_write_fails() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(10))
    write = say(partition, "a", 0, 9, ACCEPT)
    assert write is not None
    assert partition.expire(LIMITS, 30_000) is None
    partition.undo(write)
    late = partition.expire(LIMITS, 30_001)
    assert late is not None
    assert late.batches == [StateBatch(0, 9, AVAILABLE, 1)]


def test_what_is_being_written_is_neither_acquired_nor_acknowledged() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(4))
    write = say(partition, "a", 0, 1, RELEASE)
    assert give(partition, "b", log(4)) == []
    with pytest.raises(KafkaError, match="The record state is invalid"):
        say(partition, "a", 0, 3, ACCEPT)
    store(partition, write)
    assert give(partition, "b", log(4)) == [(0, 1, 2)]


def test_a_record_is_archived_after_its_last_delivery() -> None:
    partition, twice = SharePartition(0), ShareLimits(delivery_count=2)
    give(partition, "a", log(2), limits=twice)
    store(partition, say(partition, "a", 0, 1, RELEASE, limits=twice))
    assert give(partition, "a", log(2), limits=twice) == [(0, 1, 2)]
    write = say(partition, "a", 0, 1, RELEASE, limits=twice)
    assert write is not None
    assert write.batches == [StateBatch(0, 1, ARCHIVED, 2)]
    partition.complete(write)
    assert partition.start_offset == 2


def test_a_batch_that_keeps_failing_is_given_in_parts_and_in_the_end_record_by_record() -> None:
    partition, sizes = SharePartition(0), []
    while partition.start_offset < 16:
        (taken,) = give(partition, "a", log(16))
        sizes.append((taken[1] - taken[0] + 1, taken[2]))
        store(partition, say(partition, "a", taken[0], taken[1], RELEASE))
    first_half = [(8, 4), *[(1, 5)] * 8]
    assert sizes == [(16, 1), (16, 2), (16, 3), *first_half, *first_half]


def test_a_last_delivery_is_alone_in_its_answer() -> None:
    partition = SharePartition(0)
    for _ in range(4):
        give(partition, "a", log(1))
        store(partition, say(partition, "a", 0, 0, RELEASE))
    assert give(partition, "a", log(1, 5)) == [(0, 0, 5)]
    assert give(partition, "a", log(1, 5)) == [(1, 5, 1)]


@pytest.mark.parametrize(
    ("member", "first", "last", "types", "code", "text"),
    [
        pytest.param("a", 4, 5, [ACCEPT], "INVALID_REQUEST", "The last offset", id="last past the end"),
        pytest.param("a", 9, 9, [ACCEPT], "INVALID_REQUEST", "The first offset", id="first past the end"),
        pytest.param("b", 0, 4, [ACCEPT], "INVALID_RECORD_STATE", "owner of batch record", id="another's"),
        pytest.param("a", 6, 6, [RENEW], "INVALID_REQUEST", "The first offset", id="renewal past the end"),
    ],
)
def test_an_acknowledgement_of_what_a_member_does_not_have_is_refused_whole(
    member: str, first: int, last: int, types: list[int], code: str, text: str
) -> None:
    partition = SharePartition(0)
    give(partition, "a", log(5))
    with pytest.raises(KafkaError, match=text) as refused:
        partition.acknowledge(
            member,
            [AcknowledgedRange(0, 0, [ACCEPT]), AcknowledgedRange(first, last, types)][first == 0 :],
            LIMITS,
            0,
        )
    assert refused.value.code is ErrorCode[code]
    assert partition.acquired_by("a") == 5


def in_steps(partition: SharePartition, count: int) -> Generator[None, None, StateWrite | None]:
    """Begin to accept every other record of so many, and release the others; the first step is done."""
    said = [AcknowledgedRange(0, count - 1, [ACCEPT, RELEASE] * (count // 2))]
    steps = partition.acknowledge_in_steps("a", said, LIMITS, 0)
    next(steps)
    return steps


def test_an_acknowledgement_of_very_many_ranges_is_carried_out_in_steps() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(4_000), 4_000)
    steps = in_steps(partition, 4_000)
    assert give(partition, "b", log(4_000)) == [], "what is done so far is not stored"
    for _ in range(3):
        next(steps)
    with pytest.raises(StopIteration) as done:
        next(steps)
    write = done.value.value
    assert [tuple(each)[:3] for each in write.batches[:2]] == [(0, 0, DONE), (1, 1, AVAILABLE)]
    partition.complete(write)
    assert (partition.start_offset, partition.done_count) == (1, 1_999)


@pytest.mark.parametrize("lost", ["the lock of the rest ends", "its session ends", "the steps are closed"])
def test_an_acknowledgement_in_steps_is_undone_when_it_cannot_be_finished(lost: str) -> None:
    partition = SharePartition(0)
    give(partition, "a", log(4_000), 4_000)
    steps = in_steps(partition, 4_000)
    if lost == "the steps are closed":
        steps.close()
    else:
        write = (
            partition.release_member("a", LIMITS)
            if lost == "its session ends"
            else partition.expire(LIMITS, 30_000)
        )
        store(partition, write)
        with pytest.raises(KafkaError, match="The offset is not acquired"):
            next(steps)
    # what was said first is its own as before, until its lock ends
    assert partition.acquired_by("a") in ([4_000] if lost == "the steps are closed" else range(1, 1_000))
    assert (partition.start_offset, partition.done_count) == (0, 0)
    partition.expire(LIMITS, 30_000)
    assert partition.acquired_by("a") == 0


@pytest.mark.parametrize("is_stored", [True, False])
def test_what_a_write_on_the_way_has_changed_stays_together_when_steps_come_upon_it(is_stored: bool) -> None:
    partition = SharePartition(0)
    give(partition, "a", log(4_000), 4_000)
    steps = in_steps(partition, 4_000)
    write = partition.acknowledge("a", [AcknowledgedRange(1_500, 3_999, [ACCEPT])], LIMITS, 0)
    assert write is not None
    with pytest.raises(KafkaError, match="The acknowledgement of delivery could not be completed"):
        for _ in steps:
            pass
    if is_stored:
        partition.complete(write)
        assert (partition.acquired_by("a"), partition.done_count) == (1_500, 2_500)
    else:
        partition.undo(write)
        assert (partition.acquired_by("a"), partition.done_count) == (4_000, 0)


def test_an_offset_that_is_acknowledged_twice_in_a_request_is_refused() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(10))
    with pytest.raises(KafkaError, match="The offset is not acquired") as refused:
        partition.acknowledge(
            "a", [AcknowledgedRange(0, 5, [ACCEPT]), AcknowledgedRange(5, 9, [ACCEPT])], LIMITS, 0
        )
    assert refused.value.code is ErrorCode.INVALID_RECORD_STATE
    assert partition.acquired_by("a") == 10


def test_what_is_in_nobodys_hands_is_refused_and_what_lies_below_the_start_is_passed_over() -> None:
    partition = SharePartition(0)
    with pytest.raises(KafkaError, match="not found in the cache"):
        say(partition, "a", 0, 0, ACCEPT)
    give(partition, "a", log(5, 5))
    store(partition, say(partition, "a", 0, 4, ACCEPT))
    assert say(partition, "a", 0, 4, ACCEPT) is None
    write = say(partition, "a", 3, 6, ACCEPT)
    assert write is not None
    assert write.batches == [StateBatch(5, 6, DONE, 1)]
    partition.complete(write)
    store(partition, say(partition, "a", 7, 9, RELEASE))
    with pytest.raises(KafkaError, match="The offset is not acquired"):
        say(partition, "a", 7, 9, ACCEPT)


def test_a_renewed_lock_begins_anew_and_nothing_is_stored() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(5), now_ms=0)
    assert say(partition, "a", 0, 1, RENEW, now_ms=20_000) is None
    late = partition.expire(LIMITS, 30_000)
    assert late is not None
    assert late.batches == [StateBatch(2, 4, AVAILABLE, 1)]
    assert partition.expire(LIMITS, 49_999) is None
    late = partition.expire(LIMITS, 50_000)
    assert late is not None
    assert late.batches == [StateBatch(0, 1, AVAILABLE, 1)]


def test_locks_that_are_renewed_all_the_time_take_no_more_room() -> None:
    one = SharePartition(0)
    give(one, "m", log(100))
    every = [AcknowledgedRange(offset, offset, [RENEW]) for offset in range(100)]
    for now_ms in range(50):
        assert one.acknowledge("m", every, LIMITS, now_ms) is None
    assert len(one._locks) < 400
    assert one.expire(LIMITS, 30_048) is None
    expired = one.expire(LIMITS, 30_049)
    assert expired is not None
    assert [tuple(each[:2]) for each in expired.batches] == [(0, 99)]


def test_a_renewal_that_the_group_does_not_allow_is_refused() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(5))
    with pytest.raises(KafkaError, match="Renewing acquisition locks is not enabled"):
        say(partition, "a", 0, 1, RENEW, limits=ShareLimits(may_renew=False))


def test_a_shorter_lock_holds_for_records_that_are_acquired_from_then_on() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(5, 5), 5)
    give(partition, "b", log(5, 5), 5, limits=ShareLimits(lock_ms=15_000))
    assert partition.next_deadline_ms == 15_000
    late = partition.expire(LIMITS, 15_000)
    assert late is not None
    assert late.batches == [StateBatch(5, 9, AVAILABLE, 1)]


def test_a_closed_session_gives_back_what_its_member_has() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(5, 5), 5)
    give(partition, "b", log(5, 5), 5)
    store(partition, say(partition, "a", 1, 1, ACCEPT))
    write = partition.release_member("a", LIMITS)
    assert write is not None
    assert write.batches == [StateBatch(0, 0, AVAILABLE, 1), StateBatch(2, 4, AVAILABLE, 1)]
    partition.complete(write)
    assert partition.release_member("a", LIMITS) is None
    assert give(partition, "b", log(5, 5)) == [(0, 0, 2), (2, 4, 2)]


def test_an_answer_that_did_not_reach_its_member_is_no_delivery() -> None:
    partition = SharePartition(0)
    taken = give(partition, "a", log(10), 6)
    partition.take_back("a", taken)
    assert taken == [(0, 9, 1)]
    assert (partition.acquired_by("a"), partition.next_offset) == (0, 0)
    assert partition.expire(LIMITS, 99_999) is None
    assert give(partition, "b", log(10)) == [(0, 9, 1)]
    store(partition, say(partition, "b", 2, 3, RELEASE))
    assert give(partition, "a", log(10)) == [(2, 3, 2)]
    partition.take_back("a", [AcquiredRange(2, 3, 2), AcquiredRange(4, 9, 1)])
    assert partition.acquired_by("b") == 8, "it takes nothing from others"
    assert give(partition, "b", log(10)) == [(2, 3, 2)]


def test_what_need_not_be_read_is_passed() -> None:
    partition, few = SharePartition(0), ShareLimits(record_locks=10)
    give(partition, "a", log(10))
    store(partition, say(partition, "a", 2, 3, RELEASE))
    store(partition, say(partition, "a", 8, 8, RELEASE))
    assert [partition.next_wanted(offset, LIMITS) for offset in (0, 3, 4, 9, 50)] == [2, 3, 8, 10, 50]
    assert [partition.next_wanted(offset, few) for offset in (0, 3, 4, 9)] == [2, 3, 8, None]
    assert [partition.count_wanted(*pair) for pair in ((0, 9), (3, 7), (8, 12), (4, 7))] == [3, 1, 4, 0]


def test_records_that_the_log_has_dropped_are_passed() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(5, 5))
    store(partition, say(partition, "a", 1, 6, ACCEPT))
    assert partition.follow_log_start(5)
    assert (partition.start_offset, partition.end_offset, partition.done_count) == (7, 10, 0)
    assert say(partition, "a", 0, 4, ACCEPT) is None
    assert partition.follow_log_start(20)
    assert not partition.follow_log_start(20)
    assert (partition.start_offset, partition.next_offset) == (20, 20)


def test_a_write_that_ends_after_its_records_were_dropped_changes_nothing() -> None:
    for end in (SharePartition.complete, SharePartition.undo):
        partition = SharePartition(0)
        give(partition, "a", log(5, 5))
        write = say(partition, "a", 0, 9, ACCEPT)
        assert write is not None
        partition.follow_log_start(12)
        end(partition, write)
        assert (partition.start_offset, partition.end_offset, partition.done_count) == (12, 12, 0)


def test_aborted_records_are_archived_and_given_to_nobody() -> None:
    partition = SharePartition(0)
    taken = partition.acquire("a", log(10, 1, 5), LIMITS, 0, most=500, aborted=[(2, 4), (8, 9)])
    assert taken.ranges == [(0, 1, 1), (5, 7, 1), (10, 15, 1)]
    assert taken.write is not None
    assert taken.write.batches == [StateBatch(2, 4, ARCHIVED, 0), StateBatch(8, 9, ARCHIVED, 0)]
    partition.complete(taken.write)
    store(partition, say(partition, "a", 0, 1, ACCEPT))
    assert partition.start_offset == 5


def test_what_was_compacted_away_after_its_release_is_archived() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(5, 5, 5))
    store(partition, say(partition, "a", 0, 14, RELEASE))
    taken = partition.acquire("b", [BatchOffsets(5, 6), BatchOffsets(9, 14)], LIMITS, 0, most=500)
    assert taken.ranges == [(5, 6, 2), (9, 14, 2)]
    assert taken.write is not None
    assert taken.write.batches == [StateBatch(0, 4, ARCHIVED, 1), StateBatch(7, 8, ARCHIVED, 1)]


def test_a_stored_state_is_loaded_and_holes_were_never_delivered() -> None:
    partition = SharePartition(
        3,
        [StateBatch(0, 4, DONE, 1), StateBatch(7, 8, AVAILABLE, 2), StateBatch(9, 9, ARCHIVED, 5)],
    )
    assert (partition.start_offset, partition.end_offset, partition.done_count) == (5, 10, 1)
    assert give(partition, "a", log(12)) == [(5, 6, 1), (7, 8, 3), (10, 11, 1)]


def test_what_happened_to_records_is_counted_with_their_last_member() -> None:
    limits = ShareLimits(lock_ms=30_000, delivery_count=2)
    partition = SharePartition(0)
    give(partition, "a", log(10), limits=limits)
    gaps = say(partition, "a", 0, 0, GAP, limits=limits)
    rejected = say(partition, "a", 1, 3, REJECT, limits=limits)
    assert partition.tallies.rejected.records == 0, "not before it is stored"
    store(partition, gaps)
    store(partition, rejected)
    assert partition.tallies.rejected.take() == (3, [(1, 3, "a", 1)])
    store(partition, partition.expire(limits, 30_000))
    assert partition.tallies.lost_locks.take() == (6, [(4, 9, "a", 1)])
    assert partition.tallies.last_deliveries.records == 0
    give(partition, "b", log(10), limits=limits, now_ms=30_000)
    assert partition.tallies.last_deliveries.take() == (6, [(4, 9, "b", 2)])
    store(partition, say(partition, "b", 5, 5, RELEASE, limits=limits))
    store(partition, say(partition, "b", 6, 6, RELEASE, limits=limits))
    assert partition.tallies.exhausted.take() == (2, [(5, 6, "b", 2)])
    store(partition, partition.release_member("b", limits))
    assert partition.tallies.exhausted.take() == (4, [(4, 4, "b", 2), (7, 9, "b", 2)])
    assert partition.tallies.rejected.records == 3


def test_an_archival_that_is_not_stored_is_not_counted() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(2))
    write = say(partition, "a", 0, 1, REJECT)
    assert write is not None
    partition.undo(write)
    assert partition.tallies.rejected.records == 0
    store(partition, say(partition, "a", 0, 1, ACCEPT))
    assert partition.tallies.rejected.records == 0


def test_a_lock_that_was_given_back_by_a_failed_write_is_lost_once() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(5))
    write = say(partition, "a", 0, 4, ACCEPT)
    assert write is not None
    partition.undo(write)
    store(partition, partition.expire(LIMITS, 30_000))
    assert partition.tallies.lost_locks.take() == (5, [(0, 4, "a", 1)])


def test_what_is_in_flight_is_summed_up() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(5))
    give(partition, "b", log(5, 3))
    store(partition, say(partition, "a", 1, 2, RELEASE))
    store(partition, say(partition, "b", 6, 6, ACCEPT))
    found = partition.summarize()
    assert (found.held, found.available, found.done) == ({"a": 3, "b": 2}, 2, 1)
    assert (found.deliveries, found.first) == ({1: 7}, ("a", 1))
    assert SharePartition(7).summarize() == ({}, 0, 0, {}, ("", 0))


def test_records_that_members_have_for_the_last_time_are_counted() -> None:
    partition = SharePartition(0)
    give(partition, "a", log(5))
    store(partition, say(partition, "a", 1, 2, RELEASE))
    give(partition, "b", log(5), most=1)
    assert [partition.count_on_last_delivery(ShareLimits(delivery_count=n)) for n in (1, 2, 3)] == [5, 2, 0]
