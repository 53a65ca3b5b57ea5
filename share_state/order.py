"""The order in which group coordinators initialize and delete the state of share partitions, so that no
request takes effect late.

A coordinator that gets no answer asks again. The first request may still be on its way, in a socket that
nobody reads for example, and arrive when members are at work with the state that followed: that would be
deleted under them, or begin anew. No epoch fences it: a deletion has none, and the state has the same.

A request reaches the process that it was sent to, or none. So this need not outlive the process.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ..protocol import SharePartitionKey

#: Most share partitions that are remembered, the newest requests.
MOST_REMEMBERED: Final = 100_000


class Arrival(Enum):
    """What a request is beside those that came before: ``LATE`` behind a newer one, ``REPEATED`` when it was
    carried out already.
    """

    NEXT = "next"
    LATE = "late"
    REPEATED = "repeated"


class StateOrder:
    """The newest request about each share partition, and whether it was carried out."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most = most
        self._newest: dict[SharePartitionKey, tuple[int, bool]] = {}

    def __repr__(self) -> str:
        return f"<StateOrder: {len(self._newest)} share partitions>"

    def admit(self, key: SharePartitionKey, order: int) -> Arrival:
        """Say what a request is, and remember it; ``order`` is -1 if its sender numbers none."""
        if order < 0:
            return Arrival.NEXT
        newest, is_done = self._newest.get(key, (order, False))
        if order < newest:
            return Arrival.LATE
        if order == newest and is_done:
            return Arrival.REPEATED
        self._newest.pop(key, None)
        self._newest[key] = order, False
        if len(self._newest) > self._most:
            del self._newest[next(iter(self._newest))]
        return Arrival.NEXT

    def carried_out(self, key: SharePartitionKey, order: int) -> None:
        """Called when a request was carried out."""
        if self._newest.get(key) == (order, False):
            self._newest[key] = order, True
