"""Sessions with a home in memory: cut off, ended and renewed on command."""

from __future__ import annotations

import pytest

from kohort.cluster import Create, Delete, Put, SessionState, StoreEntry
from kohort.testing.memory_store import MemoryHome


async def test_a_store_that_is_cut_off_reads_what_it_knew_and_catches_up() -> None:
    home = MemoryHome()
    cut, other = home.open(), home.open()
    await other.commit(Create("/a", 1), Create("/b", 1))
    states: list[SessionState] = []
    fired: list[str] = []
    cut.on_session(states.append)
    cut.watch("/a", fired.append)
    cut.watch("/b", fired.append)
    cut.suspend()
    await other.commit(Put("/a", 2))
    await other.commit(Put("/a", 3), Create("/c", 3))
    with pytest.raises(ConnectionError, match="suspended"):
        await cut.commit(Put("/a", 4))
    assert (cut.get("/a"), cut.get("/c"), fired) == (StoreEntry(1), None, [])
    cut.resume()
    assert (cut.get("/a"), cut.get("/c"), fired) == (StoreEntry(3, 2), StoreEntry(3), ["/a"])
    assert states == [SessionState.SUSPENDED, SessionState.CONNECTED]


async def test_a_session_that_ends_takes_its_entries_and_another_begins_without() -> None:
    home = MemoryHome()
    ended, other = home.open(), home.open()
    await ended.commit(Create("/mine", 1, ephemeral=True), Create("/kept", 1))
    states: list[SessionState] = []
    ended.on_session(states.append)
    ended.suspend()
    ended.expire()
    assert other.get("/mine") is None
    assert ended.get("/mine") == StoreEntry(1, ephemeral=True)
    with pytest.raises(ConnectionError, match="lost"):
        await ended.commit(Put("/kept", 2))
    await other.commit(Put("/kept", 3))
    ended.resume()
    assert (ended.get("/mine"), ended.get("/kept")) == (None, StoreEntry(3, 1))
    await ended.commit(Create("/mine", 2, ephemeral=True))
    assert other.get("/mine") == StoreEntry(2, ephemeral=True)
    assert states == [SessionState.SUSPENDED, SessionState.LOST, SessionState.CONNECTED]


async def test_an_entry_that_its_session_has_deleted_is_another_ones_afterwards() -> None:
    home = MemoryHome()
    first, second = home.open(), home.open()
    await first.commit(Create("/leader", 1, ephemeral=True))
    await first.commit(Delete("/leader"))
    await second.commit(Create("/leader", 2, ephemeral=True))
    first.close()
    assert second.get("/leader") == StoreEntry(2, ephemeral=True)


async def test_an_entry_of_a_session_that_another_one_has_replaced_stays() -> None:
    home = MemoryHome()
    first, second = home.open(), home.open()
    await first.commit(Create("/leader", 1, ephemeral=True))
    await second.commit(Delete("/leader"), Create("/leader", 2, ephemeral=True))
    first.close()
    assert second.get("/leader") == StoreEntry(2, ephemeral=True)
