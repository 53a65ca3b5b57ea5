"""kohort.json: what is written is read, and what cannot be read says what to do."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from kohort.broker._state_file import StateFileError
from kohort.broker._topics_file import NAME, TopicEntry, TopicsFile


def test_a_missing_file_is_an_empty_one(tmp_path: Path) -> None:
    content = TopicsFile.load(tmp_path)
    assert (content.topics, content.deleted, content.next_producer_id) == ({}, {}, 0)


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    content = TopicsFile.load(tmp_path)
    entry = TopicEntry(uuid4(), 3, {"retention_ms": 5, "cleanup_policy": "compact", "preallocate": True})
    gone = UUID(int=7)
    content.topics["orders"] = entry
    content.deleted[gone] = "gone"
    content.next_producer_id = 2_000
    content.save()
    loaded = TopicsFile.load(tmp_path)
    assert (loaded.topics, loaded.deleted, loaded.next_producer_id) == (
        {"orders": entry},
        {gone: "gone"},
        2_000,
    )


def test_deletions_of_a_file_without_their_names_are_read(tmp_path: Path) -> None:
    gone = UUID(int=7)
    text = f'{{"version": 1, "topics": {{}}, "deleted": ["{gone}"], "next_producer_id": 0}}'
    (tmp_path / NAME).write_text(text)
    assert TopicsFile.load(tmp_path).deleted == {gone: None}


def test_a_change_that_cannot_be_saved_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = TopicsFile.load(tmp_path)
    content.topics["kept"] = kept = TopicEntry(uuid4(), 1)
    content.save()
    monkeypatch.setattr(os, "replace", lambda *_: 1 / 0)

    def change() -> None:
        with content.change():
            content.topics["orders"] = TopicEntry(uuid4(), 2)
            del content.topics["kept"]
            content.deleted[kept.id] = "kept"

    with pytest.raises(ZeroDivisionError):
        change()
    assert (content.topics, content.deleted) == ({"kept": kept}, {})


def test_it_is_the_owners_alone_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    TopicsFile.load(tmp_path).save()
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"version": 2}',
        '{"version": 1, "topics": {"a": {}}, "deleted": [], "next_producer_id": 0}',
    ],
)
def test_an_unreadable_file_is_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(StateFileError, match=r"kohort\.json cannot be read .*restore it from a copy"):
        TopicsFile.load(tmp_path)
