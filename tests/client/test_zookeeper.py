"""One client of ZooKeeper after the other in a session's place, without a ZooKeeper."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss

from kohort.client import zookeeper
from kohort.client.zookeeper import ZooKeeperSession, ZooKeeperSettings
from tests.waiting import until


@pytest.fixture
async def session(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ZooKeeperSession]:
    monkeypatch.setattr(KazooClient, "start_async", lambda _: None)
    monkeypatch.setattr(zookeeper, "_RENEW_S", 0.0)
    made = ZooKeeperSession(ZooKeeperSettings("127.0.0.1:1"), logging.getLogger("kohort.test"))
    yield made
    made.close()


async def test_what_a_client_that_has_ended_tells_late_is_not_of_the_next_one(
    session: ZooKeeperSession,
) -> None:
    states: list[str] = []
    await session.begin(states.append)
    former = session.client
    (tell_former,) = former.state_listeners
    tell_former("CONNECTED")
    await until(lambda: states == ["CONNECTED"])
    session._client_ended(former)
    tell_former("LOST")
    await until(lambda: session.client is not former)
    tell_former("SUSPENDED")
    (tell,) = session.client.state_listeners
    tell("CONNECTED")
    tell_former("LOST")
    session._client_ended(former)
    tell("SUSPENDED")
    await until(lambda: states[-1] == "SUSPENDED")
    assert states == ["CONNECTED", "LOST", "CONNECTED", "SUSPENDED"]


async def test_requests_of_a_client_that_has_ended_fail_and_do_not_wait_for_its_threads(
    session: ZooKeeperSession,
) -> None:
    def never(*_: Any) -> Any:
        return session.client.handler.async_result()

    await session.begin(lambda _: None)
    before = session.call(never)
    session._client_ended(session.client)
    during = session.call(never)
    for request in (before, during):
        with pytest.raises(ConnectionLoss):
            await asyncio.wait_for(request, 60)


async def test_a_session_that_is_closed_begins_no_other_client(session: ZooKeeperSession) -> None:
    states: list[str] = []
    await session.begin(states.append)
    former = session.client
    session.close()
    session._client_ended(former)
    await asyncio.sleep(0)
    assert session.client is former
    assert session._renewer is None
    assert states == []
