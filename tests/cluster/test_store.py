"""The interface of a metadata store: what each of its homes keeps to.

Entries stand where the layout has them, since a folder has files for nothing else.

Covers: cluster/tree.py, cluster/layout.py, testing/memory_store.py, cluster/_zookeeper_store.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

import pytest
import pytest_asyncio

from kohort.cluster import (
    DELETED_TOPICS,
    PRODUCER_IDS,
    TOPICS,
    Change,
    Check,
    ConflictError,
    Create,
    Delete,
    FolderStore,
    MetadataStore,
    Put,
    SessionState,
    StoreEntry,
    TopicRecord,
    deleted_topic_path,
    topic_path,
)
from kohort.testing.memory_store import MemoryHome
from tests.cluster.servers import ZooKeeper

#: Opens a store over what the last one of this test has left.
Home: TypeAlias = Callable[[], Awaitable[MetadataStore]]

ORDERS, CLICKS, BROKER = topic_path("orders"), topic_path("clicks"), "/brokers/ids/1"


def record(partitions: int = 1) -> dict[str, Any]:
    return TopicRecord(UUID(int=partitions), partitions, {"retention_ms": 5}).to_document()


@pytest.fixture(params=["folder", "memory", "threads", "zookeeper", "ensemble"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    memory = MemoryHome()

    async def folder() -> MetadataStore:
        return FolderStore(tmp_path)

    async def in_memory() -> MetadataStore:
        return memory.open()

    async def in_thread() -> MetadataStore:
        return memory.open(asyncio.get_running_loop())

    if request.param == "folder":
        return folder
    if request.param == "memory":
        return in_memory
    if request.param == "threads":
        return in_thread
    servers: ZooKeeper = request.getfixturevalue(request.param)
    return servers.home()


@pytest_asyncio.fixture
async def store(home: Home) -> AsyncIterator[MetadataStore]:
    opened = await home()
    yield opened
    opened.close()


async def test_an_entry_is_read_as_it_was_created_and_then_put(store: MetadataStore) -> None:
    assert store.get(ORDERS) is None
    await store.commit(Create(ORDERS, record(1)))
    assert store.get(ORDERS) == StoreEntry(record(1), version=0)
    await store.commit(Put(ORDERS, record(2)))
    await store.commit(Put(ORDERS, record(3), version=1))
    assert store.get(ORDERS) == StoreEntry(record(3), version=2)
    await store.commit(Delete(ORDERS, version=2))
    assert store.get(ORDERS) is None


async def test_an_entry_that_is_created_anew_begins_at_version_0(store: MetadataStore) -> None:
    await store.commit(Create(ORDERS, record(1)))
    await store.commit(Put(ORDERS, record(2)))
    await store.commit(Delete(ORDERS), Create(ORDERS, record(3)))
    assert store.get(ORDERS) == StoreEntry(record(3), version=0)


async def test_children_are_in_the_order_of_their_creation(store: MetadataStore) -> None:
    assert list(store.children(TOPICS)) == []
    for name in ("b", "c", "a"):
        await store.commit(Create(topic_path(name), record()))
    await store.commit(Put(topic_path("b"), record(2)), Delete(topic_path("c")))
    await store.commit(Create(topic_path("c"), record()))
    assert list(store.children(TOPICS)) == ["b", "a", "c"]


@pytest.mark.parametrize(
    "change",
    [
        Create(ORDERS, record(9)),
        Put(ORDERS, record(9), version=1),
        Delete(ORDERS, version=7),
        Check(ORDERS, 1),
        Put(CLICKS, record(9)),
        Delete(CLICKS),
        Check(CLICKS, 0),
    ],
    ids=repr,
)
async def test_a_step_of_which_one_change_does_not_fit_does_nothing(
    store: MetadataStore, change: Change
) -> None:
    await store.commit(Create(ORDERS, record(1)))
    fired: list[str] = []
    store.watch(ORDERS, fired.append)
    store.watch_children(TOPICS, fired.append)
    with pytest.raises(ConflictError) as refused:
        await store.commit(Create(topic_path("new"), record()), change, Put(ORDERS, record(2)))
    assert refused.value.change is change
    assert change.path in str(refused.value)
    assert store.get(ORDERS) == StoreEntry(record(1), version=0)
    assert list(store.children(TOPICS)) == ["orders"]
    assert fired == []


async def test_changes_of_a_step_see_those_before_them(store: MetadataStore) -> None:
    await store.commit(
        Create(ORDERS, record(1)), Put(ORDERS, record(2), version=0), Check(ORDERS, 1), Delete(ORDERS)
    )
    assert store.get(ORDERS) is None
    await store.commit(Create(ORDERS, record(1)), Delete(ORDERS), Create(ORDERS, record(4)))
    assert store.get(ORDERS) == StoreEntry(record(4), version=0)


async def test_what_is_durable_outlives_the_store(home: Home) -> None:
    gone = UUID(int=7)
    first = await home()
    await first.commit(
        Create(ORDERS, record(3)), Create(deleted_topic_path(gone), "gone"), Create(PRODUCER_IDS, 2_000)
    )
    first.close()
    again = await home()
    entries = {path: again.get(path) for path in (ORDERS, deleted_topic_path(gone), PRODUCER_IDS)}
    values = [entry.value for entry in entries.values() if entry is not None]
    assert values == [record(3), "gone", 2_000]
    assert list(again.children(DELETED_TOPICS)) == [str(gone)]
    again.close()


async def test_ephemeral_entries_go_with_their_session(home: Home) -> None:
    first = await home()
    await first.commit(Create(BROKER, {"port": 9092}, ephemeral=True))
    assert first.get(BROKER) == StoreEntry({"port": 9092}, ephemeral=True)
    await first.commit(Put(BROKER, {"port": 9093}))
    assert first.get(BROKER) == StoreEntry({"port": 9093}, version=1, ephemeral=True)
    first.close()
    again = await home()
    assert again.get(BROKER) is None
    assert list(again.children("/brokers/ids")) == []
    await again.commit(Create(BROKER, {}, ephemeral=True))
    await again.commit(Delete(BROKER))
    again.close()


async def test_a_watch_fires_once_after_the_change_and_not_for_others(store: MetadataStore) -> None:
    fired: list[tuple[str, StoreEntry | None]] = []

    def note(path: str) -> None:
        fired.append((path, store.get(path)))

    store.watch(ORDERS, note)
    await store.commit(Create(CLICKS, record(1)))
    assert fired == []
    await store.commit(Create(ORDERS, record(1)))
    await store.commit(Put(ORDERS, record(2)))
    assert fired == [(ORDERS, StoreEntry(record(1)))]
    store.watch(ORDERS, note)
    await store.commit(Put(ORDERS, record(3)))
    store.watch(ORDERS, note)
    await store.commit(Delete(ORDERS))
    assert fired[1:] == [(ORDERS, StoreEntry(record(3), version=2)), (ORDERS, None)]


async def test_a_watch_fires_once_for_a_step_that_changes_its_entry_twice(store: MetadataStore) -> None:
    await store.commit(Create(ORDERS, record(1)))
    fired: list[str] = []
    store.watch(ORDERS, fired.append)
    await store.commit(Put(ORDERS, record(2)), Put(ORDERS, record(3)))
    assert fired == [ORDERS]


async def test_a_watch_of_children_fires_for_those_that_come_and_go(store: MetadataStore) -> None:
    fired: list[list[str]] = []

    def note(path: str) -> None:
        fired.append(list(store.children(path)))

    store.watch_children(TOPICS, note)
    await store.commit(Create(ORDERS, record(1)))
    await store.commit(Create(CLICKS, record(1)))
    assert fired == [["orders"]]
    store.watch_children(TOPICS, note)
    await store.commit(Put(ORDERS, record(2)))
    assert len(fired) == 1
    await store.commit(Delete(CLICKS), Create(topic_path("new"), record(1)))
    assert fired[1:] == [["orders", "new"]]


async def test_a_check_fires_no_watch(store: MetadataStore) -> None:
    await store.commit(Create(ORDERS, record(1)))
    fired: list[str] = []
    store.watch(ORDERS, fired.append)
    await store.commit(Check(ORDERS, 0))
    assert fired == []


async def test_whoever_watches_may_watch_again_at_once(store: MetadataStore) -> None:
    versions: list[int] = []

    def note(path: str) -> None:
        entry = store.get(path)
        assert entry is not None
        versions.append(entry.version)
        store.watch(path, note)

    store.watch(ORDERS, note)
    await store.commit(Create(ORDERS, record(1)))
    for partitions in (2, 3):
        await store.commit(Put(ORDERS, record(partitions)))
    assert versions == [0, 1, 2]


async def test_a_session_that_is_over_is_told_and_writes_nothing(home: Home) -> None:
    store = await home()
    states: list[SessionState] = []
    store.on_session(states.append)
    assert store.session is SessionState.CONNECTED
    store.close()
    store.close()
    assert (store.session, states) == (SessionState.LOST, [SessionState.LOST])
    with pytest.raises(ConnectionError):
        await store.commit(Create(ORDERS, record(1)))
    again = await home()
    assert again.get(ORDERS) is None
    again.close()
