"""A group of many members in one process: each has a connection, sends heartbeats, rejoins when told.

A parked JoinGroup blocks its connection, so every member has one. All are driven by one epoll loop.
"""

from __future__ import annotations

import select
import struct
import time
from collections import deque
from collections.abc import Iterable
from enum import Enum, auto

from kohort.protocol import ErrorCode

from . import _wire as wire
from ._connection import Connection, WrongAnswerError, must

HEARTBEAT_S = 0.010
TIMEOUT_MS = 60_000
#: A rebalance that takes longer than this has gone wrong.
PATIENCE_S = 60.0


class Doing(Enum):
    """What a member's request under way is, or that there is none."""

    NAMING = auto()
    JOINING = auto()
    SYNCING = auto()
    IDLE = auto()
    BEATING = auto()
    LEAVING = auto()
    GONE = auto()


class Peer:
    """One member. ``due_s`` is when its next heartbeat is to be sent."""

    __slots__ = (
        "beat",
        "connection",
        "doing",
        "due_s",
        "generation",
        "late",
        "member_id",
        "number",
        "partial",
    )

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.doing = Doing.NAMING
        self.member_id = b""
        self.generation = -1
        self.beat = bytearray()
        self.due_s = 0.0
        self.late = False
        self.number = 0
        self.partial = b""


class Crowd:
    """The members of one group, and the clock of its rebalances."""

    def __init__(self, bootstrap: str, group: bytes, topic: bytes) -> None:
        self._bootstrap, self._group, self._topic = bootstrap, group, topic
        self._metadata = wire.subscription(topic)
        self._poll = select.epoll()
        self._by_fd: dict[int, Peer] = {}
        self._due: deque[tuple[float, Peer]] = deque()
        self._active: set[Peer] = set()
        self._generation = -1
        self._synced = 0
        self._shares: dict[bytes, bytes] = {}
        self._leader = b""
        self._settled_s = 0.0

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        for peer in self._by_fd.values():
            peer.connection.socket.close()
        self._poll.close()

    def grow(self, count: int) -> float:
        """That many join at once; milliseconds from the first request until all members have synced."""
        peers = [Peer(Connection(self._bootstrap)) for _ in range(count)]
        for peer in peers:
            fd = peer.connection.socket.fileno()
            self._by_fd[fd] = peer
            self._poll.register(fd, select.EPOLLIN)
        begin = time.perf_counter()
        self._active.update(peers)
        for peer in peers:
            self._join(peer)
        return self._until_settled(begin)

    def shrink(self) -> float:
        """A member that does not lead leaves; milliseconds from its request until all others have synced."""
        peer = next(peer for peer in self._active if peer.member_id != self._leader)
        peer.due_s, peer.late = 0.0, False  # no further heartbeat
        give_up_s = time.perf_counter() + PATIENCE_S
        while peer.doing is not Doing.IDLE:
            self._turn(give_up_s)
        begin = time.perf_counter()
        self._active.remove(peer)
        self._synced -= 1
        self._send(peer, Doing.LEAVING, wire.leave_group(self._group, [peer.member_id]))
        generation = self._generation
        while self._generation == generation:
            self._turn(begin + PATIENCE_S)
        return self._until_settled(begin)

    def idle(self, seconds: float) -> None:
        """Nothing but heartbeats for that long; nobody may be told to rejoin."""
        generation, stop = self._generation, time.perf_counter() + seconds
        while time.perf_counter() < stop:
            self._turn(stop + PATIENCE_S)
        if self._generation != generation or self._synced != len(self._active):
            raise WrongAnswerError("a settled group was rebalanced though nobody came or went")

    def disperse(self) -> None:
        """All leave in one request, so that the broker has no sessions to time out."""
        with Connection(self._bootstrap) as connection:
            request = wire.leave_group(self._group, [peer.member_id for peer in self._active])
            for error in wire.left(connection.ask(request)):
                must("LeaveGroup of all members", error)

    def _until_settled(self, begin: float) -> float:
        while self._synced != len(self._active):
            self._turn(begin + PATIENCE_S)
        return (self._settled_s - begin) * 1000

    def _turn(self, give_up_s: float) -> None:
        now = time.perf_counter()
        if now > give_up_s:
            states = sorted(peer.doing.name for peer in self._active)
            counts = {name: states.count(name) for name in set(states)}
            raise WrongAnswerError(
                f"the group is not stable after {PATIENCE_S:g} s; its members are {counts}"
            )
        due = self._due
        while due and due[0][0] <= now:
            due_s, peer = due.popleft()
            if peer.due_s != due_s:
                continue
            if peer.doing is Doing.IDLE:
                self._beat(peer, now)
            elif peer.doing is Doing.BEATING:
                peer.late = True
        timeout = max(due[0][0] - now, 0) if due else 1.0
        for fd, _ in self._poll.poll(timeout):
            self._read(self._by_fd[fd])

    def _read(self, peer: Peer) -> None:
        data = peer.connection.socket.recv(1 << 18)
        if not data:
            raise WrongAnswerError("the broker closed a member's connection; look at its log")
        if peer.partial:
            data = peer.partial + data
        size = int.from_bytes(data[:4], "big") + 4 if len(data) >= 4 else len(data) + 1
        if len(data) < size:
            peer.partial = data
            return
        peer.partial = b""
        if len(data) > size or int.from_bytes(data[4:8], "big") != peer.number:
            raise WrongAnswerError("a member was answered what it had not asked")
        self._answered(peer, data)

    def _answered(self, peer: Peer, data: bytes) -> None:
        if peer.doing is Doing.BEATING:
            self._beaten(peer, wire.error_after_throttle(data))
        elif peer.doing is Doing.SYNCING:
            self._synchronized(peer, data)
        elif peer.doing is Doing.LEAVING:
            for error in wire.left(data):
                must("LeaveGroup", error)
            peer.doing = Doing.GONE
        else:
            self._joined(peer, wire.joined(data))

    def _beaten(self, peer: Peer, error: int) -> None:
        if must("Heartbeat", error, ErrorCode.REBALANCE_IN_PROGRESS):
            self._rejoin(peer)
        elif peer.late:
            self._beat(peer, time.perf_counter())
        else:
            peer.doing = Doing.IDLE

    def _rejoin(self, peer: Peer) -> None:
        if peer.generation == self._generation and peer.doing is Doing.BEATING:
            self._synced -= 1
        self._join(peer)

    def _joined(self, peer: Peer, answer: wire.Joined) -> None:
        if peer.doing is Doing.NAMING:
            if must("JoinGroup without an id", answer.error, ErrorCode.MEMBER_ID_REQUIRED) == 0:
                raise WrongAnswerError("JoinGroup without an id was answered as if it had one")
            peer.member_id = answer.member_id
            self._join(peer)
            return
        must("JoinGroup", answer.error)
        peer.generation = answer.generation
        peer.beat = bytearray(wire.heartbeat(self._group, answer.generation, peer.member_id))
        shares: Iterable[tuple[bytes, bytes]] = ()
        if answer.leader == peer.member_id:
            self._leader = peer.member_id
            shares = [(member, wire.assignment(self._topic, i)) for i, member in enumerate(answer.members)]
            self._shares = dict(shares)
        request = wire.sync_group(self._group, peer.generation, peer.member_id, shares)
        self._send(peer, Doing.SYNCING, request)

    def _synchronized(self, peer: Peer, data: bytes) -> None:
        if must("SyncGroup", wire.error_after_throttle(data), ErrorCode.REBALANCE_IN_PROGRESS):
            self._rejoin(peer)
            return
        if not data.endswith(wire.compact(self._shares[peer.member_id]) + b"\x00"):
            raise WrongAnswerError("a member did not get what its leader gave it")
        if peer.generation > self._generation:
            self._generation, self._synced = peer.generation, 0
        self._synced += peer.generation == self._generation
        peer.doing = Doing.IDLE
        self._settled_s = time.perf_counter()
        self._schedule(peer, self._settled_s)

    def _join(self, peer: Peer) -> None:
        doing = Doing.JOINING if peer.member_id else Doing.NAMING
        request = wire.join_group(
            self._group,
            peer.member_id,
            self._metadata,
            session_timeout_ms=TIMEOUT_MS,
            rebalance_timeout_ms=TIMEOUT_MS,
        )
        self._send(peer, doing, request)

    def _beat(self, peer: Peer, now: float) -> None:
        peer.late = False
        self._schedule(peer, now)
        self._send(peer, Doing.BEATING, peer.beat)

    def _schedule(self, peer: Peer, now: float) -> None:
        peer.due_s = now + HEARTBEAT_S
        self._due.append((peer.due_s, peer))

    def _send(self, peer: Peer, doing: Doing, request: bytes | bytearray) -> None:
        peer.doing = doing
        peer.number += 1
        numbered = request if isinstance(request, bytearray) else bytearray(request)
        struct.pack_into(">i", numbered, wire.REQUEST_ID_AT, peer.number)
        peer.connection.socket.sendall(numbered)
