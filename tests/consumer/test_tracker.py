"""What is delivered, done and committable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.consumer import Record, StaleRecordError
from kohort.consumer.tracker import Stay, Tracker
from kohort.protocol import TopicPartition

ORDERS = TopicPartition("orders", 0)


def _record(offset: int, epoch: int, partition: TopicPartition = ORDERS) -> Record:
    return Record(*partition, offset, 0, None, None, (), 7, epoch)


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
    stay = tracker.begin(ORDERS, 5, committed=5)
    assert tracker.committable() == {}
    stay.delivered(5)
    assert tracker.committable() == {}
    assert tracker.done(_record(5, stay.epoch)) is stay
    assert tracker.committable() == {ORDERS: 6}
    tracker.committed({ORDERS: 6})
    assert tracker.committable() == {}


def test_a_start_that_was_not_committed_is_worth_committing_at_once() -> None:
    tracker = Tracker()
    tracker.begin(ORDERS, 5)
    assert tracker.committable() == {ORDERS: 5}


def test_control_records_behind_the_last_one_are_passed_by_the_commit() -> None:
    tracker = Tracker()
    stay = tracker.begin(ORDERS, 0)
    stay.delivered(0)
    stay.passed(2)
    assert tracker.committable() == {ORDERS: 0}
    tracker.done(_record(0, stay.epoch))
    assert tracker.committable() == {ORDERS: 2}


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
    assert tracker.committable() == {ORDERS: 0}


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
