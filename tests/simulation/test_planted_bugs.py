"""Every planted bug is found, by an invariant, within the seeds that docs/simulation.md says."""

from __future__ import annotations

import pytest

from kohort.testing import simulate
from tests.simulation.planted import BUGS, MOST_SEEDS, Bug, found_by, rows


def test_the_page_lists_every_bug() -> None:
    assert list(rows()) == [bug.what for bug in BUGS]
    assert len(BUGS) >= 25
    assert all(1 <= seeds <= MOST_SEEDS for _, seeds in rows().values())


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.what.replace(" ", "-"))
def test_a_planted_bug_is_found_by_an_invariant_and_by_nothing_else(bug: Bug) -> None:
    invariant, seeds = rows()[bug.what]
    one = range(seeds - 1, seeds)
    told = "the table is not current: run python -m tests.simulation.planted"
    assert found_by(bug, one) == (seeds - 1, invariant), told
    assert found_by(bug, one, checked=False) is None
    # the bug is gone with its block
    assert simulate(one).failed == {}
