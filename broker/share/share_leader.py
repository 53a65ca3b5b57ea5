"""All share partitions of the partitions that this broker leads, and the sessions of those who read them.

A share partition is loaded when a member first fetches from it. It leaves memory when nobody of its group has
a session here, nobody has records of it and nothing is being written, or when this broker does not lead its
partition any more. A session ends with the connection that its last request came on.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from ...log import Steps
from ...protocol import KafkaError
from ...share_partitions import AcquiredRange, ShareRules, ShareSession, ShareSessions, TopicPlace
from ..event_loop.time_slices import in_slices
from ..metrics import ShareCounters, ShareFigures
from ..partitions.partition import Partition
from .led_partition import InFlight, LedPartition, Stored
from .persister import Persister, ShareKey
from .share_events import ShareLastDelivery
from .share_watch import ShareHistory

#: Time between two looks at all share partitions, in seconds: what happened, and whether they are still led
#: and asked for.
_LOOK_S: Final = 10.0
#: Most share partitions that are looked at in one turn of the loop.
_AT_ONCE: Final = 200


#: Bytes of records in responses that clients do not take: over it a fetch gets few. A response has all of its
#: records in memory.
MOST_UNSENT_BYTES: Final = 128 << 20
FEW_BYTES: Final = 64 << 10


class ShareLink:
    """What one connection has: the sessions whose last request came on it, and what its last answer gave a
    member, while that answer is not sent.
    """

    __slots__ = ("_leader", "_unsent", "_unsent_bytes", "sessions")

    def __init__(self, leader: ShareLeader) -> None:
        self._leader = leader
        #: By group and member.
        self.sessions: dict[tuple[str, str], ShareSession] = {}
        self._unsent: list[tuple[LedPartition, str, Sequence[AcquiredRange]]] = []
        self._unsent_bytes = 0

    def gave(self, led: LedPartition, member: str, ranges: Sequence[AcquiredRange], size: int) -> None:
        """Note what an answer gives that is about to be sent, ``size`` bytes of records."""
        self._unsent.append((led, member, ranges))
        self._unsent_bytes += size
        self._leader.unsent_bytes += size

    def on_sent(self) -> None:
        """Called when the operating system has the answer: from then on it counts as delivered."""
        if self._unsent_bytes:
            self._forget_unsent()

    def take_back(self, group: str, member: str) -> None:
        """Called when a member goes on over another connection: what is not sent here reaches it no more, and
        is no delivery.
        """
        unsent, self._unsent = self._unsent, []
        for each in unsent:
            led, who, ranges = each
            if (led.key.group, who) == (group, member):
                led.take_back(member, ranges)
            else:
                self._unsent.append(each)

    def _forget_unsent(self) -> None:
        self._unsent = []
        self._leader.unsent_bytes -= self._unsent_bytes
        self._unsent_bytes = 0

    def close(self) -> None:
        """Called when the connection is closed: what it did not send is no delivery, its sessions end."""
        unsent = self._unsent
        self._forget_unsent()
        for led, member, ranges in unsent:
            led.take_back(member, ranges)
        for session in list(self.sessions.values()):
            self._leader.counters.ended_sessions += 1
            self._leader.close_session(session)


class ShareLeader:
    """The share partitions of a broker. ``persister``, ``rules_of``, ``run_long``, ``now_ms``, ``counters``
    and ``may_be_replaced`` are as ``led_partition.Leader`` has them. ``history`` is told what happens.
    """

    def __init__(
        self,
        persister: Persister,
        rules_of: Callable[[str], ShareRules],
        run_long: Callable[[Steps[tuple[int, int, int] | None]], Awaitable[tuple[int, int, int] | None]],
        now_ms: Callable[[], int],
        counters: ShareCounters,
        may_be_replaced: Callable[[Partition], bool],
        history: ShareHistory,
    ) -> None:
        self.persister = persister
        self.rules_of = rules_of
        self.run_long = run_long
        self.now_ms = now_ms
        self.sessions = ShareSessions()
        #: Bytes of records in responses that the operating system has not taken.
        self.unsent_bytes = 0
        self.counters = counters
        self.may_be_replaced = may_be_replaced
        self.history = history
        self._led: dict[ShareKey, LedPartition] = {}
        self._by_group: dict[str, dict[ShareKey, None]] = {}
        # by group: those that were in use when its last session ended
        self._left: dict[str, dict[LedPartition, None]] = {}
        self._links: dict[ShareSession, ShareLink] = {}
        self._looker: asyncio.Handle | None = None

    def __repr__(self) -> str:
        return f"<ShareLeader: {len(self._led)} share partitions, {self.sessions}>"

    @property
    def room_bytes(self) -> int:
        """How many bytes a fetch may be given now."""
        return max(MOST_UNSENT_BYTES - self.unsent_bytes, FEW_BYTES)

    def all_led(self) -> list[LedPartition]:
        """Return the share partitions in memory."""
        return list(self._led.values())

    def figures(self) -> ShareFigures:
        """Return the figures of sessions and share partitions."""
        counters = self.counters
        return ShareFigures(
            len(self.sessions),
            self.sessions.partitions,
            counters.ended_sessions,
            [led.figures() for led in self._led.values()],
            dict(counters.acknowledged),
            counters.load_times.figures(),
            counters.acquire_times.figures(),
            counters.expired_fetches,
            counters.fetch_percents(),
            dict(counters.last_deliveries),
            self._stalled_s(),
        )

    def _stalled_s(self) -> dict[str, float]:
        """Return for how long the share partition of each group that has stood still for longest has."""
        found: dict[str, float] = {}
        for key, led in self._led.items():
            stalled_ms = led.stalled_ms
            if stalled_ms is not None:
                found[key.group] = max(found.get(key.group, 0.0), stalled_ms / 1_000)
        return found

    def find(self, key: ShareKey) -> LedPartition | None:
        """Return a share partition in memory; None if it is not there."""
        return self._led.get(key)

    def lead(self, key: ShareKey, partition: Partition) -> LedPartition:
        """Return a share partition, which may be loading. Raises KafkaError if its partition cannot be
        read.
        """
        led = self._led.get(key)
        if led is not None:
            with suppress(KafkaError):
                led.check()
                return led
        led = self._led[key] = LedPartition(key, partition, self)
        self._by_group.setdefault(key.group, {})[key] = None
        self._plan_look()
        return led

    def open_session(self, group: str, member: str, most: int, link: ShareLink) -> ShareSession:
        """Begin a session on a connection; the member's former one ends, and its locks stay. Raises
        KafkaError SHARE_SESSION_LIMIT_REACHED.
        """
        former = self.sessions.find(group, member)
        before = None if former is None else self._unlink(former)
        session = self.sessions.open(group, member, most)
        self._link(session, link, before)
        return session

    def resume_session(self, group: str, member: str, epoch: int, link: ShareLink) -> ShareSession:
        """Return the session that a request on a connection continues or closes. Raises KafkaError as
        ``ShareSessions.resume``.
        """
        session = self.sessions.resume(group, member, epoch)
        if self._links[session] is not link:
            # the former connection may have broken, of which this broker learns later than its client
            self._link(session, link, self._unlink(session))
        return session

    def close_session(self, session: ShareSession) -> list[Stored]:
        """End a session: the member loses what it has in the partitions of it. Returns the writes of that."""
        self._unlink(session)
        if not self.sessions.close(session):
            return []
        released: list[Stored] = []
        for key in list(self._by_group.get(session.group, ())):
            if TopicPlace(key.topic_id, key.number) not in session.places:
                continue
            stored = self._led[key].release(session.member)
            if stored is not None:
                released.append(stored)
        if not self.sessions.has_group(session.group):
            for key in list(self._by_group.get(session.group, ())):
                self.forget_if_idle(self._led[key])
        return released

    def _link(self, session: ShareSession, link: ShareLink, before: ShareLink | None) -> None:
        """Have a session end with a connection; ``before`` is the one that the member had before."""
        self._links[session] = link
        link.sessions[session.group, session.member] = session
        if before is not None and before is not link:
            before.take_back(session.group, session.member)

    def _unlink(self, session: ShareSession) -> ShareLink | None:
        link = self._links.pop(session, None)
        if link is not None:
            link.sessions.pop((session.group, session.member), None)
        return link

    def give_up(self, led: LedPartition) -> None:
        if self._led.get(led.key) is led:
            self._look_at(led)
            del self._led[led.key]
            keys = self._by_group[led.key.group]
            del keys[led.key]
            if not keys:
                del self._by_group[led.key.group]
            left = self._left.get(led.key.group, {})
            left.pop(led, None)
            if not left:
                self._left.pop(led.key.group, None)

    def forget_if_idle(self, led: LedPartition) -> None:
        """Forget a share partition that nobody uses, if no member of its group has had a session since it was
        used: whoever fetches next reads what is stored then, which may have been altered meanwhile.
        """
        if self._led.get(led.key) is not led:
            return
        group = led.key.group
        if not self.sessions.has_group(group):
            self._left.setdefault(group, {})[led] = None
        if led in self._left.get(group, ()) and led.is_idle:
            led.leave_memory()

    async def in_flight(self, group: str) -> AsyncIterator[InFlight]:
        """Yield what is known of a group's share partitions here, looked at just now."""
        async for key in in_slices(list(self._by_group.get(group, ()))):
            led = self._led.get(key)
            if led is not None:
                self._look_at(led)
                found = led.in_flight()
                if found is not None:
                    yield found

    def end_locks(self, group: str) -> int:
        """End all locks in a group's share partitions here, as if their time were over; return how many
        records had one.
        """
        led = [self._led[key] for key in self._by_group.get(group, ())]
        return sum(each.end_locks(sys.maxsize) for each in led)

    def _look_at(self, led: LedPartition) -> None:
        for event in led.look():
            if isinstance(event, ShareLastDelivery):
                self.counters.count_last_deliveries(led.key.group, event.records)
            self.history.tell(event)

    def _look_some(self, left: list[LedPartition]) -> None:
        """Look at some of these share partitions, and at the others in later turns of the loop."""
        for led in left[-_AT_ONCE:]:
            self._look_at(led)
            with suppress(KafkaError):
                led.check()
            self.forget_if_idle(led)
        del left[-_AT_ONCE:]
        if left:
            self._looker = asyncio.get_running_loop().call_soon(self._look_some, left)
            return
        self._looker = None
        self._plan_look()

    def _plan_look(self) -> None:
        if self._looker is None and self._led:
            loop = asyncio.get_running_loop()
            self._looker = loop.call_later(_LOOK_S, lambda: self._look_some(self.all_led()))

    async def stop(self) -> None:
        """Give up everything; nothing more is written."""
        if self._looker is not None:
            self._looker.cancel()
        for led in self.all_led():
            await led.stop()
