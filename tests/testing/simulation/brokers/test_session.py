"""Sessions of simulated brokers with the metadata that they share."""

from __future__ import annotations

import asyncio
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.cluster import Create, SessionState
from kohort.testing.memory_store import MemoryHome
from kohort.testing.simulation.brokers._session import BrokerSession
from kohort.testing.simulation.engine._heap import Heap


async def test_a_request_after_a_cut_in_which_the_session_ended_is_answered() -> None:
    heap = Heap(Random(1))
    schedule: Any = SimpleNamespace(heap=heap, rng=Random(1), healed=True, say=lambda _: None)
    watch: Any = SimpleNamespace(touched=False)
    metadata = MemoryHome()
    loop: Any = asyncio.get_running_loop()
    session = BrokerSession(metadata, schedule, loop, "b1")

    async def until(time: int) -> None:
        heap.run(time, watch)
        for _ in range(3):
            await asyncio.sleep(0)

    former = asyncio.create_task(session.commit(Create("/a", None)))
    await until(0)
    session.expire()
    session.cut()
    await until(10)
    session.heal()
    await until(20)
    with pytest.raises(ConnectionError, match="broke"):
        await former
    assert session.session is SessionState.CONNECTED
    later = asyncio.create_task(session.commit(Create("/b", None)))
    await until(20)
    await until(30)
    assert later.done()
    assert list(metadata.tree.entries()) == ["/b"]
