"""Pipelined and one-at-a-time load from one process: frames made beforehand, answers compared as bytes.

A stream sends the frames of a ring in turn, with correlation ids 0, 1, 2 ... around the ring. The answers
must come in the same order and are known beforehand byte for byte but for the correlation id: the first
answer is decoded and checked field by field, all others are compared with it. So every answer is checked,
and the generator's own cost is a system call and a comparison for many answers.
"""

from __future__ import annotations

import select
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from . import _wire as wire
from ._connection import Connection, WrongAnswerError

#: Frames in a ring; more than are ever under way on one connection.
RING = 2048
READ_BYTES = 1 << 18
#: No answer for this long and the run fails.
SILENCE_S = 30.0


def numbered(template: bytes, count: int, at: int) -> bytes:
    """``count`` copies of a frame with the correlation ids 0, 1, 2 ... at that place."""
    out = bytearray(template) * count
    for number in range(count):
        struct.pack_into(">i", out, number * len(template) + at, number)
    return bytes(out)


class Stream:
    """A connection, the ring of frames it sends and the ring of answers it must get."""

    __slots__ = ("answer_size", "answers", "connection", "frame_size", "frames", "received", "sent", "size")

    def __init__(self, connection: Connection, frames: bytes, answer: bytes, size: int = RING) -> None:
        self.connection = connection
        self.size = size
        self.frame_size = len(frames) // size
        self.answer_size = len(answer)
        # each twice: no slice has to wrap
        self.frames = memoryview(frames * 2)
        self.answers = numbered(answer, size, wire.ANSWER_ID_AT) * 2
        self.sent = 0
        self.received = 0  # bytes

    def send(self, count: int) -> None:
        begin = self.sent % self.size * self.frame_size
        self.connection.socket.sendall(self.frames[begin : begin + count * self.frame_size])
        self.sent += count

    def receive(self) -> int:
        """Read what is there and check it; how many answers it completed."""
        data = self.connection.socket.recv(READ_BYTES)
        begin = self.received % (self.size * self.answer_size)
        if not data or data != self.answers[begin : begin + len(data)]:
            self._refuse(data, begin)
        before = self.received // self.answer_size
        self.received += len(data)
        return self.received // self.answer_size - before

    def _refuse(self, data: bytes, begin: int) -> None:
        if not data:
            raise WrongAnswerError("the broker closed the connection; look at its log")
        expected = self.answers[begin : begin + len(data)]
        at = next((i for i, (a, b) in enumerate(zip(data, expected, strict=False)) if a != b), len(expected))
        start = max(at - at % self.answer_size - begin % self.answer_size, 0)
        end = start + self.answer_size
        raise WrongAnswerError(
            f"an answer is not as the checked one: {data[start:end].hex()} for {expected[start:end].hex()}"
        )


@dataclass(frozen=True, slots=True)
class Rate:
    """Answers a second, and the share of a processor that the generator itself used."""

    per_second: float
    generator_share: float


def pump(streams: list[Stream], depth: int, seconds: float) -> Rate:
    """Keep ``depth`` requests under way on each stream for that long."""
    by_fd = {stream.connection.socket.fileno(): stream for stream in streams}
    poll = select.epoll()
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    clock = time.perf_counter
    processor, begin = time.process_time(), clock()
    stop = begin + seconds
    for stream in streams:
        stream.send(depth)
    answered, under_way, running = 0, depth * len(streams), True
    while under_way:
        for fd, _ in _ready(poll):
            stream = by_fd[fd]
            done = stream.receive()
            answered += done
            if running:
                stream.send(done)
            else:
                under_way -= done
        running = running and clock() < stop
    elapsed = clock() - begin
    poll.close()
    return Rate(answered / elapsed, (time.process_time() - processor) / elapsed)


def pump_once(streams: list[Stream], depth: int) -> None:
    """Send every ring once around, with ``depth`` requests under way on each stream."""
    by_fd = {stream.connection.socket.fileno(): stream for stream in streams}
    poll = select.epoll()
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    for stream in streams:
        stream.send(min(depth, stream.size))
    missing = sum(stream.size for stream in streams)
    while missing:
        for fd, _ in _ready(poll):
            stream = by_fd[fd]
            done = stream.receive()
            missing -= done
            stream.send(min(done, stream.size - stream.sent))
    poll.close()


def _ready(poll: select.epoll) -> list[tuple[int, int]]:
    ready = poll.poll(SILENCE_S)
    if not ready:
        raise WrongAnswerError(f"no answer for {SILENCE_S:g} s; look at the broker's log")
    return ready


def one_at_a_time(stream: Stream, count: int) -> list[float]:
    """Microseconds from the request's send to its answer, of each of ``count``."""
    clock = time.perf_counter_ns
    times = []
    for _ in range(count):
        begin = clock()
        stream.send(1)
        while not stream.receive():
            pass
        times.append((clock() - begin) / 1000)
    return times


def checked_stream(
    connection: Connection, frame: Callable[[int], bytes], check: Callable[[bytes], None]
) -> Stream:
    """A stream of ``frame(correlation_id)``; ``check`` looks into the answer of the first."""
    answer = connection.ask(frame(0))
    check(answer)
    return Stream(connection, b"".join(map(frame, range(RING))), answer)


def percentile(times: Iterable[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


#: Sends back what it gets: the quickest broker there could be.
ECHO = """
import selectors, socket
server = socket.create_server(("127.0.0.1", 0), backlog=64)
print(server.getsockname()[1], flush=True)
ready = selectors.EpollSelector()
ready.register(server, selectors.EVENT_READ)
while True:
    for key, _ in ready.select():
        if key.fileobj is server:
            connection, _ = server.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ready.register(connection, selectors.EVENT_READ)
        elif data := key.fileobj.recv(262144):
            key.fileobj.sendall(data)
        else:
            ready.unregister(key.fileobj)
            key.fileobj.close()
"""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What the generator reaches against an echo in a process of its own."""

    per_second: float
    p50_us: float
    p99_us: float


def ceiling(connections: int, depth: int, seconds: float) -> Ceiling:
    """The generator's own limit: frames of a heartbeat's size that come back as they are."""
    frame = wire.heartbeat(b"g" * 30, 1, b"m" * 50)
    # an echo gives back the request: ids stand elsewhere than in an answer, so it answers for itself
    frames = numbered(frame, RING, wire.REQUEST_ID_AT)
    with subprocess.Popen([sys.executable, "-c", ECHO], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        bootstrap = f"127.0.0.1:{int(server.stdout.readline())}"
        try:
            streams = [Stream(Connection(bootstrap), frames, frame) for _ in range(connections)]
            for stream in streams:
                stream.answers = frames * 2
            pump(streams, depth, seconds / 4)
            rate = pump(streams, depth, seconds)
            times = one_at_a_time(streams[0], int(2000 * seconds) + 1)
            for stream in streams:
                stream.connection.socket.close()
        finally:
            server.terminate()
    return Ceiling(rate.per_second, percentile(times, 0.5), percentile(times, 0.99))
