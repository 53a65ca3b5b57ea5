"""What is delivered, done and committable."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.consumer import CommittedOffset, Record, StaleRecordError
from kohort.consumer.done.tracker import Tracker
from kohort.protocol import TopicPartition

ORDERS = TopicPartition("orders", 0)


def _record(offset: int, epoch: int, partition: TopicPartition = ORDERS) -> Record:
    return Record(*partition, offset, 0, None, None, (), 7, epoch)


def _offsets(tracker: Tracker) -> dict[TopicPartition, int]:
    return {partition: value.offset for partition, value in tracker.committable().items()}


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5)), max_size=12), st.randoms(use_true_random=False)
)
def test_records_in_any_order_are_counted_as_by_a_plain_list(
    runs: list[tuple[int, int]], order: random.Random
) -> None:
    """With holes, delivered in runs or one by one, and done in runs or one by one."""
    tracker = Tracker()
    stay = tracker.begin_session(ORDERS, 0)
    left: list[int] = []
    for hole, length in runs:
        first = stay.position + hole
        offsets = list(range(first, first + length))
        if order.random() < 0.5:
            stay.delivered_all(offsets)
        else:
            for offset in offsets:
                stay.delivered_all([offset])
        left += offsets
        while left and order.random() < 0.6:
            some = 1 if order.random() < 0.5 else order.randint(1, len(left))
            at = 0 if order.random() < 0.5 else order.randint(0, len(left) - some)
            chosen, left = left[at : at + some], left[:at] + left[at + some :]
            if some == 1:
                tracker.done(_record(chosen[0], stay.session_id))
            else:
                tracker.done_all([_record(offset, stay.session_id) for offset in chosen])
            assert stay.undone == len(left)
            assert stay.committable == (left[0] if left else stay.position)
            assert stay.first_undone == (left[0] if left else None)


def test_only_what_changed_since_the_last_commit_is_worth_committing() -> None:
    tracker = Tracker()
    stay = tracker.begin_session(ORDERS, 5, committed=CommittedOffset(5))
    assert _offsets(tracker) == {}
    stay.delivered_all([5])
    assert _offsets(tracker) == {}
    assert tracker.done(_record(5, stay.session_id)) is stay
    assert _offsets(tracker) == {ORDERS: 6}
    tracker.note_committed({ORDERS: CommittedOffset(6)})
    assert _offsets(tracker) == {}


def test_a_start_that_was_not_committed_is_worth_committing_at_once() -> None:
    tracker = Tracker()
    tracker.begin_session(ORDERS, 5)
    assert _offsets(tracker) == {ORDERS: 5}


def test_control_records_behind_the_last_one_are_passed_by_the_commit() -> None:
    tracker = Tracker()
    stay = tracker.begin_session(ORDERS, 0)
    stay.delivered_all([0])
    stay.pass_by(2)
    assert _offsets(tracker) == {ORDERS: 0}
    tracker.done(_record(0, stay.session_id))
    assert _offsets(tracker) == {ORDERS: 2}


def test_a_record_of_an_earlier_stay_is_refused_and_the_text_names_it() -> None:
    tracker = Tracker()
    first = tracker.begin_session(ORDERS, 0)
    first.delivered_all([0])
    tracker.end_session(ORDERS)
    with pytest.raises(StaleRecordError) as caught:
        tracker.done(_record(0, first.session_id))
    assert str(caught.value) == (
        "orders-0 offset 0 was delivered in generation 7, and its partition has been given up (or sought "
        "elsewhere) since, or another consumer delivered it: the partition's current owner delivers the "
        "record again"
    )
    second = tracker.begin_session(ORDERS, 0)
    second.delivered_all([0])
    with pytest.raises(StaleRecordError):
        tracker.done(_record(0, first.session_id))
    assert _offsets(tracker) == {ORDERS: 0}


def test_undone_is_counted_per_partition() -> None:
    tracker = Tracker()
    other = TopicPartition("orders", 1)
    tracker.begin_session(ORDERS, 0).delivered_all([0, 1, 2])
    stay = tracker.begin_session(other, 0)
    stay.delivered_all([4, 9])
    stay.done(4)
    assert tracker.undone() == 4
    assert tracker.undone([other]) == 1
    assert tracker.undone_by_partition([ORDERS, other]) == {ORDERS: 3, other: 1}
    assert tracker.first_undone([ORDERS, other]) == {ORDERS: 0, other: 9}
    assert tracker.undone_by_partition([other]) == {other: 1}
    assert tracker.first_undone([other]) == {other: 9}
    assert repr(tracker) == "Tracker(2 partitions, 4 records undone)"


def test_what_is_done_beyond_the_gap_goes_into_the_commit_and_is_not_delivered_again() -> None:
    tracker = Tracker()
    stay = tracker.begin_session(ORDERS, 0)
    stay.delivered_all([0, 1, 2, 3, 5, 6])
    for offset in (1, 3, 5):
        tracker.done(_record(offset, stay.session_id))
    commit = tracker.committable()[ORDERS]
    assert commit.offset == 0
    restarted = Tracker()
    again = restarted.begin_session(ORDERS, 0, committed=commit)
    # 4 was never there: what lies between two done records counts with them
    assert list(again.fresh_indexes(range(8))) == [0, 2, 6, 7]
    assert _offsets(restarted) == {}, "nothing has changed, so nothing is worth committing"


def test_a_record_done_beyond_the_gap_makes_a_commit_worth_while() -> None:
    tracker = Tracker()
    stay = tracker.begin_session(ORDERS, 0, committed=CommittedOffset(0))
    stay.delivered_all([0, 1])
    assert _offsets(tracker) == {}
    tracker.done(_record(1, stay.session_id))
    assert _offsets(tracker) == {ORDERS: 0}
    tracker.note_committed(tracker.committable())
    assert _offsets(tracker) == {}
    tracker.with_metadata = False
    assert tracker.committable() == {ORDERS: CommittedOffset(0)}


def test_what_is_delivered_as_one_is_done_as_one_and_counts_as_its_records() -> None:
    tracker = Tracker()
    stay = tracker.begin_session(ORDERS, 0)
    stay.delivered_all([*range(50), *range(60, 100)])
    stay.delivered_all(range(100, 150))
    stay.delivered_all([150])
    assert (stay.undone, stay.committable) == (141, 0)
    tracker.done_batch(stay.session_id, 100, 150)
    assert (stay.undone, stay.committable) == (91, 0)
    again = Tracker().begin_session(ORDERS, 0, committed=stay.to_commit())
    assert list(again.fresh_indexes([99, 100, 149, 150])) == [0, 3]
    stay.done_before(99)
    assert (stay.undone, stay.committable) == (2, 99)
    tracker.done_batch(stay.session_id, 0, 100)
    assert (stay.undone, stay.committable) == (1, 150)
    tracker.end_session(ORDERS)
    with pytest.raises(StaleRecordError) as caught:
        tracker.done_batch(stay.session_id, 0, 100)
    assert str(caught.value) == (
        "the batch from offset 0 is of a partition that has been given up (or sought elsewhere) since, or of "
        "another consumer: its current owner delivers the records again"
    )


def test_a_record_of_another_consumer_is_refused() -> None:
    payments, orders = Tracker(), Tracker()
    foreign = payments.begin_session(TopicPartition("payments", 0), 0)
    foreign.delivered_all([0])
    ours = orders.begin_session(ORDERS, 0)
    ours.delivered_all([0])
    assert foreign.session_id != ours.session_id
    record = _record(0, foreign.session_id, TopicPartition("payments", 0))
    with pytest.raises(StaleRecordError, match="another consumer"):
        orders.done(record)
    assert orders.done_all([record]) is record
    # nor one that only says that it is of this session
    with pytest.raises(StaleRecordError):
        orders.done(_record(0, ours.session_id, TopicPartition("payments", 0)))
    assert orders.undone() == 1


def test_a_consumer_made_anew_does_not_take_late_marks_of_the_one_before() -> None:
    before = Tracker().begin_session(ORDERS, 0)
    ids = {Tracker().begin_session(ORDERS, 0).session_id for _ in range(100)}
    assert len(ids) == 100
    assert before.session_id not in ids


def test_records_that_are_stale_do_not_keep_the_others_from_being_done() -> None:
    tracker = Tracker()
    other = TopicPartition("orders", 1)
    kept, gone = tracker.begin_session(ORDERS, 0), tracker.begin_session(other, 0)
    kept.delivered_all(range(3))
    gone.delivered_all(range(3))
    records = [
        _record(offset, stay.session_id, stay.partition) for offset in range(3) for stay in (gone, kept)
    ]
    tracker.end_session(other)
    assert tracker.done_all(records) is records[0]
    assert tracker.undone() == 0
    assert _offsets(tracker) == {ORDERS: 3}


def test_metadata_of_the_users_own_stays_for_as_long_as_its_offset() -> None:
    tracker = Tracker()
    stay = tracker.begin_session(ORDERS, 5, committed=CommittedOffset(5, metadata="mine"))
    stay.delivered_all(range(5, 8))
    assert tracker.committable() == {}
    stay.done(6)
    assert tracker.committable() == {}, "it is worth more than what is done beyond the offset"
    stay.done(5)
    assert _offsets(tracker) == {ORDERS: 7}


def test_a_commit_ahead_of_what_is_done_is_not_taken_back() -> None:
    tracker = Tracker()
    stay = tracker.begin_session(ORDERS, 0, committed=CommittedOffset(0))
    stay.delivered_all(range(10))
    tracker.note_committed({ORDERS: CommittedOffset(8)})
    stay.done_before(5)
    assert tracker.committable() == {}
    stay.done_before(9)
    assert _offsets(tracker) == {ORDERS: 9}


def test_who_commits_at_intervals_is_waited_for_whether_it_marks_or_not() -> None:
    tracker = Tracker()
    tracker.begin_session(ORDERS, 0).delivered_all(range(3))
    tracker.given_out = 1_000
    assert tracker.first_undone([ORDERS]) == {ORDERS: 0}


@pytest.mark.parametrize(("given_out", "waited_for"), [(0, True), (9, True), (10, False), (1_000, False)])
def test_who_keeps_offsets_elsewhere_is_waited_for_until_it_has_marked_nothing_ten_times(
    given_out: int, waited_for: bool
) -> None:
    tracker = Tracker(commits=False)
    tracker.begin_session(ORDERS, 0).delivered_all(range(3))
    tracker.given_out = given_out
    assert tracker.first_undone([ORDERS]) == ({ORDERS: 0} if waited_for else {})


@pytest.mark.parametrize("gone", [False, True])
def test_one_mark_is_enough_to_be_waited_for_even_in_a_partition_that_is_gone(gone: bool) -> None:
    tracker = Tracker(commits=False)
    other = TopicPartition("orders", 1)
    tracker.begin_session(ORDERS, 0).delivered_all(range(3))
    stay = tracker.begin_session(other, 0)
    stay.delivered_all(range(3))
    tracker.given_out = 1_000
    assert tracker.first_undone([ORDERS]) == {}
    tracker.done(_record(1, stay.session_id, other))
    if gone:
        tracker.end_session(other)
    for _ in range(2):
        assert tracker.first_undone([ORDERS]) == {ORDERS: 0}
