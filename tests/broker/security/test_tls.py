"""Listeners with TLS: who is let in, under which name, and certificates that change while it serves."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.broker import SettingsError
from kohort.broker.security import _tls
from kohort.broker.security._tls import TlsContexts
from kohort.broker.settings import broker_settings
from kohort.protocol import ApiKey, encode_request
from kohort.testing import RunningBroker, running_broker
from tests.broker.network.test_requests_without_task import join
from tests.broker.security.certificates import Certificates
from tests.broker.security.principals import principals_of
from tests.broker.wire import Wire, part
from tests.messages import request_of


def settings(keystore: str, **more: Any) -> dict[str, Any]:
    return {
        "listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "ssl.keystore.location": keystore,
        **more,
    }


def tls_wire(broker: RunningBroker, context: ssl.SSLContext) -> Wire:
    wire = Wire(broker.endpoints["SSL"])
    wire.socket = context.wrap_socket(wire.socket, server_hostname="127.0.0.1")
    return wire


@pytest.fixture(scope="module")
def broker(certificates: Certificates) -> Iterator[RunningBroker]:
    with running_broker(**settings(certificates.server())) as running:
        yield running


def test_clients_are_told_the_endpoint_of_the_listener_they_came_by(
    broker: RunningBroker, certificates: Certificates
) -> None:
    with tls_wire(broker, certificates.trusting()) as secured, Wire(broker.endpoints["PLAINTEXT"]) as plain:
        for wire, name in ((secured, "SSL"), (plain, "PLAINTEXT")):
            told = wire.call(ApiKey.METADATA, 1, topics=[]).brokers[0]
            found = wire.call(ApiKey.FIND_COORDINATOR, 1, key="g", key_type=0)
            cluster = wire.call(ApiKey.DESCRIBE_CLUSTER, 0).brokers[0]
            for answer in (told, found, cluster):
                assert f"{answer.host}:{answer.port}" == broker.endpoints[name]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1:DeprecationWarning")
def test_versions_before_1_2_are_refused(broker: RunningBroker, certificates: Certificates) -> None:
    context = certificates.trusting()
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        tls_wire(broker, context)


@pytest.mark.parametrize(("auth", "named"), [("none", False), ("requested", True), ("required", True)])
def test_a_client_certificate_names_its_client_where_it_is_asked_for(
    certificates: Certificates, auth: str, named: bool
) -> None:
    asked = settings(
        certificates.server(),
        **{"ssl.client.auth": auth, "ssl.truststore.location": certificates.cafile},
    )
    with running_broker(**asked) as broker, principals_of(broker) as seen:
        with tls_wire(broker, certificates.trusting(certificates.client("alice"))) as wire:
            wire.call(ApiKey.METADATA, 1, topics=[])
        (who,) = set(seen)
        if named:
            assert who.startswith("User:CN=alice,OU=billing,O=trustme")
        else:
            assert who == "User:ANONYMOUS"


def test_without_a_certificate_one_is_anonymous_or_out(certificates: Certificates) -> None:
    trust = {"ssl.truststore.location": certificates.cafile}
    asked = settings(certificates.server(), **trust, **{"ssl.client.auth": "requested"})
    with running_broker(**asked) as broker, principals_of(broker) as seen:
        with tls_wire(broker, certificates.trusting()) as wire:
            wire.call(ApiKey.METADATA, 1, topics=[])
        assert set(seen) == {"User:ANONYMOUS"}
    asked = settings(certificates.server(), **trust, **{"ssl.client.auth": "required"})
    with running_broker(**asked) as broker, pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
        tls_wire(broker, certificates.trusting()).call(ApiKey.METADATA, 1, topics=[])


def test_a_certificate_of_another_authority_is_not_let_in(certificates: Certificates, tmp_path: Path) -> None:
    stranger = Certificates(tmp_path).client("alice")
    asked = settings(
        certificates.server(),
        **{"ssl.client.auth": "requested", "ssl.truststore.location": certificates.cafile},
    )
    with running_broker(**asked) as broker, pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
        tls_wire(broker, certificates.trusting(stranger)).call(ApiKey.METADATA, 1, topics=[])


def test_rules_make_users_of_names_and_keep_out_who_has_none(certificates: Certificates) -> None:
    asked = settings(
        certificates.server(),
        **{
            "ssl.client.auth": "required",
            "ssl.truststore.location": certificates.cafile,
            "ssl.principal.mapping.rules": "RULE:^CN=(.*?),OU=billing,.*$/$1/L",
        },
    )
    with running_broker(**asked) as broker, principals_of(broker) as seen:
        with tls_wire(broker, certificates.trusting(certificates.client("Alice"))) as wire:
            wire.call(ApiKey.METADATA, 1, topics=[])
        with tls_wire(broker, certificates.trusting(certificates.client("Bob", "other"))) as wire:
            assert wire.closed_by_broker()
        assert set(seen) == {"User:alice"}


@pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])
def test_what_comes_with_the_handshake_of_a_certificate_without_a_name_is_not_carried_out(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, fast: bool
) -> None:
    """In the same write as the end of the handshake: asyncio's TLS hands it over while it closes."""
    if fast:
        pytest.importorskip("uvloop")
    else:
        monkeypatch.setattr("kohort.broker.loop_factory", lambda: None)
    asked = settings(
        certificates.server(),
        **{
            "ssl.client.auth": "required",
            "ssl.truststore.location": certificates.cafile,
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+),OU=billing,.*$/$1/",
        },
    )
    create = part(
        ApiKey.CREATE_TOPICS, 4, "CreatableTopic", name="stolen", num_partitions=1, replication_factor=1
    )
    request = request_of(ApiKey.CREATE_TOPICS)(version=4, topics=[create], timeout_ms=1000)
    hot = request_of(ApiKey.JOIN_GROUP)(version=5, **join("stolen", ""))
    frames = bytes(encode_request(5, 1, "x", hot)) + bytes(encode_request(4, 2, "x", request))
    with running_broker(**asked) as broker, Wire(broker.endpoints["PLAINTEXT"]) as plain:
        context = certificates.trusting(certificates.client("mallory", "other"))
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", _port(broker, "SSL")), 10) as link:
                assert _answer_to_handshake_and(frames, link, context) == b""
        topics = plain.call(ApiKey.METADATA, 1, topics=None).topics
        groups = plain.call(ApiKey.LIST_GROUPS, 2).groups
    assert "stolen" not in {topic.name for topic in topics}
    assert [group.group_id for group in groups] == []


def _answer_to_handshake_and(data: bytes, link: socket.socket, context: ssl.SSLContext) -> bytes:
    """Complete a handshake, its last bytes and ``data`` in one write; empty where the broker closes."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secured = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")

    def until_done(step: Callable[[], Any]) -> Any:
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                link.sendall(outgoing.read())
                incoming.write(link.recv(65_536))

    until_done(secured.do_handshake)
    secured.write(data)
    answer: bytes = until_done(secured.read)
    return answer


def test_a_certificate_is_exchanged_while_the_broker_serves(
    certificates: Certificates,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(_tls, "LOOK_S", 0.0)
    keystore = tmp_path / "keystore.pem"
    shutil.copy(certificates.server(), keystore)
    with running_broker(**settings(str(keystore))) as broker:

        def shown() -> bytes:
            with tls_wire(broker, certificates.trusting()) as wire:
                assert isinstance(wire.socket, ssl.SSLSocket)
                certificate = wire.socket.getpeercert(binary_form=True)
                wire.call(ApiKey.METADATA, 1, topics=[])
            assert certificate is not None
            return certificate

        first = shown()
        keystore.write_text("-----BEGIN PRIVATE KEY-----\nhalf written")
        with caplog.at_level(logging.ERROR, "kohort.broker"):
            assert shown() == first
        assert "the certificates of before stay in use" in caplog.text
        beside = tmp_path / "new.pem"
        shutil.copy(certificates.server("second.pem"), beside)
        os.replace(beside, keystore)
        assert shown() != first


def test_a_client_of_the_other_kind_is_closed_and_others_are_served(
    broker: RunningBroker, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    with Wire(broker.endpoints["PLAINTEXT"]) as other, caplog.at_level(logging.INFO, "kohort.broker"):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            certificates.trusting().wrap_socket(
                socket.create_connection(("127.0.0.1", _port(broker, "PLAINTEXT")), 10),
                server_hostname="127.0.0.1",
            )
        with Wire(broker.endpoints["SSL"]) as wrong, pytest.raises((ConnectionError, EOFError, ValueError)):
            wrong.call(ApiKey.METADATA, 1, topics=[])
        assert other.call(ApiKey.METADATA, 1, topics=[]).brokers
        deadline = time.monotonic() + 30
        while "plain text where TLS is expected" not in caplog.text:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_half_a_handshake_holds_up_nobody_and_ends(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kohort.broker.network import _acceptor

    monkeypatch.setattr(_acceptor, "HANDSHAKE_S", 0.5)
    with running_broker(**settings(certificates.server())) as broker:
        halves = [Wire(broker.endpoints["SSL"]) for _ in range(20)]
        for half in halves:
            half.socket.sendall(b"\x16\x03\x01\x02\x00\x01")
        started = time.monotonic()
        with tls_wire(broker, certificates.trusting()) as wire:
            wire.call(ApiKey.METADATA, 1, topics=[])
        assert time.monotonic() - started < 10
        assert all(half.closed_by_broker() for half in halves)


def _port(broker: RunningBroker, listener: str) -> int:
    return int(broker.endpoints[listener].rpartition(":")[2])


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({}, "it has no certificate: set ssl.keystore.location"),
        ({"ssl.keystore.location": "/nowhere.pem"}, "cannot be used .*private key in PEM form"),
        ({"ssl.enabled.protocols": "TLSv1"}, "TLSv1.2 and TLSv1.3 are offered"),
        ({"ssl.client.auth": "required"}, "ssl.truststore.location"),
    ],
)
def test_a_listener_that_cannot_serve_says_what_it_needs(
    certificates: Certificates, given: dict[str, str], advice: str
) -> None:
    keystore = {} if not given else {"ssl.keystore.location": certificates.server(), **given}
    wanted = broker_settings({"listeners": "SSL://:0", **keystore})
    with pytest.raises(SettingsError, match=f"listener SSL: .*{advice}"):
        TlsContexts(wanted, "SSL", wanted.ssl_client_auth)


def test_keys_and_certificates_may_stand_in_the_settings(certificates: Certificates) -> None:
    text = Path(certificates.server()).read_text()
    end = text.index("-----BEGIN CERTIFICATE")
    wanted = broker_settings(
        {
            "listeners": "SSL://:0",
            "ssl.keystore.key": text[:end],
            "ssl.keystore.certificate.chain": text[end:],
            "ssl.client.auth": "required",
            "ssl.truststore.certificates": Path(certificates.cafile).read_text(),
        }
    )
    assert TlsContexts(wanted, "SSL", "required").current().verify_mode is ssl.CERT_REQUIRED
    assert text[30:60] not in repr(wanted)


def _contexts(given: dict[str, Any], clock: Callable[[], float] = time.monotonic) -> TlsContexts:
    wanted = broker_settings({"listeners": "SSL://:0", **given})
    return TlsContexts(wanted, "SSL", wanted.ssl_client_auth, clock)


def test_files_are_looked_at_once_a_second_and_told_of_when_they_are_read_anew(
    certificates: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keystore, now = tmp_path / "keystore.pem", 0.0
    shutil.copy(certificates.server(), keystore)
    contexts = _contexts({"ssl.keystore.location": str(keystore)}, lambda: now)
    first = contexts.current()
    shutil.copy(certificates.server("other.pem", "127.0.0.1"), tmp_path / "new.pem")
    os.replace(tmp_path / "new.pem", keystore)
    with caplog.at_level(logging.INFO, "kohort.broker"):
        now = 0.99
        assert contexts.current() is first
        assert caplog.messages == []
        now = 1.0
        second = contexts.current()
        assert second is not first
        assert caplog.messages == ["listener SSL: certificates reloaded"]
        now = 2.0
        assert contexts.current() is second
    assert len(caplog.messages) == 1


def test_authorities_are_read_anew_too(certificates: Certificates, tmp_path: Path) -> None:
    authorities, now = tmp_path / "authorities.pem", 0.0
    shutil.copy(certificates.cafile, authorities)
    contexts = _contexts(
        {
            "ssl.keystore.location": certificates.server(),
            "ssl.truststore.location": str(authorities),
            "ssl.client.auth": "required",
        },
        lambda: now,
    )
    first = contexts.current()
    authorities.write_text(Path(certificates.cafile).read_text() + "\n")
    now = 1.0
    assert contexts.current() is not first


def test_files_that_cannot_be_used_are_told_of_once_for_each_reason(
    certificates: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keystore, now = tmp_path / "keystore.pem", 0.0
    good = Path(certificates.server()).read_text()
    keystore.write_text(good)
    contexts = _contexts({"ssl.keystore.location": str(keystore)}, lambda: now)
    first = contexts.current()

    def told(content: str | None) -> list[str]:
        nonlocal now
        caplog.clear()
        if content is None:
            keystore.unlink()
        else:
            keystore.write_text(content)
        for _ in range(3):
            now += 1
            assert contexts.current() is first
        return caplog.messages

    def complaint(reason: str) -> str:
        return (
            f"the certificates of before stay in use: listener SSL: {keystore} cannot be used ({reason}): it "
            "must hold a private key in PEM form and the certificates that belong to it, and "
            "ssl.key.password open it"
        )

    with caplog.at_level(logging.ERROR, "kohort.broker"):
        (no_key,) = told(good[good.index("-----BEGIN CERTIFICATE") :])
        assert no_key.startswith(complaint("")[: complaint("").index("(") + 1])
        assert "None" not in no_key
        assert told(None) == [complaint("No such file or directory")]
        assert told(good[good.index("-----BEGIN CERTIFICATE") :]) == [no_key]
        caplog.clear()
        keystore.write_text(good)
        now += 1
        assert contexts.current() is not first
        assert caplog.messages == []


@pytest.mark.parametrize(
    ("given", "versions"),
    [
        ("TLSv1.2,TLSv1.3", (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)),
        (" TLSv1.3 , TLSv1.2,", (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)),
        ("TLSv1.3", (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)),
        ("TLSv1.2", (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)),
    ],
)
def test_a_context_offers_the_versions_that_are_set_and_no_renegotiation(
    certificates: Certificates, given: str, versions: tuple[ssl.TLSVersion, ...]
) -> None:
    context = _contexts(
        {"ssl.keystore.location": certificates.server(), "ssl.enabled.protocols": given}
    ).current()
    assert (context.minimum_version, context.maximum_version) == versions
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.options & ssl.OP_NO_COMPRESSION
    assert context.verify_mode is ssl.CERT_NONE
    assert context.get_ca_certs() == []


@pytest.mark.parametrize(
    ("auth", "mode"), [("requested", ssl.CERT_OPTIONAL), ("required", ssl.CERT_REQUIRED)]
)
def test_authorities_are_loaded_where_certificates_are_asked_for(
    certificates: Certificates, auth: str, mode: ssl.VerifyMode
) -> None:
    trust = {"ssl.truststore.location": certificates.cafile, "ssl.client.auth": auth}
    context = _contexts({"ssl.keystore.location": certificates.server(), **trust}).current()
    assert context.verify_mode is mode
    assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize("text", ["", ",", "TLSv1.1", "TLSv1.2;TLSv1.3"])
def test_versions_that_are_not_offered_are_refused(certificates: Certificates, text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        _contexts({"ssl.keystore.location": certificates.server(), "ssl.enabled.protocols": text})
    assert str(caught.value) == (
        f"listener SSL: ssl.enabled.protocols={text} is not allowed: TLSv1.2 and TLSv1.3 are offered"
    )


def _locked(certificates: Certificates, password: bytes) -> tuple[str, str]:
    """A private key that a password opens, and its certificates."""
    from cryptography.hazmat.primitives import serialization as forms

    text = Path(certificates.server()).read_text()
    end = text.index("-----BEGIN CERTIFICATE")
    key = forms.load_pem_private_key(text[:end].encode(), None)
    locked = key.private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(password)
    )
    return locked.decode(), text[end:]


def test_a_locked_key_is_opened_by_its_password_and_by_no_other(
    certificates: Certificates, tmp_path: Path
) -> None:
    key, chain = _locked(certificates, b"gehe1m")
    file = tmp_path / "locked.pem"
    file.write_text(key + chain)
    in_file = {"ssl.keystore.location": str(file)}
    in_settings = {"ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain}
    for given, shown in ((in_file, str(file)), (in_settings, "ssl.keystore.key")):
        assert _contexts({**given, "ssl.key.password": "gehe1m"}).current()
        for password in ({}, {"ssl.key.password": "wrong"}):
            with pytest.raises(SettingsError) as caught:
                _contexts({**given, **password})
            assert str(caught.value).startswith(f"listener SSL: {shown} cannot be used (")
            assert "kohort-key-" not in str(caught.value)


@pytest.mark.parametrize("half", ["ssl.keystore.key", "ssl.keystore.certificate.chain"])
def test_half_of_what_stands_in_the_settings_is_not_enough(half: str) -> None:
    with pytest.raises(SettingsError) as caught:
        _contexts({half: "x"})
    assert str(caught.value) == (
        "listener SSL: it has no certificate: set ssl.keystore.location to a PEM file with the private key "
        "and the certificate chain"
    )


@pytest.mark.parametrize("where", ["ssl.truststore.location", "ssl.truststore.certificates"])
def test_authorities_that_cannot_be_read_are_refused(
    certificates: Certificates, tmp_path: Path, where: str
) -> None:
    file = tmp_path / "authorities.pem"
    file.write_text("nothing")
    given = {
        "ssl.keystore.location": certificates.server(),
        "ssl.client.auth": "required",
        where: str(file) if where.endswith("location") else "nothing",
    }
    shown = file if where.endswith("location") else where
    with pytest.raises(SettingsError, match=r"\): it must hold PEM certificates$") as caught:
        _contexts(given)
    assert str(caught.value).startswith(f"listener SSL: {shown} cannot be used (")
    assert "None" not in str(caught.value)


def test_client_certificates_need_authorities(certificates: Certificates) -> None:
    with pytest.raises(SettingsError) as caught:
        _contexts({"ssl.keystore.location": certificates.server(), "ssl.client.auth": "requested"})
    assert str(caught.value) == (
        "listener SSL: ssl.client.auth=requested needs the authorities of client certificates: set "
        "ssl.truststore.location to a PEM file with them"
    )


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01"])
def test_a_client_that_goes_before_its_handshake_is_over_is_told_of_with_a_reason(
    broker: RunningBroker, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    host, _, port = broker.endpoints["SSL"].rpartition(":")
    with caplog.at_level(logging.INFO, "kohort.broker"):
        with socket.create_connection((host, int(port))) as link:
            link.sendall(sent)
        deadline = time.monotonic() + 10
        while "closed before it began" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.01)
    (line,) = (each.getMessage() for each in caplog.records if "before it began" in each.getMessage())
    assert line.startswith("SSL: connection from 127.0.0.1 closed before it began: ")
    assert line.rpartition(": ")[2] in ("the client has gone", "UNEXPECTED_EOF_WHILE_READING")
