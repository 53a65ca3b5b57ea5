"""The brokers that a share consumer talks to, and how the room for records is shared among them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from ...client.waiting import now_ms
from ...protocol.messages.share_fetch import PartitionData
from .config import ShareConsumerConfig
from .locks import Locks
from .records import PartitionId
from .session import PeerSession

#: Longest wait of a fetch while records are in hand, and of an acknowledgement for the next fetch.
BUSY_WAIT_MS = 100
#: So many are locked unless it is set, and more only while they are done with as quickly as that.
_USUAL_RECORDS, _AHEAD_MS = 500, 50


@dataclass(slots=True, eq=False)
class SharePeer:
    """A broker: ``renews`` is None until it is known whether its version can renew locks."""

    session: PeerSession = field(default_factory=PeerSession)
    renews: bool | None = None
    failures: int = 0
    task: asyncio.Task[None] | None = None
    #: Whether a request is under way, and whether it has verdicts, whose answer is waited for at the end.
    is_asked: bool = False
    carries: bool = False
    #: Records that the fetch under way may bring.
    asked_for: int = 0
    #: Offsets that its last answer gave, and what is not taken in so far; it was acquired then at the latest.
    given: int = 0
    unread: list[tuple[PartitionId, PartitionData, float]] = field(default_factory=list)
    #: How many may be locked unless it is set; when some were asked for last, and how many that brought.
    ahead: int = _USUAL_RECORDS
    fetched_at: float = 0.0
    brought: int = 0
    #: When verdicts were sent to it last.
    told_at: float = -math.inf
    #: Whether it had records when it was last asked for some, and when it had none (ms).
    has_records: bool = False
    empty_at: float = -math.inf

    @property
    def unread_records(self) -> int:
        """Number of records that are not taken in so far."""
        return self.given if self.unread else 0

    def set_pace(self, now: float) -> None:
        """It is asked for records: how many may be locked depends on how quickly the last ones went."""
        passed_ms = max(1.0, now - self.fetched_at)
        self.ahead = max(_USUAL_RECORDS, int(self.brought * _AHEAD_MS / passed_ms))
        self.fetched_at, self.brought = now, 0


@dataclass(slots=True, eq=False)
class SharePeers:
    """``buffered`` tells how many records wait for the user, and their bytes; ``wake`` is called when a
    broker that waits for room may have some.
    """

    config: ShareConsumerConfig
    locks: Locks
    _: KW_ONLY
    buffered: Callable[[], tuple[int, int]]
    wake: Callable[[], None]
    by_node: dict[int, SharePeer] = field(default_factory=dict)
    #: The brokers that wait for room, the longest first.
    _waiting: dict[int, None] = field(default_factory=dict)

    @property
    def refill_at(self) -> int:
        """With so many records left to be delivered a quick reader lets the next ones be asked for."""
        ahead = sum(peer.ahead for peer in self.by_node.values() if peer.brought)
        quick = self.config.adapts and ahead > _USUAL_RECORDS
        return min(self.config.max_locked_records, ahead) // 2 if quick else 0

    @property
    def sharing(self) -> int:
        """Number of brokers among which the room for records is shared."""
        return sum(peer.task is not None and not peer.task.done() for peer in self.by_node.values())

    def room_for(self, node: int, places: list[PartitionId]) -> int:
        """Return how many records to ask for, with those of other brokers no more than max_locked_records,
        and unless that is set no more than the reader is soon done with.

        While others that could take it have waited longer for room, there is none; nor soon after a broker
        had no record, where others have some.
        """
        most, peer = self.config.max_locked_records, self.by_node[node]
        limit = max(1, (min(most, peer.ahead) if self.config.adapts else most) // max(1, self.sharing))
        unread = peer.unread_records
        room = limit - self.locks.count(places) - unread
        buffered, size = self.buffered()
        size += sum(len(row.records or b"") for _, row, _ in peer.unread)
        if size >= self.config.fetch_max_bytes or (room * 2 < limit and buffered) or room * 2 < unread:
            room = 0
        if room <= 0 or (now_ms() < peer.empty_at + BUSY_WAIT_MS and self.is_crowded(peer)):
            self.pass_room(node)
            return 0
        free = most - self.locks.count(self.locks.held)
        free -= sum(each.asked_for + each.unread_records for each in self.by_node.values())
        for other in self._waiting:
            if other == node:
                break
            free -= not self.by_node[other].is_asked
        if free <= 0:
            self._waiting.setdefault(node)
            return 0
        self._waiting.pop(node, None)
        return min(room, free)

    def pass_room(self, node: int) -> None:
        """This broker does not wait for room any more."""
        if node in self._waiting:
            del self._waiting[node]
            self.wake()

    def is_crowded(self, peer: SharePeer) -> bool:
        """Return whether another broker has records for the room that this one asks for."""
        return self.sharing > self.config.max_locked_records and any(
            other.has_records for other in self.by_node.values() if other is not peer
        )

    def on_request(self, node: int) -> None:
        """A broker is asked. Its answer may take its time: room is for others meanwhile."""
        if node in self._waiting:
            self.wake()

    def on_answer(self) -> None:
        """What a fetch has not brought is room for others."""
        if self._waiting:
            self.wake()
