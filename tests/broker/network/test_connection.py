"""Bytes that no client should send, clients that vanish, and the order of answers.

Covers: broker/clients/client_state.py.
"""

from __future__ import annotations

import logging
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kohort.broker.event_loop import time_slices as _turns
from kohort.broker.network._flow import MAX_WAITING_REQUESTS
from kohort.broker.network._sender import MAX_JOINED_BYTES
from kohort.broker.reporting.log_lines import MAX_LOGGED_TEXT, printable_text
from kohort.protocol import ApiKey, encode_request
from kohort.testing import RunningBroker
from tests.broker.wire import Wire, batch, create_topic, fetch_fields, offset_at, part, produce_fields
from tests.messages import request_of

LATEST = -1


def header(key: int, version: int, *, number: int = 1, client: bytes = b"x") -> bytes:
    return struct.pack(">hhih", key, version, number, len(client)) + client


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


@contextmanager
def one_log_line(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """Collects the broker's log lines at WARNING and above; there must be exactly one."""
    caplog.clear()
    lines: list[str] = []
    with caplog.at_level(logging.WARNING, "kohort.broker"):
        yield lines
        deadline = time.monotonic() + 5
        while not caplog.records and time.monotonic() < deadline:
            time.sleep(0.005)
    lines += [record.getMessage() for record in caplog.records if record.name == "kohort.broker"]
    assert len(lines) == 1, lines
    assert "\n" not in lines[0]


def truncated_metadata() -> bytes:
    body = encode_request(9, 1, "x", request_of(ApiKey.METADATA)(version=9, topics=None))
    return framed(bytes(body[4:-1]))


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "frame of 1195725856 bytes", id="http"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01", "TLS where plain text is expected", id="tls"),
        pytest.param(struct.pack(">i", -1), "frame of negative length -1", id="negative length"),
        pytest.param(struct.pack(">i", 200 << 20), "frame of 209715200 bytes", id="200 MiB"),
        pytest.param(framed(b""), "unreadable request header", id="empty frame"),
        pytest.param(framed(b"\x00\x12"), "unreadable request header", id="cut header"),
        pytest.param(
            framed(struct.pack(">hhih", 3, 1, 1, 500)), "client id of 500 bytes", id="cut client id"
        ),
        pytest.param(
            framed(header(3, 1, client=b"\xff\xfe")), "unreadable request header", id="client id not utf-8"
        ),
        pytest.param(framed(header(999, 0)), "API number 999", id="unknown api"),
        pytest.param(framed(header(-5, 0)), "API number -5", id="negative api"),
        pytest.param(framed(header(55, 0)), "API number 55", id="an api that is not offered"),
        pytest.param(
            framed(header(ApiKey.METADATA, 99) + b"\x00"),
            "Metadata v99 is not spoken here",
            id="unknown version",
        ),
        pytest.param(
            framed(header(ApiKey.PRODUCE, 2)), "Produce v2 is not spoken here", id="version too old"
        ),
        pytest.param(truncated_metadata(), "MetadataRequest v9 ", id="truncated request"),
        pytest.param(
            framed(header(ApiKey.METADATA, 1) + b"\x7f\xff\xff\xff"), "MetadataRequest v1 ", id="huge array"
        ),
        pytest.param(
            framed(header(ApiKey.METADATA, 9) + b"\x00" + b"\xff" * 2_000_000),
            "a varint of more than five bytes",
            id="endless varint",
        ),
        pytest.param(
            framed(header(ApiKey.API_VERSIONS, 3) + b"\x00\x09abc"),
            "ApiVersionsRequest v3 ",
            id="cut ApiVersions",
        ),
    ],
)
def test_malformed_input_ends_its_connection_with_one_log_line(
    sent: bytes, reason: str, broker: RunningBroker, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    with one_log_line(caplog) as lines, Wire(broker.bootstrap) as bad:
        address = bad.socket.getsockname()
        bad.socket.sendall(sent)
        assert bad.closed_by_broker()
    assert f"connection from 127.0.0.1:{address[1]} closed: " in lines[0]
    assert reason in lines[0]
    assert wire.call(ApiKey.METADATA, 1, topics=[]).brokers


def test_requests_in_front_of_the_bad_one_are_answered(broker: RunningBroker) -> None:
    with Wire(broker.bootstrap) as bad:
        good = encode_request(1, 41, "x", request_of(ApiKey.METADATA)(version=1, topics=[]))
        bad.socket.sendall(bytes(good) + b"\xff" * 8)
        bad.receive(ApiKey.METADATA, 1, 41)
        assert bad.closed_by_broker()


def test_a_null_where_none_may_be_ends_the_connection(
    broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with one_log_line(caplog) as lines, Wire(broker.bootstrap) as bad:
        bad.send(ApiKey.LIST_OFFSETS, 1, replica_id=-1, topics=None)
        assert bad.closed_by_broker()
    assert "ListOffsetsRequest.topics is null" in lines[0]


def test_a_frame_may_come_byte_by_byte(broker: RunningBroker) -> None:
    with Wire(broker.bootstrap) as slow:
        slow.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in encode_request(1, 5, "x", request_of(ApiKey.METADATA)(version=1, topics=[])):
            slow.socket.sendall(bytes([byte]))
        slow.receive(ApiKey.METADATA, 1, 5)


def test_answers_keep_the_order_of_the_requests(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    waiting = wire.send(ApiKey.FETCH, 12, **fetch_fields(name, 0, max_wait_ms=300))
    quick = wire.send(ApiKey.METADATA, 1, topics=[])
    began = time.monotonic()
    wire.receive(ApiKey.FETCH, 12, waiting)
    assert time.monotonic() - began > 0.2
    wire.receive(ApiKey.METADATA, 1, quick)


def test_an_answer_does_not_wait_with_a_later_request_of_the_same_packet(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    fields = fetch_fields(name, 0, max_wait_ms=10_000)
    quick = encode_request(1, 71, "x", request_of(ApiKey.METADATA)(version=1, topics=[]))
    parked = encode_request(12, 72, "x", request_of(ApiKey.FETCH)(version=12, **fields))
    began = time.monotonic()
    wire.socket.sendall(bytes(quick) + bytes(parked))
    wire.receive(ApiKey.METADATA, 1, 71)
    assert time.monotonic() - began < 5


def test_answers_that_leave_together_are_whole_whatever_their_size(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    values = batch(key=b"k" * (MAX_JOINED_BYTES // 3))
    wire.call(ApiKey.PRODUCE, 11, **produce_fields(name, values))
    fetches = [
        encode_request(12, number, "x", request_of(ApiKey.FETCH)(version=12, **fetch_fields(name, 0)))
        for number in range(80, 90)
    ]
    wire.socket.sendall(b"".join(fetches))
    for number in range(80, 90):
        (topic,) = wire.receive(ApiKey.FETCH, 12, number).responses
        assert len(topic.partitions[0].records) == len(values)


def test_more_requests_than_may_wait_are_all_answered_in_order(wire: Wire) -> None:
    numbers = [wire.send(ApiKey.METADATA, 1, topics=[]) for _ in range(3 * MAX_WAITING_REQUESTS)]
    for number in numbers:
        wire.receive(ApiKey.METADATA, 1, number)


def test_a_waiting_request_holds_no_other_connection(broker: RunningBroker, wire: Wire, name: str) -> None:
    create_topic(wire, name)
    with Wire(broker.bootstrap) as parked:
        parked.send(ApiKey.FETCH, 12, **fetch_fields(name, 0, max_wait_ms=10_000))
        began = time.monotonic()
        wire.call(ApiKey.METADATA, 1, topics=[])
        assert time.monotonic() - began < 5


def test_what_was_sent_before_the_client_left_is_carried_out(
    broker: RunningBroker, wire: Wire, name: str
) -> None:
    create_topic(wire, name)
    with Wire(broker.bootstrap) as leaving:
        leaving.send(ApiKey.FETCH, 12, **fetch_fields(name, 0, max_wait_ms=60_000))
        for _ in range(3):
            leaving.send(ApiKey.PRODUCE, 9, **produce_fields(name, batch(), acks=0))
    deadline = time.monotonic() + 5
    while offset_at(wire, name, LATEST).offset < 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_large_batch_of_a_client_that_left_is_carried_out(
    broker: RunningBroker, wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # its records are checked in many turns: it is on its way when the client leaves, or is only then begun
    monkeypatch.setattr(_turns, "WORK_SLICE_S", 0.0)
    create_topic(wire, name)
    large = batch(5_000)
    with Wire(broker.bootstrap) as leaving:
        for _ in range(3):
            leaving.send(ApiKey.PRODUCE, 9, **produce_fields(name, large, acks=0))
    deadline = time.monotonic() + 5
    while offset_at(wire, name, LATEST).offset < 15_000:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_parked_join_of_a_client_that_left_is_dropped(broker: RunningBroker, name: str) -> None:
    def join(client: Wire, member: str) -> int:
        return client.send(
            ApiKey.JOIN_GROUP,
            5,
            group_id=name,
            session_timeout_ms=1_000,
            rebalance_timeout_ms=60_000,
            member_id=member,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[part(ApiKey.JOIN_GROUP, 5, "JoinGroupRequestProtocol", name="range", metadata=b"")],
        )

    with Wire(broker.bootstrap) as first:
        member = first.receive(ApiKey.JOIN_GROUP, 5, join(first, "")).member_id
        assert first.receive(ApiKey.JOIN_GROUP, 5, join(first, member)).generation_id == 1
        with Wire(broker.bootstrap) as second:
            other = second.receive(ApiKey.JOIN_GROUP, 5, join(second, "")).member_id
            join(second, other)
            time.sleep(0.1)
        # the join that nobody waits for any more does not keep the broker from serving
        assert first.receive(ApiKey.JOIN_GROUP, 5, join(first, member)).generation_id == 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\t\x1b[31m", r"two\nlines\t\x1b[31m"),
        ("ü", r"\xfc"),
        ("x" * (MAX_LOGGED_TEXT + 1), "x" * MAX_LOGGED_TEXT + "..."),
    ],
)
def test_text_of_a_peer_cannot_forge_log_lines(text: str, shown: str) -> None:
    assert printable_text(text) == shown


@pytest.mark.parametrize("leaves", [False, True])
def test_a_flood_of_requests_in_one_read_lets_others_go_on(
    broker: RunningBroker, wire: Wire, name: str, leaves: bool
) -> None:
    """Each answer lists 2,000 partitions and takes milliseconds, the flood many seconds."""
    create_topic(wire, name, 2_000)
    body = request_of(ApiKey.METADATA)(version=1, topics=None)
    flood = bytes(encode_request(1, 1, "x", body)) * 3_000
    with Wire(broker.bootstrap) as rude:
        rude.socket.sendall(flood)
        if leaves:
            rude.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            rude.close()
        for _ in range(5):
            wire.call(ApiKey.API_VERSIONS, 0)
        if not leaves:
            rude.close()
    wire.call(
        ApiKey.DELETE_TOPICS,
        5,
        topic_names=[name],
        timeout_ms=1_000,
    )
