"""How a member's session with ZooKeeper begins and ends, and what is read of a group without being a member.

Covers: consumer/group/zookeeper.py.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss

from kohort.client.errors import ConfigError, ZooKeeperConnectionError
from kohort.client.surroundings import SURROUNDINGS, Surroundings
from kohort.client.zookeeper import ZooKeeperSettings
from kohort.consumer.group.registry import Register
from kohort.consumer.group.zookeeper import ZooKeeperRegistry, new_member_id, read_registry
from kohort.protocol import TopicPartition
from tests.consumer.zookeeper_entries import Entries, Session, fails

TIME_MS = 1_416_000_000_123


@contextmanager
def sessions(entries: Entries, *states: str) -> Iterator[list[Session]]:
    """The sessions that are begun in the block, each of which goes through these states at first."""
    begun: list[Session] = []

    def open_session(settings: ZooKeeperSettings, log: logging.Logger) -> Any:
        assert log.name == "kohort.consumer"
        begun.append(Session(entries, settings, states))
        return begun[-1]

    token = SURROUNDINGS.set(Surroundings(open_zookeeper=open_session, time_ms=lambda: TIME_MS))
    try:
        yield begun
    finally:
        SURROUNDINGS.reset(token)


async def test_a_group_is_read_in_a_session_that_ends_with_that() -> None:
    entries = Entries()
    entries["/a/b/consumers/billing/ids/one"] = [b'{"subscription":{"orders":1}}', 0, 0]
    entries["/a/b/consumers/billing/offsets/orders/3"] = [b"17", 0, 0]
    with sessions(entries, "CONNECTED") as begun:
        found = await read_registry("one:1,two:2/a/b", "billing", 1_000)
    assert found == ({"one": {"orders": 1}}, {TopicPartition("orders", 3): 17})
    (session,) = begun
    # the servers alone: kazoo does not make the folders of a path that it is given
    assert session.settings == ZooKeeperSettings("one:1,two:2", 10_000, 1_000)
    session.state_changed("SUSPENDED")  # which is of no interest then
    assert session.closed == 1


async def test_a_session_ends_when_a_group_cannot_be_read() -> None:
    entries = Entries()
    entries.before["get_children /consumers/billing/ids"] = fails(ConnectionLoss)
    with sessions(entries, "CONNECTED") as begun, pytest.raises(ZooKeeperConnectionError):
        await read_registry("one:1", "billing", 1_000)
    assert [session.closed for session in begun] == [1]


async def test_without_a_connection_in_time_the_servers_and_the_time_are_named() -> None:
    with (
        sessions(Entries(), "SUSPENDED", "LOST") as begun,
        pytest.raises(
            ZooKeeperConnectionError,
            match=r"one:1: no answer from ZooKeeper at one:1 within 20 ms: check the addresses",
        ),
    ):
        await read_registry("one:1", "billing", 20)
    assert [session.closed for session in begun] == [1]


async def test_without_kazoo_the_package_to_install_is_named() -> None:
    def missing(*_: Any) -> Any:
        raise ModuleNotFoundError("kazoo")

    token = SURROUNDINGS.set(Surroundings(open_zookeeper=missing))
    try:
        with pytest.raises(
            ConfigError, match=r"^coordination by ZooKeeper needs kazoo: pip install 'kohort\[cluster\]'$"
        ):
            await read_registry("one:1", "billing", 1_000)
    finally:
        SURROUNDINGS.reset(token)


async def test_a_member_hears_of_the_connection_and_of_what_follows() -> None:
    heard: list[Any] = []
    member: Any = SimpleNamespace(
        on_connected=lambda _: heard.append("connected"),
        on_suspended=lambda _: heard.append("suspended"),
        members_changed=lambda members, _: heard.append(members),
    )
    registry = ZooKeeperRegistry("one:1", "billing", 7_000, 1_000)
    with sessions(Entries(), "LOST", "CONNECTED") as begun:
        await registry.open(member, lambda: heard.append("told"))
        assert heard == ["connected", "told"]
        (session,) = begun
        assert session.settings == ZooKeeperSettings("one:1", 7_000, 1_000)
        assert {task.get_name() for task in registry._tasks} == {"kohort registry"}
        await asyncio.gather(*registry._tasks)
        assert heard[2:] == [{}, "told"]
        await registry.carry_out(Register("me", ("orders",)))
        assert f'"timestamp": "{TIME_MS}"'.encode() in session.entries["/consumers/billing/ids/me"][0]
        session.state_changed("SUSPENDED")
        assert heard[4:] == ["suspended", "told"]
        tasks = list(registry._tasks)
        assert tasks
        registry.close()
        assert session.closed == 1
        await asyncio.gather(*tasks, return_exceptions=True)
        assert all(task.cancelled() for task in tasks)


def test_a_registry_that_was_not_opened_is_closed_all_the_same() -> None:
    ZooKeeperRegistry("one:1", "billing", 7_000, 1_000).close()


def test_a_member_id_is_like_those_of_kafka_0_8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "host")
    rng = random.Random()
    monkeypatch.setattr(rng, "getrandbits", lambda bits: (1 << bits) - 1 if bits == 32 else 0)
    with sessions(Entries()):
        assert new_member_id("billing", rng) == f"billing_host-{TIME_MS}-ffffffff"
        monkeypatch.setattr(rng, "getrandbits", lambda _: 0xAB)
        assert new_member_id("billing", rng) == f"billing_host-{TIME_MS}-000000ab"
