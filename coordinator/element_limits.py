"""Limit on elements that a request names repeatedly.

Apache Kafka answers an element as often as a request names it, however large the response. kohort does the
same, but a small request that names one large group a hundred thousand times would be hours of work: after a
few repeats, further ones are refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

#: Most repeated elements of one request; further ones are answered INVALID_REQUEST.
MAX_REPEATS: Final = 10


class RepeatLimit:
    """Counts the repeats of one request."""

    def __init__(self) -> None:
        self._seen: set[Hashable] = set()
        self._partitions: dict[Hashable, set[int]] = {}
        self._left = MAX_REPEATS

    def refuses(self, element: Hashable) -> bool:
        """Return whether this element is a repeat after too many other repeats."""
        if element not in self._seen:
            self._seen.add(element)
            return False
        self._left -= 1
        return self._left < 0

    def sift(self, topic: Hashable, partitions: Sequence[int]) -> tuple[Sequence[int], list[int]]:
        """The partitions of a topic to answer, and those to refuse."""
        seen = self._partitions.setdefault(topic, set())
        if not seen:
            seen.update(partitions)
            if len(seen) == len(partitions):
                return partitions, []
            seen.clear()
        answered: list[int] = []
        refused: list[int] = []
        for partition in partitions:
            if partition not in seen:
                seen.add(partition)
            else:
                self._left -= 1
                if self._left < 0:
                    refused.append(partition)
                    continue
            answered.append(partition)
        return answered, refused
