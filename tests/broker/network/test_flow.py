"""Turns of connections: who has much to do leaves it for later, so that a quiet one is served in between."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack

import pytest

from kohort.broker.network import _flow
from kohort.broker.network._flow import Turn
from kohort.protocol import ApiKey, decode_response, encode_request
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.testing import running_broker
from tests.broker.wire import Wire


async def test_a_turn_ends_when_connections_have_worked_long_enough_without_a_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1.0]
    monkeypatch.setattr(_flow, "clock", lambda: now[0])
    turn = Turn(asyncio.get_running_loop(), lambda: None)

    def work(seconds: float) -> bool:
        over = turn.is_over()
        now[0] += seconds
        turn.pause()
        return over

    assert [work(0.005) for _ in range(4)] == [False, False, True, True]
    await asyncio.sleep(0)
    assert work(0.005), "one request of each"
    await asyncio.sleep(0)
    assert [work(0.005) for _ in range(3)] == [False, False, True]
    await asyncio.sleep(0.01)
    assert not work(0.005)
    now[0] += 0.001
    assert [work(0.005) for _ in range(3)] == [False, False, True]
    await asyncio.sleep(0.01)
    # a connection that reads again does so in another turn, though nobody has rested
    number = turn.number
    assert [turn.is_over(number) or work(0.005) for _ in range(2)] == [False, False]
    number = turn.number
    assert [turn.is_over(number), work(0.005), turn.is_over(number)] == [False, False, False]


async def test_others_are_let_in_once_a_millisecond_of_a_long_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    now, let_in = [1.0], list[float]()
    monkeypatch.setattr(_flow, "clock", lambda: now[0])
    turn = Turn(asyncio.get_running_loop(), lambda: let_in.append(round(now[0] - 1, 4)))
    for _ in range(20):
        turn.is_over()
        now[0] += 0.0003
        turn.pause()
    assert let_in == [0.0012, 0.0024, 0.0036, 0.0048]
    now[0] += 1
    for _ in range(3):
        turn.is_over()
        now[0] += 0.0003
        turn.pause()
    assert len(let_in) == 4, "it was short"


@pytest.mark.parametrize("crowd_s", [-1.0, _flow.CROWD_S])
def test_requests_that_wait_for_their_turn_are_answered_in_order(
    monkeypatch: pytest.MonkeyPatch, crowd_s: float
) -> None:
    monkeypatch.setattr(_flow, "CROWD_S", crowd_s)
    monkeypatch.setattr(_flow, "_REST_S", 60.0)
    with running_broker() as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        body = HeartbeatRequest("g", 1, "nobody", None)
        with socket.create_connection((host, int(port)), timeout=20) as sent:
            sent.sendall(b"".join(encode_request(4, number, "client", body) for number in range(300)))
            answers = sent.makefile("rb")
            for number in range(300):
                size = int.from_bytes(answers.read(4), "big")
                header, _ = decode_response(ApiKey.HEARTBEAT, 4, answers.read(size))
                assert header == number


def test_behind_a_crowd_only_what_follows_a_connections_first_request_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A task for each of a thousand members that ask once would cost more than their answers."""
    monkeypatch.setattr(_flow, "CROWD_S", -1.0)
    monkeypatch.setattr(_flow, "_REST_S", 60.0)
    waited: list[bytes] = []
    add = _flow.RequestQueue.add

    def adding(queue: _flow.RequestQueue, frame: bytes) -> None:
        waited.append(frame)
        add(queue, frame)

    monkeypatch.setattr(_flow.RequestQueue, "add", adding)
    frame = encode_request(4, 1, "client", HeartbeatRequest("g", 1, "nobody", None))
    with running_broker() as broker, ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker.bootstrap)) for _ in range(20)]
        for count in (1, 3):
            for wire in wires:
                wire.socket.sendall(frame * count)
            for wire in wires:
                assert len([wire.frame() for _ in range(count)]) == count
            assert len(waited) == len(wires) * (count - 1)
