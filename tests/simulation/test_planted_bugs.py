"""Every planted bug is found, by an invariant, within 500 seeds; docs/simulation.md has the tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from kohort.testing.simulation import SimulationReport
from tests.simulation.planted import BUGS, MOST_SEEDS, Bug, found_by, rows
from tests.simulation.planted_cluster import CLUSTER_BUGS
from tests.simulation.planted_consumer_groups import CONSUMER_GROUP_BUGS
from tests.simulation.planted_services import SERVICE_BUGS
from tests.simulation.planted_share_consumers import SHARE_CONSUMER_BUGS
from tests.simulation.planted_share_groups import SHARE_BUGS
from tests.simulation.planted_transactions import TRANSACTION_BUGS

TABLES = {
    "": BUGS,
    " in consumer groups": CONSUMER_GROUP_BUGS,
    " in services": SERVICE_BUGS,
    " in transactions": TRANSACTION_BUGS,
    " in clusters": CLUSTER_BUGS,
    " in share groups": SHARE_BUGS,
    " in share consumers": SHARE_CONSUMER_BUGS,
}

#: Their schedules take longest: the others of them are looked for with ``--soak`` (``make soak-simulation``).
EACH_TIME = (*CLUSTER_BUGS[:4], *SHARE_BUGS[:4], *SHARE_CONSUMER_BUGS[:4])
_LONG = (*CLUSTER_BUGS, *SHARE_BUGS, *SHARE_CONSUMER_BUGS)


@pytest.mark.parametrize("name", TABLES)
def test_the_page_lists_every_bug(name: str) -> None:
    bugs = TABLES[name]
    assert list(rows(name)) == [bug.what for bug in bugs]
    assert len(bugs) >= 15
    assert all(1 <= seeds <= MOST_SEEDS for _, seeds in rows(name).values())


@pytest.mark.parametrize("name", TABLES)
def test_the_code_still_has_what_every_bug_replaces(name: str) -> None:
    for bug in TABLES[name]:
        sound = bug._function().__code__
        with bug.planted():
            assert bug._function().__code__ is not sound
        assert bug._function().__code__ is sound


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Those that take longest are for ``--soak`` alone: nobody wants to see that many tests skipped."""
    if "bug" in metafunc.fixturenames:
        left_out = () if metafunc.config.getoption("--soak") else set(_LONG) - set(EACH_TIME)
        bugs = [(name, bug) for name, every in TABLES.items() for bug in every if bug not in left_out]
        metafunc.parametrize(("name", "bug"), bugs, ids=[bug.what.replace(" ", "-") for _, bug in bugs])


@cache
def run_sound(simulate: Callable[..., SimulationReport], seed: int) -> None:
    """Run the schedule of a seed without any bug, once for all bugs that it finds."""
    simulate([seed])


@pytest.mark.slow(0.7)
def test_a_planted_bug_is_found_by_an_invariant_and_by_nothing_else(name: str, bug: Bug) -> None:
    _, seeds = rows(name)[bug.what]
    # whatever changes in the code may change the schedule of a seed: then others have to find it
    found = found_by(bug, range(seeds - 1, seeds)) or found_by(bug)
    assert found is not None
    one = range(found[0], found[0] + 1)
    assert found_by(bug, one, checked=False) is None
    run_sound(bug.simulate, found[0])
