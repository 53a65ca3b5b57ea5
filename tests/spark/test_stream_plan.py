from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import TopicPartition
from kohort.spark import DataLossError, OffsetRange
from kohort.spark._offsets import Bounds, Committed, from_document, to_document
from kohort.spark._plan import Limits, StartRules, up_to
from kohort.spark._stream_plan import (
    batch_ranges,
    begin_new,
    next_ends,
    read_ranges,
    waiting_offsets,
)

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
STRICT = StartRules("committed", "earliest", fail_on_data_loss=True)
LENIENT = StartRules("committed", "earliest", fail_on_data_loss=False)
ANY = Limits()


def test_offsets_go_through_a_checkpoint_unchanged() -> None:
    offsets = {A: 5, B: 0, TopicPartition("clicks", 10): 2**40}
    assert from_document(to_document(offsets)) == offsets
    assert to_document(offsets) == {"clicks": {"10": 2**40}, "orders": {"0": 5, "1": 0}}


def test_a_new_partition_begins_at_its_commit_and_else_at_its_first_record() -> None:
    bounds = {A: Bounds(0, 10), B: Bounds(3, 10), TopicPartition("clicks", 0): Bounds(2, 9)}
    begun = begin_new({A: 4}, bounds, {B: Committed(7)})
    assert begun == {A: 4, B: 7, TopicPartition("clicks", 0): 2}


def test_a_batch_ends_within_the_limit_and_starves_nobody() -> None:
    ends, lost = next_ends(
        {A: 0, B: 0}, {A: Bounds(0, 100), B: Bounds(0, 2000)}, rules=STRICT, limits=Limits(500)
    )
    assert ends[A] + ends[B] == 500
    assert ends[A] >= 1
    assert lost == ()


def test_what_retention_took_is_an_error_that_names_it_or_is_told() -> None:
    with pytest.raises(DataLossError, match=r"orders-0 \[500, 800\)"):
        next_ends({A: 500}, {A: Bounds(800, 2000)}, rules=STRICT, limits=ANY)
    ends, lost = next_ends({A: 500}, {A: Bounds(800, 2000)}, rules=LENIENT, limits=ANY)
    assert (ends, lost) == ({A: 2000}, (OffsetRange("orders", 0, 500, 800),))
    ranges = batch_ranges({A: 500}, ends, {A: Bounds(800, 2000)}, fail_on_data_loss=False)
    assert ranges == [OffsetRange("orders", 0, 800, 2000)]


def test_a_topic_made_anew_is_read_from_its_first_record() -> None:
    bounds = {A: Bounds(0, 30)}
    with pytest.raises(DataLossError):
        next_ends({A: 500}, bounds, rules=STRICT, limits=ANY)
    ends, _ = next_ends({A: 500}, bounds, rules=LENIENT, limits=Limits(10))
    assert ends == {A: 10}
    assert batch_ranges({A: 500}, ends, bounds, fail_on_data_loss=False) == [OffsetRange("orders", 0, 0, 10)]


def test_a_planned_end_after_a_log_that_was_recreated_is_a_loss_and_nothing_to_wait_for() -> None:
    shorter = {A: Bounds(0, 10)}
    with pytest.raises(DataLossError, match=r"orders-0 \[10, 50\)"):
        batch_ranges({A: 5}, {A: 50}, shorter, fail_on_data_loss=True)
    assert batch_ranges({A: 5}, {A: 50}, shorter, fail_on_data_loss=False) == []
    # the next batch has the new log, each record once
    ends, lost = next_ends({A: 50}, shorter, rules=StartRules(fail_on_data_loss=False), limits=Limits())
    assert batch_ranges({A: 50}, ends, shorter, fail_on_data_loss=False) == [OffsetRange("orders", 0, 0, 10)]
    assert lost == (OffsetRange("orders", 0, 10, 50),)


def test_a_checkpoint_that_goes_back_is_read_only_where_losses_are_allowed() -> None:
    with pytest.raises(DataLossError, match=r"orders-0 \[10, 500\)"):
        batch_ranges({A: 500}, {A: 10}, {A: Bounds(0, 30)}, fail_on_data_loss=True)


@pytest.mark.parametrize("rules", [STRICT, LENIENT])
def test_nothing_lies_between_a_start_and_an_end_before_it(rules: StartRules) -> None:
    bounds = {A: Bounds(0, 50), B: Bounds(0, 50)}
    ranges, lost = read_ranges({A: 40, B: 9}, {A: 10, B: 12}, bounds, rules=rules)
    assert (ranges, lost) == ([OffsetRange("orders", 1, 9, 12)], ())


def test_what_a_read_asks_for_behind_the_end_of_the_log_is_named_or_left_out() -> None:
    bounds = {A: Bounds(5, 50)}
    with pytest.raises(DataLossError, match=r"orders-0 \[0, 5\), orders-0 \[50, 70\)"):
        read_ranges({A: 0}, {A: 70}, bounds, rules=STRICT)
    ranges, lost = read_ranges({A: 0}, {A: 70}, bounds, rules=LENIENT)
    assert ranges == [OffsetRange("orders", 0, 5, 50)]
    assert [str(span) for span in lost] == ["orders-0 [0, 5)", "orders-0 [50, 70)"]


def test_a_read_of_a_topic_made_anew_begins_at_its_first_record() -> None:
    ranges, _ = read_ranges({A: 500}, {A: 30}, {A: Bounds(0, 30)}, rules=LENIENT)
    assert ranges == [OffsetRange("orders", 0, 0, 30)]


def test_with_fail_on_data_loss_a_replayed_range_is_asked_for_in_full() -> None:
    ranges = batch_ranges({A: 5}, {A: 20}, {A: Bounds(10, 30)}, fail_on_data_loss=True)
    assert ranges == [OffsetRange("orders", 0, 5, 20)]


def test_a_partition_that_is_no_longer_read_keeps_its_place() -> None:
    ends, _ = next_ends({A: 5, B: 7}, {A: Bounds(0, 9)}, rules=STRICT, limits=ANY)
    assert ends == {A: 9, B: 7}


def test_a_target_holds_what_comes_later_back_but_is_never_short_of_the_start() -> None:
    bounds = {A: Bounds(0, 50), B: Bounds(0, 50)}
    assert up_to({A: 5}, bounds, {A: 20}) == {A: Bounds(0, 20)}
    assert up_to({A: 30}, bounds, {A: 20}) == {A: Bounds(0, 30)}


@given(
    start=st.integers(0, 50),
    earliest=st.integers(0, 60),
    size=st.integers(0, 60),
    limit=st.none() | st.integers(1, 40),
)
def test_batches_end_and_join_without_a_gap(start: int, earliest: int, size: int, limit: int | None) -> None:
    bounds = {A: Bounds(earliest, earliest + size)}
    read: list[int] = []
    at = {A: start}
    for _ in range(200):
        ends, _ = next_ends(at, bounds, rules=LENIENT, limits=Limits(limit))
        if ends == at:
            break
        for span in batch_ranges(at, ends, bounds, fail_on_data_loss=False):
            assert limit is None or span.offsets <= limit
            read += range(span.start, span.end)
        at = ends
    else:
        pytest.fail("the reading never ends")
    first = earliest if start > earliest + size else max(start, earliest)
    assert read == list(range(first, earliest + size))
    assert waiting_offsets(at, bounds) <= max(0, earliest - start) or not size


@pytest.mark.parametrize("strict", [True, False])
def test_a_start_behind_open_transactions_stays(strict: bool) -> None:
    bounds = {A: Bounds(0, 60, log_end=100), B: Bounds(0, 10)}
    start, rules = {A: 90, B: 5}, STRICT if strict else LENIENT
    ends, lost = next_ends(start, bounds, rules=rules, limits=ANY)
    assert (ends, lost) == ({A: 90, B: 10}, ())
    assert batch_ranges(start, ends, bounds, fail_on_data_loss=strict) == [OffsetRange(*B, 5, 10)]
    assert read_ranges(start, {A: 60, B: 10}, bounds, rules=rules) == ([OffsetRange(*B, 5, 10)], ())
