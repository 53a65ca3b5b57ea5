"""``kohort quotas``: quotas are set, listed and removed, on kohort's broker and on Apache Kafka.

Covers: admin/access/quotas.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.admin.access.conftest import Command

pytestmark = pytest.mark.kafka

Names = Callable[[str], str]


def quotas(operator: Command, *words: object) -> list[tuple[dict[str, Any], dict[str, float]]]:
    found = operator("quotas", "list", *words, "--json").document["quotas"]
    return [(row["entity"], row["quotas"]) for row in found]


def test_quotas_of_a_user_are_set_shown_and_removed(operator: Command, group: Names) -> None:
    user = group("alice")
    done = operator("quotas", "set", "--user", user, "producer_byte_rate=1048576", "request_percentage=12.5")
    assert done.code == 0, done.err
    assert done.rows()[1] == ["user", user, "producer_byte_rate", "1048576", "set"]
    both = {"producer_byte_rate": 1048576, "request_percentage": 12.5}
    assert quotas(operator, "--user", user) == [({"user": user}, both)]
    assert ["user", user, "request_percentage", "12.5"] in operator("quotas", "list").rows()

    assert operator("quotas", "remove", "--user", user, "request_percentage").code == 0
    assert quotas(operator, "--user", user) == [({"user": user}, {"producer_byte_rate": 1048576})]
    assert operator("quotas", "remove", "--user", user).code == 0
    assert quotas(operator, "--user", user) == []
    again = operator("quotas", "remove", "--user", user)
    assert again.code == 1
    assert f"no quota is set for user {user}" in again.err


def test_pairs_and_defaults_are_entities_of_their_own(operator: Command, group: Names) -> None:
    user, client = group("odd ü/,=name"), group("etl")
    for words in (
        ["--user", user],
        ["--user", user, "--client-id", client],
        ["--user", user, "--client-id-default"],
    ):
        assert operator("quotas", "set", *words, "consumer_byte_rate=1000").code == 0
    assert [entity for entity, _ in quotas(operator, "--user", user)] == [
        {"user": user},
        {"user": user, "client-id": None},
        {"user": user, "client-id": client},
    ]
    assert [entity for entity, _ in quotas(operator, "--client-id", client)] == [
        {"user": user, "client-id": client}
    ]
    assert operator("quotas", "remove", "--user", user, "--client-id-default").code == 0
    assert len(quotas(operator, "--user", user)) == 2
    shown = operator("quotas", "set", "--client-id-default", "consumer_byte_rate=1e9", "--dry-run")
    assert shown.rows()[1][:3] == ["client-id", "(default)", "consumer_byte_rate"]


def test_a_dry_run_changes_nothing(operator: Command, group: Names) -> None:
    user = group("dry")
    planned = operator("quotas", "set", "--user", user, "producer_byte_rate=5", "--dry-run", "--json")
    assert planned.document["quotas"] == [
        {"quota": "producer_byte_rate", "value": 5.0, "result": "would be set"}
    ]
    assert quotas(operator, "--user", user) == []


def test_what_the_broker_does_not_know_of_addresses_it_says(operator: Command) -> None:
    """Apache Kafka limits the connections of addresses; a broker that does not refuses with its words."""
    done = operator("quotas", "set", "--ip", "10.0.0.9", "connection_creation_rate=7")
    if done.code == 0:
        assert quotas(operator, "--ip", "10.0.0.9") == [({"ip": "10.0.0.9"}, {"connection_creation_rate": 7})]
        assert operator("quotas", "remove", "--ip", "10.0.0.9").code == 0
    else:
        assert "INVALID_REQUEST" in done.err


def test_nobody_without_the_right_sees_or_sets_quotas(as_user: Command) -> None:
    for words in (["list"], ["set", "--user", "bob", "producer_byte_rate=1"], ["remove", "--user", "bob"]):
        refused = as_user("bob", "quotas", *words)
        assert (refused.code, refused.out) == (1, "")
        assert "CLUSTER_AUTHORIZATION_FAILED" in refused.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["set", "producer_byte_rate=1"], "whose? give --user"),
        (["set", "--user", "a", "--ip", "::1", "request_percentage=1"], "--ip goes with no other"),
        (["set", "--user", "a", "producer_byte_rates=1"], "did you mean producer_byte_rate?"),
        (["set", "--user", "a", "producer_byte_rate=fast"], "a quota is a number above 0"),
        (["set", "--user", "a", "producer_byte_rate=-1"], "a quota is a number above 0"),
        (["set", "--user", "a", "producer_byte_rate"], "is no quota: give QUOTA=NUMBER"),
        (["set", "--user", "", "producer_byte_rate=1"], "a name is not empty"),
        (["set", "--user", "a", "--user-default", "producer_byte_rate=1"], "not allowed with"),
        (["remove", "--user", "a", "speed"], "'speed' is no quota: give producer_byte_rate"),
    ],
)
def test_wrong_use_is_told_before_a_broker_is_asked(operator: Command, words: list[str], said: str) -> None:
    found = operator("quotas", *words, to="127.0.0.1:1")
    assert found.code == 2
    assert said in found.err
