"""What members of a share group were given and told, and what must hold of that in the end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection
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
