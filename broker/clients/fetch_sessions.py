"""Fetch sessions (KIP-227): requests and responses name only what has changed since the previous one.

Of the partitions that a request does not name, only those that may have news are read. All others hold the
session's waiter, and are due again as soon as they change.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import UUID

from ...protocol import ErrorCode, KafkaError
from ...protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic, PartitionData
from ..partitions.partition import Partition, Waiter

NO_SESSION: Final = 0
#: Epoch of a request that begins a session; epoch of one without a session, or that ends the named one.
FIRST_EPOCH, NO_EPOCH = 0, -1
_LAST_EPOCH = _MOST_ID = 2**31 - 1

#: Time after its last use, or its creation, when a session may be evicted for another, as in Apache Kafka.
_EVICTABLE_S: Final = 120.0

#: Most partitions of all sessions together: as many as 1,000 consumers of 1,000 partitions have. One that
#: does not exist, or may not be read by the client, counts as ten: anybody can name those.
MOST_PARTITIONS: Final = 1_000_000
REFUSED_COUNTS: Final = 10

#: Most partitions that all waiting requests together name, each of which takes some 200 bytes for as long,
#: and a number that a request may name in any case.
MOST_WAITING: Final = 1_000_000
FEW_WAITING: Final = 100

#: A topic's id or name, and a number.
_Key: TypeAlias = tuple[UUID | str | None, int]


@dataclass(slots=True, eq=False)
class Place:
    """A partition of a session as its client wants it, and what the client last learned of it."""

    topic: FetchTopic
    wanted: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1
    #: The partition that was found last.
    partition: Partition | None = None
    #: Its log end offset then.
    log_end_offset: int = -1
    #: Whether the last look at it was an error.
    is_refused: bool = False

    def has_changed(self, partition: Partition, data: PartitionData) -> bool:
        """Return whether the partition has changed since it was read."""
        return (
            partition.log_end_offset != self.log_end_offset
            or partition.high_watermark != data.high_watermark
            or partition.last_stable_offset != data.last_stable_offset
            or partition.log_start_offset != data.log_start_offset
        )

    def is_news(self, data: PartitionData) -> bool:
        """Return whether the next response must have this; it then counts as sent."""
        is_news = bool(
            data.records
            or data.error_code
            or data.diverging_epoch is not None
            or data.preferred_read_replica >= 0
            or self.high_watermark != data.high_watermark
            or self.log_start_offset != data.log_start_offset
        )
        # after an error the partition is sent again
        self.high_watermark = -1 if data.error_code else data.high_watermark
        self.log_start_offset = data.log_start_offset
        return is_news


class ServedFetchSession:
    """A client's session. ``epoch`` is that of the next request: ``NO_EPOCH`` if there will be none."""

    __slots__ = (
        "_by_partition",
        "_due",
        "_places",
        "_refused",
        "by_broker",
        "by_id",
        "counted",
        "epoch",
        "follower",
        "id",
        "looked_s",
        "made_s",
        "used_s",
        "waiter",
    )

    def __init__(self, epoch: int, *, by_id: bool, by_broker: bool, now_s: float) -> None:
        self.id = NO_SESSION
        self.epoch = epoch
        self.by_id = by_id
        self.by_broker = by_broker
        #: Node id of the broker whose session it is.
        self.follower = -1
        self.made_s = self.used_s = self.looked_s = now_s
        self.waiter: Waiter[Partition] = Waiter()
        #: The size of a session that is kept, as it was counted last.
        self.counted = 0
        self._refused = 0
        self._places: dict[_Key, Place] = {}
        self._by_partition: dict[Partition, Place] = {}
        # in the order in which they are read
        self._due: dict[Place, None] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"FetchSession({self.id}, epoch {self.epoch}, {len(self._due)} of {len(self)} partitions due)"

    @property
    def readable(self) -> int:
        """Number of its partitions that could be read when they were looked at last."""
        return len(self._places) - self._refused

    @property
    def size(self) -> int:
        """What it counts towards ``MOST_PARTITIONS``."""
        return self.readable + REFUSED_COUNTS * self._refused

    def has(self, topic_id: UUID, index: int) -> bool:
        """Return whether a partition is in the session."""
        return (topic_id, index) in self._places

    def update(self, named: Iterable[FetchTopic], forgotten: Iterable[ForgottenTopic]) -> None:
        """Apply the topics of a request."""
        places, due = self._places, self._due
        for topic in named:
            of = topic.topic_id if self.by_id else topic.topic
            for wanted in topic.partitions:
                key = of, wanted.partition
                place = places.get(key)
                if place is None:
                    place = places[key] = Place(topic, wanted)
                else:
                    place.topic, place.wanted = topic, wanted
                    if self.by_broker:
                        # it may have ignored the last response, under another leader epoch
                        place.high_watermark = -1
                due[place] = None
        for gone in forgotten:
            for number in gone.partitions:
                place = self._places.pop((gone.topic_id if self.by_id else gone.topic, number), None)
                if place is not None:
                    self._due.pop(place, None)
                    self._refused -= place.is_refused
                    self._leave_partition(place)

    def look_again(self, now_s: float, after_s: float) -> None:
        """Make all partitions due if that was long ago."""
        if now_s - self.looked_s >= after_s:
            self.looked_s = now_s
            self._due |= dict.fromkeys(self._places.values())

    def partitions_due(self) -> list[Place]:
        """The partitions to read."""
        if self._by_partition:
            for partition in self.waiter.take_changed():
                self.on_change(partition)
        return list(self._due)

    def on_change(self, partition: Partition) -> Place | None:
        """Note that a partition has changed; None if it is no longer read here."""
        place = self._by_partition.get(partition)
        if place is not None:
            self._due[place] = None
        return place

    def watch(self, place: Place, partition: Partition) -> None:
        """Wait for the partition's next change."""
        if place.partition is not partition:
            self._leave_partition(place)
            place.partition = partition
            self._by_partition[partition] = place
        partition.waiters[self.waiter] = None

    def looked_at(
        self, place: Place, partition: Partition | None, *, has_more: bool, was_sent: bool = False
    ) -> None:
        """Note that a partition was read; with ``has_more`` it is due again. If it ``was_sent`` records it is
        read after all others then: a response may have no room for more.
        """
        if was_sent:
            self._due.pop(place, None)
        self._refused += (partition is None) - place.is_refused
        place.is_refused = partition is None
        if partition is None or has_more:
            self._due[place] = None
        else:
            self._due.pop(place, None)
            self.watch(place, partition)

    def end(self) -> None:
        """Stop waiting for changes."""
        for place in list(self._by_partition.values()):
            self._leave_partition(place)

    def _leave_partition(self, place: Place) -> None:
        partition, place.partition = place.partition, None
        if partition is not None:
            partition.waiters.pop(self.waiter, None)
            self._by_partition.pop(partition, None)


class FetchSessions:
    """The sessions of a broker: at most ``most`` (0: none are kept), with ``most_partitions`` together."""

    def __init__(self, most: int, most_partitions: int = MOST_PARTITIONS) -> None:
        self._most = most
        self._most_partitions = most_partitions
        self._size = 0
        # the least recently used one comes first
        self._sessions: OrderedDict[int, ServedFetchSession] = OrderedDict()
        self.evicted = 0
        #: Partitions that are named by requests which wait for records, but for those that name few.
        self.waiting = 0

    def __repr__(self) -> str:
        return f"FetchSessions({len(self._sessions)} of {self._most})"

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """Number of partitions of all sessions."""
        return sum(map(len, self._sessions.values()))

    @contextmanager
    def wait(self, named: int) -> Iterator[bool]:
        """Whether a request that names so many partitions may wait, which it does in the block."""
        counted = named if named > FEW_WAITING else 0
        if self.waiting + counted > MOST_WAITING:
            yield False
            return
        self.waiting += counted
        try:
            yield True
        finally:
            self.waiting -= counted

    def find(
        self, session_id: int, epoch: int, *, by_id: bool, by_broker: bool, now_s: float
    ) -> ServedFetchSession:
        """The session of a request: a new one, or the one that it continues. Raises KafkaError:
        FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR.
        """
        if epoch in (FIRST_EPOCH, NO_EPOCH):
            if session_id != NO_SESSION:
                self.drop(session_id)
            return ServedFetchSession(epoch, by_id=by_id, by_broker=by_broker, now_s=now_s)
        session = self._sessions.get(session_id)
        # clients may not continue a broker's session: its records may not be committed yet
        if session is None or session.by_broker != by_broker:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no session {session_id}")
        if session.epoch != epoch:
            text = f"the epoch of session {session_id} is {session.epoch}, the request says {epoch}"
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH, text)
        if session.by_id != by_id:
            text = f"session {session_id} has topics by {'id' if session.by_id else 'name'}"
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, text)
        session.epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        session.used_s = now_s
        self._sessions.move_to_end(session_id)
        # answer a request that still waits: its client has sent the next one
        session.waiter.interrupt()
        return session

    def followers(self, topic_id: UUID, index: int, since_s: float) -> set[int]:
        """Brokers whose sessions have a partition, and were used since then."""
        return {
            each.follower
            for each in self._sessions.values()
            if each.by_broker and each.used_s >= since_s and each.has(topic_id, index)
        }

    def keep(self, session: ServedFetchSession, now_s: float) -> None:
        """Give a new session its id, if there is room for it."""
        if not self._has_room(session, now_s):
            return
        session.counted = session.size
        self._size += session.counted
        while session.id == NO_SESSION or session.id in self._sessions:
            session.id = random.randint(1, _MOST_ID)
        session.epoch = FIRST_EPOCH + 1
        self._sessions[session.id] = session

    def count_growth(self, session: ServedFetchSession, now_s: float) -> None:
        """Count what a session has now. If there is no room for it any more it ends, and its client begins
        another.
        """
        if not session.id or session.size == session.counted:
            return
        self._size -= session.counted
        session.counted = 0
        if self._has_room(session, now_s, more=0):
            session.counted = session.size
            self._size += session.counted
        else:
            self.drop(session.id)

    def drop(self, session_id: int) -> None:
        """End a session, if there is one with this id."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._size -= session.counted
            session.counted = 0
            # a waiting request of it is answered without a session
            session.id = NO_SESSION
            session.end()
            session.waiter.interrupt()

    def _has_room(self, session: ServedFetchSession, now_s: float, *, more: int = 1) -> bool:
        """Make room for a session, or for what it has grown by, if that is allowed; return whether there is
        room.
        """
        if session.size > self._most_partitions:
            return False
        while len(self._sessions) + more > self._most or self._size + session.size > self._most_partitions:
            if not self._evict_for(session, now_s):
                return False
        return True

    def _evict_for(self, session: ServedFetchSession, now_s: float) -> bool:
        """Make room by evicting a session: one that is no longer used first, then the smallest, if it is
        smaller than this one and not too new; brokers' sessions last.
        """
        others = [each for each in self._sessions.values() if each is not session]
        if not others:
            return False
        oldest = others[0]
        if now_s - oldest.used_s <= _EVICTABLE_S:
            evictable = [
                (each.by_broker, each.readable, each.id)
                for each in others
                if now_s - each.made_s > _EVICTABLE_S or (session.by_broker and not each.by_broker)
            ]
            least = min(evictable, default=None)
            if least is None or (session.by_broker, session.readable, 0) < least:
                return False
            oldest = self._sessions[least[2]]
        self.drop(oldest.id)
        self.evicted += 1
        return True
