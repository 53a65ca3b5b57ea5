"""The note of a broker's session in its data folder.

Covers: cluster/_session_note.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kohort.cluster import _session_note
from kohort.cluster._session_note import SESSION_NOTE, SessionNote

SESSION = (2**63 - 5, b"\x00\xffpassword")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    (made / ".lock").touch()
    boot = tmp_path / "boot"
    boot.write_text("one\n")
    return made


@pytest.fixture(autouse=True)
def boot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(_session_note, "_BOOT", tmp_path / "boot")
    return tmp_path / "boot"


def test_a_session_is_read_back_and_is_nobody_elses_to_read(folder: Path) -> None:
    assert SessionNote(folder).read() is None
    SessionNote(folder).write((1, b""))
    SessionNote(folder).write(SESSION)
    assert SessionNote(folder).read() == SESSION
    assert (folder / SESSION_NOTE).stat().st_mode & 0o777 == 0o600


def test_a_copy_of_the_folder_has_no_session(folder: Path, tmp_path: Path) -> None:
    SessionNote(folder).write(SESSION)
    shutil.copytree(folder, tmp_path / "copy")
    assert SessionNote(tmp_path / "copy").read() is None
    assert SessionNote(folder).read() == SESSION


def test_a_machine_that_has_started_again_has_none(folder: Path, boot: Path) -> None:
    SessionNote(folder).write(SESSION)
    boot.write_text("another\n")
    assert SessionNote(folder).read() is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"session":1}', '{"lock":null,"session":"x"}'])
def test_what_is_no_note_is_passed_over(folder: Path, text: str) -> None:
    (folder / SESSION_NOTE).write_text(text)
    assert SessionNote(folder).read() is None


def test_where_starts_cannot_be_told_apart_nothing_is_noted(folder: Path, boot: Path) -> None:
    boot.unlink()
    SessionNote(folder).write(SESSION)
    assert not (folder / SESSION_NOTE).exists()
