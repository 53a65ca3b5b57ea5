"""Who shares what, and what is remembered of whom.

Covers: broker/quotas/_throttle.py.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kohort.broker.quotas import (
    ClientQuotas,
    QuotaKey,
    QuotaTable,
    QuotaWindows,
    Throttle,
    _client_quotas,
    entity_of,
    told_ms,
)
from kohort.protocol import RequestContext

RATE = QuotaKey.PRODUCER_BYTE_RATE


def quotas(*entries: tuple[list[tuple[str, str | None]], dict[QuotaKey, float]]) -> ClientQuotas:
    return ClientQuotas(QuotaTable({entity_of(parts): values for parts, values in entries}))


def test_without_quotas_nothing_is_active_and_nobody_has_a_gauge() -> None:
    none = quotas()
    assert not none.active
    use = none.of("User:alice", "app", 0.0)
    assert (use.produce, use.fetch, use.request, use.mutation) == (None, None, None, None)


def test_clients_of_a_user_share_the_users_quota_and_each_id_has_its_own() -> None:
    by_user = quotas(([("user", "alice")], {RATE: 10.0}))
    assert by_user.of("User:alice", "a", 0.0).produce is by_user.of("User:alice", "b", 0.0).produce
    by_id = quotas(([("client-id", None)], {RATE: 10.0}))
    assert by_id.of("User:alice", "a", 0.0).produce is not by_id.of("User:alice", "b", 0.0).produce
    assert by_id.of("User:alice", "a", 0.0).produce is by_id.of("User:bob", "a", 0.0).produce
    both = quotas(([("user", None), ("client-id", None)], {RATE: 10.0}))
    assert both.of("User:alice", "a", 0.0).produce is not both.of("User:bob", "a", 0.0).produce


def test_clients_without_an_id_share_one_quota() -> None:
    by_id = quotas(([("client-id", None)], {RATE: 10.0}))
    assert by_id.of("User:alice", "", 0.0).produce is by_id.of("User:bob", "", 0.0).produce


def test_a_change_is_in_force_at_once_and_what_was_used_still_counts() -> None:
    known = quotas(([("client-id", "app")], {RATE: 100.0}))
    gauge = known.of("User:alice", "app", 0.0).produce
    assert gauge is not None
    assert gauge.record(100.0, 0.5) == 0.0
    # 100 bytes are ten seconds of the new quota, and 1.2 s have passed with the window before
    known.replace(QuotaTable({entity_of([("client-id", "app")]): {RATE: 10.0}}), 0.6)
    again = known.of("User:alice", "app", 0.7).produce
    assert again is not None
    assert again.record(0.0, 0.7) == pytest.approx(8.8)
    known.replace(QuotaTable(), 0.8)
    assert known.of("User:alice", "app", 0.8).produce is None


def test_names_beyond_the_limit_are_forgotten_but_not_who_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_client_quotas, "MAX_KNOWN", 50)
    known = quotas(([("client-id", None)], {RATE: 100.0}))
    for number in range(200):
        gauge = known.of("User:x", f"old-{number}", 0.0).produce
        assert gauge is not None
        gauge.record(1.0, number / 1_000)
    busy = known.of("User:x", "busy", 99.0).produce
    assert busy is not None
    busy.record(500.0, 99.0)
    for number in range(200):
        known.of("User:x", f"new-{number}", 100.0)
    still = known.of("User:x", "busy", 100.0).produce
    assert still is busy
    assert len(known.gauges()) < 100


def test_time_is_delayed_by_one_window_at_most() -> None:
    held = Throttle(quotas(([("client-id", None)], {QuotaKey.REQUEST_PERCENTAGE: 1.0})))
    use = held.use_of(RequestContext("app"), 0.0)
    assert held.time_delay_s(use, 60.0, 0.0) == 1.0


def test_a_fetch_may_ask_for_what_the_windows_hold() -> None:
    entries = {entity_of([("client-id", "app")]): {QuotaKey.CONSUMER_BYTE_RATE: 100.0}}
    known = ClientQuotas(QuotaTable(entries), QuotaWindows(11, 1.0))
    assert known.fetch_limit(known.of("User:x", "app", 0.0)) == 1_000
    assert known.fetch_limit(known.of("User:x", "other", 0.0)) is None


@pytest.mark.parametrize(("delay_s", "shown"), [(0.0, 0), (0.0004, 0), (0.0006, 1), (2.5, 2_500)])
def test_a_delay_is_told_in_whole_milliseconds(delay_s: float, shown: int) -> None:
    assert told_ms(delay_s) == shown


def test_a_flood_of_short_requests_ends_at_its_share_of_the_time() -> None:
    held = Throttle(quotas(([("client-id", None)], {QuotaKey.REQUEST_PERCENTAGE: 5.0})))
    use = held.use_of(RequestContext("app"), 0.0)
    spent = flood(lambda now: held.time_delay_s(use, 0.000_02, now), 0.000_02, 30.0)
    assert spent / 30.0 == pytest.approx(0.05, rel=0.05)


def flood(delay: Callable[[float], float], cost_s: float, seconds: float) -> float:
    """Time spent on a client whose requests of ``cost_s`` come at half the broker's time, delays obeyed."""
    now = spent = 0.0
    while now < seconds:
        now += 2 * cost_s
        spent += cost_s
        now += told_ms(delay(now)) / 1_000
    return spent


def test_a_quota_that_is_gone_is_measured_no_longer_and_one_that_changed_is_shown_as_it_is() -> None:
    """Whether its clients come again or not."""
    both = [("user", "alice"), ("client-id", None)]
    known = quotas(
        ([("user", None)], {RATE: 10.0}), ([("client-id", "app")], {RATE: 20.0}), (both, {RATE: 30.0})
    )
    for user, client_id in (("bob", "x"), ("alice", "y"), ("alice", "app")):
        gauge = known.of(f"User:{user}", client_id, 0.0).produce
        assert gauge is not None
        gauge.record(1.0, 0.0)

    def shown() -> dict[tuple[str | None, str | None], float]:
        return {(user, client_id): gauge.limit for (_, user, client_id), gauge in known.gauges()}

    assert shown() == {("bob", None): 10.0, ("alice", "y"): 30.0, ("alice", "app"): 30.0}
    known.replace(QuotaTable({entity_of([("user", None)]): {RATE: 11.0}}), 0.1)
    assert shown() == {("bob", None): 11.0}
    known.replace(QuotaTable(), 0.2)
    assert shown() == {}


@pytest.mark.parametrize(
    ("entities", "shared", "limit"),
    [
        ([[("user", "a")], [("user", None)]], ("a", None), 0.0),
        ([[("user", None)], [("user", "b")]], ("a", None), 0.0),
        ([[("client-id", None)], [("client-id", "c")]], (None, "c"), 1.0),
        ([[("user", "a"), ("client-id", None)], [("user", "a")]], ("a", "c"), 0.0),
        ([[("user", "a")], [("client-id", "c")]], ("a", "c"), None),
        ([[("user", "a"), ("client-id", "c")]], ("a", None), None),
    ],
)
def test_the_limit_of_who_shares_a_quota(
    entities: list[list[tuple[str, str | None]]], shared: tuple[str | None, str | None], limit: float | None
) -> None:
    table = QuotaTable({entity_of(parts): {RATE: float(n)} for n, parts in enumerate(entities)})
    assert table.limit_of(RATE, *shared) == limit


def test_long_client_ids_that_begin_alike_are_one_client_unless_one_has_a_quota_by_name() -> None:
    """What is remembered of who asks is short, whatever they call themselves."""
    long = "x" * 30_000
    known = quotas(([("client-id", None)], {RATE: 10.0}), ([("client-id", f"{long}1")], {RATE: 20.0}))
    gauges = [known.of("User:alice", f"{long}{number}", 0.0).produce for number in range(5)]
    assert gauges[0] is gauges[2] is gauges[4] is not None
    assert gauges[1] is not None
    assert gauges[1].limit == 20.0
    assert gauges[1] is not gauges[0]
    assert sum(len(client_id or "") > 300 for (_, _, client_id), _ in known.gauges()) == 1
    assert sum(len(client_id) > 300 for _, client_id in known._clients) == 1
