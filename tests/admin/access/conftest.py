"""Commands of an operator, on a broker with rules, users and TLS: kohort's, or an Apache Kafka."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.admin.conftest import Ran, ran
from tests.secured import PASSWORD, Secured

Command = Callable[..., Ran]


@pytest.fixture
def operator(secured: Secured, capsys: pytest.CaptureFixture[str]) -> Command:
    """``operator("acls", "list")``: ``kohort acls list`` as somebody who may do everything."""
    return lambda *words, to=secured.plain: ran(capsys, typed(to, words))


@pytest.fixture
def as_user(secured: Secured, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """``as_user("alice", "acls", "list")``: logged in by SCRAM, on a SASL listener."""

    def run(user: str, *words: object, password: str = PASSWORD) -> Ran:
        file = tmp_path / f"password-{user}"
        file.write_text(password)
        login = ["--security-protocol", "SASL_PLAINTEXT", "--sasl-mechanism", "SCRAM-SHA-256"]
        login += ["--sasl-username", user, "--sasl-password-file", str(file)]
        return ran(capsys, [*typed(secured.sasl, words), *login])

    return run


def typed(to: str, words: tuple[object, ...]) -> list[str]:
    return [*map(str, words), "--bootstrap", to, "--timeout", "20"]


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """``on_terminal("y\\n")``: the next command is typed on a terminal, and so is this."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def type_answer(answer: str) -> None:
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    return type_answer
