"""Metadata in a data folder: the files that it lies in, byte for byte, and what cannot be read or written."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kohort.cluster import (
    DELETED_TOPICS,
    PRODUCER_IDS,
    TOPICS,
    ConflictError,
    Create,
    Delete,
    FolderStore,
    Put,
    StateFileError,
    StoreEntry,
    TopicRecord,
    deleted_topic_path,
    topic_path,
)

NAME = "kohort.json"
ID = UUID(int=5)
ORDERS = TopicRecord(
    ID, 3, {"retention_ms": 5, "cleanup_policy": "compact", "preallocate": True}
).to_document()

#: As kohort 0.1 wrote them.
FILE = """{"version": 1,
"next_producer_id": 2000,
"deleted": {"00000000-0000-0000-0000-000000000007": "gone"},
"topics": {"orders": {"id": "00000000-0000-0000-0000-000000000005",
"partitions": 3,
"configs": {"retention_ms": 5,
"cleanup_policy": "compact",
"preallocate": true}}}}"""
DOCUMENT = '{"version": 1,\n"broker": {"num_partitions": 3},\n"all": {}}'


def test_an_empty_folder_holds_nothing_and_reading_writes_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    assert (store.children(TOPICS), store.children(DELETED_TOPICS), store.get(PRODUCER_IDS)) == ([], [], None)
    assert store.document("acls").load(dict) is None
    assert list(tmp_path.iterdir()) == []


def test_the_files_are_those_of_before(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.commit_now(
        Create(PRODUCER_IDS, 2_000),
        Create(deleted_topic_path(UUID(int=7)), "gone"),
        Create(topic_path("orders"), ORDERS),
    )
    store.document("settings").save_now({"broker": {"num_partitions": 3}, "all": {}})
    assert (tmp_path / NAME).read_text() == FILE
    assert (tmp_path / "kohort-settings.json").read_text() == DOCUMENT
    again = FolderStore(tmp_path)
    assert again.get(topic_path("orders")) == StoreEntry(ORDERS)
    again.commit_now(Put(PRODUCER_IDS, 2_000))
    assert (tmp_path / NAME).read_text() == FILE


def test_deletions_of_a_file_without_their_names_are_read(tmp_path: Path) -> None:
    gone = UUID(int=7)
    text = f'{{"version": 1, "topics": {{}}, "deleted": ["{gone}"], "next_producer_id": 0}}'
    (tmp_path / NAME).write_text(text)
    assert FolderStore(tmp_path).get(deleted_topic_path(gone)) == StoreEntry(None)


def test_a_step_is_one_write_of_one_file_synced_and_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def note(name: str) -> None:
        whole = getattr(os, name)

        def noted(*args: Any) -> Any:
            done.append(name)
            return whole(*args)

        monkeypatch.setattr(os, name, noted)

    store = FolderStore(tmp_path)
    note("fsync")
    note("replace")
    store.commit_now(*(Create(topic_path(f"t{number}"), ORDERS) for number in range(100)))
    assert done == ["fsync", "replace", "fsync"]
    store.commit_now(Create("/brokers/ids/1", {}, ephemeral=True), Delete("/brokers/ids/1"))
    store.commit_now()
    assert len(done) == 3


def test_a_step_that_cannot_be_written_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FolderStore(tmp_path)
    store.commit_now(Create(topic_path("kept"), ORDERS))
    fired: list[str] = []
    store.watch_children(TOPICS, fired.append)

    def no_space(*_: object) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", no_space)
        with pytest.raises(OSError, match="no space"):
            store.commit_now(
                Create(topic_path("orders"), ORDERS),
                Delete(topic_path("kept")),
                Create(deleted_topic_path(ID), "kept"),
            )
    assert (store.children(TOPICS), store.children(DELETED_TOPICS), fired) == (["kept"], [], [])
    assert FolderStore(tmp_path).children(TOPICS) == ["kept"]
    store.commit_now(Create(topic_path("next"), ORDERS))
    again = FolderStore(tmp_path)
    assert (again.children(TOPICS), again.children(DELETED_TOPICS)) == (["kept", "next"], [])


def test_what_no_file_holds_and_what_two_files_hold_is_refused(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    for changes in (
        [Create("/somewhere", 1)],
        [Create(topic_path("orders"), ORDERS), Create("/kafka-acl", {"acls": []})],
    ):
        with pytest.raises(ValueError, match=r"a folder cannot keep .* in one step"):
            store.commit_now(*changes)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_the_owners_alone_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    FolderStore(tmp_path).commit_now(Create(PRODUCER_IDS, 1))
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
        '{"version": 1, "topics": {}, "deleted": ["x"], "next_producer_id": 0}',
    ],
)
def test_an_unreadable_file_is_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    store = FolderStore(tmp_path)
    for _ in range(2):
        with pytest.raises(StateFileError, match=r"kohort\.json cannot be read .*restore it from a copy"):
            store.children(TOPICS)


def test_a_file_that_nobody_asks_for_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "kohort-acls.json").write_text("junk")
    store = FolderStore(tmp_path)
    store.commit_now(Create(PRODUCER_IDS, 1))
    with pytest.raises(StateFileError, match="only super users may do anything"):
        store.get("/kafka-acl")


def test_a_document_that_its_owner_cannot_read_names_the_file(tmp_path: Path) -> None:
    document = FolderStore(tmp_path).document("client-quotas")
    document.save_now({"entries": 3})
    assert document.load(lambda content: content["entries"]) == 3
    with pytest.raises(StateFileError, match=r"kohort-client-quotas\.json cannot be read .*have no quotas"):
        document.load(lambda content: content["quotas"])
    document.save_now({"entries": 4})
    assert FolderStore(tmp_path).document("client-quotas").load(lambda content: content["entries"]) == 4


async def test_a_document_is_not_replaced_where_somebody_else_has_replaced_what_was_read(
    tmp_path: Path,
) -> None:
    store = FolderStore(tmp_path)
    document, other = store.document("client-quotas"), store.document("client-quotas")
    await document.save({"entries": 3})
    assert other.load(dict) == {"entries": 3}
    await document.save({"entries": 4})
    with pytest.raises(ConflictError, match=r"put of /config/quotas cannot be done: .* at version 1"):
        await other.save({"entries": 5})
    assert other.load(dict) == {"entries": 4}
    await other.save({"entries": 5})
    assert document.load(dict) == {"entries": 5}


async def test_a_document_is_not_created_where_somebody_else_was_first(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    document, other = store.document("client-quotas"), store.document("client-quotas")
    assert document.load(dict) is None
    await other.save({"entries": 1})
    with pytest.raises(ConflictError, match="it is there, at version 0"):
        await document.save({"entries": 2})
