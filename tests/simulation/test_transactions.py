"""Transactions through drawn faults: no schedule breaks an invariant.

``make soak-simulation`` runs new seeds for hours.
"""

from __future__ import annotations

import pytest

from kohort.testing import simulate_transactions

SCHEDULES = 48


@pytest.mark.slow(25)
def test_no_schedule_of_transactions_breaks_an_invariant() -> None:
    stats = simulate_transactions(SCHEDULES).stats
    # a mean schedule has some of everything
    assert stats.schedules == SCHEDULES
    assert stats.commits > 20 * SCHEDULES
    assert stats.records > 30 * SCHEDULES
    assert stats.crashes > 3 * SCHEDULES // 2
    assert stats.network_faults > 10 * SCHEDULES


def test_a_member_that_was_removed_commits_nothing_in_a_transaction_before_it_has_heard_of_it() -> None:
    # its id was gone when it asked for its group's metadata: a commit without one is not fenced
    simulate_transactions([30_000_240])
