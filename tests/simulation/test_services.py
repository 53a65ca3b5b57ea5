"""Whole services through drawn faults: no schedule breaks an invariant.

``--soak`` (``make soak-simulation``) runs the many that take hours.
"""

from __future__ import annotations

import pytest

from kohort.testing import simulate_service
from kohort.testing.simulation import Stats

pytestmark = pytest.mark.slow(20)

SCHEDULES, SOAKED_SCHEDULES = 150, 10_000


@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_no_schedule_of_services_breaks_an_invariant(
    soaks: bool, capsys: pytest.CaptureFixture[str], protocol: str
) -> None:
    count = SOAKED_SCHEDULES if soaks else SCHEDULES
    stats = Stats()
    for first in range(0, count, SCHEDULES):
        seeds = range(first, min(first + SCHEDULES, count))
        stats.add(simulate_service(seeds, protocol=protocol).stats)
        if soaks:
            with capsys.disabled():
                print(f"\n{stats}", flush=True)
    # a mean schedule has some of everything
    assert stats.schedules == count
    assert stats.records > 50 * count
    assert stats.commits > 10 * count
    assert stats.rebalances > 2 * count
    assert stats.incidents > 3 * count
