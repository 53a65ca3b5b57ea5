"""Who a client is: PLAIN, SCRAM and OAUTHBEARER, what a broker may say to it, and for how long it holds."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kohort.client import AuthenticationError, BrokerConnectionError, Cluster, Sasl
from kohort.protocol import ApiKey
from tests.client.fake_broker import FakeBroker

_HASHES: dict[str, Callable[..., Any]] = {"SCRAM-SHA-256": hashlib.sha256, "SCRAM-SHA-512": hashlib.sha512}


@dataclass
class _Plain:
    """RFC 4616."""

    mechanism: str = "PLAIN"

    def step(self, data: bytes) -> bytes:
        if data.split(b"\0")[1:] != [b"me", b"secret"]:
            raise ValueError("wrong user or password")
        return b""


@dataclass
class _Oauth:
    """RFC 7628, by a list of one token."""

    mechanism: str = "OAUTHBEARER"

    def step(self, data: bytes) -> bytes:
        if data == b"\x01":
            raise ValueError("invalid_token")
        return b"" if data.split(b"\x01")[1] == b"auth=Bearer good" else b'{"status":"invalid_token"}'


@dataclass
class _Scram:
    """RFC 5802: the server's side, for one user."""

    mechanism: str
    password: bytes = b"secret"
    lies: bool = False
    said: bytes = b""
    #: What the client's first message has to have behind its nonce.
    extension: bytes = b""
    salt: bytes = field(default_factory=lambda: os.urandom(16))

    def _mac(self, key: bytes, data: bytes) -> bytes:
        return hmac.new(key, data, _HASHES[self.mechanism]).digest()

    def step(self, data: bytes) -> bytes:
        if not self.said:
            bare = data.removeprefix(b"n,,")
            nonce, comma, extension = bare.split(b"r=")[1].partition(b",")
            if comma + extension != self.extension:
                raise ValueError("wrong extension")
            nonce += b"more"
            first = b"r=%s,s=%s,i=4096" % (nonce, base64.b64encode(self.salt))
            self.said = bare + b"," + first
            return first
        without_proof, _, proof = data.rpartition(b",p=")
        name = self.mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        salted = hashlib.pbkdf2_hmac(name, self.password, self.salt, 4096)
        message = self.said + b"," + without_proof
        client_key = self._mac(salted, b"Client Key")
        signature = self._mac(_HASHES[self.mechanism](client_key).digest(), message)
        if bytes(a ^ b for a, b in zip(client_key, signature, strict=True)) != base64.b64decode(proof):
            raise ValueError("wrong user or password")
        server = b"nonsense" if self.lies else self._mac(self._mac(salted, b"Server Key"), message)
        return b"v=" + base64.b64encode(server)


def _good() -> str:
    return "good"


def _bad() -> str:
    return "bad"


def _broken() -> str:
    raise RuntimeError("no route to the identity provider")


def _cluster(broker: FakeBroker, sasl: Sasl, default_api_timeout_ms: int = 30_000) -> Cluster:
    timeout_ms = default_api_timeout_ms
    return Cluster(broker.address, sasl=sasl, default_api_timeout_ms=timeout_ms, retry_backoff_ms=10)


@pytest.mark.parametrize(
    ("server", "sasl"),
    [
        (_Plain, Sasl("PLAIN", "me", "secret")),
        (lambda: _Scram("SCRAM-SHA-256"), Sasl("SCRAM-SHA-256", "me", "secret")),
        (lambda: _Scram("SCRAM-SHA-512"), Sasl("SCRAM-SHA-512", "me", "secret")),
        (
            lambda: _Scram("SCRAM-SHA-256", extension=b",tokenauth=true"),
            Sasl("SCRAM-SHA-256", "me", "secret", tokenauth=True),
        ),
        (_Oauth, Sasl("OAUTHBEARER", token_provider=_good)),
    ],
    ids=["plain", "scram 256", "scram 512", "delegation token", "oauth"],
)
async def test_every_connection_says_who_it_is_before_anything_else(
    server: Callable[[], Any], sasl: Sasl
) -> None:
    async with FakeBroker() as broker:
        broker.authenticates(server)
        broker.coordinator_is_here()
        async with _cluster(broker, sasl) as cluster:
            await cluster.coordinator("billing")
        steps = [key for key in broker.asked if key is not ApiKey.SASL_AUTHENTICATE]
        assert steps[:3] == [ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.METADATA]


@pytest.mark.parametrize(
    ("server", "sasl", "text"),
    [
        (_Plain, Sasl("PLAIN", "me", "wrong"), "PLAIN was refused: wrong user or password"),
        (lambda: _Scram("SCRAM-SHA-256"), Sasl("SCRAM-SHA-256", "me", "x"), "was refused: wrong user"),
        (
            lambda: _Scram("SCRAM-SHA-256", lies=True),
            Sasl("SCRAM-SHA-256", "me", "secret"),
            "wrong signature",
        ),
        (_Oauth, Sasl("OAUTHBEARER", token_provider=_bad), "OAUTHBEARER was refused: invalid_token"),
        (_Plain, Sasl("SCRAM-SHA-256", "me", "secret"), "does not take .*'SCRAM-SHA-256'; it offers PLAIN"),
    ],
    ids=["plain", "scram", "scram server that does not know the password", "oauth", "mechanism"],
)
async def test_a_refusal_is_told_at_once_and_not_tried_again(
    server: Callable[[], Any], sasl: Sasl, text: str
) -> None:
    async with FakeBroker() as broker:
        broker.authenticates(server)
        with pytest.raises(AuthenticationError, match=text):
            await _cluster(broker, sasl).connect()
        assert broker.connections == 1


@dataclass
class _Kerberos:
    """The server's side of RFC 4752, as far as the fake of gssapi below goes."""

    mechanism: str = "GSSAPI"
    steps: int = 0

    def step(self, data: bytes) -> bytes:
        self.steps += 1
        expected = [b"ticket for kafka@127.0.0.1", b"", b"wrapped \x01\x00\x10\x00kafka@127.0.0.1"]
        if data != expected[self.steps - 1]:
            raise ValueError(f"not expected: {data!r}")
        return [b"mutual", b"wrapped \x07\x00\x10\x00", b""][self.steps - 1]


class _Context:
    """A security context of one step."""

    complete = False

    def __init__(self, *, name: str, usage: str) -> None:
        self.name = name
        assert usage == "initiate"

    def step(self, data: bytes | None) -> bytes:
        self.complete = data == b"mutual"
        return b"" if self.complete else b"ticket for " + self.name.encode()

    def unwrap(self, data: bytes) -> Any:
        return SimpleNamespace(message=data.removeprefix(b"wrapped "))

    def wrap(self, data: bytes, encrypt: bool) -> Any:
        assert not encrypt
        return SimpleNamespace(message=b"wrapped " + data)


class _Name(str):
    def __new__(cls, text: str, name_type: str) -> _Name:
        assert name_type == "hostbased"
        return super().__new__(cls, text)

    def canonicalize(self, _mechanism: str) -> _Name:
        return self


async def test_kerberos_authenticates_for_the_service_on_the_broker_s_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = ModuleType("gssapi")
    fake.__dict__.update(
        Name=_Name,
        SecurityContext=_Context,
        NameType=SimpleNamespace(hostbased_service="hostbased"),
        MechType=SimpleNamespace(kerberos="kerberos"),
    )
    monkeypatch.setitem(sys.modules, "gssapi", fake)
    async with FakeBroker() as broker:
        broker.authenticates(_Kerberos)
        async with _cluster(broker, Sasl("GSSAPI", service="kafka")) as cluster:
            await cluster.metadata([])


async def test_kerberos_without_its_library_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    async with FakeBroker() as broker:
        broker.authenticates(_Kerberos)
        with pytest.raises(AuthenticationError, match="GSSAPI: GSSAPI lib not found"):
            await _cluster(broker, Sasl("GSSAPI", service="kafka")).connect()


async def test_a_token_that_cannot_be_had_now_is_asked_for_again() -> None:
    async with FakeBroker() as broker:
        broker.authenticates(_Oauth)
        with pytest.raises(BrokerConnectionError, match=r"token provider failed.*identity provider"):
            await _cluster(broker, Sasl("OAUTHBEARER", token_provider=_broken), 500).connect()
        assert broker.connections > 1


async def test_a_connection_is_replaced_before_its_authentication_ends_and_closed_when_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with FakeBroker() as broker:
        broker.authenticates(_Plain, lifetime_ms=300_000)
        async with _cluster(broker, Sasl("PLAIN", "me", "secret")) as cluster:
            await cluster.metadata([])
            assert broker.connections == 1
            loop = asyncio.get_running_loop()
            monkeypatch.setattr(loop, "time", lambda: time.monotonic() + 270)
            await asyncio.gather(*(cluster.metadata([]) for _ in range(3)))
            assert broker.connections == 2
            assert "1 open" in repr(cluster)


async def test_a_broker_that_never_answers_is_left_in_time() -> None:
    async with FakeBroker() as broker:
        broker.authenticates(_Plain)
        broker.answers[ApiKey.SASL_AUTHENTICATE] = lambda _: None
        cluster = Cluster(
            broker.address,
            sasl=Sasl("PLAIN", "me", "secret"),
            connect_timeout_ms=50,
            default_api_timeout_ms=100,
        )
        with pytest.raises(BrokerConnectionError, match="no connection within 50 ms"):
            await cluster.connect()
