"""Tokens: whose are believed, and when keys are read again."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.broker import SettingsError
from kohort.broker._settings import broker_settings
from kohort.broker.security import _tokens
from kohort.broker.security._errors import AuthenticationError
from kohort.broker.security._oauth import OauthExchange
from kohort.broker.security._tokens import Tokens
from tests.broker.security.issuer import Issuer, message


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    return Issuer(tmp_path / "the keys.json")


def tokens(url: str, **more: Any) -> Tokens:
    given = {
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.audience": "kafka, other",
        "sasl.oauthbearer.expected.issuer": "issuer",
        **more,
    }
    return Tokens(broker_settings(given))


async def test_a_signed_token_names_its_user_until_it_ends(issuer: Issuer) -> None:
    exchange = OauthExchange(tokens(issuer.url))
    assert await exchange.step(message(issuer.token(sub="bob", lifetime_s=100))) == b""
    assert (exchange.done, exchange.user) == (True, "bob")
    assert exchange.expires_ms is not None
    assert 0 < exchange.expires_ms - time.time() * 1000 < 101_000


@pytest.mark.parametrize(
    "claims",
    [
        {"lifetime_s": -60},
        {"exp": None},
        {"iat": None},
        {"aud": "somebody-else"},
        {"aud": None},
        {"iss": "stranger"},
        {"sub": None},
        {"sub": ""},
        {"nbf": 4_000_000_000},
        {"exp": "4000000000"},
        {"headers": {"kid": "unknown"}},
    ],
    ids=str,
)
async def test_a_token_that_is_not_for_us_or_not_for_now_is_refused(
    issuer: Issuer, claims: dict[str, Any]
) -> None:
    exchange = OauthExchange(tokens(issuer.url))
    answer = await exchange.step(message(issuer.token(**claims)))
    assert json.loads(answer) == {"status": "invalid_token"}
    assert not exchange.done
    with pytest.raises(AuthenticationError):
        await exchange.step(b"\x01")


def _forged(content: dict[str, Any], algorithm: str, secret: bytes = b"") -> str:
    """Signed with a shared secret, or not at all."""
    parts = [json.dumps(part).encode() for part in ({"alg": algorithm, "kid": "first"}, content)]
    signed = b".".join(_encoded(part) for part in parts)
    signature = _encoded(hmac.digest(secret, signed, "sha256")) if secret else b""
    return (signed + b"." + signature).decode()


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


async def test_no_signature_and_a_signature_by_the_public_key_are_refused(issuer: Issuer) -> None:
    now = time.time()
    content = {"sub": "alice", "aud": "kafka", "iss": "issuer", "iat": now, "exp": now + 300}
    public = json.dumps(issuer.public("first"))
    forged = [
        _forged(content, "none"),
        _forged(content, "ES256"),
        _forged(content, "HS256", public.encode()),
        Issuer(issuer.path.with_name("other.json")).token(),
    ]
    verifier = tokens(issuer.url)
    for token in forged:
        with pytest.raises(AuthenticationError):
            await verifier.verified(token)
    assert (await verifier.verified(issuer.token()))[0] == "alice"


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "\x00", "é", "e30.e30.e30", "W10.W10.W10"])
async def test_what_is_no_token_is_refused(issuer: Issuer, token: str) -> None:
    with pytest.raises(AuthenticationError):
        await tokens(issuer.url).verified(token)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n,,",
        "n,,\x01\x01",
        "n,,\x01auth=Basic x\x01\x01",
        "p,,\x01auth=Bearer x\x01\x01",
        "n,,\x01auth=Bearer x",
    ],
)
async def test_a_message_of_another_form_is_refused(issuer: Issuer, text: str) -> None:
    with pytest.raises(AuthenticationError, match="not a message of this mechanism"):
        await OauthExchange(tokens(issuer.url)).step(text.encode())


async def test_a_token_cannot_be_used_for_somebody_else(issuer: Issuer) -> None:
    exchange = OauthExchange(tokens(issuer.url))
    assert b"invalid_token" in await exchange.step(message(issuer.token(), "n,a=bob,"))
    same = OauthExchange(tokens(issuer.url))
    await same.step(message(issuer.token(), "n,a=alice,"))
    assert same.done


async def test_keys_of_a_file_are_read_again_when_it_changes(issuer: Issuer) -> None:
    verifier = tokens(issuer.url)
    before = issuer.token()
    await verifier.verified(before)
    issuer.rotate("second")
    await verifier.verified(issuer.token())
    with pytest.raises(AuthenticationError, match="a key that is not known"):
        await verifier.verified(before)


async def test_a_file_that_cannot_be_read_leaves_the_keys_of_before(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    verifier = tokens(issuer.url)
    await verifier.verified(issuer.token())
    issuer.path.write_text("{")
    await verifier.verified(issuer.token())
    assert "the keys of tokens cannot be read" in caplog.text


class _Keys(ThreadingHTTPServer):
    """Serves a file of keys and counts who asks."""

    def __init__(self, path: Path) -> None:
        self.asked = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked += 1
                self.send_response(200)
                self.end_headers()
                self.wfile.write(path.read_bytes())

            def log_message(self, *_: object) -> None:
                """Silence."""

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/keys"


@pytest.fixture
def keys(issuer: Issuer) -> Iterator[_Keys]:
    server = _Keys(issuer.path)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


async def test_keys_of_an_address_are_asked_for_when_they_are_old_and_for_a_new_name(
    issuer: Issuer, keys: _Keys
) -> None:
    now = 0.0
    settings = broker_settings({"sasl.oauthbearer.jwks.endpoint.url": keys.url})
    verifier = Tokens(settings, steady=lambda: now)
    for _ in range(5):
        await verifier.verified(issuer.token())
    assert keys.asked == 1
    now = 3_600.0
    await verifier.verified(issuer.token())
    await renewed(verifier)
    assert keys.asked == 2
    issuer.rotate("second")
    for _ in range(20):
        with pytest.raises(AuthenticationError):
            await verifier.verified(issuer.token(headers={"kid": "made up"}))
    assert keys.asked == 2, "names that strangers make up are not asked for at once"
    now += 10.0
    await verifier.verified(issuer.token())
    assert keys.asked == 3


async def renewed(verifier: Tokens) -> None:
    """Return when nobody is reading keys."""
    if (renewal := verifier._keys._renewal) is not None:
        await asyncio.wait_for(renewal, 10)


async def test_who_has_a_known_key_does_not_wait_for_an_address_that_hangs(
    issuer: Issuer, keys: _Keys, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    settings = broker_settings({"sasl.oauthbearer.jwks.endpoint.url": keys.url})
    verifier = Tokens(settings, steady=lambda: now)
    await verifier.verified(issuer.token())
    hung, asked = threading.Event(), 0

    def hang(_url: str) -> bytes:
        nonlocal asked
        asked += 1
        assert hung.wait(30)
        raise TimeoutError("it hangs")

    monkeypatch.setattr(_tokens, "_read", hang)
    monkeypatch.setattr(_tokens, "FETCH_S", 0.05)
    now = 3_600.0
    try:
        async with asyncio.timeout(10):
            await asyncio.gather(*(verifier.verified(issuer.token()) for _ in range(50)))
            with pytest.raises(AuthenticationError, match="a key that is not known"):
                await verifier.verified(issuer.token(headers={"kid": "made up"}))
    finally:
        hung.set()
    await renewed(verifier)
    assert "those of before are used: it hangs" in caplog.text
    now += 9.0
    await verifier.verified(issuer.token())
    assert asked == 1, "it rests from the end of the last try on"


async def test_an_address_that_answers_byte_by_byte_is_given_up(
    issuer: Issuer, keys: _Keys, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    verifier = Tokens(
        broker_settings({"sasl.oauthbearer.jwks.endpoint.url": keys.url}), time.time, lambda: 0.0
    )
    clock = iter(range(0, 1_000, 20))
    monkeypatch.setattr(_tokens, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    with pytest.raises(AuthenticationError):
        await verifier.verified(issuer.token())
    assert "not complete after 10 s" in caplog.text


async def test_an_address_that_speaks_something_else_leaves_the_keys_of_before(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            link, _ = server.accept()
            with link:
                link.recv(65_536)
                link.sendall(b"what?\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(AuthenticationError):
            await tokens(f"http://127.0.0.1:{server.getsockname()[1]}/keys").verified(issuer.token())
    assert "the keys of tokens cannot be read" in caplog.text


async def test_a_set_of_keys_that_is_too_large_is_not_read(
    issuer: Issuer, keys: _Keys, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_tokens, "MAX_KEYS_BYTES", 10)
    with pytest.raises(AuthenticationError):
        await tokens(keys.url).verified(issuer.token())
    assert "more than 10 bytes" in caplog.text


@pytest.mark.parametrize("url", ["", "keys.json", "ftp://h/keys", "data:,x"])
def test_keys_lie_at_an_address_or_in_a_file(url: str) -> None:
    with pytest.raises(SettingsError, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url=.*https: or file:"):
        tokens(url)


def test_without_the_library_the_setting_says_what_to_install(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_tokens, "_library", lambda: None)
    with pytest.raises(SettingsError, match=r"pip install 'kohort\[security\]'"):
        tokens(issuer.url)
