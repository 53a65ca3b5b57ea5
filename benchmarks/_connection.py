"""A blocking connection to a broker: a request and its checked answer, and a member to send it as."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from kohort.protocol import ErrorCode

from . import _wire as wire

#: A broker that answers "not yet" for longer than this is broken.
PATIENCE_S = 60.0
#: Longer than a member is silent while its row runs, and the longest that franz-go's kfake takes.
SESSION_TIMEOUT_MS = 300_000
_NOT_YET = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


class WrongAnswerError(Exception):
    """The broker answered otherwise than it must: no figure is worth anything then."""


def must(what: str, error: int, *allowed: ErrorCode) -> int:
    """``error``, where it is none or an allowed one."""
    if error and error not in allowed:
        raise WrongAnswerError(f"{what} was answered with {_named(error)}; look at the broker's log")
    return error


def _named(error: int) -> str:
    names = {int(code): code.name for code in ErrorCode}
    return f"{error} {names.get(error, '(no error of Kafka)')}"


class Connection:
    """Sends a frame, reads the answer, checks the correlation id. ``bootstrap`` is HOST:PORT, or with
    ``SSL://`` before it for TLS, with whomever answers there. One that does not wait is connected after
    ``finish``, once it can be written to.
    """

    def __init__(self, bootstrap: str, *, waits: bool = True) -> None:
        protocol, _, address = bootstrap.rpartition("://")
        host, _, port = address.rpartition(":")
        if not waits:
            self.socket = socket.socket()
            self.socket.setblocking(False)
            self.socket.connect_ex((host, int(port)))
            self._kept = b""
            return
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if protocol == "SSL":
            self.socket = _tls().wrap_socket(self.socket)
        self._kept = b""

    def finish(self) -> None:
        """Take up a connection that is established now. Raises OSError if it could not be."""
        if error := self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(error, os.strerror(error))
        self.socket.settimeout(PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, request: bytes) -> bytes:
        """The whole answer frame, its length included."""
        self.socket.sendall(request)
        answer = self.next_answer()
        if answer[4:8] != request[wire.REQUEST_ID_AT : wire.REQUEST_ID_AT + 4]:
            raise WrongAnswerError(f"an answer carries the correlation id {answer[4:8].hex()} of no request")
        return answer

    def next_answer(self) -> bytes:
        """The answer that comes next, of a request that was sent before."""
        size = 4 + int.from_bytes(self._exactly(4), "big")
        answer = self._exactly(size)
        self._kept = self._kept[size:]
        return answer

    def _exactly(self, size: int) -> bytes:
        while len(self._kept) < size:
            data = self.socket.recv(1 << 18)
            if not data:
                raise WrongAnswerError("the broker closed the connection; look at its log")
            self._kept += data
        return self._kept[:size]


@cache
def _tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def until_ready(
    what: str, attempt: Callable[[], int], *allowed: ErrorCode, patience_s: float = PATIENCE_S
) -> None:
    """Ask again while the broker says "not yet": its own topics are being made, or read."""
    give_up = time.monotonic() + patience_s
    while (error := attempt()) in _NOT_YET and time.monotonic() < give_up:
        time.sleep(0.05)
    must(what, error, *allowed)


def prepare(bootstrap: str, topic: bytes, partitions: int) -> None:
    """Make the topic of the commits, and have the coordinator ready for them in every of its partitions."""
    with Connection(bootstrap) as connection:

        def created() -> int:
            return wire.created_error(connection.ask(wire.create_topic(topic, partitions)))

        def found() -> int:
            return wire.coordinator_error(connection.ask(wire.find_coordinator(b"benchmark")))

        until_ready("CreateTopics", created, ErrorCode.TOPIC_ALREADY_EXISTS)
        until_ready("FindCoordinator", found)
        for number in range(250):  # as good as every partition of __consumer_offsets is asked once
            request = wire.offset_commit(b"warm-%d" % number, -1, b"", topic, partitions, offset=0)
            until_ready("OffsetCommit", lambda request=request: _commit_error(connection.ask(request)))  # type: ignore[misc]


def _commit_error(answer: bytes) -> int:
    return next((error for error in wire.committed(answer).values() if error), 0)


@dataclass(slots=True)
class Member:
    """The only member of a Stable group."""

    connection: Connection
    group: bytes
    member_id: bytes
    generation: int

    def leave(self) -> None:
        errors = wire.left(self.connection.ask(wire.leave_group(self.group, [self.member_id])))
        for error in errors:
            must("LeaveGroup", error)


def join_alone(connection: Connection, group: bytes, topic: bytes) -> tuple[Member, float]:
    """Found a group: join without an id, again with the id given, then sync as its leader.

    Also gives how many microseconds the three requests took.
    """
    begin = time.perf_counter_ns()
    metadata = wire.subscription(topic)

    def join(member_id: bytes) -> wire.Joined:
        return wire.joined(
            connection.ask(
                wire.join_group(
                    group,
                    member_id,
                    metadata,
                    session_timeout_ms=SESSION_TIMEOUT_MS,
                    rebalance_timeout_ms=60_000,
                )
            )
        )

    first = join(b"")
    if must("JoinGroup without an id", first.error, ErrorCode.MEMBER_ID_REQUIRED) == 0:
        raise WrongAnswerError("JoinGroup without an id was answered as if it had one")
    second = join(first.member_id)
    must("JoinGroup", second.error)
    if second.leader != first.member_id or second.members != [first.member_id]:
        raise WrongAnswerError("the only member of a group does not lead it alone")
    shares = [(second.member_id, wire.assignment(topic, 0))]
    synced = connection.ask(wire.sync_group(group, second.generation, second.member_id, shares))
    must("SyncGroup", wire.error_after_throttle(synced))
    elapsed_us = (time.perf_counter_ns() - begin) / 1000
    return Member(connection, group, second.member_id, second.generation), elapsed_us


_counter = iter(range(1 << 60))
_RUN = struct.pack(">q", time.time_ns()).hex()[4:].encode()


def new_group(kind: str) -> bytes:
    """A group id of fixed length per kind that no other run has used."""
    return b"%s-%s-%07d" % (kind.encode(), _RUN, next(_counter))


@contextmanager
def lone_members(bootstrap: str, count: int, topic: bytes) -> Iterator[list[Member]]:
    """That many groups of one member each, each on a connection of its own; they leave at the end."""
    members = [join_alone(Connection(bootstrap), new_group("lone"), topic)[0] for _ in range(count)]
    try:
        yield members
        for member in members:
            member.leave()
    finally:
        for member in members:
            member.connection.socket.close()
