"""What homes keep to that several brokers share: each of them has a session of its own.

Covers: cluster/_zookeeper_store.py, testing/memory_store.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

import pytest
import pytest_asyncio

from kohort.cluster import (
    TOPICS,
    Check,
    ConflictError,
    Create,
    Delete,
    MetadataStore,
    Put,
    StoreEntry,
    topic_path,
)
from tests.cluster.servers import until

Home: TypeAlias = Callable[[], Awaitable[MetadataStore]]

ORDERS, CLICKS, BROKER = topic_path("orders"), topic_path("clicks"), "/brokers/ids/1"


@pytest_asyncio.fixture
async def stores(home: Home) -> AsyncIterator[list[MetadataStore]]:
    opened = [await home() for _ in range(3)]
    yield opened
    for store in opened:
        store.close()


async def sees(store: MetadataStore, path: str, entry: StoreEntry) -> None:
    await until(lambda: store.get(path) == entry)


async def test_a_step_of_one_is_seen_by_the_others_as_a_whole(stores: list[MetadataStore]) -> None:
    writer, *readers = stores
    await writer.commit(Create(ORDERS, 0), Create(CLICKS, 0))
    torn: list[tuple[StoreEntry | None, StoreEntry | None]] = []
    for reader in readers:
        await sees(reader, CLICKS, StoreEntry(0))

        def look(path: str, reader: MetadataStore = reader) -> None:
            seen = reader.get(ORDERS), reader.get(CLICKS)
            if seen[0] != seen[1]:
                torn.append(seen)
            reader.watch(path, look)

        reader.watch(ORDERS, look)
        reader.watch(CLICKS, look)
    for number in range(1, 51):
        await writer.commit(Put(ORDERS, number), Put(CLICKS, number))
    for reader in readers:
        await sees(reader, ORDERS, StoreEntry(50, 50))
    assert torn == []


async def test_ephemeral_entries_go_for_all_when_their_session_ends(stores: list[MetadataStore]) -> None:
    owner, other, _ = stores
    await owner.commit(Create(BROKER, {"port": 9092}, ephemeral=True))
    await until(lambda: other.get(BROKER) == StoreEntry({"port": 9092}, ephemeral=True))
    fired: list[str] = []
    other.watch(BROKER, fired.append)
    owner.close()
    await until(lambda: fired == [BROKER])
    assert other.get(BROKER) is None
    assert list(other.children("/brokers/ids")) == []


async def test_of_writers_of_one_version_one_succeeds(stores: list[MetadataStore]) -> None:
    await stores[0].commit(Create(ORDERS, "first"))
    for store in stores:
        await sees(store, ORDERS, StoreEntry("first"))
    results = await asyncio.gather(
        *(store.commit(Put(ORDERS, number, 0)) for number, store in enumerate(stores)), return_exceptions=True
    )
    assert sum(isinstance(result, ConflictError) for result in results) == 2
    for store in stores:
        await sees(store, ORDERS, StoreEntry(results.index(None), 1))


async def test_a_writer_that_was_replaced_writes_nothing(stores: list[MetadataStore]) -> None:
    old, new, _ = stores
    await old.commit(Create("/controller_epoch", 1))
    await until(lambda: new.get("/controller_epoch") is not None)
    await new.commit(Put("/controller_epoch", 2, 0))
    with pytest.raises(ConflictError, match="check of /controller_epoch"):
        await old.commit(Check("/controller_epoch", 0), Create(ORDERS, "of the old one"))
    assert new.get(ORDERS) is None


async def test_who_was_refused_can_read_what_is_there(stores: list[MetadataStore]) -> None:
    first, second, _ = stores
    await first.commit(Create(ORDERS, "first"))
    with pytest.raises(ConflictError, match="it is there, at version 0"):
        await second.commit(Create(ORDERS, "second"))
    assert second.get(ORDERS) == StoreEntry("first")


async def test_entries_are_numbered_and_told_in_the_order_of_their_creation(
    stores: list[MetadataStore],
) -> None:
    names = ["e", "b", "d", "a", "c"]
    for number, name in enumerate(names):
        await stores[number % 3].commit(Create(topic_path(name), number))
    await stores[0].commit(Delete(topic_path("b")))
    await stores[1].commit(Create(topic_path("b"), 5))
    for store in stores:
        await sees(store, topic_path("b"), StoreEntry(5))
        assert list(store.children(TOPICS)) == ["e", "d", "a", "c", "b"]
        numbers = [store.get(topic_path(name)).created for name in store.children(TOPICS)]  # type: ignore[union-attr]
        assert numbers == sorted(set(numbers))


async def test_entries_that_come_and_go_quickly_are_followed(stores: list[MetadataStore]) -> None:
    writer, *readers = stores
    names = [topic_path(name) for name in ("a", "b", "c")]
    await writer.commit(*(Create(name, 0) for name in names))
    for number in range(1, 150):
        name = names[number % 3]
        await writer.commit(Delete(name))
        await writer.commit(Create(name, number))
    for reader in readers:
        for name in names:
            await sees(reader, name, writer.get(name) or StoreEntry(None))
        assert list(reader.children(TOPICS)) == list(writer.children(TOPICS))


async def test_who_comes_later_reads_what_is_there(home: Home, stores: list[MetadataStore]) -> None:
    for name in ("b", "a"):
        await stores[0].commit(Create(topic_path(name), name))
    late = await home()
    assert list(late.children(TOPICS)) == ["b", "a"]
    assert late.get(topic_path("a")) == StoreEntry("a")
    late.close()


async def test_behind_a_sync_everything_can_be_read_that_was_durable_before(
    stores: list[MetadataStore],
) -> None:
    writer, *readers = stores
    await writer.commit(Create(ORDERS, 0))
    for number in range(1, 21):
        await writer.commit(Put(ORDERS, number))
        for reader in readers:
            await reader.sync()
            assert reader.get(ORDERS) == StoreEntry(number, number)
