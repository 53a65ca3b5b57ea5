"""What is delivered, done and committable."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.consumer import CommittedOffset, Record, StaleRecordError
from kohort.consumer.tracker import Stay, Tracker
from kohort.protocol import TopicPartition

ORDERS = TopicPartition("orders", 0)


def _record(offset: int, epoch: int, partition: TopicPartition = ORDERS) -> Record:
    return Record(*partition, offset, 0, None, None, (), 7, epoch)


def _offsets(tracker: Tracker) -> dict[TopicPartition, int]:
    return {partition: value.offset for partition, value in tracker.committable().items()}


@given(
    gaps=st.lists(st.integers(1, 3), min_size=1, max_size=60),
    order=st.randoms(use_true_random=False),
    done_count=st.integers(0, 60),
)
def test_committable_is_the_first_offset_that_is_not_done_whatever_the_order(
    gaps: list[int], order: object, done_count: int
) -> None:
    offsets, next_offset = [], 0
    stay = Stay(ORDERS, 1, 0, None)
    for gap in gaps:
        next_offset += gap
        offsets.append(next_offset)
        stay.delivered(next_offset)
    shuffled = list(offsets)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    done: set[int] = set()
    for offset in shuffled[:done_count]:
        assert stay.done(offset)
        assert not stay.done(offset)
        done.add(offset)
        left = [o for o in offsets if o not in done]
        assert stay.committable == (left[0] if left else offsets[-1] + 1)
        assert stay.first_undone == (left[0] if left else None)
        assert stay.undone == len(left)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5)), max_size=12), st.randoms(use_true_random=False)
)
def test_records_in_any_order_are_counted_as_by_a_plain_list(
    runs: list[tuple[int, int]], order: random.Random
) -> None:
    """With holes, delivered in runs or one by one, and done in runs or one by one."""
    tracker = Tracker()
    stay = tracker.begin(ORDERS, 0)
    left: list[int] = []
    for hole, length in runs:
        first = stay.position + hole
        offsets = list(range(first, first + length))
        if order.random() < 0.5:
            stay.delivered_all(offsets)
        else:
            for offset in offsets:
                stay.delivered(offset)
        left += offsets
        while left and order.random() < 0.6:
            some = 1 if order.random() < 0.5 else order.randint(1, len(left))
            at = 0 if order.random() < 0.5 else order.randint(0, len(left) - some)
            chosen, left = left[at : at + some], left[:at] + left[at + some :]
            if some == 1:
                tracker.done(_record(chosen[0], stay.epoch))
            else:
                tracker.done_run([_record(offset, stay.epoch) for offset in chosen])
            assert stay.undone == len(left)
            assert stay.committable == (left[0] if left else stay.position)
            assert stay.first_undone == (left[0] if left else None)


@given(st.lists(st.sampled_from(["deliver", "done", "pass", "before"]), max_size=80), st.data())
def test_committable_never_goes_back_and_never_passes_what_is_undone(
    steps: list[str], data: st.DataObject
) -> None:
    stay = Stay(ORDERS, 1, 0, None)
    undone: list[int] = []
    before = 0
    for step in steps:
        if step == "deliver":
            undone.append(stay.position + data.draw(st.integers(0, 2)))
            stay.delivered(undone[-1])
        elif step == "done" and undone:
            stay.done(undone.pop(data.draw(st.integers(0, len(undone) - 1))))
        elif step == "pass":
            stay.passed(stay.position + data.draw(st.integers(0, 3)))
        elif step == "before":
            limit = data.draw(st.integers(0, stay.position + 1))
            stay.done_before(limit)
            undone = [offset for offset in undone if offset >= limit]
        assert stay.committable >= before
        assert stay.committable == (undone[0] if undone else stay.position)
        assert stay.undone == len(undone)
        before = stay.committable


def test_offsets_that_were_never_delivered_are_no_news() -> None:
    stay = Stay(ORDERS, 1, 10, None)
    assert not stay.done(10)
    stay.delivered(10)
    assert not stay.done(9)
    assert not stay.done(11)
    assert stay.committable == 10


def test_only_what_changed_since_the_last_commit_is_worth_committing() -> None:
    tracker = Tracker()
    stay = tracker.begin(ORDERS, 5, committed=CommittedOffset(5))
    assert _offsets(tracker) == {}
    stay.delivered(5)
    assert _offsets(tracker) == {}
    assert tracker.done(_record(5, stay.epoch)) is stay
    assert _offsets(tracker) == {ORDERS: 6}
    tracker.committed({ORDERS: CommittedOffset(6)})
    assert _offsets(tracker) == {}


def test_a_start_that_was_not_committed_is_worth_committing_at_once() -> None:
    tracker = Tracker()
    tracker.begin(ORDERS, 5)
    assert _offsets(tracker) == {ORDERS: 5}


def test_control_records_behind_the_last_one_are_passed_by_the_commit() -> None:
    tracker = Tracker()
    stay = tracker.begin(ORDERS, 0)
    stay.delivered(0)
    stay.passed(2)
    assert _offsets(tracker) == {ORDERS: 0}
    tracker.done(_record(0, stay.epoch))
    assert _offsets(tracker) == {ORDERS: 2}


def test_a_record_of_an_earlier_stay_is_refused_and_the_text_names_it() -> None:
    tracker = Tracker()
    first = tracker.begin(ORDERS, 0)
    first.delivered(0)
    tracker.end(ORDERS)
    with pytest.raises(StaleRecordError, match=r"orders-0 offset 0 .*generation 7"):
        tracker.done(_record(0, first.epoch))
    second = tracker.begin(ORDERS, 0)
    second.delivered(0)
    with pytest.raises(StaleRecordError):
        tracker.done(_record(0, first.epoch))
    assert _offsets(tracker) == {ORDERS: 0}


def test_undone_is_counted_per_partition() -> None:
    tracker = Tracker()
    other = TopicPartition("orders", 1)
    tracker.begin(ORDERS, 0).delivered_all([0, 1, 2])
    stay = tracker.begin(other, 0)
    stay.delivered_all([4, 9])
    stay.done(4)
    assert tracker.undone() == 4
    assert tracker.undone([other]) == 1
    assert tracker.undone_by_partition([ORDERS, other]) == {ORDERS: 3, other: 1}
    assert tracker.first_undone([ORDERS, other]) == {ORDERS: 0, other: 9}


def test_what_is_done_beyond_the_gap_goes_into_the_commit_and_is_not_delivered_again() -> None:
    tracker = Tracker()
    stay = tracker.begin(ORDERS, 0)
    stay.delivered_all([0, 1, 2, 3, 5, 6])
    for offset in (1, 3, 5):
        tracker.done(_record(offset, stay.epoch))
    commit = tracker.committable()[ORDERS]
    assert commit.offset == 0
    restarted = Tracker()
    again = restarted.begin(ORDERS, 0, committed=commit)
    # 4 was never there: what lies between two done records counts with them
    assert list(again.fresh(range(8))) == [0, 2, 6, 7]
    assert _offsets(restarted) == {}, "nothing has changed, so nothing is worth committing"


def test_a_record_done_beyond_the_gap_makes_a_commit_worth_while() -> None:
    tracker = Tracker()
    stay = tracker.begin(ORDERS, 0, committed=CommittedOffset(0))
    stay.delivered_all([0, 1])
    assert _offsets(tracker) == {}
    tracker.done(_record(1, stay.epoch))
    assert _offsets(tracker) == {ORDERS: 0}
    tracker.committed(tracker.committable())
    assert _offsets(tracker) == {}
    tracker.with_metadata = False
    assert tracker.committable() == {ORDERS: CommittedOffset(0)}


def test_ranges_of_an_earlier_stay_are_kept_until_the_commit_passes_them() -> None:
    first = Stay(ORDERS, 1, 0, None)
    first.delivered_all(list(range(10)))
    for offset in (2, 3, 7):
        first.done(offset)
    tracker = Tracker()
    stay = tracker.begin(ORDERS, 0, committed=first.to_commit())
    stay.delivered_all([0, 1, 4])
    stay.done(4)
    stay.done(0)
    third = Tracker().begin(ORDERS, 1, committed=stay.to_commit())
    offsets = range(1, 10)
    assert [offsets[at] for at in third.fresh(offsets)] == [1, 5, 6, 8, 9]
    stay.done(1)
    assert stay.committable == 5
    assert stay.to_commit().metadata
    stay.delivered_all([5, 6, 8])
    stay.done_before(9)
    assert (stay.committable, stay.to_commit().metadata) == (9, "")


@given(st.lists(st.tuples(st.integers(1, 2), st.booleans()), max_size=200))
def test_a_restart_redoes_what_was_undone_and_nothing_else(steps: list[tuple[int, bool]]) -> None:
    stay = Stay(ORDERS, 1, 0, None)
    offset = 0
    done: list[int] = []
    undone: list[int] = []
    for gap, is_done in steps:
        offset += gap
        stay.delivered(offset)
        (done if is_done else undone).append(offset)
    for each in done:
        stay.done(each)
    commit = stay.to_commit()
    again = Tracker().begin(ORDERS, commit.offset, committed=commit)
    rest = [offset for offset in sorted(done + undone) if offset >= commit.offset]
    assert [rest[at] for at in again.fresh(rest)] == undone


def test_a_block_is_done_as_one_and_counts_as_its_records() -> None:
    stay = Stay(ORDERS, 1, 0, None)
    stay.delivered_block(0, 100, 90)
    stay.delivered_block(100, 150, 50)
    stay.delivered(150)
    assert (stay.undone, stay.committable) == (141, 0)
    assert stay.done(100)
    assert (stay.undone, stay.committable) == (91, 0)
    again = Tracker().begin(ORDERS, 0, committed=stay.to_commit())
    assert list(again.fresh([99, 100, 149, 150])) == [0, 3]
    stay.done_before(99)
    assert stay.committable == 0, "a block that reaches behind the offset is not done"
    stay.done_before(100)
    assert (stay.undone, stay.committable) == (1, 150)
