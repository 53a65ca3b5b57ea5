"""TLS: a consumer in front of a broker behind a proxy that ends the encryption."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from kohort.client import AuthenticationError, BrokerConnectionError, Cluster
from kohort.client.security import context_and_login
from kohort.consumer.config import consumer_config
from kohort.protocol import ApiKey
from tests.client.fake_broker import FakeBroker


class _Certificates:
    """An authority, and what it signed."""

    def __init__(self, folder: Path) -> None:
        self._authority = trustme.CA()
        self.cafile = str(folder / "ca.pem")
        self._authority.cert_pem.write_to_path(self.cafile)
        self.client = str(folder / "client.pem")
        self._authority.issue_cert("client@example.org").private_key_and_cert_chain_pem.write_to_path(
            self.client
        )

    def server(self, name: str, *, asks_for_client: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.cafile)
        context.verify_mode = ssl.CERT_REQUIRED if asks_for_client else ssl.CERT_NONE
        self._authority.issue_cert(name).configure_cert(context)
        return context


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> _Certificates:
    return _Certificates(tmp_path_factory.mktemp("tls"))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.close()


@pytest.fixture
async def proxied() -> AsyncIterator[Callable[..., Any]]:
    """``await proxied(context)`` is a broker that is reached by TLS."""
    async with FakeBroker() as broker:
        servers: list[asyncio.Server] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, back = await asyncio.open_connection("127.0.0.1", plain)
            await asyncio.gather(_pump(reader, back), _pump(there, writer))

        async def start(context: ssl.SSLContext) -> FakeBroker:
            servers.append(await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context))
            # its metadata names the proxy
            broker.port = servers[-1].sockets[0].getsockname()[1]
            return broker

        plain = broker.port
        yield start
        for server in servers:
            server.close()


def _cluster(broker: FakeBroker, timeout_ms: int = 30_000, **tls: Any) -> Cluster:
    config = consumer_config(bootstrap=broker.address, group="billing", security_protocol="SSL", **tls)
    context, _ = context_and_login(config)
    return Cluster(broker.address, ssl_context=context, default_api_timeout_ms=timeout_ms)


async def test_a_broker_whose_certificate_is_trusted_is_talked_to(
    proxied: Callable[..., Any], certificates: _Certificates
) -> None:
    broker = await proxied(certificates.server("127.0.0.1"))
    broker.topics = {"orders": 2}
    async with _cluster(broker, ssl_cafile=certificates.cafile) as cluster:
        assert len((await cluster.metadata(["orders"])).partitions("orders")) == 2


@pytest.mark.parametrize(
    ("name", "tls", "text"),
    [
        ("127.0.0.1", {}, "certificate is not trusted.*ssl_cafile"),
        (
            "elsewhere.example.org",
            {"ssl_cafile": True},
            "certificate is not trusted.*not valid for .127.0.0.1",
        ),
    ],
    ids=["authority", "name"],
)
async def test_a_broker_that_is_not_who_it_should_be_is_refused_at_once(
    proxied: Callable[..., Any], certificates: _Certificates, name: str, tls: dict[str, Any], text: str
) -> None:
    broker = await proxied(certificates.server(name))
    if tls:
        tls = {"ssl_cafile": certificates.cafile}
    with pytest.raises(AuthenticationError, match=text):
        await _cluster(broker, **tls).connect()


async def test_the_name_is_not_checked_where_that_is_switched_off(
    proxied: Callable[..., Any], certificates: _Certificates
) -> None:
    broker = await proxied(certificates.server("elsewhere.example.org"))
    async with _cluster(broker, ssl_cafile=certificates.cafile, ssl_check_hostname=False):
        pass


async def test_a_client_shows_its_certificate_to_a_broker_that_asks_for_one(
    proxied: Callable[..., Any], certificates: _Certificates
) -> None:
    broker = await proxied(certificates.server("127.0.0.1", asks_for_client=True))
    with pytest.raises(BrokerConnectionError):
        await _cluster(broker, 300, ssl_cafile=certificates.cafile).connect()
    async with _cluster(broker, ssl_cafile=certificates.cafile, ssl_certfile=certificates.client):
        pass


async def test_a_broker_that_speaks_no_tls_is_an_error_in_time(certificates: _Certificates) -> None:
    async with FakeBroker() as broker:
        with pytest.raises(BrokerConnectionError, match="does this listener take TLS"):
            await _cluster(broker, 300, ssl_cafile=certificates.cafile).connect()


async def test_plain_text_to_a_listener_of_tls_says_what_it_may_lack(
    proxied: Callable[..., Any], certificates: _Certificates
) -> None:
    broker = await proxied(certificates.server("127.0.0.1"))
    with pytest.raises(BrokerConnectionError, match=r"does this listener take TLS|TLS where plain text is"):
        await Cluster(broker.address, default_api_timeout_ms=300).connect()


async def test_a_broker_that_closes_at_the_first_request_may_ask_for_sasl() -> None:
    async with FakeBroker() as broker:
        broker.answers[ApiKey.METADATA] = lambda _: broker.drop_connections()
        with pytest.raises(BrokerConnectionError, match="does this listener ask for SASL"):
            await Cluster(broker.address, default_api_timeout_ms=300).connect()
