"""The merge of ranges gives what a model of single offsets gives, and its ranges are as few as can be."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol.messages.read_share_group_state import StateBatch
from kohort.share_state.merging import merge_batches

_batch = st.builds(
    lambda first, length, state, count: StateBatch(first, first + length, state, count),
    st.integers(0, 40),
    st.integers(0, 15),
    st.sampled_from([0, 2, 4]),
    st.integers(1, 2),
)
_writes = st.lists(st.tuples(st.integers(0, 30), st.lists(_batch, max_size=4)), max_size=8)


@given(_writes)
def test_each_offset_has_the_highest_count_that_was_written_for_it_and_then_the_highest_state(
    writes: list[tuple[int, list[StateBatch]]],
) -> None:
    found: tuple[StateBatch, ...] = ()
    model: dict[int, tuple[int, int]] = {}
    start = 0
    for move, written in writes:
        start = max(start, move)
        found = merge_batches(found, written, start)
        for batch in written:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                model[offset] = max(model.get(offset, batch[2:]), batch[2:], key=lambda value: value[::-1])
        model = {offset: value for offset, value in model.items() if offset >= start}
        assert {
            offset: batch[2:]
            for batch in found
            for offset in range(batch.first_offset, batch.last_offset + 1)
        } == model


@given(_writes)
def test_ranges_are_in_order_and_no_two_could_be_one(writes: list[tuple[int, list[StateBatch]]]) -> None:
    found: tuple[StateBatch, ...] = ()
    for start, written in writes:
        found = merge_batches(found, written, start)
    for before, after in itertools.pairwise(found):
        assert before.last_offset < after.first_offset
        assert before.last_offset + 1 < after.first_offset or before[2:] != after[2:]


def test_a_range_within_another_cuts_it_in_three() -> None:
    assert merge_batches([StateBatch(10, 20, 2, 1)], [StateBatch(15, 16, 0, 2)], 0) == (
        StateBatch(10, 14, 2, 1),
        StateBatch(15, 16, 0, 2),
        StateBatch(17, 20, 2, 1),
    )
