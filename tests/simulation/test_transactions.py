"""Transactions through drawn faults: no schedule breaks an invariant.

``make soak-simulation`` runs new seeds for hours.
"""

from __future__ import annotations

import pytest

from kohort.testing import simulate_transactions

SCHEDULES = 100

#: Schedules that broke an invariant: what was wrong, and seeds that show it.
FOUND = {
    "a marker is lost with the power, and its coordinator does not know": (123, 268, 386),
    "a snapshot tells of a batch that was lost with the power, before others that were not": (9_949,),
    "the leader epochs are believed that a loss of power has damaged": (2_679, 3_127),
    "a reader is stuck at what a loss of power has damaged and nobody was told of": (5_537,),
}


@pytest.mark.parametrize("seeds", FOUND.values(), ids=FOUND)
def test_what_was_found_stays_repaired(seeds: tuple[int, ...]) -> None:
    simulate_transactions(seeds)


@pytest.mark.slow(25)
def test_no_schedule_of_transactions_breaks_an_invariant() -> None:
    stats = simulate_transactions(SCHEDULES).stats
    # a mean schedule has some of everything
    assert stats.schedules == SCHEDULES
    assert stats.commits > 20 * SCHEDULES
    assert stats.records > 30 * SCHEDULES
    assert stats.crashes > 2 * SCHEDULES
    assert stats.network_faults > 10 * SCHEDULES
