"""Tokens: whose are believed, and when keys are read again.

Covers: broker/security/_oauth.py.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import socket
import threading
import time
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from kohort.broker import SettingsError
from kohort.broker.security import _tokens
from kohort.broker.security._errors import LoginFailedError
from kohort.broker.security._oauth import OauthExchange
from kohort.broker.security._tokens import TokenVerifier
from kohort.broker.settings import broker_settings
from tests.broker.security.issuer import Issuer, message


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    return Issuer(tmp_path / "the keys.json")


def tokens(url: str, **more: Any) -> TokenVerifier:
    given = {
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.audience": "kafka, other",
        "sasl.oauthbearer.expected.issuer": "issuer",
        **more,
    }
    return TokenVerifier(broker_settings(given))


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
    with pytest.raises(LoginFailedError):
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
    kind = "the token's signature is of a kind that is not believed"
    wrong = "the token is refused: Signature verification failed"
    forged = [
        (_forged(content, "none"), kind),
        (_forged(content, "ES256"), wrong),
        (_forged(content, "HS256", public.encode()), kind),
        (Issuer(issuer.path.with_name("other.json")).token(), wrong),
    ]
    verifier = tokens(issuer.url)
    for token, why in forged:
        with pytest.raises(LoginFailedError) as caught:
            await verifier.verify_token(token)
        assert str(caught.value) == why
    assert (await verifier.verify_token(issuer.token()))[0] == "alice"


_CURVES: dict[str, ec.EllipticCurve] = {
    "ES256": ec.SECP256R1(),
    "ES384": ec.SECP384R1(),
    "ES512": ec.SECP521R1(),
}


def _key_for(algorithm: str) -> tuple[Any, dict[str, Any]]:
    """A key that signs with this algorithm, and its public half without a word on what it is for."""
    kind = jwt.get_algorithm_by_name(algorithm)
    key: Any
    if algorithm in _CURVES:
        key = ec.generate_private_key(_CURVES[algorithm])
    elif algorithm == "EdDSA":
        key = ed25519.Ed25519PrivateKey.generate()
    else:
        key = _rsa_key()
    public = kind.to_jwk(key.public_key(), as_dict=True)
    return key, {name: value for name, value in public.items() if name not in ("key_ops", "alg", "use")}


@cache
def _rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65_537, key_size=2048)


def _signed(key: Any, algorithm: str, **headers: Any) -> str:
    now = time.time()
    claims = {"sub": "alice", "aud": "kafka", "iss": "issuer", "iat": now, "exp": now + 300}
    return jwt.encode(claims, key, algorithm=algorithm, headers=headers)


@pytest.mark.parametrize("algorithm", sorted(_tokens.ALGORITHMS))
@pytest.mark.parametrize("about", [{}, {"use": "sig"}, {"alg": True}, {"use": "sig", "alg": True}], ids=str)
async def test_every_kind_of_signature_with_a_public_key_is_believed(
    tmp_path: Path, algorithm: str, about: dict[str, Any]
) -> None:
    key, public = _key_for(algorithm)
    told = {name: algorithm if value is True else value for name, value in about.items()}
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [{**public, **told, "kid": "k"}]}))
    verifier = tokens(path.as_uri())
    assert (await verifier.verify_token(_signed(key, algorithm, kid="k")))[0] == "alice"
    assert (await verifier.verify_token(_signed(key, algorithm)))[0] == "alice", "the one key there is"


@pytest.mark.parametrize(
    ("algorithm", "about"),
    [
        ("RS256", {"use": "enc"}),
        ("ES256", {"use": "enc"}),
        ("RS256", {"alg": "PS256"}),
        ("PS256", {"alg": "RS256"}),
        ("RS256", {"alg": "RS512"}),
    ],
)
async def test_a_key_for_something_else_verifies_nothing(
    tmp_path: Path, algorithm: str, about: dict[str, Any]
) -> None:
    key, public = _key_for(algorithm)
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [{**public, **about, "kid": "k"}]}))
    with pytest.raises(LoginFailedError) as caught:
        await tokens(path.as_uri()).verify_token(_signed(key, algorithm, kid="k"))
    assert str(caught.value) == "the token is signed with a key that is not known"


async def test_of_many_keys_the_one_that_the_token_names_is_taken(tmp_path: Path) -> None:
    kinds = ("ES256", "EdDSA", "RS256", "ES256")
    made = [_key_for(algorithm) for algorithm in kinds]
    unreadable: list[Any] = [{"kty": "oct"}, {"kty": "EC", "crv": "P-256"}, {"kty": "??"}, 7, None]
    named = [{**public, "kid": str(at)} for at, (_, public) in enumerate(made)]
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [*unreadable, *named]}))
    verifier = tokens(path.as_uri())
    for at, algorithm in enumerate(kinds):
        assert (await verifier.verify_token(_signed(made[at][0], algorithm, kid=str(at))))[0] == "alice"
    for at in (1, 2):
        assert (await verifier.verify_token(_signed(made[at][0], kinds[at])))[0] == "alice", "one of its kind"
    for wrong in (_signed(made[0][0], "ES256"), _signed(made[0][0], "ES256", kid="9")):
        with pytest.raises(LoginFailedError, match="a key that is not known"):
            await verifier.verify_token(wrong)
    with pytest.raises(LoginFailedError) as caught:
        await verifier.verify_token(_signed(made[0][0], "ES256", kid="3"))
    assert str(caught.value) == "the token is refused: Signature verification failed"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[]", "no set of keys"),
        ("{}", "no set of keys"),
        ('{"keys": {}}', "no set of keys"),
        ('{"keys": []}', "none of its keys can be used"),
        ('{"keys": [{"kty": "??"}]}', "none of its keys can be used"),
        ("[" * 200_000, "no set of keys: it is nested too deeply"),
    ],
    ids=["list", "no keys", "not a list", "empty", "unknown", "deep"],
)
async def test_what_is_no_set_of_keys_is_told_with_the_reason(
    issuer: Issuer, caplog: pytest.LogCaptureFixture, content: str, why: str
) -> None:
    issuer.path.write_text(content)
    with pytest.raises(LoginFailedError, match="a key that is not known"):
        await tokens(issuer.url).verify_token(issuer.token())
    assert set(caplog.messages) == {
        f"the keys of tokens cannot be read from {issuer.url}, those of before are used: {why}"
    }


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"lifetime_s": -31}, "the token is refused: Signature has expired"),
        ({"exp": None}, 'the token is refused: Token is missing the "exp" claim'),
        ({"iat": None}, 'the token is refused: Token is missing the "iat" claim'),
        ({"aud": "somebody-else"}, "the token is refused: Audience doesn't match"),
        ({"iss": "stranger"}, "the token is refused: Invalid issuer"),
        ({"sub": None}, "the token names nobody"),
        ({"sub": ""}, "the token names nobody"),
        ({"exp": "4000000000"}, "the token does not say in numbers when it ends"),
    ],
    ids=str,
)
async def test_a_refused_token_is_told_why(issuer: Issuer, claims: dict[str, Any], why: str) -> None:
    with pytest.raises(LoginFailedError) as caught:
        await tokens(issuer.url).verify_token(issuer.token(**claims))
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("given", "claims"),
    [
        ({}, {"lifetime_s": -25}),
        ({}, {"aud": "other"}),
        ({}, {"aud": ["x", "kafka"]}),
        ({"sasl.oauthbearer.expected.audience": ""}, {"aud": "anybody"}),
        ({"sasl.oauthbearer.expected.audience": ""}, {"aud": None}),
        ({"sasl.oauthbearer.expected.issuer": ""}, {"iss": "anybody"}),
        ({"sasl.oauthbearer.expected.issuer": ""}, {"iss": None}),
        ({"sasl.oauthbearer.clock.skew.seconds": "100"}, {"lifetime_s": -95}),
        ({"sasl.oauthbearer.sub.claim.name": "email"}, {"sub": "bob", "email": "alice"}),
    ],
    ids=str,
)
async def test_settings_say_which_tokens_are_believed(
    issuer: Issuer, given: dict[str, str], claims: dict[str, Any]
) -> None:
    assert (await tokens(issuer.url, **given).verify_token(issuer.token(**claims)))[0] == "alice"


@pytest.mark.parametrize(
    ("end", "end_ms"),
    [(4_000_000_000, 4_000_000_000_000), (4_000_000_000.25, 4_000_000_000_250), (1e300, 2**40 * 1_000)],
)
async def test_a_token_ends_at_its_time_in_milliseconds(issuer: Issuer, end: float, end_ms: int) -> None:
    assert await tokens(issuer.url).verify_token(issuer.token(exp=end)) == ("alice", end_ms)


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "\x00", "é", "e30.e30.e30", "W10.W10.W10"])
async def test_what_is_no_token_is_refused(issuer: Issuer, token: str) -> None:
    with pytest.raises(LoginFailedError):
        await tokens(issuer.url).verify_token(token)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n,,",
        "n,,\x01\x01",
        "n,,\x01auth=Basic x\x01\x01",
        "p,,\x01auth=Bearer x\x01\x01",
        "y,,\x01auth=Bearer x\x01\x01",
        "n,,more\x01auth=Bearer x\x01\x01",
        "n,alice,\x01auth=Bearer x\x01\x01",
        "n,,\x01auth=Bearer x",
        "n,,\x01auth=Bearer x\x01",
        "n,,\x01auth=Bearer x\x01\x01more",
        "n,,\x01auth=Bearer x\x01more\x01",
        "n,,\x01Auth=Bearer x\x01\x01",
        "n,,\x01auth=Bearer\x01\x01",
        "n,,\x01auth\x01\x01",
        "n,,\x01auth=Bearer\tx\x01\x01",
    ],
)
async def test_a_message_of_another_form_is_refused(issuer: Issuer, text: str) -> None:
    with pytest.raises(LoginFailedError) as caught:
        await OauthExchange(tokens(issuer.url)).step(text.encode())
    assert str(caught.value) == "OAUTHBEARER: not a message of this mechanism"


class _Believing:
    """Takes every token for alice's, and keeps it."""

    token = ""

    async def verify_token(self, token: str) -> tuple[str, int]:
        self.token = token
        return "alice", 7


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("n,,\x01auth=Bearer x\x01\x01", "x"),
        ("n,a=alice,\x01auth=bearer x\x01\x01", "x"),
        ("n,,\x01auth=BEARER  x y= \x01\x01", "x y="),
        ("n,,\x01host=a=b=c\x01port=1\x01auth=Bearer x=y==\x01\x01", "x=y=="),
    ],
)
async def test_a_message_may_name_its_user_and_hold_more_than_the_token(text: str, token: str) -> None:
    believing = _Believing()
    exchange = OauthExchange(believing)  # type: ignore[arg-type]
    assert (exchange.done, exchange.user, exchange.expires_ms) == (False, "", None)
    assert await exchange.step(text.encode()) == b""
    assert believing.token == token
    assert (exchange.done, exchange.user, exchange.expires_ms) == (True, "alice", 7)


async def test_a_token_cannot_be_used_for_somebody_else(issuer: Issuer) -> None:
    exchange = OauthExchange(tokens(issuer.url))
    assert b"invalid_token" in await exchange.step(message(issuer.token(), "n,a=bob,"))
    assert (exchange.done, exchange.user) == (False, "")
    with pytest.raises(LoginFailedError) as caught:
        await exchange.step(b"\x01")
    assert str(caught.value) == "OAUTHBEARER: the token is somebody else's"
    same = OauthExchange(tokens(issuer.url))
    await same.step(message(issuer.token(), "n,a=alice,"))
    assert same.done


async def test_keys_of_a_file_are_read_again_when_it_changes(issuer: Issuer) -> None:
    verifier = tokens(issuer.url)
    before = issuer.token()
    await verifier.verify_token(before)
    issuer.rotate("second")
    await verifier.verify_token(issuer.token())
    with pytest.raises(LoginFailedError, match="a key that is not known"):
        await verifier.verify_token(before)


async def test_a_file_that_cannot_be_read_leaves_the_keys_of_before(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    verifier = tokens(issuer.url)
    await verifier.verify_token(issuer.token())
    issuer.path.write_text("{")
    await verifier.verify_token(issuer.token())
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
    verifier = TokenVerifier(settings, steady=lambda: now)
    for _ in range(5):
        await verifier.verify_token(issuer.token())
    assert keys.asked == 1
    now = 3_600.0
    await verifier.verify_token(issuer.token())
    await renewed(verifier)
    assert keys.asked == 2
    issuer.rotate("second")
    for _ in range(20):
        with pytest.raises(LoginFailedError):
            await verifier.verify_token(issuer.token(headers={"kid": "made up"}))
    assert keys.asked == 2, "names that strangers make up are not asked for at once"
    now += 10.0
    await verifier.verify_token(issuer.token())
    assert keys.asked == 3


async def renewed(verifier: TokenVerifier) -> None:
    """Return when nobody is reading keys."""
    if (renewal := verifier._keys._renewal) is not None:
        await asyncio.wait_for(renewal, 10)


async def test_who_has_a_known_key_does_not_wait_for_an_address_that_hangs(
    issuer: Issuer, keys: _Keys, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    settings = broker_settings({"sasl.oauthbearer.jwks.endpoint.url": keys.url})
    verifier = TokenVerifier(settings, steady=lambda: now)
    await verifier.verify_token(issuer.token())
    hung, asked = threading.Event(), 0

    def hang(_url: str) -> bytes:
        nonlocal asked
        asked += 1
        assert hung.wait(30)
        raise TimeoutError("it hangs")

    monkeypatch.setattr(_tokens, "_read_url", hang)
    monkeypatch.setattr(_tokens, "FETCH_S", 0.05)
    now = 3_600.0
    try:
        async with asyncio.timeout(10):
            await asyncio.gather(*(verifier.verify_token(issuer.token()) for _ in range(50)))
            with pytest.raises(LoginFailedError, match="a key that is not known"):
                await verifier.verify_token(issuer.token(headers={"kid": "made up"}))
    finally:
        hung.set()
    await renewed(verifier)
    assert "those of before are used: it hangs" in caplog.text
    now += 9.0
    await verifier.verify_token(issuer.token())
    assert asked == 1, "it rests from the end of the last try on"


async def test_an_address_that_answers_byte_by_byte_is_given_up(
    issuer: Issuer, keys: _Keys, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    verifier = TokenVerifier(broker_settings({"sasl.oauthbearer.jwks.endpoint.url": keys.url}), lambda: 0.0)
    clock = iter(range(0, 1_000, 20))
    monkeypatch.setattr(_tokens, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    with pytest.raises(LoginFailedError):
        await verifier.verify_token(issuer.token())
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
        with pytest.raises(LoginFailedError):
            await tokens(f"http://127.0.0.1:{server.getsockname()[1]}/keys").verify_token(issuer.token())
    assert "the keys of tokens cannot be read" in caplog.text


async def test_a_set_of_keys_that_is_too_large_is_not_read(
    issuer: Issuer, keys: _Keys, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_tokens, "MAX_KEYS_BYTES", 10)
    with pytest.raises(LoginFailedError):
        await tokens(keys.url).verify_token(issuer.token())
    assert "more than 10 bytes" in caplog.text


@pytest.mark.parametrize("url", ["", "keys.json", "ftp://h/keys", "data:,x"])
def test_keys_lie_at_an_address_or_in_a_file(url: str) -> None:
    with pytest.raises(SettingsError, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url=.*https: or file:"):
        tokens(url)


def test_without_the_library_the_setting_says_what_to_install(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_tokens, "_import_jwt", lambda: None)
    with pytest.raises(SettingsError, match=r"pip install 'kohort\[security\]'"):
        tokens(issuer.url)
