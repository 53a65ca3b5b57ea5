"""A classic group of many members in one process: each has a connection, sends heartbeats, rejoins when told.

A parked JoinGroup blocks its connection, so every member has one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from kohort.protocol import ErrorCode

from . import _wire as wire
from ._connection import Connection, WrongAnswerError, must
from ._peers import Doing, Peer, Peers

HEARTBEAT_S = 0.010
TIMEOUT_MS = 60_000
#: A rebalance that takes longer than this has gone wrong.
PATIENCE_S = 60.0


class ClassicPeer(Peer):
    """One member, and the generation that it knows."""

    __slots__ = ("beat", "generation")

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.generation = -1
        self.beat = bytearray()


class Crowd(Peers[ClassicPeer]):
    """The members of one group, and the clock of its rebalances."""

    def __init__(
        self,
        bootstrap: str,
        group: bytes,
        topic: bytes,
        heartbeat_s: float = HEARTBEAT_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        super().__init__(bootstrap, heartbeat_s, patience_s)
        self._group, self._topic = group, topic
        self._metadata = wire.subscription(topic)
        self._generation = 0
        self._synced: set[ClassicPeer] = set()
        self._shares: dict[bytes, bytes] = {}
        self._leader = b""

    @property
    def rounds(self) -> int:
        """The generation of the last assignment."""
        return self._generation

    def _all_assigned(self) -> bool:
        return len(self._synced) == len(self._active)

    def _new_peer(self, connection: Connection) -> ClassicPeer:
        return ClassicPeer(connection)

    def grow(self, count: int) -> float:
        """That many join at once; milliseconds from the first request until all members have synced."""
        peers = [self._connect() for _ in range(count)]
        begin = time.perf_counter()
        self._active.update(peers)
        for peer in peers:
            self._join(peer)
        return self._until_settled(begin)

    def shrink(self) -> float:
        """A member that does not lead leaves; milliseconds from its request until all others have synced."""
        peer = next(peer for peer in self._active if peer.member_id != self._leader)
        peer.due_s, peer.late = 0.0, False  # no further heartbeat
        give_up_s = time.perf_counter() + self._patience_s
        while peer.doing is not Doing.IDLE:
            self._turn(give_up_s)
        begin = time.perf_counter()
        self._leave(peer)
        generation = self._generation
        while self._generation == generation:
            self._turn(begin + self._patience_s)
        return self._until_settled(begin)

    def idle(self, seconds: float) -> None:
        """Nothing but heartbeats for that long; nobody may be told to rejoin."""
        generation, stop = self._generation, time.perf_counter() + seconds
        while time.perf_counter() < stop:
            self._turn(stop + self._patience_s)
        if self._generation != generation or not self._all_assigned():
            raise WrongAnswerError("a settled group was rebalanced though nobody came or went")

    def disperse(self) -> None:
        """All leave in one request, so that the broker has no sessions to time out."""
        with Connection(self._bootstrap) as connection:
            request = wire.leave_group(self._group, [peer.member_id for peer in self._active])
            for error in wire.left(connection.ask(request)):
                must("LeaveGroup of all members", error)

    def _until_settled(self, begin: float) -> float:
        while not self._all_assigned():
            self._turn(begin + self._patience_s)
        return (self._settled_s - begin) * 1000

    def _answered(self, peer: ClassicPeer, data: bytes) -> None:
        if peer.doing is Doing.LEAVING:
            for error in wire.left(data):
                must("LeaveGroup", error)
            if peer.ends:
                self._replace(peer)
            else:
                peer.doing = Doing.GONE
        elif peer.ends:
            self._leave(peer)
        elif peer.doing is Doing.BEATING:
            self._beaten(peer, wire.error_after_throttle(data))
        elif peer.doing is Doing.SYNCING:
            self._synchronized(peer, data)
        else:
            self._joined(peer, wire.joined(data))

    def _beaten(self, peer: ClassicPeer, error: int) -> None:
        if must("Heartbeat", error, ErrorCode.REBALANCE_IN_PROGRESS):
            self._rejoin(peer)
        elif peer.late:
            self._beat(peer, time.perf_counter())
        else:
            peer.doing = Doing.IDLE

    def _rejoin(self, peer: ClassicPeer) -> None:
        self._synced.discard(peer)
        self._join(peer)

    def _joined(self, peer: ClassicPeer, answer: wire.Joined) -> None:
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

    def _synchronized(self, peer: ClassicPeer, data: bytes) -> None:
        if must("SyncGroup", wire.error_after_throttle(data), ErrorCode.REBALANCE_IN_PROGRESS):
            self._rejoin(peer)
            return
        if not data.endswith(wire.compact(self._shares[peer.member_id]) + b"\x00"):
            raise WrongAnswerError("a member did not get what its leader gave it")
        if peer.generation > self._generation:
            self._generation = peer.generation
            self._synced.clear()
        if peer.generation == self._generation:
            self._synced.add(peer)
        peer.doing = Doing.IDLE
        self._settled_s = time.perf_counter()
        self._schedule(peer, self._settled_s)

    def _join(self, peer: ClassicPeer) -> None:
        doing = Doing.JOINING if peer.member_id else Doing.NAMING
        request = wire.join_group(
            self._group,
            peer.member_id,
            self._metadata,
            session_timeout_ms=TIMEOUT_MS,
            rebalance_timeout_ms=TIMEOUT_MS,
        )
        self._send(peer, doing, request)

    def _beat(self, peer: ClassicPeer, now: float) -> None:
        peer.late = False
        self._schedule(peer, now)
        self._send(peer, Doing.BEATING, peer.beat)

    def _leave(self, peer: ClassicPeer) -> None:
        self._active.remove(peer)
        self._synced.discard(peer)
        self._send(peer, Doing.LEAVING, wire.leave_group(self._group, [peer.member_id]))
