"""The order in which a coordinator sends markers to a partition, so that none takes effect late.

A coordinator that gets no answer sends a marker again. The first request may still be on its way, in a socket
that nobody reads for example, and arrive when the producer has begun its next transaction under the same
epoch. The later request has come first then, since no transaction is complete without an answer to one.

A request reaches the process that it was sent to, or none. So this need not outlive the process; and if
another broker led meanwhile, the request names an older leader epoch, and is refused for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ...log import ProducerEntry
from ...transactions import TransactionMarker

#: Producers that are remembered before those that the log has forgotten are forgotten here, too.
_LEAST: Final = 1_000


class MarkerOrder:
    """The newest marker of each producer that has come to one partition. ``producers`` are those that its log
    knows: others have nothing open.
    """

    __slots__ = ("_most", "_newest", "_producers")

    def __init__(self, producers: Callable[[], Iterable[ProducerEntry]]) -> None:
        self._producers = producers
        # by producer id: epoch of the coordinator, and its attempt
        self._newest: dict[int, tuple[int, int]] = {}
        self._most = _LEAST

    def __repr__(self) -> str:
        return f"MarkerOrder({len(self._newest)} producers)"

    def admit(self, marker: TransactionMarker) -> bool:
        """Return whether no later marker of its producer has come; true if its sender numbers none."""
        producer_id, number = marker.producer_id, (marker.coordinator_epoch, marker.attempt)
        if marker.attempt < 0:
            return True
        if number < self._newest.get(producer_id, number):
            return False
        self._newest[producer_id] = number
        if len(self._newest) > self._most:
            known = {producer_id, *(each.producer_id for each in self._producers())}
            self._newest = {each: newest for each, newest in self._newest.items() if each in known}
            self._most = max(_LEAST, 2 * len(self._newest))
        return True
