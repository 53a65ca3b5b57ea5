"""Groups through drawn faults: no schedule breaks an invariant, and no acknowledged commit is lost.

``make soak-simulation`` runs new seeds for hours.
"""

from __future__ import annotations

import pytest

from kohort.testing import simulate
from kohort.testing.simulation import Stats

#: As many as it takes to find every planted bug from seed 0 on (docs/simulation.md), and some more.
SCHEDULES = 410
MIXED_SCHEDULES = 335
CRASHES = 1_200
#: In one schedule of those that are about crashes.
CRASHES_EACH = 30


#: Schedules that broke an invariant: what was wrong, a seed that shows it, and how many crashes it has more.
FOUND = {
    "a member that came back is thrown out, since its session is older than its answers": (332, 0),
    "a group whose last member leaves in a round counts as settled, and the round ends later": (15, 0),
    "what a failed append took back outlives a loss of power, and counts as a fault": (
        404_707,
        0,
    ),
    "the same among many crashes": (901_377, 30),
    "a static member that was left out of a generation counts as owner of what it gives up": (
        412_008,
        0,
    ),
    "a log that is offline stays so when nobody is there to ask for it": (412_329, 0),
    "a static member that was left out of a generation takes back what another has committed since": (
        3_894,
        0,
    ),
    "offsets expire in the turn in which a held-up coordinator ends the sessions of all members": (
        30_005_379,
        0,
    ),
}


#: The same with members of both protocols.
FOUND_MIXED = {
    "a clock that was set back holds targets up": 3,
    "a group that turns back while partitions move does not give them out": 7,
    "a static member that comes back does not wait for what the one before waited for": 221,
    "a group whose last consumer left, and that may not turn back, has no target": 124,
    "who joins in the middle of a cooperative rebalance gets what others still read": 200_516,
    "a topic grows while its group's leader, a static member, is away": 2_372,
    "a group turns back, and the coordinator stops before it rebalances": 200_704,
    "leader epochs that were never synced make damage of batches that were": 633,
    "a join that arrives once more, late, removes a member that has synced": 7_004_663,
}

#: Schedules in which the protocol allows what an invariant seemed to forbid: see docs/simulation.md.
ALLOWED_MIXED = {
    "a join that arrives once more, late, gives up what its sender reads": 202_366,
    "the same where its sender stands still": 200_270,
    "the same where the log refuses the join, and has it when it is read again": 21_007_353,
    "an eager JoinGroup that arrives once more, late, does the same": 100_225,
    "a classic member that was removed comes back under its id and does not know": 1_820,
    "a commit for a topic that was recreated meanwhile": 2_046,
    "a log that is offline where no client asks": 4_120,
    "a join that was on the way when its sender had left": 200_603,
    "a new expression waits ten seconds after the last look at topics": 73_869,
    "the same in a group with both protocols": 71_906,
    "a full disk refuses a changed subscription until the faults are over": 21_000_456,
    "offsets age from their commit where a classic group took the place of an empty one": 7_000_510,
    "a coordinator stands still between a join and the answer to it": 31_008_644,
    "a leader that starts while its topic is away learns of the new one late": 51_001_051,
}


@pytest.mark.parametrize(("seed", "crashes"), FOUND.values(), ids=FOUND)
def test_what_was_found_stays_repaired(seed: int, crashes: int) -> None:
    simulate([seed], crashes=crashes)


@pytest.mark.slow(12)
def test_no_schedule_breaks_an_invariant() -> None:
    stats = simulate(SCHEDULES).stats
    # a mean schedule has some of everything
    assert stats.schedules == SCHEDULES
    assert stats.crashes > SCHEDULES
    assert stats.rebalances > 2 * SCHEDULES
    assert stats.commits > 4 * SCHEDULES
    assert min(stats.compactions, stats.removals, stats.network_faults) > SCHEDULES // 10


@pytest.mark.parametrize("seed", FOUND_MIXED.values(), ids=FOUND_MIXED)
def test_what_was_found_with_both_protocols_stays_repaired(seed: int) -> None:
    simulate([seed], protocol="mixed")


@pytest.mark.parametrize("seed", ALLOWED_MIXED.values(), ids=ALLOWED_MIXED)
def test_what_both_protocols_allow_breaks_no_invariant(seed: int) -> None:
    simulate([seed], protocol="mixed")


@pytest.mark.slow(10)
def test_no_schedule_with_members_of_both_protocols_breaks_an_invariant() -> None:
    stats = simulate(MIXED_SCHEDULES, protocol="mixed").stats
    assert stats.schedules == MIXED_SCHEDULES
    assert min(stats.crashes, stats.reloads, stats.rebalances, stats.commits) > MIXED_SCHEDULES


@pytest.mark.slow(12)
def test_no_crash_loses_an_acknowledged_commit() -> None:
    stats, seed = Stats(), 0
    while min(stats.crashes, stats.reloads) < CRASHES:
        stats.add(simulate([seed], crashes=CRASHES_EACH).stats)
        seed += 1
    assert stats.commits > stats.schedules
