"""Records flow while members come, go, die and hang: nothing is lost, nothing is done twice without a reason.

The runs here take about a minute together. ``make soak`` runs them for ten minutes (``--soak SECONDS``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.broker_process import BrokerProcess
from tests.churn.crowd import EVERYTHING, PARTITIONS, SESSION_MS, Crowd, Plan
from tests.churn.journal import Handled
from tests.churn.judge import Verdict
from tests.churn.member import OTHERS, OURS
from tests.churn.report import told
from tests.reliability_report import write_section

pytestmark = [pytest.mark.kafka, pytest.mark.clients, pytest.mark.slow(25), pytest.mark.timeout(1_500)]

#: Ours and others by turns.
MIXED = [kind for pair in zip(OURS, OTHERS, strict=True) for kind in pair]
WORST: dict[str, Any] = {"actions": EVERYTHING, "session_timeout_ms": SESSION_MS, "fewest_out": 3}
#: Records a second: what members do while they come and go is seen with few; ``--soak`` has a load as well.
RATE, SOAKED_RATE = 1_000, 3_400
MAX_SILENCE_S = 1.0

Name = Callable[[str], str]


@pytest.fixture
def churn(
    request: pytest.FixtureRequest, tmp_path: Path, topic: Name, group: Name
) -> Callable[[Plan, str], Verdict]:
    """Runs a plan; on a broker of its own that may be killed, unless ``--bootstrap`` names one.

    With ``--report FILE`` the section of that title gets what it came to.
    """

    def run(plan: Plan, title: str) -> Verdict:
        bootstrap = request.config.getoption("--bootstrap")
        broker: BrokerProcess | None = None
        if bootstrap is None:
            broker = request.getfixturevalue("broker_process")
            bootstrap = broker.bootstrap
        name = topic("churn")
        _create(bootstrap, name)
        crowd = Crowd(
            plan,
            bootstrap=bootstrap,
            topic=name,
            group=group("churn"),
            folder=tmp_path,
            broker=broker,
        )
        verdict = crowd.run()
        print(f"seed {plan.seed}: {verdict.summary()}")
        if (report := request.config.getoption("--report")) is not None:
            where = "kohort" if broker is not None else "an Apache Kafka"
            write_section(Path(report), f"churn, {title}, on {where}", told(crowd, verdict, title, where))
        return verdict

    return run


def _create(bootstrap: str, topic: str) -> None:
    from kafka import KafkaAdminClient

    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics(
            {topic: {"num_partitions": PARTITIONS, "replication_factor": 1}}, wait_for_metadata=True
        )


def _plan(request: pytest.FixtureRequest, seed: int, part: float, **more: Any) -> Plan:
    soak = request.config.getoption("--soak")
    seconds = (soak or 40.0) * part
    return Plan(seed, seconds, int(seconds * (RATE if soak is None else SOAKED_RATE)), **more)


@pytest.mark.parametrize("seed", [7])
def test_graceful_joins_and_leaves_do_nothing_twice_and_never_fall_silent(
    request: pytest.FixtureRequest, churn: Callable[[Plan, str], Verdict], seed: int
) -> None:
    verdict = churn(_plan(request, seed, 0.3, kinds=OURS), "joins and leaves only")
    assert verdict.lost == []
    assert verdict.out_of_order == []
    assert verdict.handled == verdict.records, f"twice: {verdict.twice[:5]}"
    assert verdict.silence_s <= MAX_SILENCE_S + verdict.stall_s


@pytest.mark.parametrize("seed", [8])
def test_in_a_group_whose_members_the_coordinator_assigns_graceful_changes_do_nothing_twice(
    request: pytest.FixtureRequest, churn: Callable[[Plan, str], Verdict], seed: int
) -> None:
    plan = _plan(request, seed, 0.3, kinds=[*OURS, "confluent"], protocol="consumer", assignor="uniform")
    verdict = churn(plan, "joins and leaves, the coordinator assigns")
    assert verdict.lost == []
    assert verdict.out_of_order == []
    assert verdict.handled == verdict.records, f"twice: {verdict.twice[:5]}"


@pytest.mark.parametrize("seed", [9])
def test_beside_clients_of_other_makes_graceful_changes_make_ours_do_nothing_twice(
    request: pytest.FixtureRequest, churn: Callable[[Plan, str], Verdict], seed: int
) -> None:
    verdict = churn(_plan(request, seed, 0.2, kinds=MIXED, assignor="range"), "four makes")
    assert verdict.lost == []
    assert _ours_out_of_order(verdict) == []
    assert _ours_twice(verdict) == []


@pytest.mark.parametrize("seed", [11])
def test_whatever_happens_nothing_is_lost_and_what_is_twice_has_a_reason(
    request: pytest.FixtureRequest, churn: Callable[[Plan, str], Verdict], seed: int
) -> None:
    verdict = churn(_plan(request, seed, 0.5, kinds=MIXED, assignor="range", **WORST), "whatever happens")
    assert verdict.lost == []
    assert _ours_out_of_order(verdict) == []
    assert _ours_twice(verdict) == []
    assert verdict.explained, "the run did not do its worst: nothing had to be handled again"


def _ours_out_of_order(verdict: Verdict) -> list[Handled]:
    return [each for each in verdict.out_of_order if _is_ours(each)]


def _ours_twice(verdict: Verdict) -> list[tuple[Handled, Handled]]:
    """Without a kill or an expired session; what another make did not commit is its own matter.

    So is what kafka-python 3.0.12 reads again: when two rebalances follow each other at once, it may go on
    from where it stood in the first, although a newer offset is committed.
    """
    return [
        (before, again)
        for before, again in verdict.twice
        if _is_ours(before) and not again.member.endswith("-kafka-python")
    ]


def _is_ours(handled: Handled) -> bool:
    return handled.member.partition("-")[2] in OURS
