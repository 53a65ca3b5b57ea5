"""Groups through drawn faults: no schedule breaks an invariant, and none loses an acknowledged commit."""

from __future__ import annotations

from kohort.testing import simulate

SCHEDULES = 100


def test_no_schedule_breaks_an_invariant() -> None:
    stats = simulate(SCHEDULES).stats
    assert stats.schedules == SCHEDULES
    # what they are made of, in a mean schedule
    assert stats.crashes > SCHEDULES
    assert stats.reloads > 2 * SCHEDULES
    assert stats.rebalances > 2 * SCHEDULES
    assert stats.commits > 4 * SCHEDULES
