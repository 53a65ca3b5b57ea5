"""SCRAM users by the admin APIs: made, shown, changed and removed, and what is refused.

Covers: broker/apis/alter_user_scram_credentials.py, broker/apis/describe_user_scram_credentials.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.broker.apis import Request, served_apis
from kohort.broker.security._scram_users import ScramUsers
from kohort.protocol import ApiKey, ErrorCode, RequestContext
from kohort.testing import RunningBroker, running_broker
from tests.broker.security.logins import asks, log_in_scram
from tests.broker.wire import Wire, part

ALTER, DESCRIBE = ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
LISTENERS: dict[str, Any] = {"listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"}


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with running_broker(**LISTENERS) as running:
        yield running


def upsertion(name: str, password: str = "secret", mechanism: int = 1, iterations: int = 4_096) -> Any:
    hashed = "sha256" if mechanism == 1 else "sha512"
    salted = hashlib.pbkdf2_hmac(hashed, password.encode(), b"salt", iterations)
    return part(
        ALTER,
        0,
        "ScramCredentialUpsertion",
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt",
        salted_password=salted,
    )


def deletion(name: str, mechanism: int = 1) -> Any:
    return part(ALTER, 0, "ScramCredentialDeletion", name=name, mechanism=mechanism)


def alter(wire: Wire, *upsertions: Any, deletions: Any = ()) -> dict[str, int]:
    """Error codes by user."""
    answer = wire.call(ALTER, 0, deletions=list(deletions), upsertions=list(upsertions))
    return {row.user: row.error_code for row in answer.results}


def described(wire: Wire, *users: str) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    asked = [part(DESCRIBE, 0, "UserName", name=user) for user in users] if users else None
    answer = wire.call(DESCRIBE, 0, users=asked)
    assert answer.error_code == 0
    return {
        row.user: (row.error_code, [(info.mechanism, info.iterations) for info in row.credential_infos])
        for row in answer.results
    }


def test_a_user_that_was_made_can_log_in_at_once_and_no_more_when_removed(
    broker: RunningBroker, wire: Wire
) -> None:
    assert alter(wire, upsertion("alice"), upsertion("alice", mechanism=2, iterations=8_192)) == {"alice": 0}
    assert described(wire) == {"alice": (0, [(1, 4_096), (2, 8_192)])}
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        with Wire(broker.endpoints["SASL_PLAINTEXT"]) as client:
            assert log_in_scram(client, mechanism=mechanism).error_code == 0
            assert asks(client)
    assert alter(wire, upsertion("alice", "other")) == {"alice": 0}
    assert alter(wire, deletions=[deletion("alice", 2)]) == {"alice": 0}
    for password, mechanism, error in (
        ("secret", "SCRAM-SHA-256", 58),
        ("other", "SCRAM-SHA-256", 0),
        ("secret", "SCRAM-SHA-512", 58),
    ):
        with Wire(broker.endpoints["SASL_PLAINTEXT"]) as client:
            assert log_in_scram(client, password=password, mechanism=mechanism).error_code == error


def test_users_outlive_the_broker(tmp_path: Any) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        alter(wire, upsertion("alice"), upsertion("bob"))
        alter(wire, deletions=[deletion("bob")])
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert described(wire) == {"alice": (0, [(1, 4_096)])}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([upsertion("")], 93),
        ([upsertion("bob", iterations=4_095)], 93),
        ([upsertion("bob", iterations=16_385)], 93),
        ([upsertion("bob", mechanism=3)], 33),
        ([upsertion("bob"), upsertion("bob", "again")], 92),
    ],
    ids=["no name", "too few iterations", "too many iterations", "unknown mechanism", "twice"],
)
def test_what_cannot_be_is_refused_for_that_user_alone(wire: Wire, changes: list[Any], code: int) -> None:
    name = changes[0].name
    assert alter(wire, *changes, upsertion("alice")) == {name: code, "alice": 0}
    assert list(described(wire)) == ["alice"]


def test_all_of_a_users_changes_are_made_or_none(wire: Wire) -> None:
    assert alter(wire, upsertion("bob"), deletions=[deletion("bob", 2)]) == {"bob": 91}
    assert described(wire) == {}


def test_users_that_are_not_there_or_named_twice(wire: Wire) -> None:
    alter(wire, upsertion("alice"))
    assert alter(wire, deletions=[deletion("nobody")]) == {"nobody": 91}
    assert described(wire, "nobody", "alice", "alice") == {"nobody": (91, []), "alice": (92, [])}
    assert described(wire, "alice") == {"alice": (0, [(1, 4_096)])}


class _Counted:
    """A deletion that counts how often it is looked at."""

    looks = 0
    mechanism = 1

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        type(self).looks += 1
        return self._name


async def test_a_request_about_many_users_looks_at_each_a_few_times() -> None:
    rows = [_Counted(f"user{number}") for number in range(1_000)]
    body = SimpleNamespace(deletions=rows, upsertions=[])
    request = Request(served_apis()[ALTER], 0, body, RequestContext(), ("127.0.0.1", 0))
    node: Any = SimpleNamespace(scram_users=ScramUsers())
    answer = await request.api.handler(node, request)
    assert [row.error_code for row in answer.results] == [ErrorCode.RESOURCE_NOT_FOUND] * len(rows)
    assert _Counted.looks < 10 * len(rows)
