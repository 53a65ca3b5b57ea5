"""The table of a record in a share group is the law: every state and trigger is tried."""

from __future__ import annotations

from itertools import product

import pytest

from kohort.statemachine import (
    SHARE_RECORD,
    SHARE_RECORD_TRANSITIONS,
    IllegalTransitionError,
    ShareRecordState,
    ShareRecordTrigger,
)

TARGETS = {(row.source, row.trigger): row.target for row in SHARE_RECORD_TRANSITIONS}


@pytest.mark.parametrize(("state", "trigger"), list(product(ShareRecordState, ShareRecordTrigger)))
def test_a_trigger_moves_a_record_along_the_table_or_raises(
    state: ShareRecordState, trigger: ShareRecordTrigger
) -> None:
    if (state, trigger) in TARGETS:
        assert SHARE_RECORD.next(state, trigger) is TARGETS[state, trigger]
    else:
        with pytest.raises(IllegalTransitionError, match=rf"{state.value} cannot {trigger.value}"):
            SHARE_RECORD.next(state, trigger)


def test_a_record_that_is_done_stays_done() -> None:
    done = {ShareRecordState.ACKNOWLEDGED, ShareRecordState.ARCHIVED}
    assert not done & {row.source for row in SHARE_RECORD_TRANSITIONS}


def test_only_a_member_that_has_a_record_may_accept_it() -> None:
    accepted_from = {
        row.source for row in SHARE_RECORD_TRANSITIONS if row.trigger is ShareRecordTrigger.ACCEPT
    }
    assert accepted_from == {ShareRecordState.ACQUIRED}
