"""Share sessions (KIP-932): which partitions a member reads at this broker, and its next request's number.

A session belongs to a member of a group, whether the group knows the member or not. ShareFetch and
ShareAcknowledge count in one sequence, so a member has one request under way at a time; what it does not name
again stays in the session until it is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from ..protocol import ErrorCode, KafkaError
from ..protocol.named_tuples import NamedTuple

#: Epoch of a request that opens a session, and of one that closes it.
OPENING_EPOCH: Final = 0
CLOSING_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1

#: Most characters of a member's id: Kafka's are UUIDs in writing.
MOST_ID_CHARACTERS: Final = 36

#: Most partitions of all sessions together, some 150 bytes each: as many as 1,000 members of 1,000
#: partitions have.
MOST_PARTITIONS: Final = 1_000_000

#: Most partitions of one session: each of its fetches looks at all of them.
MOST_OF_SESSION: Final = 100_000


class TopicPlace(NamedTuple):
    """A partition by its topic's id. It need not exist: a member may name any."""

    topic_id: UUID
    number: int


class ShareSession:
    """A member's session; ``epoch`` is that of its next request."""

    __slots__ = ("epoch", "group", "member", "places")

    def __init__(self, group: str, member: str) -> None:
        self.group = group
        self.member = member
        self.epoch = OPENING_EPOCH + 1
        #: In the order in which they were named.
        self.places: dict[TopicPlace, None] = {}

    def __repr__(self) -> str:
        return f"<ShareSession: {self.member} of {self.group}, {self.epoch}, {len(self.places)} partitions>"

    def in_turn(self, epoch: int) -> list[TopicPlace]:
        """Return the partitions as a request of this epoch reads them: each is the first once in a while."""
        places = list(self.places)
        if not places:
            return places
        first = epoch % len(places)
        return places[first:] + places[:first]


class ShareSessions:
    """The sessions of a broker, with at most ``most_partitions`` partitions together."""

    def __init__(self, most_partitions: int = MOST_PARTITIONS) -> None:
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._by_group: dict[str, int] = {}
        self._most_partitions = most_partitions
        #: Partitions of all sessions.
        self.partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def __repr__(self) -> str:
        return f"<ShareSessions: {len(self)} with {self.partitions} partitions>"

    def find(self, group: str, member: str) -> ShareSession | None:
        """Return a member's session, whatever its epoch; None if it has none."""
        return self._sessions.get((group, member))

    def has_group(self, group: str) -> bool:
        """Return whether a member of a group has a session."""
        return group in self._by_group

    def open(self, group: str, member: str, most: int) -> ShareSession:
        """Begin a session, in place of the member's former one. Raises KafkaError
        SHARE_SESSION_LIMIT_REACHED if ``most`` others are open.
        """
        former = self._sessions.get((group, member))
        if former is not None:
            self.close(former)
        if len(self._sessions) >= most:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED, f"{most} share sessions are open")
        made = self._sessions[group, member] = ShareSession(group, member)
        self._by_group[group] = self._by_group.get(group, 0) + 1
        return made

    def resume(self, group: str, member: str, epoch: int) -> ShareSession:
        """Return the session that a request continues or closes. Raises KafkaError SHARE_SESSION_NOT_FOUND,
        INVALID_SHARE_SESSION_EPOCH; the session goes on then.
        """
        session = self._sessions.get((group, member))
        if session is None:
            raise KafkaError(
                ErrorCode.SHARE_SESSION_NOT_FOUND, f"{member!r} of {group!r} has no session here"
            )
        if epoch == CLOSING_EPOCH:
            return session
        if epoch != session.epoch:
            raise KafkaError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH,
                f"the next request of {member!r} has epoch {session.epoch}, this one says {epoch}",
            )
        session.epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        return session

    def check_open(self, session: ShareSession) -> None:
        """Raise KafkaError SHARE_SESSION_NOT_FOUND if a session has ended, as it may while a request
        waits.
        """
        if self._sessions.get((session.group, session.member)) is not session:
            raise KafkaError(
                ErrorCode.SHARE_SESSION_NOT_FOUND,
                f"the session of {session.member!r} of {session.group!r} ended while its request waited",
            )

    def update(
        self, session: ShareSession, named: Iterable[TopicPlace], forgotten: Iterable[TopicPlace]
    ) -> None:
        """Add partitions to a session, and remove others. Raises KafkaError SHARE_SESSION_NOT_FOUND if it has
        ended, SHARE_SESSION_LIMIT_REACHED if there is no room for all that are new; those that found room
        stay.
        """
        self.check_open(session)
        for place in forgotten:
            if place in session.places:
                del session.places[place]
                self.partitions -= 1
        for place in named:
            if place in session.places:
                continue
            if self.partitions >= self._most_partitions:
                raise KafkaError(
                    ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                    f"share sessions have {self._most_partitions} partitions, which is all that may be",
                )
            if len(session.places) >= MOST_OF_SESSION:
                raise KafkaError(
                    ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                    f"the session has {MOST_OF_SESSION} partitions, which is all that it may have",
                )
            session.places[place] = None
            self.partitions += 1

    def close(self, session: ShareSession) -> bool:
        """End a session. Returns False if that has happened, or the member has another by now."""
        key = session.group, session.member
        if self._sessions.get(key) is not session:
            return False
        del self._sessions[key]
        self.partitions -= len(session.places)
        left = self._by_group[session.group] - 1
        if left:
            self._by_group[session.group] = left
        else:
            del self._by_group[session.group]
        return True
