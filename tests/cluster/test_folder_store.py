"""Metadata in a data folder: the files that it lies in, byte for byte, and what cannot be read or written."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import Mock
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
    _files,
    _folder_store,
    deleted_topic_path,
    topic_path,
)

NAME = "kohort.json"
ID = UUID(int=5)
ORDERS = TopicRecord(
    ID, 3, {"retention_ms": 5, "cleanup_policy": "compact", "preallocate": True}
).to_document()

FILE = """{"version": 2,
"step": 1,
"next_producer_id": 2000,
"deleted": {"00000000-0000-0000-0000-000000000007": "gone"},
"topics": {"orders": {"id": "00000000-0000-0000-0000-000000000005",
"partitions": 3,
"configs": {"retention_ms": 5,
"cleanup_policy": "compact",
"preallocate": true}}}}"""
#: As builds wrote it that knew no steps.
FORMER = FILE.replace('"version": 2,\n"step": 1', '"version": 1')
DOCUMENT = '{"version": 1,\n"broker": {"num_partitions": 3},\n"all": {}}'


def test_an_empty_folder_holds_nothing_and_reading_writes_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    assert (store.children(TOPICS), store.children(DELETED_TOPICS), store.get(PRODUCER_IDS)) == ([], [], None)
    assert store.document("acls").load(dict) is None
    assert list(tmp_path.iterdir()) == []


def test_the_files_are_these(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.commit_now(
        Create(PRODUCER_IDS, 2_000),
        Create(deleted_topic_path(UUID(int=7)), "gone"),
        Create(topic_path("orders"), ORDERS),
    )
    store.document("settings").save_now({"broker": {"num_partitions": 3}, "all": {}})
    assert (tmp_path / NAME).read_text() == FILE
    assert (tmp_path / "kohort-settings.json").read_text() == DOCUMENT


def test_a_file_without_steps_is_read_and_written_with_them(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(FORMER)
    again = FolderStore(tmp_path)
    assert again.get(topic_path("orders")) == StoreEntry(ORDERS)
    again.commit_now(Put(PRODUCER_IDS, 2_000))
    assert (tmp_path / NAME).read_text() == FILE


def test_deletions_of_a_file_without_their_names_are_read(tmp_path: Path) -> None:
    gone = UUID(int=7)
    text = f'{{"version": 1, "topics": {{}}, "deleted": ["{gone}"], "next_producer_id": 0}}'
    (tmp_path / NAME).write_text(text)
    assert FolderStore(tmp_path).get(deleted_topic_path(gone)) == StoreEntry(None)


def test_a_step_is_one_write_of_one_file_that_is_synced(
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
    del done[:]
    store.commit_now(Create(topic_path("first behind them"), ORDERS))
    store.commit_now(Create(topic_path("second"), ORDERS))
    assert done == ["fsync", "fsync", "fsync"], "the first makes the name of its file durable, too"
    del done[:]
    store.commit_now(Create("/brokers/ids/1", {}, ephemeral=True), Delete("/brokers/ids/1"))
    store.commit_now()
    assert not done


@pytest.mark.parametrize("failing", ["a step", "the whole"])
def test_a_step_that_cannot_be_written_is_not_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    store = FolderStore(tmp_path)
    store.commit_now(Create(topic_path("kept"), ORDERS))
    fired: list[str] = []
    store.watch_children(TOPICS, fired.append)

    def no_space(*_: object) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync" if failing == "a step" else "replace", no_space)
        if failing == "the whole":
            store = FolderStore(tmp_path)
            assert store.children(TOPICS) == ["kept"]
            store.watch_children(TOPICS, fired.append)
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
        FILE.replace("2", "3", 1),
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


def test_a_topic_that_its_owner_cannot_read_names_the_file(tmp_path: Path) -> None:
    error = FolderStore(tmp_path).unreadable(topic_path("orders"), ValueError("no number"))
    assert "kohort.json cannot be read (no number): restore it" in str(error)


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


STEPS = "kohort.json.steps"


def topics_of(folder: Path) -> list[str]:
    return list(FolderStore(folder).children(TOPICS))


def with_steps(folder: Path) -> FolderStore:
    """One that has not saved everything since its first step."""
    store = FolderStore(folder)
    store.commit_now(Create(topic_path("first"), ORDERS))
    store.commit_now(Create(topic_path("second"), ORDERS), Create(PRODUCER_IDS, 3_000))
    store.commit_now(
        Delete(topic_path("first")),
        Create(deleted_topic_path(ID), "first"),
        Put(topic_path("second"), {**ORDERS, "partitions": 4}),
    )
    store.commit_now(Create(topic_path("third"), ORDERS), Delete(deleted_topic_path(ID)))
    return store


def test_steps_since_everything_was_saved_are_read(tmp_path: Path) -> None:
    former = with_steps(tmp_path)
    again = FolderStore(tmp_path)
    assert again.children(TOPICS) == former.children(TOPICS) == ["second", "third"]
    assert again.get(topic_path("second")) == StoreEntry({**ORDERS, "partitions": 4})
    assert (again.get(PRODUCER_IDS), again.children(DELETED_TOPICS)) == (StoreEntry(3_000), [])
    assert [path.name for path in again.files()] == [NAME, STEPS]
    assert stat.S_IMODE((tmp_path / STEPS).stat().st_mode) == 0o600


def test_a_store_that_is_closed_leaves_one_file(tmp_path: Path) -> None:
    with_steps(tmp_path).close()
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert topics_of(tmp_path) == ["second", "third"]


def test_steps_that_cannot_be_taken_in_at_the_end_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = with_steps(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", Mock(side_effect=OSError("no space")))
        store.close()
    assert topics_of(tmp_path) == ["second", "third"]


def test_wherever_the_last_step_is_cut_off_it_is_not_made_and_others_follow(tmp_path: Path) -> None:
    with_steps(tmp_path)
    whole = (tmp_path / STEPS).read_bytes()
    begin = whole.rindex(b"\n", 0, -1) + 1
    for cut in [*range(begin, len(whole) - 1), None]:
        left = whole[:begin] + bytes(len(whole) - begin) if cut is None else whole[:cut]
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / NAME).write_bytes((tmp_path / NAME).read_bytes())
        (folder / STEPS).write_bytes(left)
        store = FolderStore(folder)
        assert store.children(TOPICS) == ["second"]
        store.commit_now(Create(topic_path("next"), ORDERS))
        store.commit_now(Create(topic_path("behind it"), ORDERS))
        assert topics_of(folder) == ["second", "next", "behind it"]


def test_steps_are_refused_that_are_damaged_or_miss_one_or_their_beginning(tmp_path: Path) -> None:
    with_steps(tmp_path)
    steps = (tmp_path / STEPS).read_bytes()
    lines = steps.splitlines(keepends=True)
    for content, why in (
        (steps.replace(b"3000", b"3001"), "line 1 of kohort.json.steps is damaged"),
        (lines[0] + lines[2], "line 2 of kohort.json.steps does not follow"),
        (b"".join(lines[1:]), "line 1 of kohort.json.steps does not follow"),
    ):
        (tmp_path / STEPS).write_bytes(content)
        with pytest.raises(StateFileError, match=rf"kohort\.json and kohort\.json\.steps .* \({why}.*both"):
            topics_of(tmp_path)
    (tmp_path / STEPS).write_bytes(steps)
    (tmp_path / NAME).unlink()
    # the file that the error named was removed alone
    with pytest.raises(StateFileError, match=r"does not follow .* without both the topics are taken from"):
        topics_of(tmp_path)


class KilledError(BaseException):
    """The process ends here."""


class KillingOs:
    """The module ``os`` of a process that is killed in the middle of a call that changes files."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _live(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise KilledError

    def open(self, path: Any, flags: int, *mode: int) -> int:
        self._live()
        return os.open(path, flags, *mode)

    def write(self, descriptor: int, data: bytes) -> int:
        os.write(descriptor, data[: len(data) // 2])
        self._live()
        return len(data) // 2 + os.write(descriptor, data[len(data) // 2 :])

    def fsync(self, descriptor: int) -> None:
        self._live()
        os.fsync(descriptor)

    def replace(self, old: Any, new: Any) -> None:
        self._live()
        os.replace(old, new)
        self._live()

    def unlink(self, path: Any) -> None:
        self._live()
        os.unlink(path)


def test_wherever_it_is_killed_no_topic_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_folder_store, "_STEPS_BYTES", 500)
    for calls in count():
        folder = tmp_path / str(calls)
        folder.mkdir()
        made: list[str] = []
        killing = KillingOs(calls)
        with monkeypatch.context() as patch:
            patch.setattr(_files, "os", killing)
            with suppress(KilledError):
                for _ in range(3):
                    store = FolderStore(folder)
                    for _ in range(4):
                        name = f"t{len(made)}"
                        if store.get(topic_path(name)) is None:
                            store.commit_now(Create(topic_path(name), ORDERS))
                        made.append(name)
        # one that was under way may be there
        found = topics_of(folder)
        assert found[: len(made)] == made
        assert found[len(made) :] in ([], [f"t{len(made)}"])
        store = FolderStore(folder)
        for name in ("again", "once more"):
            store.commit_now(Create(topic_path(name), ORDERS))
            assert topics_of(folder)[len(found) :] == store.children(TOPICS)[len(found) :]
        if killing.left >= 0:
            assert calls > 50
            break


def test_what_is_written_grows_with_the_topics_and_not_with_their_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []

    class CountingOs(KillingOs):
        def write(self, descriptor: int, data: bytes) -> int:
            written.append(len(data))
            return os.write(descriptor, data)

        def replace(self, old: Any, new: Any) -> None:
            written.append(Path(old).stat().st_size)
            os.replace(old, new)

    monkeypatch.setattr(_files, "os", CountingOs(1 << 30))
    monkeypatch.setattr(os, "fsync", lambda _: None)
    totals = []
    for topics in (500, 2_000):
        del written[:]
        folder = tmp_path / str(topics)
        folder.mkdir()
        store = FolderStore(folder)
        for number in range(topics):
            store.commit_now(Create(topic_path(f"t{number:05d}"), ORDERS))
        assert len(written) <= topics + 10
        totals.append(sum(written))
    few, many = totals
    assert many < 5 * few
