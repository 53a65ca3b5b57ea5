"""Attacks in small: the broker lives, the others are served rightly, memory stays under its bound.

How fast the others are served is measured by ``make bench-attack``: docs/reports/evidence.md has the figures.
"""

from __future__ import annotations

import pytest

from tests.attack.measure import Plan, run, small

pytestmark = pytest.mark.slow(4)


@pytest.mark.parametrize("plan", small(), ids=lambda plan: plan.attack)
def test_the_others_are_served_and_memory_stays_under_its_bound(plan: Plan) -> None:
    found = run(plan, usual_s=0.5)
    print(found)
    assert found.alive
    assert found.wrong == []
    assert found.requests > 0
    assert found.grown_mib < found.bound_mib
