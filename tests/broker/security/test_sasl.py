"""Mechanisms of a listener: which there are, what begins an exchange, how long a login is believed.

Covers: broker/security/_exchange.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker import SettingsError
from kohort.broker.security._errors import LoginFailedError
from kohort.broker.security._exchange import PlainExchange
from kohort.broker.security._listeners import listeners_of
from kohort.broker.security._sasl import SaslMechanisms, plain_users
from kohort.broker.security._scram_users import ScramUsers
from kohort.broker.settings import broker_settings
from tests.broker.security.issuer import Issuer, message
from tests.broker.security.scram_client import ScramClient

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def offered(**given: Any) -> SaslMechanisms:
    settings = broker_settings({"listeners": "SASL_SSL://:0", **given})
    users = ScramUsers()
    users.add_in_memory("alice=secret")
    return SaslMechanisms(settings, listeners_of(settings)[0], users)


def test_mechanisms_are_told_in_the_order_of_the_settings_in_upper_case() -> None:
    sasl = offered(**{"sasl.enabled.mechanisms": "scram-sha-512, PLAIN,"})
    assert sasl.mechanisms == ["SCRAM-SHA-512", "PLAIN"]
    assert sasl.begin("SCRAM-SHA-256") is None
    assert sasl.begin("plain") is None


def test_limits_of_a_listener_are_its_own() -> None:
    sasl = offered(
        **{
            "sasl.server.max.receive.size": "1000",
            "listener.name.sasl_ssl.sasl.server.max.receive.size": "2000",
            "connection.failed.authentication.delay.ms": "2500",
        }
    )
    assert (sasl.max_frame_bytes, sasl.delay_s) == (2_000, 2.5)


async def test_each_exchange_is_begun_anew_with_the_users_of_its_mechanism(tmp_path: Any) -> None:
    issuer = Issuer(tmp_path / "keys.json")
    sasl = offered(
        **{
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{MODULE} required user_bob=pw;",
            "sasl.oauthbearer.jwks.endpoint.url": issuer.url,
        }
    )
    plain = sasl.begin("PLAIN")
    assert plain is not None
    assert plain is not sasl.begin("PLAIN")
    assert await plain.step(b"\0bob\0pw") == b""
    assert (plain.done, plain.user, plain.expires_ms) == (True, "bob", None)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        scram, client = sasl.begin(mechanism), ScramClient(mechanism, "alice", "secret")
        assert scram is not None
        assert (scram.done, scram.user, scram.expires_ms) == (False, "", None)
        assert client.knows(await scram.step(client.last(await scram.step(client.first()))))
        assert (scram.done, scram.user) == (True, "alice")
    tokens = sasl.begin("OAUTHBEARER")
    assert tokens is not None
    await tokens.step(message(issuer.token(sub="carol")))
    assert (tokens.done, tokens.user) == (True, "carol")


@pytest.mark.parametrize(
    ("reauth_ms", "expires_ms", "believed_ms"),
    [
        (0, None, 0),
        (500, None, 500),
        (0, 10_400, 400),
        (500, 10_400, 400),
        (500, 10_600, 500),
        (500, 10_001, 1),
        (500, 10_000, 1),
        (500, 9_000, 1),
    ],
)
def test_a_login_is_believed_until_its_proof_or_the_setting_ends_it(
    reauth_ms: int, expires_ms: int | None, believed_ms: int
) -> None:
    sasl = offered(
        **{
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.sasl_ssl.scram-sha-512.connections.max.reauth.ms": str(reauth_ms),
        }
    )
    assert sasl.believed_ms("SCRAM-SHA-512", expires_ms, 10_000) == believed_ms
    assert sasl.believed_ms("SCRAM-SHA-256", None, 10_000) == 0


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {"sasl.enabled.mechanisms": "PLAIN"},
            (
                "listener SASL_PLAINTEXT: PLAIN would send passwords in the clear: use SASL_SSL, or "
                "listener.name.sasl_plaintext.sasl.enabled.mechanisms without PLAIN, or name the listener in "
                "kohort.sasl.plain.without.tls"
            ),
        ),
        (
            {"sasl.enabled.mechanisms": "GSSAPI"},
            (
                "listener SASL_PLAINTEXT: sasl.enabled.mechanisms: GSSAPI is not offered, PLAIN, "
                "SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER are"
            ),
        ),
        (
            {"sasl.enabled.mechanisms": ","},
            "listener SASL_PLAINTEXT: sasl.enabled.mechanisms is empty: name some",
        ),
        (
            {"sasl.enabled.mechanisms": "OAUTHBEARER"},
            (
                "sasl.oauthbearer.jwks.endpoint.url= is not allowed: tokens are checked by keys that are at "
                "an https: or file: address"
            ),
        ),
    ],
)
def test_mechanisms_that_cannot_be_offered_are_refused(given: dict[str, str], why: str) -> None:
    with pytest.raises(SettingsError) as caught:
        offered(listeners="SASL_PLAINTEXT://:0", **given)
    assert str(caught.value) == why


@pytest.mark.parametrize("flag", ["required", "requisite", "sufficient", "optional"])
def test_users_of_plain_come_behind_any_flag_of_java(flag: str) -> None:
    assert plain_users(f'\n {MODULE} \n {flag} username=me user_a="b" \n user_c=d;') == {"a": "b", "c": "d"}


@pytest.mark.parametrize(
    "text",
    [MODULE, "required user_a=b;", f"{MODULE} user_a=b;", f"{MODULE} Required user_a=b;", "x required;"],
)
def test_what_names_no_users_of_plain_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        plain_users(text)
    assert str(caught.value) == (
        "sasl.jaas.config=(hidden) is not allowed: it must be a module's name, the word required, and "
        'user_NAME="PASSWORD" for each user'
    )


NOT_RIGHT = "the user name or the password is not right"
NO_NAME = "PLAIN: a name and its own password are asked for"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\0alice\0wrong", NOT_RIGHT),
        (b"\0nobody\0secret", NOT_RIGHT),
        (b"\0empty\0x", NOT_RIGHT),
        (b"bob\0alice\0secret", NO_NAME),
        (b"\0\0secret", NO_NAME),
        (b"\0alice\0", NO_NAME),
        (b"\0empty\0", NO_NAME),
        (b"\0alice", "PLAIN: not a name and a password"),
        (b"\0alice\0secret\0", "PLAIN: not a name and a password"),
        (b"\0alice\0\xff", "PLAIN: not a name and a password"),
    ],
)
async def test_plain_lets_nobody_in_by_anything_but_a_name_and_its_password(data: bytes, why: str) -> None:
    exchange = PlainExchange({"alice": "secret", "empty": ""})
    with pytest.raises(LoginFailedError) as caught:
        await exchange.step(data)
    assert str(caught.value) == why
    assert (exchange.done, exchange.user, exchange.expires_ms) == (False, "", None)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None, "it would hold the password"


@pytest.mark.parametrize("data", [b"\0alice\0secret", b"alice\0alice\0secret"])
async def test_plain_lets_in_who_knows_the_password(data: bytes) -> None:
    exchange = PlainExchange({"alice": "secret"})
    assert await exchange.step(data) == b""
    assert (exchange.done, exchange.user) == (True, "alice")
