"""``kohort users`` on running brokers: users are made, listed and removed, and no password is seen.

Covers: admin/access/users.py.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.admin.access.conftest import Command

pytestmark = pytest.mark.kafka

Names = Callable[[str], str]
Types = Callable[[str], None]


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Types:
    """``piped("secret")``: what stands on standard input."""
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(f"{text}\n"))


def mechanisms(operator: Command, user: str) -> list[tuple[str, int]]:
    found = operator("users", "list", user, "--json").document["users"]
    return [(one["mechanism"], one["iterations"]) for each in found for one in each["mechanisms"]]


def test_a_user_is_made_logs_in_gets_another_password_and_goes(
    operator: Command, as_user: Command, group: Names, piped: Types, tmp_path: Path
) -> None:
    user = group("carl")
    piped("gehe1m")
    made = operator("users", "add", user)
    assert made.code == 0, made.err
    assert made.rows()[1:] == [[user, f"SCRAM-SHA-{bits}", "can", "log", "in"] for bits in (256, 512)]
    assert "gehe1m" not in made.out + made.err
    assert mechanisms(operator, user) == [("SCRAM-SHA-256", 4096), ("SCRAM-SHA-512", 4096)]
    assert as_user(user, "cluster", "features", password="gehe1m").code == 0

    file = tmp_path / "another"
    file.write_text("other\n")
    words = ("--mechanism", "SCRAM-SHA-256", "--iterations", "8192", "--password-file", file)
    assert operator("users", "add", user, *words).code == 0
    assert mechanisms(operator, user) == [("SCRAM-SHA-256", 8192), ("SCRAM-SHA-512", 4096)]
    assert as_user(user, "cluster", "features", password="gehe1m").code != 0
    assert as_user(user, "cluster", "features", password="other").code == 0

    removed = operator("users", "remove", user, "--mechanism", "SCRAM-SHA-256", "--json")
    assert removed.document["users"] == [{"user": user, "mechanism": "SCRAM-SHA-256", "result": "removed"}]
    assert operator("users", "remove", user).code == 0
    assert mechanisms(operator, user) == []
    again = operator("users", "remove", user)
    assert again.code == 1
    assert "has no credential" in again.err


def test_odd_names_and_a_password_of_a_variable(
    operator: Command, as_user: Command, group: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = group("Jo, =x 'y'")
    monkeypatch.setenv("ITS_PASSWORD", "pässwort 1")
    assert operator("users", "add", user, "--password-env", "ITS_PASSWORD").code == 0
    assert operator("users", "add", other := group("Jürgen"), "--password-env", "ITS_PASSWORD").code == 0
    listed = operator("users", "list").out
    assert user in listed
    assert other in listed
    assert as_user(user, "cluster", "features", password="pässwort 1").code == 0


def test_a_dry_run_says_what_would_be_done(operator: Command, group: Names, piped: Types) -> None:
    user = group("dry")
    piped("x")
    assert operator("users", "add", user, "--mechanism", "SCRAM-SHA-512").code == 0
    planned = operator("users", "add", user, "--dry-run")
    assert [row[1:] for row in planned.rows()[1:]] == [
        ["SCRAM-SHA-256", "would", "be", "made"],
        ["SCRAM-SHA-512", "would", "be", "replaced"],
    ]
    assert operator("users", "remove", user, "--dry-run").rows()[1][2:] == ["would", "be", "removed"]
    assert mechanisms(operator, user) == [("SCRAM-SHA-512", 4096)]


@pytest.mark.parametrize(("answer", "code", "left"), [("\n", 1, 1), ("yes\n", 0, 0)])
def test_on_a_terminal_it_asks_before_a_user_goes(
    operator: Command, group: Names, piped: Types, on_terminal: Types, answer: str, code: int, left: int
) -> None:
    user = group("goes")
    piped("x")
    operator("users", "add", user, "--mechanism", "SCRAM-SHA-512")
    on_terminal(answer)
    removed = operator("users", "remove", user)
    assert removed.code == code
    assert f"Remove SCRAM-SHA-512 of '{user}'? [y/N]" in removed.err
    assert len(mechanisms(operator, user)) == left


def test_users_without_credentials_are_told(operator: Command, group: Names) -> None:
    found = operator("users", "list", "alice", group("nobody"))
    assert found.code == 1
    assert found.rows()[1][0] == "alice"
    assert "no credentials: 'nobody-" in found.err


def test_nobody_without_the_right_sees_or_makes_users(as_user: Command, group: Names, piped: Types) -> None:
    piped("x")
    for words in (["list"], ["add", group("carl")], ["remove", "alice"]):
        refused = as_user("bob", "users", *words)
        assert (refused.code, refused.out) == (1, ""), refused.err
        assert "CLUSTER_AUTHORIZATION_FAILED" in refused.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", ""], "a user has a name"),
        (["add", "a", "--iterations", "1"], "--iterations is 4096 to 16384"),
        (["add", "a"], "the password of a is empty"),
        (["add", "a", "--password-env", "NOT_SET_AT_ALL"], "NOT_SET_AT_ALL is not set"),
        (["add", "a", "--password", "x"], "everybody on this machine can read that, use --password-file"),
        (["list", "--data", "x", "--settings", "y"], "not allowed with"),
    ],
)
def test_wrong_use_is_told_before_a_broker_is_asked(
    operator: Command, piped: Types, words: list[str], said: str
) -> None:
    piped("")
    found = operator("users", *words, to="127.0.0.1:1")
    assert found.code == 2
    assert said in found.err
