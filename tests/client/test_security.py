"""Tokens for client credentials, and TLS by a context of one's own.

Covers: client/security.py, client/oauth.py.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from kohort.client import AuthenticationError, BrokerConnectionError, ConfigError
from kohort.client.oauth import TokenSource
from kohort.client.sasl import ClientCredentials
from kohort.client.security import context_and_login
from kohort.consumer.config import consumer_config
from tests.broker.security.certificates import Certificates
from tests.client.fake_broker import FakeBroker
from tests.client.test_sasl import _Oauth

SECRET = "a secret: with / and ü"


class Issuer:
    """A token endpoint on this machine: ``answers`` are (status, body), the last for ever."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = [(200, {"access_token": "good", "expires_in": 3600})]
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                issuer.asked.append((self.headers["Authorization"], parse_qs(body)))
                status, said = issuer.answers.pop(0) if len(issuer.answers) > 1 else issuer.answers[0]
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()
                self.wfile.write(said if isinstance(said, bytes) else json.dumps(said).encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/token"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def source(self, scope: str = "") -> TokenSource:
        return TokenSource(ClientCredentials(self.url, "etl job", SECRET, scope))


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    yield made
    made.close()


def test_a_token_is_asked_for_with_the_secret_and_kept(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("kohort.client.oauth.time.monotonic", lambda: now[0])
    source = issuer.source("kafka orders")
    assert [source(), source()] == ["good", "good"]
    ((login, form),) = issuer.asked
    # RFC 6749, 2.3.1: both are encoded as a form is
    words = base64.b64decode(login.removeprefix("Basic ")).decode()
    assert words == "etl%20job:a%20secret%3A%20with%20%2F%20and%20%C3%BC"
    assert form == {"grant_type": ["client_credentials"], "scope": ["kafka orders"]}
    now[0] += 3600 * 0.8 - 1
    source()
    assert len(issuer.asked) == 1
    now[0] += 2
    source()
    assert len(issuer.asked) == 2


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (
            (401, {"error": "invalid_client", "error_description": "who?"}),
            AuthenticationError,
            "invalid_client: who",
        ),
        ((400, b"<html>"), AuthenticationError, "HTTP 400"),
        ((503, b""), OSError, "HTTP 503"),
        ((302, b""), OSError, "HTTP 302"),
        ((200, b"[]"), ValueError, "gave no access_token"),
        ((200, {"access_token": 5}), ValueError, "gave no access_token"),
    ],
)
def test_a_token_that_does_not_come_is_told_without_the_secret(
    issuer: Issuer, answer: tuple[int, Any], kind: type[Exception], says: str
) -> None:
    issuer.answers = [answer]
    with pytest.raises(kind, match=says) as caught:
        issuer.source()()
    assert SECRET not in repr(caught.value)
    assert SECRET not in repr(issuer.source().__dict__)


def config_of(broker: FakeBroker, issuer: Issuer) -> Any:
    return consumer_config(
        bootstrap=broker.address,
        group="billing",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_url=issuer.url,
        sasl_oauth_client_id="etl",
        sasl_oauth_client_secret=SECRET,
        reconnect_backoff_ms=1,
    )


async def test_a_consumer_connects_with_a_token_for_its_credentials(issuer: Issuer) -> None:
    issuer.answers.insert(0, (503, b""))
    async with FakeBroker() as broker:
        broker.authenticates(_Oauth)
        async with config_of(broker, issuer).cluster(5_000) as cluster:
            await cluster.metadata([])
    # the first answer may pass, so it was asked again
    assert len(issuer.asked) == 2


async def test_credentials_that_are_refused_are_told_at_once(issuer: Issuer) -> None:
    issuer.answers = [(401, {"error": "invalid_client"})]
    async with FakeBroker() as broker:
        broker.authenticates(_Oauth)
        with pytest.raises(AuthenticationError, match="no token for 'etl': HTTP 401 invalid_client"):
            await config_of(broker, issuer).cluster(5_000).connect()
    assert len(issuer.asked) == 1


async def test_an_issuer_that_is_not_there_is_waited_for(issuer: Issuer) -> None:
    issuer.close()
    async with FakeBroker() as broker:
        broker.authenticates(_Oauth)
        with pytest.raises(BrokerConnectionError, match="the token provider failed"):
            await config_of(broker, issuer).cluster(300).connect()
        assert broker.connections > 1


def test_a_context_of_one_s_own_is_used_as_it_is() -> None:
    context = ssl.create_default_context()
    base: dict[str, Any] = {"bootstrap": "b:1", "group": "g", "ssl_context": context}
    assert context_and_login(consumer_config(**base, security_protocol="SSL")) == (context, None)
    for more, says in (
        ({}, "ssl_context needs security_protocol"),
        ({"security_protocol": "SSL", "ssl_cafile": "ca.pem"}, "goes with no other ssl setting"),
        ({"security_protocol": "SSL", "ssl_check_hostname": False}, "goes with no other ssl setting"),
        ({"security_protocol": "SSL", "ssl_context": "ca.pem"}, "ssl_context='ca.pem' is not allowed"),
    ):
        with pytest.raises(ConfigError, match=says):
            consumer_config(**{**base, **more})


def test_certificates_may_have_comments_in_any_alphabet(tmp_path: Path) -> None:
    authority = Certificates(tmp_path).cafile
    commented = tmp_path / "commented.pem"
    commented.write_text(f"# Főtanúsítvány\n{Path(authority).read_text()}", "utf-8")
    for given in (str(commented), commented.read_text("utf-8")):
        context, _ = context_and_login(
            consumer_config(bootstrap="b:1", group="g", security_protocol="SSL", ssl_cafile=given)
        )
        assert context is not None
        assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize("key", ["MIIEvQ" * 100, "MIIEvQ\nMIIEvQ", "MIIE\0vQ\n"])
def test_a_key_that_is_no_pem_is_told_without_the_key(tmp_path: Path, key: str) -> None:
    certificate = Certificates(tmp_path).cafile
    config = consumer_config(
        bootstrap="b:1", group="g", security_protocol="SSL", ssl_certfile=certificate, ssl_keyfile=key
    )
    with pytest.raises(ConfigError, match="ssl_keyfile: neither PEM text nor a path") as caught:
        context_and_login(config)
    assert "MIIE" not in str(caught.value)
