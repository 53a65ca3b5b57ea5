"""Authentication of connections: the order of requests, what fails, and how it is renewed.

Covers: broker/apis/sasl_authenticate.py, broker/apis/sasl_handshake.py.
Covers: broker/metrics/_logins.py, broker/security/_errors.py.
"""

from __future__ import annotations

import logging
import socket
import struct
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.broker import SettingsError
from kohort.broker.metrics._exposer import exposition
from kohort.broker.network import _server
from kohort.broker.security import _login
from kohort.broker.security._errors import LoginFailedError
from kohort.broker.security._listeners import listeners_of
from kohort.broker.security._login import Login, Pass
from kohort.broker.security._sasl import SaslMechanisms, plain_users
from kohort.broker.security._scram_users import ScramUsers
from kohort.broker.settings import broker_settings
from kohort.protocol import ApiKey, ProtocolError, decode_response, encode_request
from kohort.testing import RunningBroker, running_broker
from tests.broker.network.test_requests_without_task import heartbeat, join
from tests.broker.security.logins import (
    asks,
    authenticate,
    handshake,
    log_in_plain,
    log_in_scram,
    plain,
)
from tests.broker.security.principals import principals_of
from tests.broker.wire import Wire, commit_fields, create_topic
from tests.messages import request_of

JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret" user_bob="s\\"x";'
)
SETTINGS: dict[str, Any] = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "kohort.sasl.plain.without.tls": "SASL_PLAINTEXT",
    "kohort.scram.users": "alice=secret",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
    "connection.failed.authentication.delay.ms": "1",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker(**SETTINGS) as running:
        yield running


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_who_has_logged_in_is_served_under_their_name(
    broker: RunningBroker, wire: Wire, mechanism: str
) -> None:
    answer = log_in_plain(wire) if mechanism == "PLAIN" else log_in_scram(wire, mechanism=mechanism)
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
    with principals_of(broker) as seen:
        assert asks(wire)
    assert seen == ["User:alice"]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_version_of_the_exchange(wire: Wire, version: int) -> None:
    wire.call(ApiKey.API_VERSIONS, 4, client_software_name="x", client_software_version="1")
    assert handshake(wire, "PLAIN").mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert authenticate(wire, plain("bob", 's"x'), version).error_code == 0
    assert asks(wire)


def bare(wire: Wire, token: bytes) -> bytes:
    wire.socket.sendall(struct.pack(">i", len(token)) + token)
    return wire.frame()


def test_messages_follow_the_old_handshake_bare(broker: RunningBroker) -> None:
    with Wire(broker.bootstrap) as wire:
        assert handshake(wire, "PLAIN", version=0).error_code == 0
        assert bare(wire, plain("alice", "secret")) == b""
        assert asks(wire)
    with Wire(broker.bootstrap) as wire:
        handshake(wire, "PLAIN", version=0)
        with pytest.raises(EOFError):
            bare(wire, plain("alice", "wrong"))


def test_nothing_is_answered_before_the_login(broker: RunningBroker) -> None:
    for key, version, fields in (
        (ApiKey.METADATA, 1, {"topics": None}),
        (ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": plain("alice", "secret")}),
    ):
        with Wire(broker.bootstrap) as wire:
            wire.call(ApiKey.API_VERSIONS, 0)
            with pytest.raises(EOFError):
                wire.call(key, version, **fields)


def test_nothing_is_carried_out_before_the_login_not_even_hot_requests_or_those_of_who_left(
    broker: RunningBroker,
) -> None:
    """A client sends all at once and closes, as a producer without acks does."""
    metadata = encode_request(
        4,
        1,
        "x",
        request_of(ApiKey.METADATA)(version=4, topics=["stolen"], allow_auto_topic_creation=True),
    )
    heartbeat = encode_request(
        4, 2, "x", request_of(ApiKey.HEARTBEAT)(version=4, group_id="g", generation_id=1, member_id="m")
    )
    with principals_of(broker) as seen:
        for head in (b"", heartbeat, metadata):
            with socket.create_connection(("127.0.0.1", broker.port), 10) as link:
                link.sendall(head + metadata + heartbeat)
        with Wire(broker.bootstrap) as wire:
            log_in_plain(wire)
            assert asks(wire)
    assert seen == ["User:alice"]


@pytest.mark.parametrize(
    ("key", "version", "fields"),
    [
        (ApiKey.HEARTBEAT, 4, heartbeat("g")),
        (ApiKey.JOIN_GROUP, 5, join("g", "")),
        (ApiKey.OFFSET_COMMIT, 8, commit_fields("g", "t", 7)),
    ],
)
def test_no_hot_request_is_answered_before_during_or_after_a_failed_login(
    broker: RunningBroker, key: ApiKey, version: int, fields: dict[str, Any]
) -> None:
    def nothing(_wire: Wire) -> None:
        """Nobody has said anything."""

    def half(wire: Wire) -> None:
        handshake(wire, "PLAIN")

    def failed(wire: Wire) -> None:
        log_in_plain(wire, password="wrong")

    for before in (nothing, half, failed):
        with Wire(broker.bootstrap) as wire:
            before(wire)
            with pytest.raises((EOFError, ConnectionError)):
                wire.call(key, version, **fields)


@pytest.mark.parametrize(
    "data", [plain("alice", "wrong"), plain("nobody", "secret"), b"", b"\0\0", b"\xff\xff\xff"]
)
def test_a_failed_login_is_answered_and_ends_the_connection(
    wire: Wire, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    handshake(wire, "PLAIN")
    with caplog.at_level(logging.DEBUG):
        answer = authenticate(wire, data)
        assert wire.closed_by_broker()
    assert (answer.error_code, bytes(answer.auth_bytes)) == (58, b"")
    assert "PLAIN failed" in answer.error_message
    assert "authentication by PLAIN failed" in caplog.text
    assert "wrong" not in caplog.text + answer.error_message
    assert "secret" not in caplog.text + answer.error_message


@pytest.mark.parametrize(
    ("name", "shown"), [("bob", "user bob)"), ("a\nb\x1b[2J", r"user a\nb\x1b[2J)"), ("x" * 5_000, "xxx...")]
)
def test_the_log_says_on_which_listener_a_login_failed_and_of_which_user(
    wire: Wire, caplog: pytest.LogCaptureFixture, name: str, shown: str
) -> None:
    handshake(wire, "PLAIN")
    with caplog.at_level(logging.DEBUG):
        authenticate(wire, plain(name, "wrong"))
        assert wire.closed_by_broker()
    (line,) = (each.getMessage() for each in caplog.records if " failed: " in each.getMessage())
    assert "the password is not right (listener SASL_PLAINTEXT, user " in line
    assert line.endswith(shown)
    assert len(line) < 300


def test_refused_logins_are_counted_by_listener() -> None:
    with running_broker(**SETTINGS) as broker:

        def refused() -> dict[str, int]:
            now = broker._on_loop(broker._broker.metrics)
            return {name: found.total for name, found in now.failed_logins.items()}

        assert refused() == {"SASL_PLAINTEXT": 0, "PLAINTEXT": 0}
        for data in (plain("alice", "wrong"), plain("alice", "secret"), b""):
            with Wire(broker.bootstrap) as wire:
                handshake(wire, "PLAIN")
                authenticate(wire, data)
        with Wire(broker.bootstrap) as wire:
            log_in_scram(wire, password="wrong")
            assert wire.closed_by_broker()
        assert refused() == {"SASL_PLAINTEXT": 3, "PLAINTEXT": 0}
        now = broker._on_loop(broker._broker.metrics)
        assert now.failed_logins["SASL_PLAINTEXT"].rate > 0
        shown = exposition(now)[0].decode()
    name = "kafka_server_socket_server_metrics_failed_authentication"
    assert f'{name}_total{{listener="SASL_PLAINTEXT"}} 3.0' in shown
    assert f'{name}_rate{{listener="PLAINTEXT"}} 0.0' in shown


def test_a_scram_login_of_a_user_is_told_too(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert log_in_scram(wire, password="wrong").error_code == 58
        assert wire.closed_by_broker()
    assert "(listener SASL_PLAINTEXT, user alice)" in caplog.text


def test_a_scram_login_with_a_wrong_password_fails(wire: Wire) -> None:
    assert log_in_scram(wire, password="wrong").error_code == 58
    assert wire.closed_by_broker()


def test_another_mechanism_is_told_what_there_is(wire: Wire) -> None:
    answer = handshake(wire, "GSSAPI")
    assert (answer.error_code, answer.mechanisms) == (33, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
    assert wire.closed_by_broker()


def test_a_second_handshake_in_the_middle_is_refused_and_ends_the_connection(wire: Wire) -> None:
    handshake(wire, "PLAIN")
    answer = handshake(wire, "SCRAM-SHA-256")
    assert (answer.error_code, answer.mechanisms) == (34, [])
    assert wire.closed_by_broker()


def test_another_request_in_the_middle_ends_the_connection(wire: Wire) -> None:
    handshake(wire, "SCRAM-SHA-256")
    with pytest.raises(EOFError):
        asks(wire)


def test_who_is_in_already_need_not_say_it_again(broker: RunningBroker, wire: Wire) -> None:
    log_in_plain(wire)
    with Wire(broker.endpoints["PLAINTEXT"]) as open_to_all:
        for each in (wire, open_to_all):
            assert handshake(each, "PLAIN").error_code == 34
            assert authenticate(each, plain("alice", "secret")).error_code == 34
            assert asks(each)


def test_frames_are_small_until_the_login(broker: RunningBroker) -> None:
    with Wire(broker.bootstrap) as wire:
        wire.socket.sendall(struct.pack(">i", 524_289))
        assert wire.closed_by_broker()
    with Wire(broker.bootstrap) as wire:
        log_in_plain(wire)
        number = wire.send(ApiKey.METADATA, 1, topics=["t" * 30_000] * 20)
        assert wire.receive(ApiKey.METADATA, 1, number).brokers


def test_who_says_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_server, "UNAUTHENTICATED_S", 0.2)
    monkeypatch.setattr(_server, "SWEEP_S", 0.05)
    with (
        running_broker(**SETTINGS) as broker,
        Wire(broker.bootstrap) as quiet,
        Wire(broker.bootstrap) as wire,
    ):
        log_in_plain(wire)
        assert quiet.closed_by_broker()
        assert asks(wire)


def test_the_answer_to_a_failed_login_waits() -> None:
    slow = {**SETTINGS, "connection.failed.authentication.delay.ms": "400"}
    with running_broker(**slow) as broker, Wire(broker.bootstrap) as wire, Wire(broker.bootstrap) as other:
        handshake(wire, "PLAIN")
        started = time.monotonic()
        number = wire.send(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=plain("alice", "wrong"))
        log_in_plain(other)
        assert asks(other)
        assert wire.receive(ApiKey.SASL_AUTHENTICATE, 2, number).error_code == 58
        assert time.monotonic() - started >= 0.4


# renewal (KIP-368)


def test_a_login_is_believed_for_a_while_and_renewed_on_the_same_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_login, "RENEWAL_S", 0.0)
    short: dict[str, Any] = {
        **SETTINGS,
        "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "600000",
    }
    with running_broker(**short) as broker, Wire(broker.bootstrap) as wire:
        assert log_in_plain(wire).session_lifetime_ms == 600_000
        assert asks(wire)
        assert log_in_plain(wire).session_lifetime_ms == 600_000
        assert asks(wire)
        with Wire(broker.bootstrap) as other:
            assert log_in_scram(other).session_lifetime_ms == 0
        assert log_in_plain(wire, "bob", 's"x').error_code == 58, "nobody becomes somebody else"
        assert wire.closed_by_broker()


def test_a_login_that_was_not_renewed_in_time_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_login, "RENEWAL_S", 3_600.0)
    short: dict[str, Any] = {**SETTINGS, "connections.max.reauth.ms": "50"}
    with running_broker(**short) as broker:
        with Wire(broker.bootstrap) as wire:
            assert log_in_plain(wire).session_lifetime_ms == 50
            time.sleep(0.1)
            with pytest.raises(EOFError):
                asks(wire)
        with Wire(broker.bootstrap) as wire:
            log_in_plain(wire)
            time.sleep(0.1)
            # not again so soon
            with pytest.raises(EOFError):
                handshake(wire, "PLAIN")


def test_a_renewal_is_by_the_same_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_login, "RENEWAL_S", 0.0)
    long = {**SETTINGS, "connections.max.reauth.ms": "600000"}
    with running_broker(**long) as broker, Wire(broker.bootstrap) as wire:
        log_in_plain(wire)
        assert handshake(wire, "SCRAM-SHA-256").error_code == 33
        assert wire.closed_by_broker()


# settings


def sasl(**given: str) -> SaslMechanisms:
    settings = broker_settings({"listeners": "SASL_PLAINTEXT://:0,SASL_SSL://:0", **given})
    return SaslMechanisms(settings, listeners_of(settings)[0], ScramUsers())


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({"sasl.enabled.mechanisms": "PLAIN"}, "PLAIN would send passwords in the clear: use SASL_SSL"),
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "GSSAPI is not offered, PLAIN"),
        ({"sasl.enabled.mechanisms": ""}, "sasl.enabled.mechanisms is empty"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "sasl.oauthbearer.jwks.endpoint.url"),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "kohort.sasl.plain.without.tls": "SASL_PLAINTEXT",
                "sasl.jaas.config": "gehe1m",
            },
            r"sasl.jaas.config=\(hidden\) is not allowed",
        ),
    ],
)
def test_a_listener_that_cannot_authenticate_does_not_start(given: dict[str, str], advice: str) -> None:
    with pytest.raises(SettingsError, match=advice) as caught:
        sasl(**given)
    assert "gehe1m" not in str(caught.value)


def test_a_broker_with_such_a_listener_leaves_nothing_behind(tmp_path: Any) -> None:
    wrong: dict[str, Any] = {"listeners": "SASL_PLAINTEXT://:0", "sasl.enabled.mechanisms": "PLAIN"}
    with pytest.raises(SettingsError), running_broker(data=tmp_path / "data", **wrong):
        pass
    with running_broker(data=tmp_path / "data"):
        pass


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("", {}),
        (JAAS, {"alice": "secret", "bob": 's"x'}),
        ("x.PlainLoginModule required username=me password=pw user_me=pw;", {"me": "pw"}),
        ('PlainLoginModule required\n  user_a="1;2"\n  user_b="" ;', {"a": "1;2", "b": ""}),
    ],
)
def test_users_of_plain_are_read_as_java_writes_them(text: str, users: dict[str, str]) -> None:
    assert plain_users(text) == users


def test_secrets_are_told_to_nobody(broker: RunningBroker) -> None:
    with Wire(broker.endpoints["PLAINTEXT"]) as wire:
        create_topic(wire, "t")
        for version in (1, 4):
            resource = request_of(ApiKey.DESCRIBE_CONFIGS).DescribeConfigsResource(
                version=version, resource_type=4, resource_name="1", configuration_keys=None
            )
            answer = wire.call(ApiKey.DESCRIBE_CONFIGS, version, resources=[resource], include_synonyms=True)
            rows = {row.name: row for row in answer.results[0].configs}
            for name in ("kohort.scram.users", "listener.name", "ssl.key.password", "sasl.jaas.config"):
                assert rows[name].is_sensitive
                assert rows[name].value is None
                assert all(synonym.value is None for synonym in rows[name].synonyms)
            assert "secret" not in repr(answer)


# without a socket


class _Exchange:
    """Ends with its second message; ``b"no"`` is refused."""

    claimed = "alice"

    def __init__(self, user: str, expires_ms: int | None) -> None:
        self.done = False
        self.user = user
        self.expires_ms = expires_ms
        self._messages: list[bytes] = []

    async def step(self, data: bytes) -> bytes:
        if data == b"no":
            raise LoginFailedError("NO")
        self._messages.append(data)
        self.done = len(self._messages) == 2
        return b"+".join(self._messages)


class _Mechanisms:
    """One and TWO, of which ONE expires; a login is believed for ``believed`` ms."""

    mechanisms = ("ONE", "TWO")
    listener_name = "OUTSIDE"
    delay_s = 0.0

    def __init__(self) -> None:
        self.user = "alice"
        self.believed = 0
        self.asked: list[tuple[str, int | None, int]] = []

    def begin(self, mechanism: str) -> _Exchange | None:
        if mechanism not in self.mechanisms:
            return None
        return _Exchange(self.user, 777 if mechanism == "ONE" else None)

    def believed_ms(self, mechanism: str, expires_ms: int | None, now_ms: int) -> int:
        self.asked.append((mechanism, expires_ms, now_ms))
        return self.believed


class _Client:
    """A connection that logs in on a clock of the test's own; ``let_in`` are the principals."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sasl = _Mechanisms()
        self.let_in: list[str] = []
        sasl: Any = self.sasl
        self.login = Login(sasl, "10.0.0.1:1", self.let_in.append, lambda: self.now)

    async def ask(self, key: ApiKey, version: int, **fields: Any) -> Any:
        """The decoded answer; None where there is none, and PASS for what others answer."""
        body = request_of(key)(version=version, **fields)
        answer = await self.login.answer(bytes(encode_request(version, 9, "x", body))[4:])
        if answer is None or isinstance(answer, Pass):
            return answer
        number, told = decode_response(key, version, bytes(answer)[4:])
        assert number == 9
        return told

    async def handshake(self, mechanism: str = "ONE", version: int = 1) -> Any:
        return await self.ask(ApiKey.SASL_HANDSHAKE, version, mechanism=mechanism)

    async def says(self, data: bytes | None, version: int = 2) -> Any:
        return await self.ask(ApiKey.SASL_AUTHENTICATE, version, auth_bytes=data)

    async def logs_in(self, mechanism: str = "ONE") -> Any:
        await self.handshake(mechanism)
        await self.says(b"a")
        return await self.says(b"b")


async def test_a_login_takes_its_rounds_and_lets_in_at_the_end() -> None:
    client = _Client()
    assert (client.login.failed, client.login.open) == ("", False)
    assert repr(client.login) == "Login(10.0.0.1:1, nobody yet)"
    shake = await client.handshake()
    assert (shake.error_code, list(shake.mechanisms)) == (0, ["ONE", "TWO"])
    first = await client.says(b"a")
    assert (first.error_code, first.error_message, bytes(first.auth_bytes)) == (0, None, b"a")
    assert first.session_lifetime_ms == 0
    assert (client.let_in, client.login.open) == ([], False)
    last = await client.says(b"b")
    assert (bytes(last.auth_bytes), last.session_lifetime_ms) == (b"a+b", 0)
    assert (client.let_in, client.login.open) == (["User:alice"], True)
    assert repr(client.login) == "Login(10.0.0.1:1, User:alice)"
    assert isinstance(await client.ask(ApiKey.METADATA, 1, topics=[]), Pass)


async def test_an_empty_message_is_one() -> None:
    client = _Client()
    await client.handshake()
    assert bytes((await client.says(b"")).auth_bytes) == b""


async def test_messages_follow_the_first_version_of_the_handshake_bare() -> None:
    client = _Client()
    assert (await client.handshake(version=0)).error_code == 0
    assert await client.login.answer(b"a") == b"\0\0\0\1a"
    assert client.let_in == []
    assert await client.login.answer(b"b") == b"\0\0\0\3a+b"
    assert client.let_in == ["User:alice"]
    assert isinstance(await client.ask(ApiKey.METADATA, 1, topics=[]), Pass)
    other = _Client()
    await other.handshake(version=0)
    assert await other.login.answer(b"no") is None
    assert (other.login.failed, other.login.open) == ("authentication by ONE failed: NO", False)


async def test_a_proof_is_believed_as_long_as_its_mechanism_says(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = SimpleNamespace(time=lambda: 1_234.5678, monotonic=time.monotonic)
    monkeypatch.setattr(_login, "time", wall)
    client = _Client()
    client.sasl.believed = 2_000
    assert (await client.logs_in()).session_lifetime_ms == 2_000
    assert client.sasl.asked == [("ONE", 777, 1_234_567)]
    opened = []
    for client.now in (101.999, 102.0):
        opened.append(client.login.open)
    assert opened == [True, False]
    client.now = 101.999
    assert isinstance(await client.ask(ApiKey.METADATA, 1, topics=[]), Pass)
    client.now = 102.0
    assert isinstance(await client.ask(ApiKey.API_VERSIONS, 0), Pass)
    with pytest.raises(ProtocolError) as caught:
        await client.ask(ApiKey.METADATA, 1, topics=[])
    assert str(caught.value) == "its authentication has ended and was not renewed"


async def test_a_renewal_is_taken_once_a_second_and_only_where_a_proof_ends() -> None:
    client = _Client()
    client.sasl.believed = 60_000
    await client.logs_in()
    client.now = 100.999
    assert isinstance(await client.handshake(), Pass), "the router says that it may not"
    client.now = 101.0
    assert (await client.logs_in()).session_lifetime_ms == 60_000
    assert client.let_in == ["User:alice"] * 2
    client.now = 160.9
    assert client.login.open
    forever = _Client()
    await forever.logs_in()
    forever.now = 1e6
    assert isinstance(await forever.handshake(), Pass)


async def test_in_the_middle_of_a_renewal_nothing_else_is_carried_out() -> None:
    client = _Client()
    client.sasl.believed = 60_000
    await client.logs_in()
    client.now = 130.0
    await client.handshake()
    assert not client.login.open
    with pytest.raises(ProtocolError) as caught:
        await client.ask(ApiKey.METADATA, 1, topics=[])
    assert str(caught.value) == "another request in the middle of its authentication"


@pytest.mark.parametrize(
    ("mechanism", "user", "offered", "why"),
    [
        ("THREE", "alice", ["ONE"], "it asked for a SASL mechanism that is not offered here (ONE are)"),
        ("TWO", "alice", ["ONE"], "it asked for a SASL mechanism that is not offered here (ONE are)"),
        ("ONE", "bob", None, "authentication by ONE failed: it began as somebody else"),
    ],
)
async def test_a_renewal_is_by_the_same_mechanism_for_the_same_user(
    mechanism: str, user: str, offered: list[str] | None, why: str
) -> None:
    client = _Client()
    client.sasl.believed = 60_000
    await client.logs_in()
    client.now, client.sasl.user = 130.0, user
    answer = await client.handshake(mechanism)
    if offered is not None:
        assert (answer.error_code, list(answer.mechanisms)) == (33, offered)
    else:
        await client.says(b"a")
        answer = await client.says(b"b")
        assert (answer.error_code, bytes(answer.auth_bytes), answer.session_lifetime_ms) == (58, b"", 0)
        assert answer.error_message == why
    assert (client.login.failed, client.login.open, client.let_in) == (why, False, ["User:alice"])
    assert await client.ask(ApiKey.METADATA, 1, topics=[]) is None, "nothing is answered any more"


async def test_why_a_login_failed_is_told_and_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_login, "LINGER_S", 0.0)
    client = _Client()
    await client.handshake("TWO")
    answer = await client.says(b"no")
    assert (answer.error_code, bytes(answer.auth_bytes), answer.session_lifetime_ms) == (58, b"", 0)
    assert answer.error_message == client.login.failed == "authentication by TWO failed: NO"
    assert (client.login.open, client.let_in) == (False, [])
    assert await client.handshake() is None
    with pytest.raises(ProtocolError) as caught:
        await client.login.end()
    assert str(caught.value) == "authentication by TWO failed: NO (listener OUTSIDE, user alice)"


async def test_an_unknown_mechanism_and_a_second_handshake_are_told_why() -> None:
    client = _Client()
    answer = await client.handshake("three")
    assert (answer.error_code, list(answer.mechanisms)) == (33, ["ONE", "TWO"])
    assert client.login.failed == ("it asked for a SASL mechanism that is not offered here (ONE, TWO are)")
    client = _Client()
    await client.handshake("ONE")
    answer = await client.handshake("TWO")
    assert (answer.error_code, list(answer.mechanisms)) == (34, [])
    assert client.login.failed == "another handshake in the middle of its authentication"


@pytest.mark.parametrize("key", [ApiKey.METADATA, ApiKey.SASL_AUTHENTICATE, ApiKey.HEARTBEAT])
async def test_what_comes_before_a_login_ends_the_connection_with_its_number(key: ApiKey) -> None:
    client = _Client()
    assert isinstance(await client.ask(ApiKey.API_VERSIONS, 0), Pass)
    fields: dict[str, Any] = {"topics": []} if key is ApiKey.METADATA else {}
    with pytest.raises(ProtocolError) as caught:
        await client.ask(key, 1, **fields)
    assert str(caught.value) == f"API number {int(key)} before it said who it is (ILLEGAL_SASL_STATE)"


def test_a_scram_client_without_a_nonce_is_told_that_it_failed(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "kohort.broker"):
        handshake(wire, "SCRAM-SHA-256")
        assert authenticate(wire, b"n,,n=alice,r=abc").error_code == 0
        assert authenticate(wire, b"c=biws,p=AAAA").error_code == 58
        assert wire.closed_by_broker()
    assert [record for record in caplog.records if record.exc_info] == []
