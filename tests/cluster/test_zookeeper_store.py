"""A store in ZooKeeper: sessions that break, values too large for one request, TLS, authentication.

Covers: client/zookeeper.py, client/zookeeper_requests.py.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.protocol.connection import ConnectionHandler

from kohort.client.zookeeper import ZooKeeperSettings
from kohort.client.zookeeper_requests import ZooKeeperNode
from kohort.cluster import (
    Create,
    Delete,
    Put,
    SessionState,
    StoreEntry,
    ZooKeeperStore,
    open_zookeeper,
)
from kohort.cluster._session_note import SessionNote
from tests.cluster import servers
from tests.cluster.servers import ZooKeeper, until

MIB = 1 << 20


def foreign(connect: str) -> KazooClient:
    client = KazooClient(connect)
    client.start_async().wait(10)
    return client


async def test_a_session_that_ends_is_followed_by_another(zookeeper: ZooKeeper) -> None:
    home = zookeeper.home()
    store, other = await home(), await home()
    await store.commit(Create("/brokers/ids/1", {}, ephemeral=True), Create("/kept", 1))
    states: list[SessionState] = []
    store.on_session(states.append)
    # the same session, ended by somebody else
    twin = KazooClient(zookeeper.hosts, client_id=store._client.client_id)
    await asyncio.to_thread(twin.start)
    await asyncio.to_thread(twin.stop)
    await until(lambda: states[-1:] == [SessionState.CONNECTED])
    assert states == [SessionState.SUSPENDED, SessionState.LOST, SessionState.CONNECTED]
    assert (store.get("/brokers/ids/1"), store.get("/kept")) == (None, StoreEntry(1))
    await store.commit(Create("/brokers/ids/1", {"again": True}, ephemeral=True))
    await until(lambda: other.get("/brokers/ids/1") == StoreEntry({"again": True}, ephemeral=True))
    store.close()
    other.close()


async def test_where_a_thread_of_the_client_ends_another_client_begins(
    zookeeper: ZooKeeper, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    home = zookeeper.home()
    store, other = await home(), await home()
    (tmp_path / ".lock").touch()
    await store.end_former(tmp_path)
    await store.commit(Create("/kept", 1))
    states: list[SessionState] = []
    store.on_session(states.append)
    former = store._client

    def fails(*_: object) -> None:
        raise OSError("the clock has gone back")

    former._connection._connect_attempt = fails
    former._connection._socket.shutdown(socket.SHUT_RDWR)
    await until(lambda: states[-1:] == [SessionState.CONNECTED])
    assert states == [SessionState.SUSPENDED, SessionState.LOST, SessionState.CONNECTED]
    assert store._client is not former
    assert "the client of ZooKeeper has ended: another one begins a new session" in caplog.text
    await store.commit(Create("/brokers/ids/1", {}, ephemeral=True), Put("/kept", 2))
    await until(lambda: other.get("/brokers/ids/1") == StoreEntry({}, ephemeral=True))
    await other.commit(Put("/kept", 3))
    await until(lambda: store.get("/kept") == StoreEntry(3, 2))
    assert SessionNote(tmp_path).read() == store._client.client_id
    store.close()
    other.close()


async def test_a_client_that_cannot_begin_is_followed_by_one_that_can(
    zookeeper: ZooKeeper, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await zookeeper.home()()
    states: list[SessionState] = []
    store.on_session(states.append)
    errors = [OSError(errno.EMFILE, os.strerror(errno.EMFILE)), RuntimeError("can't start new thread")]
    begin = ConnectionHandler.start

    def fails(handler: ConnectionHandler) -> None:
        if errors:
            raise errors.pop(0)
        begin(handler)

    monkeypatch.setattr(ConnectionHandler, "start", fails)
    store._zookeeper._client_ended(store._client)
    await until(lambda: states[-1:] == [SessionState.CONNECTED])
    assert states == [SessionState.LOST, SessionState.CONNECTED]
    assert caplog.text.count("no client of ZooKeeper could begin, which is tried again") == 2
    store.close()


async def test_a_connection_that_is_gone_before_its_session_is_noted_is_none(
    zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = await zookeeper.home()()
    monkeypatch.setattr(type(store._client), "client_id", None)
    await store.end_former(tmp_path)
    states: list[SessionState] = []
    store.on_session(states.append)
    store._connection_changed("SUSPENDED")
    store._connection_changed("CONNECTED")
    await until(lambda: states == [SessionState.SUSPENDED, SessionState.CONNECTED])
    store.close()


async def test_a_session_outlives_its_server(own_zookeeper: ZooKeeper) -> None:
    store = await own_zookeeper.home(20_000)()
    await store.commit(Create("/brokers/ids/1", {}, ephemeral=True), Create("/a", 1))
    states: list[SessionState] = []
    fired: list[str] = []
    store.on_session(states.append)
    store.watch("/a", fired.append)
    await asyncio.to_thread(own_zookeeper.kill)
    await until(lambda: states == [SessionState.SUSPENDED])
    with pytest.raises(ConnectionError, match="suspended"):
        await store.commit(Put("/a", 2))
    await asyncio.to_thread(own_zookeeper.again)
    await until(lambda: states[1:] == [SessionState.CONNECTED])
    assert (store.get("/brokers/ids/1"), fired) == (StoreEntry({}, ephemeral=True), [])
    await store.commit(Put("/a", 3))
    assert (store.get("/a"), fired) == (StoreEntry(3, 1), ["/a"])
    store.close()


def requests_of(client: KazooClient, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of requests that the client sends from now on."""
    sent: list[str] = []
    call = client._call

    def counted(request: object, *more: object) -> object:
        sent.append(type(request).__name__)
        return call(request, *more)

    monkeypatch.setattr(client, "_call", counted)
    return sent


async def test_many_entries_are_read_with_few_requests_and_parsed_where_they_have_changed(
    zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = zookeeper.home()
    store, other = await home(), await home()
    await store.commit(*(Create(f"/brokers/topics/t{number}", {"n": number}) for number in range(1_000)))
    await store.commit(Create("/config/topics/t1", {}), Create("/gone", 1))
    await until(lambda: other.get("/gone") is not None)
    before = {number: other.get(f"/brokers/topics/t{number}") for number in range(1_000)}
    states: list[SessionState] = []
    other.on_session(states.append)
    sent = requests_of(other._client, monkeypatch)
    link = other._client._connection._socket
    read_all, changed = other._read_all, asyncio.Event()

    async def read_all_later() -> None:
        await changed.wait()
        await read_all()

    monkeypatch.setattr(other, "_read_all", read_all_later)
    link.shutdown(socket.SHUT_RDWR)
    await until(lambda: states == [SessionState.SUSPENDED])
    await store.commit(Put("/brokers/topics/t7", {"n": "new"}), Delete("/gone"), Create("/come", 1))
    changed.set()
    await until(lambda: states[1:] == [SessionState.CONNECTED])
    assert len(sent) < 50, "many entries with each"
    assert other.get("/brokers/topics/t7") == StoreEntry({"n": "new"}, 1)
    assert (other.get("/gone"), other.get("/come")) == (None, StoreEntry(1))
    kept = [number for number, entry in before.items() if other.get(f"/brokers/topics/t{number}") is entry]
    assert kept == [number for number in range(1_000) if number != 7]
    # the new connection reports changes, too
    await store.commit(Put("/brokers/topics/t8", {"n": "newer"}))
    await until(lambda: other.get("/brokers/topics/t8") == StoreEntry({"n": "newer"}, 1))
    for each in (store, other):
        each.close()


async def test_a_first_reading_may_take_longer_than_connecting_and_says_how_far_it_is(
    zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    home = zookeeper.home()
    store = await home()
    await store.commit(*(Create(f"/brokers/topics/t{number}", number) for number in range(300)))
    read_all = ZooKeeperStore._read_all
    limits: list[float | None] = []

    async def noted(store: ZooKeeperStore) -> None:
        limits.append(store._limit.when() if store._limit else -1.0)
        await read_all(store)

    monkeypatch.setattr(ZooKeeperStore, "_read_all", noted)
    monkeypatch.setattr("kohort.cluster._zookeeper_store._TELL_S", 0.0)
    with caplog.at_level("INFO", "kohort.cluster"):
        other = await home()
    assert limits == [None], "the limit of zookeeper.connection.timeout.ms is over when there is a connection"
    assert "303 of the 303 nodes found so far in ZooKeeper are read" in caplog.text
    for each in (store, other):
        each.close()


async def test_a_change_under_way_when_the_server_dies_may_have_been_made(own_zookeeper: ZooKeeper) -> None:
    store = await own_zookeeper.home(20_000)()
    await store.commit(Create("/a", 0))
    failed = 0
    killed = asyncio.create_task(asyncio.to_thread(own_zookeeper.kill))
    for number in range(1, 100_000):
        try:
            await store.commit(Put("/a", number))
        except ConnectionError:
            failed = number
            break
    await killed
    await asyncio.to_thread(own_zookeeper.again)
    await until(lambda: store.session is SessionState.CONNECTED)
    entry = store.get("/a")
    assert entry is not None
    assert entry.value in (failed - 1, failed)
    store.close()


@pytest.mark.parametrize("size", [300_000, MIB, 5 * MIB])
async def test_a_value_may_be_larger_than_a_request(zookeeper: ZooKeeper, size: int) -> None:
    home = zookeeper.home()
    store, other = await home(), await home()
    await store.commit(Create("/kafka-acl", "x" * size), Create("/beside", 1))
    await until(lambda: other.get("/beside") is not None)
    assert other.get("/kafka-acl") == StoreEntry("x" * size)
    await other.commit(Put("/kafka-acl", "y" * size, 0))
    await until(lambda: store.get("/kafka-acl") == StoreEntry("y" * size, 1))
    await store.commit(Delete("/kafka-acl", 1))
    await store.commit(Create("/behind", 1))
    client = store._client
    left = await asyncio.to_thread(
        lambda: client.exists("/kohort_pieces") and client.get_children("/kohort_pieces")
    )
    assert not left, "pieces of former values are removed"
    store.close()
    other.close()


async def test_pieces_of_a_step_that_was_refused_are_removed(zookeeper: ZooKeeper) -> None:
    store = await zookeeper.home()()
    await store.commit(Create("/there", 1))
    with pytest.raises(Exception, match="create of /there"):
        await store.commit(Create("/large", "x" * 2 * MIB), Create("/there", 1))
    await store.commit(Create("/behind", 1))
    assert await asyncio.to_thread(store._client.get_children, "/kohort_pieces") == []
    assert store.get("/large") is None
    store.close()


async def test_old_pieces_that_no_entry_names_are_removed_by_who_opens_the_store(
    zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = zookeeper.home()
    store = await home()
    await store.commit(Create("/large", "x" * 2 * MIB))
    pieces = list(store._pieces["/large"])
    client = store._client
    await asyncio.to_thread(client.create, "/kohort_pieces/orphan-0", b"x")
    another = await home()
    assert another._sweeper is not None
    await another._sweeper
    assert await asyncio.to_thread(client.exists, "/kohort_pieces/orphan-0"), "it may be about to be named"
    monkeypatch.setattr("kohort.cluster._zookeeper_store._ORPHAN_MS", -MIB)
    third = await home()
    assert third._sweeper is not None
    await third._sweeper
    await third.commit(Create("/behind", 1))
    left = await asyncio.to_thread(client.get_children, "/kohort_pieces")
    assert sorted(f"/kohort_pieces/{name}" for name in left) == sorted(pieces)
    for each in (store, another, third):
        each.close()


async def test_closing_holds_nobody_up(zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    home = zookeeper.home()
    store, other = await home(), await home()
    await store.commit(Create("/brokers/ids/1", {}, ephemeral=True))
    away, stop = threading.Event(), store._client.stop

    def slow_stop() -> None:
        away.wait()
        stop()

    monkeypatch.setattr(store._client, "stop", slow_stop)
    store.close()
    assert store.session is SessionState.LOST
    away.set()
    await until(lambda: other.get("/brokers/ids/1") is None)
    other.close()


async def test_a_step_of_too_many_changes_is_refused(zookeeper: ZooKeeper) -> None:
    store = await zookeeper.home()()
    with pytest.raises(ValueError, match="6000 changes are too many for one step"):
        await store.commit(*(Create(f"/many/{number}", number) for number in range(6_000)))
    await store.commit(*(Create(f"/many/{number}", number) for number in range(3_000)))
    assert len(store.children("/many")) == 3_000
    store.close()


async def test_nodes_of_others_are_read_or_passed_over(zookeeper: ZooKeeper) -> None:
    connect = zookeeper.connect()
    client = await asyncio.to_thread(foreign, connect)
    client.ensure_path("/brokers/topics")
    client.create("/brokers/topics/orders", b'{"version":1}')
    client.create("/junk", b"\xff")
    store = await open_zookeeper(ZooKeeperSettings(connect))
    assert store.get("/brokers/topics/orders") == StoreEntry({"version": 1})
    assert store.get("/junk") is None
    with pytest.raises(Exception, match="put of /brokers/topics cannot be done"):
        await store.commit(Put("/brokers/topics", 1))
    client.set("/brokers/topics/orders", b'{"version":2}')
    await until(lambda: store.get("/brokers/topics/orders") == StoreEntry({"version": 2}, 1))
    client.delete("/brokers/topics", recursive=True)
    await until(lambda: store.get("/brokers/topics/orders") is None)
    assert list(store.children("/brokers/topics")) == []
    await store.commit(Create("/brokers/topics/orders", 1))
    assert store.get("/brokers/topics/orders") == StoreEntry(1)
    store.close()
    client.stop()


async def test_an_entry_that_is_made_again_between_two_reads_is_read(
    zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = zookeeper.connect()
    store = await open_zookeeper(ZooKeeperSettings(connect))
    await store.commit(Create("/topics/b", 0))
    client = await asyncio.to_thread(foreign, connect)
    read = store._zookeeper.read

    async def made_again_after(paths: Sequence[str]) -> list[ZooKeeperNode | None]:
        found = await read(paths)
        # by now the entry was read, and was not there
        if found == [None]:
            await asyncio.to_thread(client.create, "/topics/b", b"1")
        return found

    monkeypatch.setattr(store._zookeeper, "read", made_again_after)
    client.delete("/topics/b")
    await until(lambda: store.get("/topics/b") == StoreEntry(1))
    store.close()
    client.stop()


async def test_a_parent_that_is_removed_and_made_again_is_followed(zookeeper: ZooKeeper) -> None:
    connect = zookeeper.connect()
    store = await open_zookeeper(ZooKeeperSettings(connect))
    await store.commit(Create("/parent/child", 0))
    client = await asyncio.to_thread(foreign, connect)
    for number in range(1, 50):
        change = client.transaction()
        change.delete("/parent/child")
        change.delete("/parent")
        change.create("/parent", b"")
        change.create("/parent/child", str(number).encode())
        change.commit()
    await until(lambda: store.get("/parent/child") == StoreEntry(49))
    client.create("/parent/other", b"1")
    await until(lambda: store.get("/parent/other") == StoreEntry(1))
    store.close()
    client.stop()


async def test_entries_of_an_older_copy_are_shown_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session: Any = None
    store = ZooKeeperStore(session)
    path, other = "/config/topics/orders", "/config/topics/payments"
    store._show_entries({path: StoreEntry("new", 2, modified=30), other: StoreEntry("same", 0, modified=20)})
    store._show_entries({path: StoreEntry("newer", 3, modified=40), other: StoreEntry("same", 1, modified=7)})
    assert caplog.messages == []
    store._show_entries({path: StoreEntry("old", 1, modified=12)})
    assert store.get(path) == StoreEntry("old", 1)
    (told,) = caplog.messages
    assert "an older copy (entries that are older: 1, such as /config/topics/orders)" in told


async def test_nobody_answers() -> None:
    with pytest.raises(ConnectionError, match=r"no answer from ZooKeeper at 127\.0\.0\.1:1 within 300 ms"):
        await open_zookeeper(ZooKeeperSettings("127.0.0.1:1", connection_timeout_ms=300))


async def test_kazoo_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "kazoo"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install kohort\[cluster\]"):
        await open_zookeeper(ZooKeeperSettings("127.0.0.1:1"))


async def test_a_digest_keeps_others_from_writing_and_from_reading_credentials(zookeeper: ZooKeeper) -> None:
    connect = zookeeper.connect()
    settings = ZooKeeperSettings(connect, digest="kohort:secret")
    store = await open_zookeeper(settings)
    await store.commit(Create("/brokers/topics/orders", 1), Create("/config/users/alice", {"salt": "x"}))
    await store.commit(Create("/kafka-acl/large", "x" * 2 * MIB))
    client = await asyncio.to_thread(foreign, connect)
    assert client.get("/brokers/topics/orders")[0] == b"1"
    refused: list[Callable[[], object]] = [
        lambda: client.set("/brokers/topics/orders", b"2"),
        lambda: client.create("/brokers/topics/other", b"2"),
        lambda: client.get("/config/users/alice"),
        lambda: client.get(f"/kohort_pieces/{client.get_children('/kohort_pieces')[0]}"),
    ]
    for request in refused:
        with pytest.raises(NoAuthError):
            request()
    again = await open_zookeeper(settings)
    await again.commit(Put("/config/users/alice", {"salt": "y"}, 0))
    with pytest.raises(ValueError, match="USER:PASSWORD"):
        await open_zookeeper(ZooKeeperSettings(connect, digest="secret"))
    stranger = ZooKeeperSettings(connect, digest="other:secret")
    with pytest.raises(ConnectionError, match="may not read: give it the digest, or the certificate"):
        await open_zookeeper(stranger)
    for each in (store, again):
        each.close()
    client.stop()
    assert "secret" not in repr(stranger)


async def test_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    # as Java reads it
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "server.pem").write_bytes(pem + issued.cert_chain_pems[0].bytes())
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    lines = [f"ssl.keyStore.location={tmp_path}/server.pem", f"ssl.trustStore.location={tmp_path}/ca.pem"]
    lines += ["client.portUnification=true"]
    lines += ["authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider"]
    with servers.zookeeper(1, *lines) as running:
        settings = ZooKeeperSettings(
            running.connect(),
            ca=str(tmp_path / "ca.pem"),
            certificate=str(tmp_path / "server.pem"),
            key=str(tmp_path / "server.pem"),
            set_acl=True,
        )
        store = await open_zookeeper(settings)
        assert isinstance(store, ZooKeeperStore)
        await store.commit(Create("/a", 1), Create("/kafka-acl", 1))
        assert store._client._connection._socket.version().startswith("TLS")
        # who shows no certificate may look at what is no secret
        client = await asyncio.to_thread(foreign, settings.connect)
        assert client.get("/a")[0] == b"1"
        refused: list[Callable[[], object]] = [
            lambda: client.set("/a", b"2"),
            lambda: client.get("/kafka-acl"),
        ]
        for request in refused:
            with pytest.raises(NoAuthError):
                request()
        with pytest.raises(ConnectionError, match="may not read"):
            await open_zookeeper(ZooKeeperSettings(settings.connect))
        client.stop()
        store.close()
