"""Bytes under way are bounded, in all and per connection: reading stops, and nothing is dropped."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from kohort.broker import BrokerSettings
from kohort.broker.network._flow import MAX_WAITING_BYTES
from kohort.broker.network._server import Server
from kohort.protocol import ApiKey, decode_response, encode_request
from kohort.testing import running_broker
from kohort.testing._running_broker import RunningBroker
from tests.broker.wire import Wire, batch, create_topic, fetch_fields, part, produce
from tests.clients.members import wait_until
from tests.messages import request_of

#: What one read of a socket brings at most, in bytes.
ONE_READ = 262_144


def server_of(broker: RunningBroker) -> Server:
    return broker._broker._require_running().server


class Peak:
    """The largest value that was seen; looked at all the time by a thread."""

    def __init__(self, look: Callable[[], int]) -> None:
        self.value = 0
        self._look = look
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.002):
            self.value = max(self.value, self._look())

    def end(self) -> int:
        self._stop.set()
        self._thread.join()
        return self.value


@contextmanager
def peak_of(look: Callable[[], int]) -> Iterator[Peak]:
    peak = Peak(look)
    try:
        yield peak
    finally:
        peak.end()


def produce_frames(topic: str, count: int, size: int) -> bytes:
    """``count`` Produce requests of one record each; the record's key has ``size`` bytes."""
    key = ApiKey.PRODUCE
    data = part(
        key, 9, "TopicProduceData", "PartitionProduceData", index=0, records=batch(1, key=bytes(size))
    )
    topics = [part(key, 9, "TopicProduceData", name=topic, partition_data=[data])]
    body = request_of(key)(version=9, transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=topics)
    return b"".join(bytes(encode_request(9, number, "many", body)) for number in range(count))


def answered(wire: Wire, count: int) -> list[tuple[int, int]]:
    """Correlation id and base offset of the next answers."""
    found = []
    for _ in range(count):
        number, body = decode_response(ApiKey.PRODUCE, 9, wire.frame())
        row = body.responses[0].partition_responses[0]
        assert row.error_code == 0
        found.append((number, row.base_offset))
    return found


def test_268_435_456_bytes_may_be_under_way() -> None:
    assert BrokerSettings().queued_max_request_bytes == 268_435_456


def test_over_the_limit_of_all_connections_reading_stops_and_every_request_is_answered() -> None:
    """24 connections have sent all but the end of a request of 900 KB each; 1 MB may be under way."""
    limit, count, size = 1_000_000, 24, 900_000
    with running_broker(queued_max_request_bytes=limit) as broker, Wire(broker.bootstrap) as first:
        create_topic(first, "orders")
        server = server_of(broker)
        frame = produce_frames("orders", 1, size)
        wires = [Wire(broker.bootstrap, timeout_s=60) for _ in range(count)]
        wait_until(lambda: len(server._connections) == count + 1, "all connections are accepted")
        with peak_of(lambda: server.backpressure.held_bytes) as peak:
            senders = [threading.Thread(target=wire.socket.sendall, args=(frame[:-1],)) for wire in wires]
            for sender in senders:
                sender.start()
            # over three quarters one goes on, and the others wait
            wait_until(lambda: server.backpressure.held_bytes > 3 * limit // 4, "most of the limit is held")
            for wire, sender in zip(wires, senders, strict=True):
                threading.Thread(target=_send_end, args=(wire, sender, frame[-1:])).start()
            offsets = sorted(offset for wire in wires for _, offset in answered(wire, 1))
        assert offsets == list(range(count))
        # the one that is let on until it is complete, and what one read brings
        assert 3 * limit // 4 < peak.value <= limit + size + 2 * ONE_READ
        for wire in wires:
            wire.close()


def _send_end(wire: Wire, sender: threading.Thread, end: bytes) -> None:
    sender.join()
    wire.socket.sendall(end)


def test_over_the_limit_of_all_connections_new_ones_wait_to_be_accepted() -> None:
    """The broker reads each once before it can have it wait, and a crowd of them would bring much."""
    with running_broker(queued_max_request_bytes=500_000) as broker, Wire(broker.bootstrap) as greedy:
        create_topic(greedy, "orders")
        server = server_of(broker)
        large = produce_frames("orders", 1, 900_000)
        greedy.socket.sendall(large[:550_000])
        wait_until(lambda: server.backpressure.held_bytes == 550_000, "the part has arrived")
        with Wire(broker.bootstrap, timeout_s=60) as late:
            late.socket.sendall(produce_frames("orders", 1, 10_000))
            time.sleep(0.3)
            assert len(server._connections) == 1
            assert server.backpressure.held_bytes == 550_000
            greedy.socket.sendall(large[550_000:])
            assert answered(greedy, 1) == [(0, 0)]
            assert answered(late, 1) == [(0, 1)]


def test_over_the_limit_of_one_connection_its_reading_stops_and_every_request_is_answered_in_order() -> None:
    """A Fetch waits, behind it come 16 MB of requests; 1 MiB of them may wait."""
    count, size = 256, 65_536
    with running_broker() as broker, Wire(broker.bootstrap, timeout_s=60) as wire:
        create_topic(wire, "orders")
        create_topic(wire, "silent")
        (connection,) = server_of(broker)._connections
        number = wire.send(ApiKey.FETCH, 12, **fetch_fields("silent", 0, max_wait_ms=1_500))
        with peak_of(lambda: connection.held_bytes) as peak:
            frames = produce_frames("orders", count, size)
            sender = threading.Thread(target=wire.socket.sendall, args=(frames,))
            sender.start()
            wire.receive(ApiKey.FETCH, 12, number)
            assert answered(wire, count) == [(at, at) for at in range(count)]
            sender.join()
        assert len(frames) > 16_000_000
        # a second read may be under way when the first one fills it
        assert MAX_WAITING_BYTES <= peak.value <= MAX_WAITING_BYTES + 2 * ONE_READ + size


def test_a_connection_that_waits_for_memory_is_not_closed_for_being_slow() -> None:
    """Its request is incomplete since the broker does not read, and that is not its fault."""
    with running_broker(queued_max_request_bytes=100_000, kohort_request_complete_timeout_ms=1_000) as broker:
        frame = produce_frames("orders", 1, 400_000)
        with Wire(broker.bootstrap) as greedy, Wire(broker.bootstrap, timeout_s=60) as patient:
            create_topic(greedy, "orders")
            greedy.socket.sendall(frame[:300_000])
            server = server_of(broker)
            wait_until(lambda: server.backpressure.held_bytes > 100_000, "the limit is held")
            patient.socket.sendall(struct.pack(">i", len(frame) - 4))
            sender = threading.Thread(target=patient.socket.sendall, args=(frame[4:],))
            sender.start()
            # the first is favoured, does not go on, and is closed for it; then it is the other's turn
            assert answered(patient, 1)
            sender.join()


def test_requests_that_wait_behind_a_fetch_of_an_hour_do_not_keep_the_others_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        running_broker(
            queued_max_request_bytes=500_000,
            kohort_request_complete_timeout_ms=500,
            kohort_response_unread_timeout_ms=500,
        ) as broker,
        Wire(broker.bootstrap) as parked,
        Wire(broker.bootstrap) as small,
    ):
        create_topic(small, "orders")
        parked.send(ApiKey.FETCH, 12, **fetch_fields("orders", 0, max_wait_ms=3_600_000))
        wait_until(lambda: len(server_of(broker)._connections) == 2, "both connections are accepted")
        parked.socket.sendall(produce_frames("elsewhere", 1, 550_000))
        wait_until(server_of(broker).backpressure.is_crowded, "the limit is held")
        with Wire(broker.bootstrap, timeout_s=60) as late:
            assert produce(late, "orders", batch(1)).error_code == 0
        assert parked.closed_by_broker()
        assert produce(small, "orders", batch(1)).error_code == 0
    assert "queued.max.request.bytes is reached" in caplog.text


def test_who_is_closed_and_takes_no_answers_does_not_keep_the_others_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Closing sends the answers first, and it would hold its incomplete request until they are taken."""
    with (
        running_broker(
            queued_max_request_bytes=500_000,
            kohort_request_complete_timeout_ms=1_000,
            kohort_response_unread_timeout_ms=3_600_000,
        ) as broker,
        closing(socket.socket()) as deaf,
    ):
        server = server_of(broker)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        deaf.settimeout(30)
        deaf.connect((broker.host, broker.port))
        wait_until(lambda: len(server._connections) == 1, "the connection is accepted")
        (connection,) = server._connections
        connection.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        question = encode_request(0, 1, "deaf", request_of(ApiKey.API_VERSIONS)(version=0))
        while not connection.transport.get_write_buffer_size():
            given = connection.outbox.given
            deaf.sendall(question)
            while connection.outbox.given == given:
                time.sleep(0.001)
        deaf.sendall(produce_frames("orders", 1, 900_000)[:550_000])
        wait_until(server.backpressure.is_crowded, "the limit is held")
        with Wire(broker.bootstrap, timeout_s=60) as late:
            create_topic(late, "orders")
            # its own request is held until a moment after it is answered
            wait_until(lambda: not server.backpressure.held_bytes, "nothing is held")
    assert caplog.text.count("its request was not complete") == 1


def test_above_half_of_the_limit_small_requests_still_come_through() -> None:
    """Somebody holds most of what all may hold with a request that never ends; others hardly notice."""
    with (
        running_broker(queued_max_request_bytes=1_000_000) as broker,
        Wire(broker.bootstrap) as greedy,
        Wire(broker.bootstrap) as other,
    ):
        create_topic(other, "orders")
        server = server_of(broker)
        greedy.socket.sendall(produce_frames("orders", 1, 900_000)[:700_000])
        wait_until(lambda: server.backpressure.held_bytes == 700_000, "the part has arrived")
        for _ in range(3):
            assert produce(other, "orders", batch(1)).error_code == 0


@pytest.mark.parametrize(("count", "size"), [(40, 100_000), (6, 1_048_576)])
def test_requests_that_wait_for_others_hold_no_bytes_that_others_wait_for(count: int, size: int) -> None:
    """Members of large metadata wait for their rebalance; together they sent more than may be under way."""
    make = request_of(ApiKey.JOIN_GROUP)
    offer = make.JoinGroupRequestProtocol(version=3, name="range", metadata=bytes(size))
    with running_broker(
        queued_max_request_bytes=1_000_000, group_initial_rebalance_delay_ms=20_000
    ) as broker:
        members = [Wire(broker.bootstrap) for _ in range(count)]
        for member in members:
            member.send(
                ApiKey.JOIN_GROUP,
                3,
                group_id="g",
                session_timeout_ms=30_000,
                rebalance_timeout_ms=60_000,
                member_id="",
                protocol_type="consumer",
                protocols=[offer],
            )
        with Wire(broker.bootstrap) as other:
            create_topic(other, "orders")
            wait_until(lambda: len(broker.members("g")) == count, "all have joined")
            assert server_of(broker).backpressure.held_bytes < 500_000
            assert produce(other, "orders", batch(1)).error_code == 0
        for member in members:
            member.close()
