"""Producer ids are never given twice, whenever the broker dies."""

from __future__ import annotations

import asyncio
import os
from errno import ENOSPC
from pathlib import Path

import pytest

from kohort.cluster import BLOCK_SIZE, PRODUCER_IDS, Change, Delete, FolderStore, ProducerIds, Put
from kohort.testing.memory_store import MemoryHome


def reserved(store: FolderStore) -> int | None:
    entry = store.get(PRODUCER_IDS)
    return None if entry is None else entry.value


async def test_ids_rise_and_a_block_is_reserved_before_its_first_id(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    ids = ProducerIds(store)
    assert reserved(store) is None
    ends = []
    for number in range(BLOCK_SIZE + 1):
        assert await ids.take() == number
        ends.append(reserved(store))
    assert ends == [BLOCK_SIZE] * BLOCK_SIZE + [2 * BLOCK_SIZE]


async def test_a_restart_begins_behind_what_was_reserved(tmp_path: Path) -> None:
    first = ProducerIds(FolderStore(tmp_path))
    given = {await first.take(), await first.take()}
    assert await ProducerIds(FolderStore(tmp_path)).take() not in given


async def test_no_id_is_given_when_its_block_cannot_be_made_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", no_space)
    ids = ProducerIds(FolderStore(tmp_path))
    for _ in range(2):
        with pytest.raises(OSError, match="no space"):
            await ids.take()


async def test_who_finds_a_block_taken_takes_the_next(tmp_path: Path) -> None:
    class Slow(FolderStore):
        """A home that takes its time."""

        async def commit(self, *changes: Change) -> None:
            await asyncio.sleep(0)
            await super().commit(*changes)

    store = Slow(tmp_path)
    ids, others = ProducerIds(store), ProducerIds(store)
    taken = await asyncio.gather(*(each.take() for each in (ids, others, ids, others) for _ in range(20)))
    assert len(set(taken)) == len(taken)
    assert reserved(store) is not None


async def test_no_id_is_given_again_where_the_end_of_blocks_is_lost_or_an_older_one() -> None:
    home = MemoryHome()
    noted: list[int] = []
    ids, others = ProducerIds(home.open()), ProducerIds(home.open(), note=noted.append)
    taken = [await ids.take(), await others.take()]
    assert noted == [BLOCK_SIZE, 2 * BLOCK_SIZE]
    entries = home.open()
    await entries.commit(Put(PRODUCER_IDS, BLOCK_SIZE))
    # the next processes, before and after the entry is there again
    taken.append(await ProducerIds(home.open(), noted[-1]).take())
    await entries.commit(Delete(PRODUCER_IDS))
    await others.begin_behind(noted[-1] - 1)
    taken += [await others.take(), await ProducerIds(home.open()).take()]
    assert taken == [BLOCK_SIZE * number for number in range(5)]


async def test_ids_of_known_blocks_are_skipped_without_a_write(tmp_path: Path) -> None:
    class Full(FolderStore):
        async def commit(self, *_: Change) -> None:
            raise OSError(ENOSPC, "no space left")

    before = ProducerIds(FolderStore(tmp_path))
    newest = [await before.take() for _ in range(3)][-1]
    ids = ProducerIds(Full(tmp_path))
    await ids.begin_behind(newest)
    with pytest.raises(OSError, match="no space"):
        await ids.take()
    with pytest.raises(OSError, match="no space"):
        await ids.begin_behind(BLOCK_SIZE)
    there_is_room = ProducerIds(FolderStore(tmp_path))
    await there_is_room.begin_behind(newest)
    assert await there_is_room.take() == BLOCK_SIZE
    await there_is_room.begin_behind(BLOCK_SIZE + 7)
    assert await there_is_room.take() == BLOCK_SIZE + 8
