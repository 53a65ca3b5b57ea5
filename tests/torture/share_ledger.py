"""What members of a share group were given and told, and what must hold of that in the end."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

ACCEPT, RELEASE, REJECT = 1, 2, 3


class Place(NamedTuple):
    partition: int
    offset: int


@dataclass(slots=True)
class Fate:
    """What is known of one record."""

    count: int = 0
    #: When an acceptance or a rejection was answered, so that it is stored; the clock is ``time.monotonic``.
    done_at: float | None = None
    #: When a release was answered last, and the delivery count with which it is stored.
    released: tuple[float, int] = (0.0, 0)
    #: One was sent whose answer did not come, or was an error: it may be stored or not.
    maybe_done: bool = False


@dataclass(slots=True, eq=False)
class Handling:
    """A delivery to a member that tells what became of it."""

    member: str
    count: int
    asked_at: float
    #: What was said and answered in time; or why its lock may have ended; None so far.
    end: int | str | None = None

    @property
    def has_lock(self) -> bool:
        """Whether the lock lasted until it was accepted or rejected, or lasts, as far as the member knows."""
        return self.end in (None, ACCEPT, REJECT)


@dataclass
class ShareLedger:
    """Filled in by members, in any thread. ``limit`` is the group's limit of deliveries."""

    limit: int
    fates: dict[Place, Fate] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    #: Records by partition whose acceptance or rejection was answered.
    done_of: Counter[int] = field(default_factory=Counter)
    deliveries: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _handlings: dict[Place, list[Handling]] = field(default_factory=lambda: defaultdict(list))
    #: Of all deliveries: count, and when they were asked for at the earliest.
    _given: dict[Place, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))

    def give(self, member: str, place: Place, count: int, asked_at: float) -> None:
        """Note a delivery, whose fetch was sent at ``asked_at`` or later."""
        with self._lock:
            self.deliveries += 1
            fate = self.fates.setdefault(place, Fate())
            released_at, released_count = fate.released
            if fate.done_at is not None and asked_at > fate.done_at:
                self.broken.append(f"{place} comes back to {member}, though that it is done was answered")
            if not 1 <= count <= self.limit:
                self.broken.append(f"{place} is given to {member} for the {count}. time")
            if asked_at > released_at and count <= released_count:
                self.broken.append(
                    f"{place} is given to {member} for the {count}. time, and was released after the "
                    f"{released_count}."
                )
            fate.count = max(fate.count, count)
            self._given[place].append((count, asked_at))

    def begin(self, member: str, place: Place, count: int, asked_at: float) -> None:
        """Note that a member begins with a record it was given, and will tell what becomes of it."""
        self._handlings[place].append(Handling(member, count, asked_at))

    def finish(self, member: str, place: Place, asked_at: float, end: int | str) -> None:
        """Note what became of that; what was noted last counts."""
        for handling in self._handlings[place]:
            if (handling.member, handling.asked_at) == (member, asked_at):
                handling.end = end

    def on_dead(self, member: str) -> None:
        """A member is no more, and with it its locks."""
        for handling in self.handlings():
            if handling.member == member and handling.end is None:
                handling.end = "dead"

    def handlings(self) -> Iterator[Handling]:
        """All of them."""
        return (handling for some in self._handlings.values() for handling in some)

    def handled_twice(self) -> list[str]:
        """The records that were given again though no lock had ended, as far as members were told."""
        found = []
        for place, some in self._handlings.items():
            with_lock = [each for each in some if each.has_lock]
            found += [
                f"{place} was given again, and {each} has its lock"
                for each in with_lock
                if any(count > each.count and at > each.asked_at for count, at in self._given[place])
            ]
            # a leader that takes over does not know of the last delivery, and counts it again
            done = Counter(each.count for each in with_lock if each.end is not None)
            found += [
                f"{place} has {n} ends in delivery {count}: {some}" for count, n in done.items() if n > 1
            ]
        return found

    def say(self, place: Place, kind: int, count: int, *, is_stored: bool) -> None:
        """Note what a member said of a record that it had for the ``count``. time."""
        with self._lock:
            fate = self.fates[place]
            if kind == RELEASE:
                if is_stored:
                    fate.released = time.monotonic(), max(count, fate.released[1])
            elif not is_stored:
                fate.maybe_done = True
            elif fate.done_at is None:
                fate.done_at = time.monotonic()
                self.done_of[place.partition] += 1

    @property
    def done(self) -> int:
        """How many records are answered as done."""
        return self.done_of.total()

    def lost(self, produced: Collection[Place]) -> list[Place]:
        """The records of which nobody said that they are done, and that were not given as often as may be."""
        return [place for place in produced if not self._is_settled(self.fates.get(place))]

    def _is_settled(self, fate: Fate | None) -> bool:
        return fate is not None and (fate.done_at is not None or fate.maybe_done or fate.count >= self.limit)
