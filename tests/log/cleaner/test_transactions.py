"""Transactions as a compaction walks over them."""

from __future__ import annotations

from kohort.log._indexes import AbortedTransaction
from kohort.log.cleaner._keys import TransactionWalk


def aborted(producer_id: int, first: int, last: int) -> AbortedTransaction:
    return AbortedTransaction(producer_id, first, last, last + 1)


def test_data_of_an_aborted_transaction_is_told_from_that_of_a_committed_one() -> None:
    state = TransactionWalk([aborted(1, 10, 14)])
    assert not state.is_aborted(1, 5)
    assert not state.is_spent(1, 6, committed=True)
    assert state.is_aborted(1, 11)
    assert not state.is_aborted(2, 12)
    assert not state.is_spent(1, 14, committed=False)
    assert not state.is_aborted(1, 20)


def test_a_marker_is_spent_once_no_batch_of_its_transaction_is_left() -> None:
    state = TransactionWalk([aborted(1, 0, 5)])
    assert state.is_spent(1, 5, committed=False)
    assert state.is_spent(2, 6, committed=True)
    assert not state.is_aborted(2, 7)
    assert not state.is_spent(2, 8, committed=True)
    assert state.is_spent(2, 9, committed=True)


def test_the_index_entry_of_an_aborted_transaction_lives_as_long_as_its_marker_is_needed() -> None:
    entry = aborted(1, 0, 5)
    state = TransactionWalk([entry])
    assert state.is_aborted(1, 2)
    assert not state.is_spent(1, 5, committed=False)
    assert state.kept == [entry]
    assert TransactionWalk([entry]).is_spent(1, 5, committed=False)


def test_a_walk_that_begins_behind_a_marker_takes_later_data_for_what_it_is() -> None:
    state = TransactionWalk([aborted(1, 0, 5), aborted(1, 20, 25)])
    assert not state.is_aborted(1, 10)
    assert not state.is_spent(1, 11, committed=True)
    assert state.is_aborted(1, 21)
    assert not state.is_spent(1, 25, committed=False)
