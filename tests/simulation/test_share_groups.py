"""A share group on several brokers through drawn faults: no schedule breaks an invariant.

Covers: testing/simulation/share_groups/_world.py.
"""

from __future__ import annotations

import pytest

from kohort.testing import simulate_share_groups
from kohort.testing.simulation.share_groups import trace_share_groups

SCHEDULES = 8


def test_a_schedule_is_the_same_each_time() -> None:
    # state is asked for anew after a pause, whose length is drawn
    assert trace_share_groups(30) == trace_share_groups(30)


@pytest.mark.slow(10)
def test_no_schedule_of_share_groups_breaks_an_invariant() -> None:
    stats = simulate_share_groups(SCHEDULES).stats
    # a mean schedule has some of everything
    assert stats.schedules == SCHEDULES
    assert stats.records > 50 * SCHEDULES
    # records whose acknowledgement was answered
    assert stats.commits > 50 * SCHEDULES
    assert stats.crashes > SCHEDULES
    assert stats.incidents > 5 * SCHEDULES
