"""Secrets come from a file, a variable, a terminal or a line of standard input, and never from nowhere."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kohort.settings import SettingsError, read_secret


def test_from_a_file_a_variable_or_the_first_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret"
    file.write_text("from a file\n")
    monkeypatch.setenv("ITS_NAME", "from a variable")
    monkeypatch.setattr("sys.stdin", io.StringIO("from a line\nand another\n"))
    assert read_secret("it", file=str(file)) == "from a file"
    assert read_secret("it", variable="ITS_NAME") == "from a variable"
    assert read_secret("it") == "from a line"


def test_on_a_terminal_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(words: str) -> str:
        asked.append(words)
        return "typed"

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", answer)
    assert read_secret("the password") == "typed"
    assert asked == ["the password: "]


def test_one_that_is_missing_or_empty_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty, binary = tmp_path / "empty", tmp_path / "binary"
    empty.write_text("\n")
    binary.write_bytes(b"\xff")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    monkeypatch.delenv("NOT_SET", raising=False)
    for given, said in (
        ({"file": str(empty)}, "empty is empty"),
        ({"file": str(binary)}, "no text in UTF-8"),
        ({"file": str(tmp_path / "none")}, "No such file"),
        ({"variable": "NOT_SET"}, "NOT_SET is not set"),
        ({}, "it is empty"),
    ):
        with pytest.raises(SettingsError, match=said):
            read_secret("it", **given)
