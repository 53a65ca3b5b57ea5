"""The share consumer, and services on it, on several brokers through drawn faults: no schedule breaks an
invariant.

Covers: testing/simulation/share_consumers/_world.py.
"""

from __future__ import annotations

from typing import Final

import pytest

from kohort.testing import simulate_share_consumers, simulate_share_services
from kohort.testing.simulation.share_consumers import trace_share_consumers

SCHEDULES = 8

#: Schedules that broke an invariant: what was wrong, and a seed that showed it.
FOUND: Final[dict[str, int]] = {
    "a close whose time was over left the tasks of its sessions running": 58,
    "a lock whose renewal came due while others were renewed was not renewed any more": 31,
    "the parts of what was refused waited for each other until locks ended": 40_015,
    "what was refused was sent again before what was new, which then came too late": 51_082,
    "brokers without records were waited for in turn, while records waited at another one": 60_394,
    "a close while locks were renewed was refused, and left a session": 60_123,
    "whoever waited for the answers of a flush was woken by each flush that others began": 62_368,
    "what was said once the session was closed was taken for a lock that two members have": 63_370,
}

#: The same of services.
FOUND_IN_SERVICES: Final[dict[str, int]] = {
    "fetches that waited as long as they may, one at each broker, were taken for a circle": 63_007,
    "a replica that began within a batch never got in sync with the next leader": 63_017,
}


@pytest.mark.parametrize("seed", FOUND.values(), ids=FOUND)
def test_what_was_found_stays_repaired(seed: int) -> None:
    simulate_share_consumers([seed])


@pytest.mark.parametrize("seed", FOUND_IN_SERVICES.values(), ids=FOUND_IN_SERVICES)
def test_what_was_found_in_services_stays_repaired(seed: int) -> None:
    simulate_share_services([seed])


def test_a_schedule_is_the_same_each_time() -> None:
    assert trace_share_consumers(3) == trace_share_consumers(3)


@pytest.mark.slow(10)
def test_no_schedule_of_share_consumers_breaks_an_invariant() -> None:
    stats = simulate_share_consumers(SCHEDULES).stats
    # a mean schedule has some of everything
    assert stats.schedules == SCHEDULES
    assert stats.records > 50 * SCHEDULES
    # records whose acknowledgement was answered
    assert stats.commits > 50 * SCHEDULES
    assert stats.crashes > SCHEDULES // 2
    assert stats.incidents > 3 * SCHEDULES


@pytest.mark.slow(10)
def test_no_schedule_of_services_on_a_share_group_breaks_an_invariant() -> None:
    stats = simulate_share_services(SCHEDULES).stats
    assert stats.schedules == SCHEDULES
    assert stats.commits > 50 * SCHEDULES
    assert stats.incidents > 3 * SCHEDULES
