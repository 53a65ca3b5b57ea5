"""Which address of a host is connected to, when some of them do not answer or refuse."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kohort.client import BrokerConnectionError, Cluster, addresses
from kohort.client.addresses import connect_socket
from kohort.client.connection import Connection
from kohort.client.metadata import Address
from tests.client.fake_broker import FakeBroker

SILENT, REFUSES = "127.0.0.2", "127.0.0.3"


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Connecting to SILENT takes for ever; the addresses that were connected to, in their order."""
    tried: list[str] = []
    real: Callable[..., Awaitable[None]] = asyncio.SelectorEventLoop.sock_connect

    async def sock_connect(self: Any, sock: socket.socket, address: tuple[str, int]) -> None:
        tried.append(address[0])
        if address[0] == SILENT:
            await asyncio.Event().wait()
        await real(self, sock, address)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", sock_connect)
    return tried


def _resolves(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> None:
    async def resolve(_: str, port: int) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port)) for host in hosts]

    monkeypatch.setattr(addresses, "_resolve_host", resolve)


async def test_behind_an_address_that_does_not_answer_the_next_one_is_tried(
    silent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _resolves(monkeypatch, SILENT, REFUSES, "127.0.0.1")
    async with FakeBroker() as broker, Cluster(f"broker.example:{broker.port}") as cluster:
        assert cluster.known_metadata.nodes
    assert silent[:3] == [SILENT, REFUSES, "127.0.0.1"]
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "kohort connect"]


async def test_the_first_address_that_answers_at_once_is_the_only_one(
    silent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "STAGGER_S", 60.0)
    _resolves(monkeypatch, "127.0.0.1", SILENT)
    async with FakeBroker() as broker:
        (await connect_socket("broker.example", broker.port)).close()
    assert silent == ["127.0.0.1"]


async def test_a_host_of_which_all_addresses_refuse_is_told_from_one_that_is_silent(
    silent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FakeBroker() as broker:
        port = broker.port
    _resolves(monkeypatch, REFUSES, "127.0.0.1")
    with pytest.raises(ConnectionRefusedError):
        await connect_socket("broker.example", port)
    _resolves(monkeypatch, REFUSES, "127.0.0.1", SILENT)
    cluster = Cluster(f"broker.example:{port}", default_api_timeout_ms=1, connect_timeout_ms=500)
    with pytest.raises(BrokerConnectionError, match="no connection within 500 ms"):
        await cluster.connect()
    await cluster.close()
    assert silent[-1] == SILENT


async def test_different_errors_of_the_addresses_are_all_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(_: str, port: int) -> list[Any]:
        kinds = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        return [(*kinds, (REFUSES, port)), (*kinds, ("255.255.255.255", port))]

    monkeypatch.setattr(addresses, "_resolve_host", resolve)
    with pytest.raises(OSError, match=rf"{REFUSES}: Connection refused; 255.255.255.255: "):
        await connect_socket("broker.example", 1)


async def test_a_name_is_looked_up_and_an_address_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    loop = asyncio.get_running_loop()
    real = loop.getaddrinfo

    async def getaddrinfo(host: str, *given: Any, **named: Any) -> Any:
        asked.append(host)
        return await real(host, *given, **named)

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    async with FakeBroker() as broker:
        for host in ("127.0.0.1", "localhost"):
            connected = await connect_socket(host, broker.port)
            assert connected.getpeername()[1] == broker.port
            connected.close()
    assert asked == ["localhost"]


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
async def test_what_is_no_host_name_is_a_broker_that_cannot_be_reached(host: str) -> None:
    """A broker may name itself so. For Python it is a UnicodeError, which nobody expects."""
    with pytest.raises(BrokerConnectionError, match="is no host name"):
        await Connection.open(Address(host, 9092), client_id="kohort")
