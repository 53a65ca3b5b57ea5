"""What no client would send: that connection ends, and nobody else notices."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import closing

import kafka
import pytest

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

WAIT_S = 20.0
API_VERSIONS, METADATA, FETCH, JOIN_GROUP = 18, 3, 1, 11


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def header(api_key: int, version: int, correlation_id: int = 7) -> bytes:
    """A request header of version 1, with the client id ``raw``."""
    return struct.pack(">hhih", api_key, version, correlation_id, 3) + b"raw"


API_VERSIONS_V0 = frame(header(API_VERSIONS, 0))

ENDS_THE_CONNECTION = {
    "a negative length": struct.pack(">i", -1) + b"\x00" * 16,
    "a length of 200 MiB": struct.pack(">i", 200 * 1024 * 1024) + b"\x00" * 16,
    "random bytes as a frame": frame(bytes.fromhex("7f") + os.urandom(63)),
    "the opening of an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "the opening of a TLS session": bytes.fromhex("16030100a5010000a10303") + os.urandom(160),
    "an empty frame": frame(b""),
    "a frame shorter than a header": frame(b"\x00\x12\x00"),
    "an unknown API": frame(header(4321, 0)),
    "a negative API number": frame(header(-5, 0)),
    "a version above the range": frame(header(METADATA, 99) + b"\x00" * 16),
    "a negative version": frame(header(METADATA, -1) + b"\x00" * 16),
    "a body that ends too early": frame(header(JOIN_GROUP, 5) + b"\x00\x05grou"),
    "an array longer than its frame": frame(header(METADATA, 1) + struct.pack(">i", 2_000_000_000)),
    "a string longer than its frame": frame(header(JOIN_GROUP, 2) + b"\x7f\xff" + b"g" * 10),
    "a string of negative length": frame(header(JOIN_GROUP, 2) + struct.pack(">h", -7) + b"g" * 40),
}


def connect(bootstrap: str) -> socket.socket:
    host, port = bootstrap.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=WAIT_S)


def read_to_end(connection: socket.socket) -> bytes:
    """Everything the other side sends until it ends the connection."""
    received = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            return received
        if not part:
            return received
        received += part


def read_frame(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as stream:
        [length] = struct.unpack(">i", stream.read(4))
        return stream.read(length)


def ask_for_versions(connection: socket.socket, correlation_id: int) -> None:
    connection.sendall(frame(header(API_VERSIONS, 0, correlation_id)))
    answer = read_frame(connection)
    assert struct.unpack_from(">ih", answer) == (correlation_id, 0)


@pytest.fixture
def bystander(bootstrap: str) -> Iterator[Callable[[], None]]:
    """Checks that a connection that was open all the time, and a client, are still served."""
    with closing(connect(bootstrap)) as connection:
        ask_for_versions(connection, 1)

        def check() -> None:
            ask_for_versions(connection, 2)
            consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap)
            consumer.topics()
            consumer.close()

        yield check


@pytest.mark.parametrize("name", list(ENDS_THE_CONNECTION))
def test_a_malformed_request_ends_its_connection_and_no_other(
    name: str, bootstrap: str, bystander: Callable[[], None]
) -> None:
    with closing(connect(bootstrap)) as connection:
        connection.sendall(ENDS_THE_CONNECTION[name])
        assert read_to_end(connection) == b""
    bystander()


def test_a_malformed_request_after_good_ones_ends_the_connection_too(
    bootstrap: str, bystander: Callable[[], None]
) -> None:
    with closing(connect(bootstrap)) as connection:
        ask_for_versions(connection, 1)
        ask_for_versions(connection, 2)
        connection.sendall(frame(header(4321, 0)))
        assert read_to_end(connection) == b""
    bystander()


@pytest.mark.parametrize("sent", [b"\x00\x00", struct.pack(">i", 500) + header(METADATA, 1)])
def test_a_client_that_goes_away_mid_request_harms_nobody(
    sent: bytes, bootstrap: str, bystander: Callable[[], None]
) -> None:
    with closing(connect(bootstrap)) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert read_to_end(connection) == b""
    bystander()


def test_a_client_that_does_not_read_its_answers_harms_nobody(
    bootstrap: str, bystander: Callable[[], None]
) -> None:
    with closing(connect(bootstrap)) as connection:
        connection.setblocking(False)
        requests = API_VERSIONS_V0 * 20_000
        while requests:
            try:
                requests = requests[connection.send(requests) :]
            except BlockingIOError:
                break
        bystander()


def test_an_unknown_version_of_api_versions_is_answered_with_the_list(bootstrap: str) -> None:
    """KIP-511: or a newer client could not find out what an older broker speaks."""
    with closing(connect(bootstrap)) as connection:
        connection.sendall(frame(header(API_VERSIONS, 99) + b"\x00"))
        answer = read_frame(connection)
        correlation_id, error, count = struct.unpack_from(">ihi", answer)
        assert (correlation_id, error) == (7, 35)
        rows = {row[0]: row[1:] for row in struct.iter_unpack(">hhh", answer[10 : 10 + 6 * count])}
        assert rows[API_VERSIONS] == (0, 4)
        ask_for_versions(connection, 8)


def test_answers_keep_the_order_of_the_requests(bootstrap: str, new_topic: Callable[..., str]) -> None:
    """Also behind a fetch that waits: the one after it is answered after it."""
    topic = new_topic("order", partitions=1).encode()
    body = struct.pack(">iiiib", -1, 800, 1, 1000, 0) + struct.pack(">i", 1)
    body += struct.pack(">h", len(topic)) + topic + struct.pack(">iiqi", 1, 0, 0, 1000)
    with closing(connect(bootstrap)) as connection:
        connection.sendall(frame(header(FETCH, 4, 100) + body))
        for correlation_id in range(101, 110):
            connection.sendall(frame(header(API_VERSIONS, 0, correlation_id)))
        with connection.makefile("rb") as stream:
            order = []
            for _ in range(10):
                [length] = struct.unpack(">i", stream.read(4))
                order.append(struct.unpack_from(">i", stream.read(length))[0])
    assert order == list(range(100, 110))
