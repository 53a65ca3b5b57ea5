"""One connection: versions, many requests, and every way it can break.

Covers: client/requests.py.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from kohort.broker import Broker
from kohort.client import BrokerConnectionError, BrokerRefusedError, BrokerTimeoutError, ResponseTooLargeError
from kohort.client.connection import Connection
from kohort.client.metadata import Address
from kohort.protocol import (
    APIS,
    ApiKey,
    ErrorCode,
    KafkaError,
    MalformedMessageError,
    UnsupportedVersionError,
)
from tests.client.fake_broker import FakeBroker
from tests.messages import request_of, response_of

_HEARTBEAT = {ApiKey.HEARTBEAT: (0, 4)}


async def _open(broker: FakeBroker, **settings: Any) -> Connection:
    return await Connection.open(Address("127.0.0.1", broker.port), client_id="test", **settings)


def _beat(generation: int = 1) -> Any:
    return request_of(ApiKey.HEARTBEAT)(
        group_id="g", generation_id=generation, member_id="m", group_instance_id=None
    )


def _answered(code: int = 0) -> Any:
    return response_of(ApiKey.HEARTBEAT)(throttle_time_ms=0, error_code=code)


async def test_the_highest_version_that_both_sides_speak_is_used() -> None:
    versions = {ApiKey.API_VERSIONS: (0, 4), ApiKey.HEARTBEAT: (0, 3), ApiKey.METADATA: (0, 99)}
    async with FakeBroker(versions) as broker:
        connection = await _open(broker)
        assert connection.version_for(ApiKey.HEARTBEAT) == 3
        assert connection.version_for(ApiKey.HEARTBEAT, 2) == 2
        assert connection.version_for(ApiKey.METADATA) == APIS[ApiKey.METADATA].max_version
        connection.close()


async def test_a_version_between_two_releases_is_no_reason_to_be_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kohort.__version__", "0.1.0.dev2+g12ab34c")
    async with Broker() as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        connection = await Connection.open(Address(host, int(port)), client_id="test")
        assert connection.versions
        connection.close()


@pytest.mark.parametrize("highest", [0, 2])
async def test_a_broker_that_knows_only_older_versions_of_apiversions_is_asked_again(highest: int) -> None:
    async with FakeBroker({ApiKey.API_VERSIONS: (0, highest), **_HEARTBEAT}) as broker:
        connection = await _open(broker)
        assert connection.version_for(ApiKey.HEARTBEAT) == 4
        assert broker.asked == [ApiKey.API_VERSIONS] * 2
        connection.close()


@pytest.mark.parametrize(
    ("versions", "text"),
    [
        ({ApiKey.API_VERSIONS: (0, 4)}, "does not offer Heartbeat"),
        ({ApiKey.API_VERSIONS: (0, 4), ApiKey.HEARTBEAT: (9, 12)}, r"offers Heartbeat v9 to v12.*v0 to v4"),
    ],
)
async def test_no_version_in_common_is_an_error_that_names_both_sides(
    versions: dict[ApiKey, tuple[int, int]], text: str
) -> None:
    async with FakeBroker(versions) as broker:
        connection = await _open(broker)
        with pytest.raises(UnsupportedVersionError, match=text) as caught:
            await connection.request(_beat(), timeout_ms=30_000)
        assert broker.address in str(caught.value)
        connection.close()


async def test_many_requests_are_under_way_and_each_gets_its_own_answer() -> None:
    async with FakeBroker() as broker:
        broker.answers[ApiKey.HEARTBEAT] = lambda request: _answered(request.generation_id)
        connection = await _open(broker)
        beats = [connection.request(_beat(n), timeout_ms=30_000) for n in range(100)]
        assert [answer.error_code for answer in await asyncio.gather(*beats)] == list(range(100))
        connection.close()


async def test_an_answer_is_taken_in_as_it_arrives_before_those_who_wait_go_on() -> None:
    async with FakeBroker() as broker:
        broker.answers[ApiKey.HEARTBEAT] = lambda request: _answered(request.generation_id)
        connection = await _open(broker)
        seen: list[str] = []

        def take(answer: Any) -> None:
            asyncio.get_running_loop().call_soon(seen.append, "the next turn")
            seen.append(f"arrives: {answer.error_code}")

        answer = await connection.ask(_beat(7), timeout_ms=30_000, on_answer=take)
        assert (seen, answer.error_code) == (["arrives: 7", "the next turn"], 7)
        connection.close()


async def test_what_taking_an_answer_in_raises_comes_to_those_who_wait_and_the_connection_goes_on() -> None:
    def take(_: Any) -> None:
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)

    async with FakeBroker() as broker:
        broker.answers[ApiKey.HEARTBEAT] = lambda request: _answered(request.generation_id)
        connection = await _open(broker)
        with pytest.raises(KafkaError):
            await connection.ask(_beat(), timeout_ms=30_000, on_answer=take)
        assert (await connection.request(_beat(3), timeout_ms=30_000)).error_code == 3
        connection.close()


@pytest.mark.parametrize("size", [32_768, 40_000, 70_000])
@pytest.mark.parametrize("highest", [3, 4])
async def test_a_name_that_is_too_long_for_the_protocol_is_told_and_not_sent(size: int, highest: int) -> None:
    versions = {ApiKey.HEARTBEAT: (0, highest), ApiKey.API_VERSIONS: (0, 3)}
    async with FakeBroker(versions) as broker:
        broker.answers[ApiKey.HEARTBEAT] = lambda request: _answered(len(request.group_id))
        connection = await _open(broker)
        for characters in ("x" * size, "ä" * (size // 2)):
            with pytest.raises(
                KafkaError, match=f"{size:,} bytes: names and values have 32,767 at"
            ) as caught:
                await connection.request(_beat()._replace(group_id=characters), timeout_ms=30_000)
            assert caught.value.code is ErrorCode.INVALID_REQUEST
            assert len(str(caught.value)) < 200
        answer = await connection.request(_beat()._replace(group_id="x" * 32_767), timeout_ms=30_000)
        assert answer.error_code == 32_767, "the connection is as it was"
        connection.close()


async def test_a_request_given_up_by_its_caller_does_not_disturb_the_next() -> None:
    async with FakeBroker() as broker:
        gate = asyncio.Event()

        async def slowly(request: Any) -> Any:
            await gate.wait()
            return _answered(request.generation_id)

        broker.answers[ApiKey.HEARTBEAT] = slowly
        connection = await _open(broker)
        given_up = asyncio.create_task(connection.request(_beat(1), timeout_ms=30_000))
        await asyncio.sleep(0.01)
        given_up.cancel()
        gate.set()
        assert (await connection.request(_beat(2), timeout_ms=30_000)).error_code == 2
        connection.close()


async def test_requests_under_way_fail_when_the_connection_breaks() -> None:
    async with FakeBroker() as broker:
        broker.answers[ApiKey.HEARTBEAT] = lambda _: None
        connection = await _open(broker)
        waiting = [asyncio.create_task(connection.request(_beat(), timeout_ms=30_000)) for _ in range(3)]
        await asyncio.sleep(0.02)
        broker.drop_connections()
        errors = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(e, BrokerConnectionError) and broker.address in str(e) for e in errors)
        assert connection.is_closed
        with pytest.raises(BrokerConnectionError, match="connection closed"):
            await connection.request(_beat(), timeout_ms=30_000)


async def test_an_answer_that_does_not_come_in_time_ends_the_connection() -> None:
    async with FakeBroker() as broker:
        broker.answers[ApiKey.HEARTBEAT] = lambda _: None
        connection = await _open(broker)
        with pytest.raises(BrokerTimeoutError, match="Heartbeat was not answered within 50 ms"):
            await connection.request(_beat(), timeout_ms=50)
        assert connection.is_closed


async def test_nobody_listening_is_an_error_that_names_host_and_port() -> None:
    with pytest.raises(BrokerConnectionError, match=r"127\.0\.0\.1:1: cannot connect: Connection refused"):
        await Connection.open(Address("127.0.0.1", 1), client_id="test")


async def test_a_server_that_says_nothing_is_given_up() -> None:
    async with FakeBroker() as broker:
        broker.answers[ApiKey.API_VERSIONS] = lambda _: None
        with pytest.raises(
            BrokerTimeoutError, match="no connection within 50 ms: the port takes connections and answers"
        ):
            await _open(broker, timeout_ms=50)


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x04\x00\x00\xff\xff",
    ],
    ids=["http", "negative length", "unasked"],
)
async def test_bytes_that_are_no_answer_end_the_connection(garbage: bytes) -> None:
    async with FakeBroker() as broker:
        broker.answers[ApiKey.HEARTBEAT] = lambda _: garbage
        connection = await _open(broker)
        with pytest.raises(BrokerConnectionError):
            await connection.request(_beat(), timeout_ms=30_000)
        assert connection.is_closed


async def test_what_is_no_broker_is_known_by_its_first_bytes_however_large_answers_may_be() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read(-1)
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        with pytest.raises(BrokerConnectionError, match="frame of 1213486160 bytes"):
            await Connection.open(address, client_id="test", timeout_ms=3_000, max_frame_bytes=2**31 - 1)


async def test_an_answer_over_the_frame_limit_is_refused() -> None:
    async with FakeBroker() as broker:
        connection = await _open(broker, max_frame_bytes=10_000)
        broker.answers[ApiKey.HEARTBEAT] = lambda _: b"\x00\x01\x00\x00" + b"x" * 100
        first, second = (connection.ask(_beat(), timeout_ms=30_000) for _ in range(2))
        with pytest.raises(ResponseTooLargeError, match="frame of 65536 bytes, the limit is 10000") as caught:
            await first
        assert (caught.value.size, caught.value.limit) == (65_536, 10_000)
        with pytest.raises(BrokerConnectionError) as other:
            await second
        assert not isinstance(other.value, ResponseTooLargeError)


async def test_an_answer_that_cannot_be_decoded_is_told_to_its_asker() -> None:
    async with FakeBroker() as broker:
        connection = await _open(broker)
        # correlation id 1 (0 was ApiVersions), no tags, then too little
        broker.answers[ApiKey.HEARTBEAT] = lambda _: b"\x00\x00\x00\x06\x00\x00\x00\x01\x00\x00"
        with pytest.raises(MalformedMessageError, match="Heartbeat"):
            await connection.request(_beat(), timeout_ms=30_000)
        connection.close()


async def test_one_whose_authentication_ends_soon_is_closed_once_nothing_is_under_way() -> None:
    async with FakeBroker({ApiKey.API_VERSIONS: (0, 4), **_HEARTBEAT}) as broker:
        connection = await _open(broker)
        assert connection.is_usable()
        connection._retire_at = 0.0
        answer = connection.ask(_beat(), timeout_ms=5_000)
        assert connection.is_usable()
        connection._waiting.clear()
        assert not connection.is_usable()
        assert connection.is_closed
        answer.cancel()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_an_address_where_nobody_listens_refuses(host: str) -> None:
    with pytest.raises(BrokerRefusedError, match="cannot connect: "):
        await Connection.open(Address(host, 1), client_id="c")


async def test_an_address_that_is_not_reached_otherwise_does_not_refuse() -> None:
    with pytest.raises(BrokerConnectionError, match="cannot connect: ") as caught:
        await Connection.open(Address("no.such.host.invalid", 9), client_id="c")
    assert not isinstance(caught.value, BrokerRefusedError)


async def test_a_request_that_was_given_up_is_not_delivered_any_more() -> None:
    """A broker that hangs reads again later: it finds a reset, not the rest of the request."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    connection = Connection(Address(*listener.getsockname()), "test")
    await connection._open_socket(None)
    hung, _ = listener.accept()
    connection.versions = {ApiKey.HEARTBEAT: (0, 4)}
    # more than the buffers of both sides hold
    large = _beat()._replace(member_id="m" * 30_000)
    asked = [connection.ask(large, timeout_ms=100) for _ in range(300)]
    with pytest.raises(BrokerTimeoutError):
        await asked[0]
    await asyncio.gather(*asked, return_exceptions=True)
    hung.settimeout(5)

    def read_on() -> int:
        count = 0
        try:
            while data := hung.recv(1 << 20):
                count += len(data)
        except ConnectionResetError:
            return count
        pytest.fail(f"the connection ended as if all of its {count} bytes were meant")

    assert await asyncio.to_thread(read_on) < 300 * 30_000
    hung.close()
    listener.close()
