"""Finds clients that do not read their responses, whose memory is limited.

Records in responses are read from files as the client takes them; all other responses are in memory as a
whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..settings import BrokerSettings
from ._connection import ClientConnection

#: A client that leaves ``kohort.response.unread.max.bytes`` unread has to read that divided by this in time.
LEAST_PART = 16


@dataclass(slots=True)
class _ReadingProgress:
    """``taken`` bytes at ``since``, on the loop's clock; ``before`` and ``held`` are from the last look."""

    taken: int
    since: float
    before: int
    held: int


class SlowReaders:
    """Finds the connections that read too little of their responses, by a look at all of them at
    intervals.
    """

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._known: dict[ClientConnection, _ReadingProgress] = {}

    def __repr__(self) -> str:
        return f"SlowReaders({len(self._known)} of them)"

    def forget(self, connection: ClientConnection) -> None:
        """Called when the connection is closed."""
        self._known.pop(connection, None)

    def find_slow(
        self, connections: Iterable[ClientConnection], now: float
    ) -> list[tuple[ClientConnection, int]]:
        """Connections to close, with their unread bytes.

        A connection is closed if it reads next to nothing for ``kohort.response.unread.timeout.ms``. If all
        responses together take more memory than requests may, those that have read the least since the last
        look are closed too, until the rest takes less.
        """
        settings = self._settings
        most = settings.kohort_response_unread_max_bytes
        timeout_s = settings.kohort_response_unread_timeout_ms / 1000
        cut: dict[ClientConnection, int] = {}
        lately: dict[ClientConnection, int] = {}
        total = 0
        for connection in connections:
            held = connection.transport.get_write_buffer_size()
            unread = held + connection.sender.left
            total += held
            if unread <= most:
                self._known.pop(connection, None)
                continue
            taken = connection.outbox.given + connection.sender.given - held
            known = self._known.get(connection)
            if known is None:
                self._known[connection] = _ReadingProgress(taken, now, taken, held)
                continue
            lately[connection] = taken - known.before
            known.before, known.held = taken, held
            if taken - known.taken >= max(1, most // LEAST_PART):
                known.taken, known.since = taken, now
            elif now - known.since > timeout_s:
                cut[connection] = unread
                total -= held
        for connection in sorted(lately.keys() - cut.keys(), key=lately.__getitem__):
            if total <= settings.queued_max_request_bytes:
                break
            held = self._known[connection].held
            cut[connection] = held + connection.sender.left
            total -= held
        return list(cut.items())
