"""Limits on connections: slow, idle and greedy clients, and what a client is told of the address.

Covers: broker/network/_acceptor.py.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import select
import socket
import struct
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kohort.broker import Broker
from kohort.broker.network._connection import ClientConnection
from kohort.broker.reporting import log_lines as _log_lines
from kohort.log import OPEN_FILES
from kohort.protocol import ApiKey, build_batch, encode_request
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.testing import running_broker
from tests.broker.metadata.topic_requests import commit, delete_topics
from tests.broker.wire import Wire, batch, create_topic, fetch_fields, produce
from tests.broker_process import QUICK_SETTINGS, BrokerProcess
from tests.messages import request_of
from tests.waiting import wait_until


async def test_who_connects_is_answered_within_a_turn_of_the_loop_after_it_is_let_in() -> None:
    """A turn may hold a request of each of a thousand others."""
    async with Broker() as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        with socket.create_connection((host, int(port))) as link:
            link.sendall(encode_request(4, 1, "client", HeartbeatRequest("g", 1, "nobody", None)))
            link.setblocking(False)
            broker._require_running().server.acceptors[0].accept_waiting()  # as in a long turn
            turns = 0
            while not select.select([link], [], [], 0)[0]:
                turns += 1
                await asyncio.sleep(0)
            assert turns <= 2
            assert link.recv(100)


def test_requests_that_wait_for_memory_are_told_and_when_they_wait_no_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kohort.broker.network._server.SWEEP_S", 0.01)
    with running_broker(
        queued_max_request_bytes=1_000_000, kohort_request_complete_timeout_ms=60_000
    ) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        with socket.create_connection((host, int(port))) as link:
            link.sendall(struct.pack(">i", 2_000_000) + bytes(1_500_000))
            wait_until(lambda: "requests wait: all of queued.max.request.bytes=1000000" in caplog.text)
            now = broker._on_loop(broker._broker.metrics)
            assert now.request_bytes_depleted_s > 0
            assert now.request_bytes_held > now.request_bytes_limit == 1_000_000
        wait_until(lambda: "requests wait no more for queued.max.request.bytes, after" in caplog.text)


def test_that_connections_wait_for_descriptors_is_told_and_shown_until_they_do_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kohort.broker.network._acceptor.NO_ROOM_S", 0.01)
    with running_broker() as broker:

        def lacking() -> bool:
            return broker._on_loop(broker._broker.metrics).lacks_descriptors

        assert not lacking()
        with monkeypatch.context() as full:
            full.setattr(OPEN_FILES, "make_room", lambda *_: False)
            host, _, port = broker.bootstrap.rpartition(":")
            with socket.create_connection((host, int(port))):
                wait_until(lacking)
        wait_until(lambda: not lacking())
        with Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders")
    lines = [each.getMessage() for each in caplog.records if "PLAINTEXT://" in each.getMessage()]
    assert len(lines) == 2
    assert "new connections wait: the descriptors that are left are for files" in lines[0]
    assert "connections are accepted again, after 0 s" in lines[1]


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(caplog: pytest.LogCaptureFixture) -> None:
    with running_broker(connections_max_idle_ms=1_000) as broker, Wire(broker.bootstrap) as busy:
        create_topic(busy, "quiet")
        with caplog.at_level(logging.INFO, "kohort.broker"), Wire(broker.bootstrap) as idle:
            number = busy.send(ApiKey.FETCH, 12, **fetch_fields("quiet", 0, max_wait_ms=4_000))
            assert idle.closed_by_broker()
            busy.receive(ApiKey.FETCH, 12, number)
    assert "idle for 1000 ms" in caplog.text


def test_a_frame_that_never_completes_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    with running_broker(kohort_request_complete_timeout_ms=100) as broker, Wire(broker.bootstrap) as slow:
        slow.socket.sendall(struct.pack(">i", 100) + b"not all of it")
        assert slow.closed_by_broker()
    assert "its request was not complete" in caplog.text


def test_a_connection_that_is_gone_keeps_nothing_of_a_request_until_garbage_is_looked_for() -> None:
    gc.disable()
    try:
        with running_broker(kohort_request_complete_timeout_ms=100) as broker, Wire(broker.bootstrap) as slow:
            slow.socket.sendall(struct.pack(">i", 1_000_000) + bytes(500_000))
            assert slow.closed_by_broker()
        assert sum(each.held_bytes for each in gc.get_objects() if type(each) is ClientConnection) == 0
    finally:
        gc.enable()


def test_a_client_that_reads_nothing_of_a_large_answer_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    with (
        running_broker(message_max_bytes=32 << 20, kohort_response_unread_timeout_ms=200) as broker,
        Wire(broker.bootstrap) as deaf,
    ):
        create_topic(deaf, "large")
        assert produce(deaf, "large", big_batch(24 << 20)).error_code == 0
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.send(
            ApiKey.FETCH, 12, **fetch_fields("large", 0, max_bytes=50 << 20, partition_max_bytes=50 << 20)
        )
        deadline = time.monotonic() + 10
        while "unread" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.02)
    assert "its answer unread" in caplog.text


def test_stack_traces_that_clients_can_cause_are_limited_in_number(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("a fault of this broker")

    monkeypatch.setattr(_log_lines, "LINES", 2)
    with running_broker() as broker, ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker.bootstrap)) for _ in range(40)]
        # a request of which nobody had thought, of all at once
        monkeypatch.setattr(ClientConnection, "_answer_in_order", fail)
        for wire in wires:
            wire.send(ApiKey.API_VERSIONS, 0)
        assert all(wire.closed_by_broker() for wire in wires)
    traces = [record for record in caplog.records if record.exc_info]
    assert 0 < len(traces) < len(wires) / 2


def test_a_client_that_reads_slowly_gets_all_of_a_large_answer() -> None:
    # longer than a busy machine stands still, and shorter than it takes to read all of it
    with (
        running_broker(message_max_bytes=32 << 20, kohort_response_unread_timeout_ms=2_000) as broker,
        Wire(broker.bootstrap) as slow,
    ):
        create_topic(slow, "large")
        sent = big_batch(16 << 20)
        produce(slow, "large", sent)
        slow.send(
            ApiKey.FETCH, 12, **fetch_fields("large", 0, max_bytes=50 << 20, partition_max_bytes=50 << 20)
        )
        (left,) = struct.unpack(">i", slow.socket.recv(4, socket.MSG_WAITALL))
        assert left > len(sent)
        while left:
            read = len(slow.socket.recv(min(left, 64 << 10)))
            assert read, f"cut off with {left} bytes to go"
            left -= read
            time.sleep(0.01)


def test_many_half_sent_requests_do_not_stop_the_others() -> None:
    """The bytes that may wait are used up; reading stops, but one connection after the other gets on."""
    size = 400_000
    request = bytes(encode_request(9, 1, "x" * 30_000, request_of(ApiKey.METADATA)(version=9, topics=[])))
    padding = request + b"\x00" * (size - len(request))
    frame = struct.pack(">i", size - 4) + padding[4:]
    with running_broker(queued_max_request_bytes=500_000) as broker:
        clients = [Wire(broker.bootstrap) for _ in range(6)]
        for client in clients:
            client.socket.sendall(frame[: size // 2])
        for client in reversed(clients):
            client.socket.sendall(frame[size // 2 :])
        for client in clients:
            assert client.frame()
            client.close()


@pytest.mark.parametrize(
    ("host", "settings", "told"),
    [
        ("127.0.0.1", {}, "127.0.0.1"),
        ("localhost", {}, "localhost"),
        ("0.0.0.0", {}, "127.0.0.1"),
        ("127.0.0.1", {"advertised_listeners": "PLAINTEXT://kohort.example:1234"}, "kohort.example"),
    ],
)
def test_clients_are_told_the_name_that_was_given_or_the_address_they_used(
    host: str, settings: dict[str, Any], told: str
) -> None:
    with running_broker(host=host, **settings) as broker, Wire(f"127.0.0.1:{broker.port}") as wire:
        answer = wire.call(ApiKey.METADATA, 1, topics=[])
        assert answer.brokers[0].host == told
        assert answer.brokers[0].port == (1234 if settings else broker.port)


def big_batch(size: int) -> bytes:
    return bytes(build_batch([(None, b"x" * size, ())], timestamp_ms=1_700_000_000_000))


@pytest.mark.slow(3)
def test_idle_connections_leave_descriptors_for_files(tmp_path: Path) -> None:
    """Records, commits, topics and checkpoints need files, and the first of each needs modules, too."""
    settings = {**QUICK_SETTINGS, "log.flush.offset.checkpoint.interval.ms": "100"}
    process = BrokerProcess(tmp_path, data=tmp_path / "data", settings=settings, open_files=120)
    process.start()
    idle: list[socket.socket] = []
    try:
        with Wire(process.bootstrap) as wire:
            create_topic(wire, "orders", 20)
            for _ in range(200):
                link = socket.socket()
                link.setblocking(False)
                link.connect_ex(("127.0.0.1", process.port))
                idle.append(link)
            deadline = time.monotonic() + 20
            while "new connections wait" not in process.log and time.monotonic() < deadline:
                time.sleep(0.02)
            assert "new connections wait: the descriptors that are left are for files" in process.log
            for _ in range(2):
                errors = {produce(wire, "orders", batch(), partition=n).error_code for n in range(20)}
                assert errors == {0}
            assert commit(wire, "billing", "orders", 1) == 0
            assert create_topic(wire, "more", 5).error_code == 0
            assert produce(wire, "more", batch()).error_code == 0
            assert delete_topics(wire, "orders") == [0]
            (tmp_path / "data" / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
            while not (tmp_path / "data" / "recovery-point-offset-checkpoint").exists():
                assert time.monotonic() < deadline + 20, process.log
                time.sleep(0.02)
            for link in idle:
                link.close()
            with Wire(process.bootstrap) as another:
                assert produce(another, "more", batch()).base_offset == 1
        assert "Errno 24" not in process.log
        assert "descriptor is left" not in process.log
    finally:
        for link in idle:
            link.close()
        process.stop()
