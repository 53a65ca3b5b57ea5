"""Members in one process, each with a connection of its own, driven by one epoll loop and by a clock."""

from __future__ import annotations

import select
import struct
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Generic, Self, TypeVar

from . import _wire as wire
from ._connection import Connection, WrongAnswerError


class Doing(Enum):
    """What a member's request under way is, or that there is none."""

    CONNECTING = auto()
    NAMING = auto()
    JOINING = auto()
    SYNCING = auto()
    IDLE = auto()
    BEATING = auto()
    LEAVING = auto()
    GONE = auto()


class Peer:
    """One member. ``due_s`` is when its next heartbeat is to be sent. One that ``ends`` leaves as soon as
    what it has asked is answered.
    """

    __slots__ = ("connection", "doing", "due_s", "ends", "late", "member_id", "number", "partial")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.doing = Doing.NAMING
        self.member_id = b""
        self.due_s = 0.0
        self.ends = False
        self.late = False
        self.number = 0
        self.partial = b""


AnyPeer = TypeVar("AnyPeer", bound=Peer)


@dataclass(frozen=True, slots=True)
class Settling:
    """How a group came to rest: after so long, with so many rebalances, for so much of the broker's work."""

    seconds: float
    rounds: int
    work_s: float


class Peers(ABC, Generic[AnyPeer]):
    """Members that send a heartbeat every ``heartbeat_s``; subclasses know what their answers mean."""

    def __init__(self, bootstrap: str, heartbeat_s: float, patience_s: float) -> None:
        self._bootstrap, self._heartbeat_s, self._patience_s = bootstrap, heartbeat_s, patience_s
        self._poll = select.epoll()
        self._by_fd: dict[int, AnyPeer] = {}
        self._due: deque[tuple[float, AnyPeer]] = deque()
        self._coming: deque[tuple[float, AnyPeer | None]] = deque()
        self._active: set[AnyPeer] = set()
        self._going = 0
        #: Connections that ended before their first answer, and were made again.
        self.lost = 0
        self._settled_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for peer in self._by_fd.values():
            peer.connection.socket.close()
        self._poll.close()

    def storm(self, count: int, within_s: float, work_s: Callable[[], float]) -> Settling:
        """That many come, evenly spread over the time; until all have their assignment."""
        return self._settle([None] * count, within_s, work_s)

    def deploy(self, within_s: float, work_s: Callable[[], float]) -> Settling:
        """Each member leaves, evenly spread over the time, and another comes when it has left."""
        return self._settle([*self._active], within_s, work_s)

    def _settle(
        self, changes: list[AnyPeer | None], within_s: float, work_s: Callable[[], float]
    ) -> Settling:
        before, rounds, begin = work_s(), self.rounds, time.perf_counter()
        step_s = within_s / len(changes)
        self._coming.extend((begin + number * step_s, each) for number, each in enumerate(changes))
        used_s, seen_s = 0.0, -1.0
        # members may have to hear of one more rebalance: that takes them a heartbeat
        while not self._is_settled() or time.perf_counter() < self._settled_s + 1.2 * self._heartbeat_s:
            if self._is_settled() and seen_s != self._settled_s:
                used_s, seen_s = work_s() - before, self._settled_s
            self._turn(begin + self._patience_s)
        return Settling(self._settled_s - begin, self.rounds - rounds, used_s)

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many assignments the group has had."""

    @abstractmethod
    def _all_assigned(self) -> bool:
        """Whether each member has what the others leave it."""

    @abstractmethod
    def _new_peer(self, connection: Connection) -> AnyPeer:
        """Make a member that has not joined."""

    @abstractmethod
    def _join(self, peer: AnyPeer) -> None:
        """Send the first request of a member."""

    @abstractmethod
    def _leave(self, peer: AnyPeer) -> None:
        """Send a member's last request."""

    @abstractmethod
    def _beat(self, peer: AnyPeer, now: float) -> None:
        """Send a heartbeat."""

    @abstractmethod
    def _answered(self, peer: AnyPeer, data: bytes) -> None:
        """Take in the answer to what the member has asked."""

    def _is_settled(self) -> bool:
        return not self._coming and not self._going and self._all_assigned()

    def _connect(self, *, waits: bool = True) -> AnyPeer:
        peer = self._new_peer(Connection(self._bootstrap, waits=waits))
        self._watch(peer, select.EPOLLIN if waits else select.EPOLLOUT)
        return peer

    def _watch(self, peer: AnyPeer, events: int) -> None:
        fd = peer.connection.socket.fileno()
        self._by_fd[fd] = peer
        self._poll.register(fd, events)

    def _forget(self, peer: AnyPeer) -> None:
        fd = peer.connection.socket.fileno()
        self._poll.unregister(fd)
        del self._by_fd[fd]
        peer.connection.socket.close()

    def _come(self) -> None:
        peer = self._connect(waits=False)
        peer.doing = Doing.CONNECTING
        self._active.add(peer)

    def _begin(self, peer: AnyPeer) -> None:
        peer.connection.finish()
        self._poll.modify(peer.connection.socket.fileno(), select.EPOLLIN)
        self._join(peer)

    def _end(self, peer: AnyPeer) -> None:
        peer.ends = True
        self._going += 1
        if peer.doing is Doing.IDLE:
            self._leave(peer)

    def _replace(self, peer: AnyPeer) -> None:
        """Called when a member has left."""
        peer.doing = Doing.GONE
        self._going -= 1
        self._forget(peer)
        self._come()

    def _turn(self, give_up_s: float) -> None:
        now = time.perf_counter()
        if now > give_up_s:
            states = sorted(peer.doing.name for peer in self._active)
            counts = {name: states.count(name) for name in set(states)}
            raise WrongAnswerError(
                f"the group is not stable after {self._patience_s:g} s; its members are {counts}"
            )
        due, coming = self._due, self._coming
        while coming and coming[0][0] <= now:
            _, replaced = coming.popleft()
            self._come() if replaced is None else self._end(replaced)
        while due and due[0][0] <= now:
            due_s, peer = due.popleft()
            if peer.due_s != due_s:
                continue
            if peer.doing is Doing.IDLE:
                self._beat(peer, now)
            elif peer.doing is Doing.BEATING:
                peer.late = True
        timeout = max(due[0][0] - now, 0) if due else 1.0
        if coming:
            timeout = min(timeout, max(coming[0][0] - now, 0))
        for fd, _ in self._poll.poll(timeout):
            peer = self._by_fd[fd]
            self._begin(peer) if peer.doing is Doing.CONNECTING else self._read(peer)

    def _connect_again(self, peer: AnyPeer) -> None:
        """As a client does whose connection waited in a full queue until the system gave it up."""
        self._forget(peer)
        peer.connection, peer.doing, peer.number = (
            Connection(self._bootstrap, waits=False),
            Doing.CONNECTING,
            0,
        )
        self.lost += 1
        self._watch(peer, select.EPOLLOUT)

    def _read(self, peer: AnyPeer) -> None:
        try:
            data = peer.connection.socket.recv(1 << 18)
        except ConnectionResetError:
            if peer.number > 1:
                raise
            self._connect_again(peer)
            return
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

    def _schedule(self, peer: AnyPeer, now: float) -> None:
        peer.due_s = now + self._heartbeat_s
        self._due.append((peer.due_s, peer))

    def _send(self, peer: AnyPeer, doing: Doing, request: bytes | bytearray) -> None:
        peer.doing = doing
        peer.number += 1
        numbered = request if isinstance(request, bytearray) else bytearray(request)
        struct.pack_into(">i", numbered, wire.REQUEST_ID_AT, peer.number)
        peer.connection.socket.sendall(numbered)
