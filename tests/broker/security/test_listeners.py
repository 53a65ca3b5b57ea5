"""Listeners: what is read of the settings, and what is refused with which advice.

Covers: broker/security/_settings.py.
"""

from __future__ import annotations

import pytest

from kohort.broker import BrokerSettings, SettingsError
from kohort.broker.security._listeners import Listener, listeners_of, settings_for
from kohort.broker.settings import broker_settings

MAP = "OUT:SASL_SSL,IN:PLAINTEXT,ADMIN:SSL"


def test_without_listeners_there_is_one_on_the_host_and_port_given() -> None:
    assert listeners_of(BrokerSettings(), "localhost", 9092) == [
        Listener("PLAINTEXT", "PLAINTEXT", "localhost", 9092)
    ]


def test_listeners_have_names_protocols_and_what_clients_are_told() -> None:
    settings = broker_settings(
        {
            "listeners": "admin://[::1]:3, OUT://:1, IN://127.0.0.1:2",
            "advertised.listeners": "OUT://kafka.example.org:443",
            "listener.security.protocol.map": MAP,
            "control.plane.listener.name": "ADMIN",
            "inter.broker.listener.name": "IN",
        }
    )
    out, inner, admin = listeners_of(settings)
    assert out == Listener("OUT", "SASL_SSL", "", 1, ("kafka.example.org", 443))
    assert inner == Listener("IN", "PLAINTEXT", "127.0.0.1", 2, protected=True)
    assert admin == Listener("ADMIN", "SSL", "::1", 3, control=True, protected=True)
    assert [(each.tls, each.sasl) for each in (out, inner, admin)] == [
        (True, True),
        (False, False),
        (True, False),
    ]


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({"listeners": "localhost:9092"}, "it must be NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://h:70000"}, "it must be NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://h:1,PLAINTEXT://h:2"}, "PLAINTEXT is there twice"),
        ({"listeners": "PLAINTEXT://h:1,SSL://h:1"}, "port 1 is there twice"),
        ({"listeners": "OTHER://h:1"}, "OTHER has no protocol: add OTHER:PROTOCOL"),
        ({"listener.security.protocol.map": "PLAINTEXT:TELNET"}, "one of PLAINTEXT, SSL"),
        ({"advertised.listeners": "SSL://h:1"}, "SSL is not in listeners, which are PLAINTEXT"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "clients need a host"),
        ({"control.plane.listener.name": "ADMIN"}, "ADMIN is not in listeners"),
        ({"control.plane.listener.name": "PLAINTEXT"}, "a listener beside"),
        ({"inter.broker.listener.name": "ADMIN"}, "ADMIN is not in listeners"),
        ({"listener.name.plaintext.nonsense": "1"}, "is no setting"),
        ({"listener.name.plaintext.group.max.size": "7"}, "is no setting"),
        ({"listener.name.other.max.connections": "1"}, "OTHER is not in listeners"),
        ({"listener.name.plaintext.max.connections": "many"}, "max.connections=many is not allowed"),
        ({"listener.name.plaintext.ssl.client.auth": "maybe"}, "one of none, requested, required"),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_do(given: dict[str, str], advice: str) -> None:
    with pytest.raises(SettingsError, match=advice):
        broker_settings(given)


def test_the_two_families_of_addresses_may_share_a_port() -> None:
    settings = broker_settings({"listeners": "PLAINTEXT://127.0.0.1:1,SSL://[::1]:1"})
    assert [listener.port for listener in listeners_of(settings)] == [1, 1]


def test_a_listener_and_a_mechanism_on_it_may_have_settings_of_their_own() -> None:
    settings = broker_settings(
        {
            "listeners": "SASL_SSL://h:1,PLAINTEXT://h:2",
            "max.connections": "7",
            "listener.name.sasl_ssl.max.connections": "5",
            "listener.name.sasl_ssl.connections.max.reauth.ms": "100",
            "listener.name.sasl_ssl.scram-sha-256.connections.max.reauth.ms": "200",
            "listener_name_sasl_ssl_ssl_client_auth": "required",
        }
    )
    assert settings_for(settings, "PLAINTEXT") is settings
    own = settings_for(settings, "SASL_SSL")
    assert (own.max_connections, own.connections_max_reauth_ms, own.ssl_client_auth) == (5, 100, "required")
    assert settings_for(settings, "SASL_SSL", "SCRAM-SHA-256").connections_max_reauth_ms == 200
    assert settings_for(settings, "SASL_SSL", "PLAIN").connections_max_reauth_ms == 100


def test_names_with_dots_and_spellings_of_settings() -> None:
    settings = broker_settings(
        {
            "listeners": "a.b://[::1]:1,c-d://:2",
            "listener.security.protocol.map": " a.b : sasl_ssl , c-d:ssl,",
            "listener.name.a.b.max.connections": "5",
            "listener.name.a.b.scram-sha-512.connections.max.reauth.ms": "6",
            "listener_name_c-d_max_connections": "7",
        }
    )
    first, second = listeners_of(settings)
    assert (str(first), str(second)) == ("A.B://[::1]:1", "C-D://:2")
    assert [each.protocol for each in (first, second)] == ["SASL_SSL", "SSL"]
    assert settings_for(settings, "A.B").max_connections == 5
    assert settings_for(settings, "A.B", "SCRAM-SHA-512").connections_max_reauth_ms == 6
    assert settings_for(settings, "A.B", "SCRAM-SHA-256").connections_max_reauth_ms == 0
    assert settings_for(settings, "C-D").max_connections == 7


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {"listeners": "PLAINTEXT://h:65536"},
            "listeners=PLAINTEXT://h:65536 is not allowed: it must be NAME://HOST:PORT, with commas",
        ),
        (
            {"listeners": "SSL://h:1,SSL://h:2"},
            "listeners=SSL://h:1,SSL://h:2 is not allowed: SSL is there twice, give each its name",
        ),
        (
            {"listeners": "SSL://a:1,PLAINTEXT://b:1"},
            "listeners: port 1 is there twice: give each listener a port of its own",
        ),
        (
            {"listeners": "OTHER://h:1"},
            (
                "listeners: OTHER has no protocol: add OTHER:PROTOCOL to listener.security.protocol.map, "
                "with one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"
            ),
        ),
        (
            {"listener.security.protocol.map": "SSL:SSL,x:"},
            (
                "listener.security.protocol.map: x: is not allowed: it must be NAME:PROTOCOL with one of "
                "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"
            ),
        ),
        (
            {"listener.security.protocol.map": ":SSL"},
            (
                "listener.security.protocol.map: :SSL is not allowed: it must be NAME:PROTOCOL with one of "
                "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"
            ),
        ),
        (
            {"listeners": "SSL://a:1,PLAINTEXT://b:2", "advertised.listeners": "IN://h:1"},
            "advertised.listeners: IN is not in listeners, which are SSL, PLAINTEXT",
        ),
        (
            {"advertised.listeners": "PLAINTEXT://h:0"},
            (
                "advertised.listeners=PLAINTEXT://h:0 is not allowed: clients need a host and a port to "
                "connect to"
            ),
        ),
        (
            {"advertised.listeners": "PLAINTEXT://[::]:1"},
            (
                "advertised.listeners=PLAINTEXT://:::1 is not allowed: clients need a host and a port to "
                "connect to"
            ),
        ),
        (
            {
                "listeners": "SSL://a:1,PLAINTEXT://b:2",
                "control.plane.listener.name": "SSL",
                "inter.broker.listener.name": "ssl",
            },
            (
                "control.plane.listener.name=SSL is not allowed: it must be a listener beside the one of "
                "clients and of brokers"
            ),
        ),
        (
            {"inter.broker.listener.name": "admin"},
            "inter.broker.listener.name: ADMIN is not in listeners, which are PLAINTEXT",
        ),
        (
            {"listener.name.plaintext.nonsense": "1"},
            (
                "listener.name.plaintext.nonsense is no setting: listener.name.LISTENER.SETTING is, "
                "docs/security.md lists them"
            ),
        ),
        (
            {"listener.name.other.max.connections": "1"},
            "listener.name.other: OTHER is not in listeners, which are PLAINTEXT",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_is_told_word_for_word(given: dict[str, str], why: str) -> None:
    with pytest.raises(SettingsError) as caught:
        broker_settings(given)
    assert str(caught.value) == why


def test_ports_that_the_system_chooses_may_be_the_same() -> None:
    settings = broker_settings({"listeners": "PLAINTEXT://h:0,SSL://h:0,SASL_SSL://h:65535"})
    assert [listener.port for listener in listeners_of(settings)] == [0, 0, 65_535]


def test_secrets_are_in_no_text_of_the_settings() -> None:
    settings = broker_settings(
        {
            "ssl.key.password": "gehe1m",
            "ssl.keystore.key": "gehe1m",
            "kohort.scram.users": "a=gehe1m",
            "sasl.jaas.config": "gehe1m",
            "listener.name.plaintext.plain.sasl.jaas.config": "gehe1m",
        }
    )
    assert "gehe1m" not in repr(settings)
