"""Answers in parts, over real sockets, by both ways."""

from __future__ import annotations

import asyncio
import errno
import importlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from kohort.broker.network import _sender
from kohort.broker.network._sender import FrameSender, Outbox
from kohort.broker.reporting.log_lines import LINES, RateLimitedLog
from kohort.log import FileRange
from kohort.log._descriptors import Descriptor
from tests.waiting import until

T = TypeVar("T")

SIZE = 8 << 20
HEAD, TAIL = b"head", b"tail"


class Told(asyncio.Protocol):
    """Tells the sender when the connection is gone, and when it may go on."""

    sender: FrameSender | None = None

    def pause_writing(self) -> None:
        if self.sender is not None:
            self.sender.pause()

    def resume_writing(self) -> None:
        if self.sender is not None:
            self.sender.resume()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if self.sender is not None:
            self.sender.close()


class Link:
    """A transport with its sender, and the socket at the other end."""

    def __init__(self, transport: asyncio.Transport, protocol: Told, peer: socket.socket) -> None:
        self.transport = transport
        self.protocol = protocol
        self.sender = FrameSender(transport, 30.0)
        self.peer = peer

    async def received(self, size: int) -> bytes:
        loop = asyncio.get_running_loop()
        data = bytearray()
        while len(data) < size and (more := await loop.sock_recv(self.peer, 1 << 20)):
            data += more
        return bytes(data)


@asynccontextmanager
async def open_link() -> AsyncIterator[Link]:
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_connection(Told, sock=near)
    made = Link(transport, protocol, far)
    protocol.sender = made.sender
    try:
        yield made
    finally:
        transport.abort()
        far.close()


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    async with open_link() as made:
        yield made


def run_on_uvloop(work: Coroutine[Any, Any, T]) -> T:
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        work.close()
        pytest.skip("uvloop comes with the extra 'fast'")
    found: T = uvloop.run(work)
    return found


@pytest.fixture
def content(tmp_path: Path) -> tuple[bytes, Path]:
    data = os.urandom(1 << 16) * (SIZE >> 16)
    path = tmp_path / "records"
    path.write_bytes(b"before" + data + b"behind")
    return data, path


def a_range(path: Path, size: int = SIZE) -> FileRange:
    return FileRange(Descriptor(str(path), os.O_RDONLY, 0), len(b"before"), size)


@pytest.mark.parametrize("way", ["sendfile", "plain", "no sendfile here"])
async def test_the_parts_arrive_whole_and_in_order(
    link: Link, content: tuple[bytes, Path], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    real = os.sendfile

    def counted(out: int, source: int, offset: int, count: int) -> int:
        if way == "no sendfile here":
            raise OSError(errno.EINVAL, "not on this file system")
        sent.append(real(out, source, offset, count))
        return sent[-1]

    monkeypatch.setattr(os, "sendfile", counted)
    if way == "plain":
        monkeypatch.delattr(os, "sendfile")
    data, path = content
    for _ in range(2):
        reading = asyncio.create_task(link.received(len(HEAD) + SIZE + len(TAIL)))
        await link.sender.send([HEAD, a_range(path), bytearray(TAIL)])
        assert await reading == HEAD + data + TAIL
    assert sum(sent) == (2 * SIZE if way == "sendfile" else 0)


async def test_what_is_unsent_goes_first(link: Link, content: tuple[bytes, Path]) -> None:
    data, path = content
    before = b"b" * (4 << 20)
    link.transport.write(before)
    assert link.transport.get_write_buffer_size()
    reading = asyncio.create_task(link.received(len(before) + SIZE))
    await link.sender.send([a_range(path)])
    assert await reading == before + data


async def test_a_peer_that_goes_ends_the_sending(link: Link, content: tuple[bytes, Path]) -> None:
    sending = asyncio.create_task(link.sender.send([HEAD, a_range(content[1])]))
    await link.received(len(HEAD))
    link.peer.close()
    await asyncio.wait_for(sending, 10)
    assert link.transport.is_closing()


async def test_a_connection_that_is_closed_here_ends_the_sending(
    link: Link, content: tuple[bytes, Path]
) -> None:
    sending = asyncio.create_task(link.sender.send([HEAD, a_range(content[1])]))
    await link.received(len(HEAD))
    link.transport.abort()
    await asyncio.wait_for(sending, 10)


async def test_a_peer_that_reads_nothing_is_cut_off(link: Link, content: tuple[bytes, Path]) -> None:
    sender = link.protocol.sender = FrameSender(link.transport, 0.05)
    await sender.send([a_range(content[1])])
    assert link.transport.is_closing()


async def test_a_peer_that_reads_nothing_costs_two_pieces_of_memory_whatever_it_asked_for(
    link: Link, content: tuple[bytes, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sendfile")
    data, path = content
    sending = asyncio.create_task(link.sender.send([HEAD, a_range(path), TAIL]))
    await asyncio.sleep(0.2)
    assert link.transport.get_write_buffer_size() <= 2 * _sender.PIECE_BYTES
    assert link.sender.left > SIZE // 2
    assert await link.received(len(HEAD) + SIZE + len(TAIL)) == HEAD + data + TAIL
    await sending
    assert link.sender.left == 0


async def test_a_peer_that_reads_nothing_takes_no_descriptor_of_those_that_connections_leave_free(
    link: Link, content: tuple[bytes, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kohort.log._descriptors.process_limit", lambda: 8)
    data, path = content
    part = a_range(path)
    before = len(os.listdir("/proc/self/fd"))
    sending = asyncio.create_task(link.sender.send([HEAD, part, TAIL]))
    begun = await asyncio.get_running_loop().sock_recv(link.peer, 1)
    assert len(os.listdir("/proc/self/fd")) == before
    assert begun + await link.received(len(HEAD) + SIZE + len(TAIL) - 1) == HEAD + data + TAIL
    await sending


@pytest.mark.parametrize("plain", [False, True])
async def test_a_file_that_ends_early_ends_the_connection(
    link: Link, content: tuple[bytes, Path], plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if plain:
        monkeypatch.delattr(os, "sendfile")
    found = a_range(content[1], 2_000)
    os.truncate(content[1], 1_000)
    await link.sender.send([HEAD, found])
    assert link.transport.is_closing()


async def test_nothing_is_sent_on_an_encrypted_connection_past_the_transport(
    content: tuple[bytes, Path],
) -> None:
    class Encrypted:
        def get_extra_info(self, name: str) -> object:
            return object() if name == "sslcontext" else None

        def is_closing(self) -> bool:
            return False

        def writelines(self, parts: list[bytes]) -> None:
            written.extend(parts)

    written: list[bytes] = []
    await FrameSender(cast(asyncio.Transport, Encrypted()), 30.0).send([HEAD, a_range(content[1], 10)])
    assert written == [HEAD, content[0][:10]]


async def test_clients_that_leave_while_they_are_answered_fill_no_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def is_closing(self) -> bool:
            return False

        def writelines(self, _: list[bytes]) -> None:
            raise BrokenPipeError

        def abort(self) -> None:
            pass

    monkeypatch.setattr(_sender, "_aborted", RateLimitedLog(now=lambda: 0.0))
    for _ in range(3 * LINES):
        await FrameSender(cast(asyncio.Transport, Broken()), 30.0).send([HEAD])
    assert len(caplog.records) == LINES


def test_on_uvloop_a_range_goes_by_sendfile_behind_what_was_written_before(
    content: tuple[bytes, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    real = os.sendfile

    def counted(out: int, source: int, offset: int, count: int) -> int:
        sent.append(real(out, source, offset, count))
        return sent[-1]

    monkeypatch.setattr(os, "sendfile", counted)
    data, path = content

    async def run() -> bytes:
        async with open_link() as link:
            link.transport.write(b"before")
            reading = asyncio.create_task(link.received(len(b"before") + len(HEAD) + SIZE + len(TAIL)))
            await link.sender.send([HEAD, a_range(path), bytearray(TAIL)])
            return await reading

    assert run_on_uvloop(run()) == b"before" + HEAD + data + TAIL
    assert sum(sent) == SIZE


def outbox_of(link: Link) -> Outbox:
    return Outbox(asyncio.get_running_loop(), link.transport)


async def test_a_small_response_is_sent_before_the_turn_ends(link: Link) -> None:
    outbox = outbox_of(link)
    outbox.unsent += b"response"
    outbox.send(more=False)
    assert link.peer.recv(100) == b"response"
    assert (outbox.given, len(outbox.unsent)) == (8, 0)


@pytest.mark.parametrize("run", [asyncio.run, run_on_uvloop])
def test_responses_overtake_nothing_that_waits_in_the_transport(
    run: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    async def overtake() -> None:
        async with open_link() as link:
            await send_much_and_little(link)

    run(overtake())


async def send_much_and_little(link: Link) -> None:
    outbox = outbox_of(link)
    link.transport.write(b"passed")
    whole = b"passed"
    for number in range(50):
        # more than the socket takes at once, so that parts of it wait
        response = bytes([number]) * (400_000 if number % 7 == 3 else 20)
        outbox.unsent += response
        outbox.send(more=False)
        whole += response
        if number % 3 == 0:
            await asyncio.sleep(0)
    assert outbox.given == len(whole) - len(b"passed")
    assert await link.received(len(whole)) == whole
    await asyncio.sleep(0)
    outbox.unsent += b"behind them"
    outbox.send(more=False)
    assert link.peer.recv(100) == b"behind them", "at once again"


async def test_a_response_to_a_peer_that_is_gone_ends_the_connection(link: Link) -> None:
    outbox = outbox_of(link)
    link.peer.close()
    for _ in range(3):
        outbox.unsent += b"response"
        outbox.send(more=False)
    await until(link.transport.is_closing)
