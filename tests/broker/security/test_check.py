"""The whole report of ``kohort serve-check``: what is open to whom, what is limited, what is warned of."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pytest

from kohort.broker import SettingsError
from kohort.broker.quotas import QuotaEntity, QuotaKey, QuotaTable
from kohort.broker.security import _check
from kohort.broker.security._check import check
from kohort.broker.security._scram_users import ScramCredential, ScramUsers
from kohort.broker.settings import broker_settings
from tests.broker.security.certificates import Certificates, ending_keystore

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
HELD_UP = "queued.max.request.bytes is below socket.request.max.bytes: one request can hold up all others"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(autouse=True)
def _many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_check, "_open_files", lambda: 1_000_000)


def reported(
    given: dict[str, Any], *, metrics_port: int | None = None, users: str = "", host: str = "127.0.0.1"
) -> tuple[dict[str, list[str]], list[str]]:
    """Lines by heading, and the warnings."""
    known = ScramUsers()
    known.add_in_memory(users)
    parts, warnings = check(broker_settings(given), known, QuotaTable(), host, 9092, metrics_port)
    return {part.title: part.lines for part in parts}, warnings


def secured(certificates: Certificates) -> dict[str, str]:
    keystore = Path(certificates.server())
    keystore.chmod(0o600)
    return {"ssl.keystore.location": str(keystore), "ssl.truststore.location": certificates.cafile}


def test_a_broker_of_this_machine_with_nothing_set() -> None:
    parts, warnings = reported({})
    assert list(parts) == ["listener PLAINTEXT://127.0.0.1:9092", "rights", "limits", "client quotas"]
    assert parts["listener PLAINTEXT://127.0.0.1:9092"] == [
        "reached from  this machine",
        "encrypted     no",
        "let in        everyone, as User:ANONYMOUS",
    ]
    assert parts["rights"] == [
        "every connected client may do everything: there are no access rules (authorizer.class.name)"
    ]
    assert parts["limits"] == [
        "connections          10000; one more waits",
        "  of one address     5000",
        "  new ones           not limited",
        "  silent             600000 ms",
        "a request            104857600 bytes",
        "requests that wait   268435456 bytes",
        "members of a group   5000",
        "a record batch       1048588 bytes",
    ]
    (line,) = parts["client quotas"]
    assert line == (
        "not limited for clients that are not named here: producer_byte_rate, consumer_byte_rate, "
        "request_percentage, controller_mutation_rate"
    )
    assert warnings == []


def test_each_listener_says_who_reaches_it_and_how_they_prove_who_they_are(
    certificates: Certificates,
) -> None:
    settings = {
        **secured(certificates),
        "listeners": "OUT://10.0.0.1:9093,TOKENS://10.0.0.1:9094,CERT://kafka:9095,ASK://[::]:9096,"
        "ADMIN://localhost:9097",
        "advertised.listeners": "ASK://kafka.example.org:9096",
        "listener.security.protocol.map": "OUT:SASL_SSL,TOKENS:SASL_SSL,CERT:SSL,ASK:SSL,ADMIN:PLAINTEXT",
        "control.plane.listener.name": "ADMIN",
        "listener.name.cert.ssl.client.auth": "required",
        "listener.name.ask.ssl.client.auth": "requested",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.out.plain.sasl.jaas.config": f'{MODULE} user_a="1" user_b="2";',
        "listener.name.out.max.connections": "5",
        "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": "https://h/keys",
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "issuer",
    }
    parts, warnings = reported(settings, users="alice=x,bob=y,carol=z")
    reached, encrypted = "reached from  wherever its address is reached", "encrypted     TLSv1.2,TLSv1.3"
    assert {title: lines for title, lines in parts.items() if title.startswith("listener ")} == {
        "listener OUT://10.0.0.1:9093": [
            reached,
            encrypted,
            "let in        users, by PLAIN (2 users), SCRAM-SHA-256 (3 users), SCRAM-SHA-512 (3 users)",
            "connections   5",
        ],
        "listener TOKENS://10.0.0.1:9094": [
            reached,
            encrypted,
            "let in        users, by OAUTHBEARER (keys from https://h/keys)",
        ],
        "listener CERT://kafka:9095": [
            reached,
            encrypted,
            "let in        who has a certificate of an authority that is trusted",
        ],
        "listener ASK://[::]:9096": [
            reached,
            encrypted,
            "let in        everyone; who has a certificate, under its name",
        ],
        "listener ADMIN://localhost:9097": [
            "reached from  this machine",
            "encrypted     no",
            "let in        everyone, as User:ANONYMOUS",
            "control       its connections and requests wait for nobody else's",
        ],
    }
    assert warnings == [
        "ASK: nobody has to prove who they are: use SASL_SSL, or SSL with ssl.client.auth=required",
        "ASK: ssl.client.auth=requested: a client that forgot its certificate is User:ANONYMOUS",
    ]


@pytest.mark.parametrize(
    ("listener", "own", "users", "expected"),
    [
        (
            "PLAINTEXT://10.0.0.1:1",
            {},
            "",
            [
                "records and commands cross the network in the clear: use SSL or SASL_SSL",
                "nobody has to prove who they are: use SASL_SSL, or SSL with ssl.client.auth=required",
            ],
        ),
        (
            "PLAINTEXT://:1",
            {},
            "",
            [
                "records and commands cross the network in the clear: use SSL or SASL_SSL",
                "nobody has to prove who they are: use SASL_SSL, or SSL with ssl.client.auth=required",
                "it listens on every address: advertised.listeners should say the name that clients know",
            ],
        ),
        (
            "SASL_PLAINTEXT://10.0.0.1:1",
            {"sasl.enabled.mechanisms": "SCRAM-SHA-256"},
            "alice=x",
            ["records and commands cross the network in the clear: use SSL or SASL_SSL"],
        ),
        ("SASL_PLAINTEXT://127.0.0.1:1", {"sasl.enabled.mechanisms": "SCRAM-SHA-512"}, "alice=x", []),
        ("SSL://127.0.0.1:1", {}, "", []),
        (
            "SASL_PLAINTEXT://127.0.0.1:1",
            {"sasl.enabled.mechanisms": "SCRAM-SHA-512"},
            "",
            ["SCRAM-SHA-512 has no users: make one with 'kohort users add NAME --data DIR'"],
        ),
        (
            "SASL_PLAINTEXT://127.0.0.1:1",
            {"sasl.enabled.mechanisms": "PLAIN", "kohort.sasl.plain.without.tls": "SASL_PLAINTEXT"},
            "",
            [
                "PLAIN sends passwords in the clear here, as kohort.sasl.plain.without.tls allows",
                "PLAIN has no users: set sasl.jaas.config for it",
            ],
        ),
        (
            "SASL_SSL://127.0.0.1:1",
            {"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": f"{MODULE} user_a=1;"},
            "",
            [],
        ),
        (
            "SASL_SSL://127.0.0.1:1",
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url": "http://h/keys",
            },
            "",
            [
                "tokens for any audience are taken: set sasl.oauthbearer.expected.audience",
                "tokens of any issuer are taken: set sasl.oauthbearer.expected.issuer",
                "keys are fetched without TLS: anyone in between can forge tokens; use https:",
            ],
        ),
    ],
)
def test_what_to_think_about_again_for_a_listener(
    certificates: Certificates, listener: str, own: dict[str, str], users: str, expected: list[str]
) -> None:
    _, warnings = reported({**secured(certificates), "listeners": listener, **own}, users=users)
    name = listener.partition(":")[0]
    assert warnings == [f"{name}: {text}" for text in expected]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"super.users": "User:ANONYMOUS"}, []),
        (
            {"authorizer.class.name": AUTHORIZER, "super.users": "User:x;User:ANONYMOUS"},
            ["User:ANONYMOUS is a super user: clients that do not authenticate may do everything"],
        ),
        ({"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS2"}, []),
        ({"allow.everyone.if.no.acl.found": "true"}, []),
        (
            {"authorizer.class.name": AUTHORIZER, "allow.everyone.if.no.acl.found": "true"},
            ["allow.everyone.if.no.acl.found=true: a topic is open to everyone until a rule names it"],
        ),
        ({"connections.max.idle.ms": "0"}, []),
        (
            {"connections.max.idle.ms": "-1"},
            ["connections.max.idle.ms=-1: connections of clients that hang are kept for ever"],
        ),
        ({"max.connections": "5001"}, []),
        (
            {"max.connections": "5000"},
            ["one address can take every connection: set max.connections.per.ip below max.connections"],
        ),
        ({"queued.max.request.bytes": "104857600"}, []),
        (
            {"queued.max.request.bytes": "104857599"},
            [HELD_UP],
        ),
        ({"max.connections": "750000"}, []),
        (
            {"max.connections": "750001"},
            ["max.connections=750001, but 250000 of 1000000 descriptors are for files: raise ulimit -n"],
        ),
    ],
)
def test_what_to_think_about_again_for_the_whole_broker(given: dict[str, str], expected: list[str]) -> None:
    assert reported(given)[1] == expected


@pytest.mark.parametrize(
    ("limit", "warned"),
    [
        (
            13_332,
            ["max.connections=10000, but 3333 of 13332 descriptors are for files: raise ulimit -n"],
        ),
        (13_333, []),
    ],
)
def test_the_limit_of_files_is_the_one_that_a_process_may_raise_its_own_to(
    monkeypatch: pytest.MonkeyPatch, limit: int, warned: list[str]
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (50, limit))
    assert reported({})[1] == warned


def test_without_a_limit_of_files_there_is_nothing_to_say_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (50, resource.RLIM_INFINITY))
    assert reported({"max.connections": "2000000000"})[1] == []


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, "access rules decide; what none names is open to nobody; super users: none"),
        (
            {"allow.everyone.if.no.acl.found": "true", "super.users": "User:a;User:b"},
            "access rules decide; what none names is open to everyone; super users: User:a;User:b",
        ),
    ],
)
def test_rights_say_what_no_rule_names_and_who_may_everything(given: dict[str, str], line: str) -> None:
    parts, _ = reported({"authorizer.class.name": AUTHORIZER, **given})
    assert parts["rights"] == [line]


@pytest.mark.parametrize("auth", ["requested", "required"])
def test_without_tls_nobody_shows_a_certificate_whatever_is_asked_for(auth: str) -> None:
    parts, _ = reported({"ssl.client.auth": auth})
    assert "let in        everyone, as User:ANONYMOUS" in parts["listener PLAINTEXT://127.0.0.1:9092"]


def test_users_are_counted_by_their_mechanism() -> None:
    given = {"listeners": "SASL_PLAINTEXT://127.0.0.1:1", "sasl.enabled.mechanisms": "SCRAM-SHA-512"}
    one = ScramCredential.of_password("SCRAM-SHA-256", "x")
    users = ScramUsers()
    users.replace({("SCRAM-SHA-256", name): one for name in "abc"} | {("SCRAM-SHA-512", "a"): one})
    (listener, *_), warnings = check(broker_settings(given), users, QuotaTable(), "h", 1)
    assert "let in        users, by SCRAM-SHA-512 (1 users)" in listener.lines
    assert warnings == []
    users.replace({("SCRAM-SHA-256", "a"): one})
    assert check(broker_settings(given), users, QuotaTable(), "h", 1)[1] == [
        "SASL_PLAINTEXT: SCRAM-SHA-512 has no users: make one with 'kohort users add NAME --data DIR'"
    ]


def test_quotas_are_told_with_all_their_values() -> None:
    table = QuotaTable()
    user = QuotaEntity((("user", "alice"), ("client-id", None)))
    table.change(user, {QuotaKey.PRODUCER_BYTE_RATE: 1_048_576.0, QuotaKey.REQUEST_PERCENTAGE: 12.5})
    parts, _ = check(broker_settings({}), ScramUsers(), table, "127.0.0.1", 1)
    assert parts[-1].lines[0] == f"{user}: producer_byte_rate=1,048,576, request_percentage=12.5"
    assert len(parts[-1].lines) == 2
    table.change(QuotaEntity((("client-id", None),)), dict.fromkeys(QuotaKey, 1.0))
    parts, _ = check(broker_settings({}), ScramUsers(), table, "127.0.0.1", 1)
    assert len(parts[-1].lines) == 2, "nobody is left out"


def test_limits_are_those_that_are_set() -> None:
    parts, _ = reported(
        {
            "max.connections": "4000",
            "max.connections.per.ip": "30",
            "max.connection.creation.rate": "7",
            "kohort.connections.over.limit": "close",
            "connections.max.idle.ms": "0",
            "socket.request.max.bytes": "5000",
            "queued.max.request.bytes": "6000",
            "group.max.size": "70",
            "message.max.bytes": "800",
        }
    )
    assert parts["limits"] == [
        "connections          4000; one more is closed",
        "  of one address     30",
        "  new ones           7 a second",
        "  silent             0 ms",
        "a request            5000 bytes",
        "requests that wait   6000 bytes",
        "members of a group   70",
        "a record batch       800 bytes",
    ]
    assert "  silent             not limited" in reported({"connections.max.idle.ms": "-1"})[0]["limits"]


@pytest.mark.parametrize(
    ("listeners", "host", "local"),
    [
        ("", "127.0.0.1", True),
        ("", "0.0.0.0", False),
        ("PLAINTEXT://:9092", "127.0.0.1", True),
        ("PLAINTEXT://:9092", "10.0.0.1", False),
        ("PLAINTEXT://[::1]:9092", "10.0.0.1", True),
        ("PLAINTEXT://localhost:9092", "10.0.0.1", True),
        ("PLAINTEXT://127.9.9.9:9092,OTHER://10.0.0.1:9093", "10.0.0.1", True),
        ("OTHER://10.0.0.1:9093,PLAINTEXT://127.9.9.9:9092", "127.0.0.1", False),
        ("PLAINTEXT://kafka.example.org:9092", "127.0.0.1", False),
    ],
)
def test_metrics_are_where_the_first_listener_is(listeners: str, host: str, local: bool) -> None:
    given = {"listeners": listeners, "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"}
    parts, warnings = reported(given, metrics_port=9400, host=host)
    assert parts["metrics at port 9400"] == [
        f"reached from  {'this machine' if local else 'wherever its address is reached'}",
        "encrypted     no",
        "let in        everyone; 64 connections, which count towards no other limit",
    ]
    told = (
        "metrics: names of topics, users and clients are shown to anyone who reaches the port: keep it "
        "behind a firewall"
    )
    assert (told in warnings) is not local


@pytest.mark.parametrize(
    ("days", "mode", "expected"),
    [
        ((100,), 0o600, []),
        ((30.01,), 0o600, []),
        ((29.9,), 0o600, ["a certificate expires in 30 days: exchange the file, no restart is needed"]),
        ((0.6,), 0o600, ["a certificate expires in 1 days: exchange the file, no restart is needed"]),
        ((2.1,), 0o600, ["a certificate expires in 2 days: exchange the file, no restart is needed"]),
        ((-0.1,), 0o600, ["a certificate has expired: exchange it, clients refuse it"]),
        ((100, -1), 0o600, ["a certificate has expired: exchange it, clients refuse it"]),
        ((100,), 0o640, [None]),
        ((100,), 0o601, [None]),
    ],
)
def test_a_certificate_that_ends_soon_and_a_key_that_others_may_read_are_told(
    tmp_path: Path, days: tuple[float, ...], mode: int, expected: list[str | None]
) -> None:
    path = ending_keystore(tmp_path, *days)
    Path(path).chmod(mode)
    _, warnings = reported({"listeners": "SSL://127.0.0.1:1", "ssl.keystore.location": path})
    readable = f"SSL: {path} holds a private key and others may read it: chmod 600"
    assert warnings == [readable if text is None else f"SSL: {path}: {text}" for text in expected]


def test_a_key_that_stands_in_the_settings_has_no_file_to_look_at(certificates: Certificates) -> None:
    text = Path(certificates.server()).read_text()
    key, _, chain = text.partition("-----BEGIN CERTIFICATE")
    given = {
        "listeners": "SSL://127.0.0.1:1",
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": f"-----BEGIN CERTIFICATE{chain}",
    }
    assert reported(given)[1] == []


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({"listeners": "SSL://127.0.0.1:1"}, "listener SSL: it has no certificate"),
        (
            {"max.connections.per.ip.overrides": "10.0.0.1"},
            "max.connections.per.ip.overrides=10.0.0.1 is not allowed",
        ),
    ],
)
def test_settings_that_no_broker_can_be_started_with_are_refused(given: dict[str, str], advice: str) -> None:
    with pytest.raises(SettingsError, match=advice):
        reported(given)


def test_brokers_of_a_cluster_say_how_they_know_each_other_and_who_changes_their_metadata(
    certificates: Certificates,
) -> None:
    login = 'ScramLoginModule required username="broker" password="x";'
    settings = {
        **secured(certificates),
        "zookeeper.connect": "zk:2181",
        "node.id": "1",
        "listeners": "OUT://10.0.0.1:9093,BROKERS://10.0.0.1:9094",
        "listener.security.protocol.map": "OUT:SASL_SSL,BROKERS:SASL_SSL",
        "inter.broker.listener.name": "BROKERS",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.brokers.scram-sha-512.sasl.jaas.config": login,
        "kohort.zookeeper.digest": "kohort:secret",
    }
    parts, warnings = reported(settings)
    lines = ["reached by    BROKERS", "known as      broker, by SCRAM-SHA-512"]
    assert parts["brokers of the cluster"] == [*lines, "metadata      changed by the user kohort"]
    assert warnings == []
    careless = {
        **secured(certificates),
        "zookeeper.connect": "zk:2181",
        "node.id": "1",
        "listeners": "PLAINTEXT://localhost:9093,SSL://localhost:9094",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    }
    parts, warnings = reported(careless)
    assert parts["brokers of the cluster"] == [
        "reached by    PLAINTEXT",
        "known as      User:ANONYMOUS",
        "metadata      changed by everyone who reaches ZooKeeper",
    ]
    assert [line.partition(": set ")[2] for line in warnings] == [
        "kohort.zookeeper.digest, or zookeeper.set.acl",
        "inter.broker.listener.name",
    ]
    with pytest.raises(SettingsError, match=r"sasl\.mechanism\.inter\.broker\.protocol= is not allowed"):
        reported({**settings, "sasl.mechanism.inter.broker.protocol": ""})
