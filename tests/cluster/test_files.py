"""Small durable documents: what is saved is loaded, and what cannot be read names the file."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from kohort.cluster import StateFileError
from kohort.cluster._files import StateFile


def document(folder: Path, version: int = 1) -> StateFile:
    return StateFile(folder / "kohort-acls.json", "nobody may do anything", version)


def names(content: dict[str, Any]) -> list[str]:
    return [str(name) for name in content["names"]]


def test_a_missing_document_is_none(tmp_path: Path) -> None:
    assert document(tmp_path).load(names) is None


def test_what_was_saved_is_loaded_and_is_the_owners_alone(tmp_path: Path) -> None:
    document(tmp_path).save({"names": ["a", "b"]})
    assert document(tmp_path).load(names) == ["a", "b"]
    (path,) = tmp_path.iterdir()
    assert path.name == "kohort-acls.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 1}', '{"version": 1, "names": 3}', '{"names": []}']
)
def test_what_cannot_be_read_names_the_file_and_what_is_lost_without_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "kohort-acls.json").write_text(text)
    with pytest.raises(StateFileError, match=r"kohort-acls\.json cannot be read .*nobody may do anything"):
        document(tmp_path).load(names)


def test_a_document_of_a_later_kohort_is_refused(tmp_path: Path) -> None:
    document(tmp_path, version=2).save({"names": []})
    with pytest.raises(StateFileError, match="its version is 2, this kohort knows 1"):
        document(tmp_path).load(names)


def test_a_disk_that_fails_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document(tmp_path).save({"names": ["old"]})

    def no_space(_descriptor: int) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="no space"):
        document(tmp_path).save({"names": ["new"]})
    assert document(tmp_path).load(names) == ["old"]


def test_where_only_the_folder_cannot_be_synced_the_new_content_is_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is what a restart would read: memory must not go back to the old one."""
    document(tmp_path).save({"names": ["old"]})
    sync = os.fsync

    def fails_for_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError("a loose cable")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fails_for_folders)
    document(tmp_path).save({"names": ["new"]})
    assert document(tmp_path).load(names) == ["new"]
    assert "kohort-acls.json is written, but would be lost if power failed now: a loose cable" in caplog.text
