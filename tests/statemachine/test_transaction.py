"""The table of a transactional id is the law: every state and trigger is tried."""

from __future__ import annotations

from itertools import product

import pytest

from kohort.statemachine import (
    TRANSACTION,
    TRANSACTION_DURABLE_STATES,
    TRANSACTION_TRANSITIONS,
    IllegalTransitionError,
    TransactionState,
    TransactionTrigger,
)

TARGETS = {(row.source, row.trigger): row.target for row in TRANSACTION_TRANSITIONS}


@pytest.mark.parametrize(("state", "trigger"), list(product(TransactionState, TransactionTrigger)))
def test_a_trigger_moves_along_the_table_or_raises(
    state: TransactionState, trigger: TransactionTrigger
) -> None:
    if (state, trigger) in TARGETS:
        assert TRANSACTION.next(state, trigger) is TARGETS[state, trigger]
    else:
        with pytest.raises(IllegalTransitionError, match=rf"{state.value} cannot {trigger.value}"):
            TRANSACTION.next(state, trigger)


def test_a_state_has_one_target_for_a_trigger() -> None:
    assert len(TARGETS) == len(TRANSACTION_TRANSITIONS)


@pytest.mark.parametrize(
    ("state", "predecessors"),
    [
        ("Empty", {"Empty", "CompleteCommit", "CompleteAbort"}),
        ("Ongoing", {"Ongoing", "Empty", "CompleteCommit", "CompleteAbort"}),
        ("PrepareCommit", {"Ongoing"}),
        ("PrepareAbort", {"Ongoing", "PrepareEpochFence", "Empty", "CompleteCommit", "CompleteAbort"}),
        ("CompleteCommit", {"PrepareCommit"}),
        ("CompleteAbort", {"PrepareAbort"}),
        ("Dead", {"Empty", "CompleteCommit", "CompleteAbort"}),
        ("PrepareEpochFence", {"Ongoing"}),
    ],
)
def test_predecessors_are_those_of_kafka(state: str, predecessors: set[str]) -> None:
    assert {row.source.value for row in TRANSACTION_TRANSITIONS if row.target.value == state} == predecessors


def test_what_is_decided_can_only_be_completed() -> None:
    for state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
        legal = {row.trigger for row in TRANSACTION_TRANSITIONS if row.source is state}
        assert legal == {TransactionTrigger.COMPLETE}


def test_a_state_that_is_never_written_is_left_at_once_or_final() -> None:
    assert set(TransactionState) - set(TRANSACTION_DURABLE_STATES) == {
        TransactionState.DEAD,
        TransactionState.PREPARE_EPOCH_FENCE,
    }


def test_the_diagram_has_every_move() -> None:
    drawn = TRANSACTION.diagram()
    for row in TRANSACTION_TRANSITIONS:
        assert f"{row.source.value} --> {row.target.value}: {row.trigger.value}" in drawn
