"""Whole services through drawn faults: no schedule breaks an invariant.

``make soak-simulation`` runs new seeds for hours.
"""

from __future__ import annotations

import pytest

from kohort.testing import simulate_service

SCHEDULES = 45


@pytest.mark.slow(15)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_no_schedule_of_services_breaks_an_invariant(protocol: str) -> None:
    stats = simulate_service(SCHEDULES, protocol=protocol).stats
    # a mean schedule has some of everything
    assert stats.schedules == SCHEDULES
    assert stats.records > 50 * SCHEDULES
    assert stats.commits > 10 * SCHEDULES
    assert stats.rebalances > 2 * SCHEDULES
    assert stats.incidents > 3 * SCHEDULES


def test_a_commit_for_a_topic_that_was_made_again_twice_meanwhile_breaks_no_invariant() -> None:
    simulate_service([21_000_100], protocol="consumer")


def test_a_commit_by_name_for_a_topic_without_an_id_breaks_no_invariant() -> None:
    simulate_service([30_000_110], protocol="classic")


def test_a_record_whose_turn_comes_at_the_end_of_a_drain_may_be_cancelled_soon() -> None:
    simulate_service([4711], protocol="classic")
