"""The ways between brokers: cut in both directions or in one, slow, and late with what was given up."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from ....protocol import ApiKey
from ..engine._heap import Heap

#: What arrives when a way is whole again does so within that time.
_AFTER_MS: Final = 5
#: The time after which a request arrives that its sender has given up: mostly when it was sent again.
_LATE_MS: Final = (300, 1_200)
#: The share of Fetch, of which there are many more.
_FETCHES: Final = 0.02


class Links:
    """By pairs of brokers, sender first: until when nothing arrives, and how much later all does. ``late`` is
    the probability that a request is given up by its sender, and arrives later.
    """

    def __init__(self, heap: Heap, rng: Random, late: float) -> None:
        self._heap = heap
        self._rng = rng
        self._late = late
        self._cut: dict[tuple[int, int], int] = {}
        self._slow: dict[tuple[int, int], tuple[int, int]] = {}

    def __repr__(self) -> str:
        return f"Links({len(self._cut)} cut, {len(self._slow)} slow)"

    def cut(self, source: int, target: int, until_ms: int) -> None:
        """Let nothing arrive until then; messages sent meanwhile arrive afterwards, as TCP resends them."""
        self._cut[source, target] = max(until_ms, self._cut.get((source, target), 0))

    def slow(self, source: int, target: int, by_ms: int, until_ms: int) -> None:
        """Delay all messages sent until then by ``by_ms``."""
        self._slow[source, target] = by_ms, until_ms

    def arrival(self, source: int, target: int, at_ms: int) -> int:
        """The time at which a message that would arrive at ``at_ms`` does."""
        by_ms, until_ms = self._slow.get((source, target), (0, 0))
        if self._heap.now < until_ms:
            at_ms += by_ms
        until_ms = self._cut.get((source, target), 0)
        return at_ms if until_ms <= self._heap.now else max(at_ms, until_ms + _AFTER_MS)

    def late_ms(self, api_key: int) -> int | None:
        """After which time a request arrives that its sender gives up now; None if it does not give it up."""
        late = self._late * _FETCHES if api_key == ApiKey.FETCH else self._late
        return self._rng.randint(*_LATE_MS) if late and self._rng.random() < late else None

    def heal(self) -> None:
        """Let everything arrive, and in time."""
        self._cut.clear()
        self._slow.clear()


class Way(NamedTuple):
    """From one broker to another, and back; ``is_up`` returns whether the other one still runs."""

    links: Links
    source: int
    target: int
    is_up: Callable[[], bool]

    def there(self, at_ms: int) -> int:
        return self.links.arrival(self.source, self.target, at_ms)

    def late_ms(self, api_key: int) -> int | None:
        return self.links.late_ms(api_key)

    def back(self, at_ms: int) -> int:
        return self.links.arrival(self.target, self.source, at_ms)
