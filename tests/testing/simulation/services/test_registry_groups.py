"""Services in a group without a coordinator, on a simulated ZooKeeper: schedules, and bugs that they find.

Covers: testing/simulation/services/_zookeeper.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kohort.consumer.group.registry import RegistryMembership
from kohort.consumer.group.zookeeper import ZooKeeperRegistry
from kohort.testing import simulate_service
from kohort.testing.simulation.services import trace_service

pytestmark = pytest.mark.slow(2)


def test_whatever_happens_a_partition_has_one_owner_and_every_record_is_handled() -> None:
    assert simulate_service(12, protocol="registry").stats.records > 3_000


def test_a_member_that_ends_without_a_connection_leaves_its_registration_to_its_session() -> None:
    simulate_service([7_310_311], protocol="registry")


def test_an_owner_that_is_removed_while_it_claims_hears_of_it_when_it_watches() -> None:
    simulate_service([7_500_115], protocol="registry")


def test_who_owns_a_retry_topics_partition_may_handle_its_letters() -> None:
    simulate_service([21_000_025], protocol="registry")


def test_a_seed_is_the_same_schedule_each_time() -> None:
    assert trace_service(7, protocol="registry") == trace_service(7, protocol="registry")


def _nothing(*_: Any) -> None:
    pass


async def _nothing_async(*_: Any) -> None:
    pass


def _suspended(member: RegistryMembership, now: float) -> None:
    member._session = False
    member._over_at = member._heard_at = now + 2 * member._config.session_timeout_ms


def _lost(member: RegistryMembership, reason: str) -> None:
    member._registered, member._held = False, frozenset()
    if member.generation >= 0:
        member._lose_membership(reason)


@pytest.mark.parametrize(
    ("where", "name", "bug", "found", "seed"),
    [
        pytest.param(RegistryMembership, "on_suspended", _suspended, "S4", 4, id="delivers-unconnected"),
        pytest.param(RegistryMembership, "_on_lost", _lost, "L1", 94, id="forgets-what-it-holds"),
        pytest.param(
            ZooKeeperRegistry, "_release_partitions", _nothing_async, "L1", 0, id="releases-nothing"
        ),
        pytest.param(ZooKeeperRegistry, "_ids_changed", _nothing, "L1", 0, id="watches-nobody"),
    ],
)
def test_planted_bugs_are_found(
    monkeypatch: pytest.MonkeyPatch, where: type, name: str, bug: Callable[..., Any], found: str, seed: int
) -> None:
    monkeypatch.setattr(where, name, bug)
    # whatever changes in the code may change the schedule of the seed: then others have to find it
    for number in (seed, *range(500)):
        if simulate_service([number], protocol="registry", go_on=True).failed == {number: found}:
            return
    raise AssertionError("not found")
