"""What was said of the records of one partition and is to be sent. No I/O and no clock.

A broker carries out all that a request says of a partition, or nothing of it. So a list that is refused, for
one record whose lock has ended, is sent again in parts, each in a request of its own.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ...protocol import AcknowledgeType
from .records import ShareRecord


class Gap(NamedTuple):
    """A verdict on an offset without a record to deliver; the time is that of its lock's end."""

    offset: int
    verdict: AcknowledgeType
    deadline_ms: float


#: A verdict on its way. A record has its own, so that saying it makes no object.
Said: TypeAlias = ShareRecord | Gap


def end_of(said: Said) -> float:
    """When the lock ends, or has ended."""
    if isinstance(said, Gap):
        return said.deadline_ms
    return -math.inf if said.lock is None else said.lock.deadline_ms


def records_in(part: Iterable[Said]) -> list[ShareRecord]:
    """Those of which something is said that users have."""
    return [said for said in part if isinstance(said, ShareRecord)]


@dataclass(slots=True, eq=False)
class VerdictQueue:
    """What is new and the parts of what was refused take turns: neither waits for all of the other."""

    #: Said since the last request, and when the first of it was.
    _fresh: list[Said] = field(default_factory=list)
    _fresh_since: float = 0.0
    #: In the order in which their first locks end.
    _parts: list[list[Said]] = field(default_factory=list)
    _part_is_next: bool = False
    #: Nothing is sent before this time.
    _until: float = -math.inf

    def __bool__(self) -> bool:
        return bool(self._fresh or self._parts)

    def is_short(self, most: int) -> bool:
        """Whether nothing was refused of what waits, and it is no more than that."""
        return not self._parts and len(self._fresh) <= most

    @property
    def since(self) -> float:
        """Since when something waits that may be sent; for ever if it is to be sent at once."""
        return self._until if self._parts else max(self._until, self._fresh_since)

    def say(self, said: Said, now: float) -> None:
        """Queue a verdict."""
        self.begin(now).append(said)

    def begin(self, now: float) -> list[Said]:
        """Return the list to which verdicts are to be added, which is the case from now on."""
        if not self._fresh:
            self._fresh_since = now
        return self._fresh

    def say_apart(self, part: list[Said]) -> None:
        """Queue verdicts that are sent together, and with no others."""
        insort(self._parts, part, key=_first_end)

    def say_in_parts(self, refused: list[Said]) -> None:
        """Queue two halves of what was refused: locks that end at the same time are more often alike."""
        ordered = sorted(refused, key=lambda said: (end_of(said), said.offset))
        half = len(ordered) // 2
        self.say_apart(ordered[:half])
        self.say_apart(ordered[half:])

    def put_back(self, part: list[Said], until: float) -> None:
        """Send what was taken and not done, before all else, and nothing before this time."""
        self.say_apart(part)
        self._part_is_next, self._until = True, until

    def take(self) -> list[Said]:
        """Take what is to be sent next."""
        if self._parts and (self._part_is_next or not self._fresh):
            self._part_is_next = False
            return self._parts.pop(0)
        fresh, self._fresh, self._part_is_next = self._fresh, [], True
        return fresh

    def drop(self, offsets: Collection[int]) -> list[Said]:
        """Remove what is said of these offsets; return it."""
        dropped = [said for said in self.all() if said.offset in offsets]
        if dropped:
            self._fresh = [said for said in self._fresh if said.offset not in offsets]
            kept = ([said for said in part if said.offset not in offsets] for part in self._parts)
            self._parts = [part for part in kept if part]
        return dropped

    def all(self) -> list[Said]:
        """All that waits."""
        return [said for part in (*self._parts, self._fresh) for said in part]


def _first_end(part: list[Said]) -> float:
    return min(map(end_of, part))
