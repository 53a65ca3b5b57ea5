"""Finds the clients that do not read their answers, so that these take little memory.

Answers made of records are read from files as the client takes them; any other lies in memory whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .._settings import BrokerSettings
from ._connection import Connection

#: A client that leaves ``kohort.response.unread.max.bytes`` unread has to take at least this part in time.
LEAST_PART = 16


@dataclass(slots=True)
class _Progress:
    """``taken`` bytes at ``since``, on the loop's clock; ``before`` and ``held`` at the last look."""

    taken: int
    since: float
    before: int
    held: int


class SlowReaders:
    """Tells which connections take too little of their answers; looks at all of them now and then."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._known: dict[Connection, _Progress] = {}

    def __repr__(self) -> str:
        return f"SlowReaders({len(self._known)} of them)"

    def forget(self, connection: Connection) -> None:
        """Called when the connection is closed."""
        self._known.pop(connection, None)

    def look(self, connections: Iterable[Connection], now: float) -> list[tuple[Connection, int]]:
        """Connections to be cut off, with the bytes they have left unread.

        A connection is cut off that takes next to nothing for ``kohort.response.unread.timeout.ms``. If all
        answers together need more memory than requests may, those that have taken the least since the last
        look are cut off too, until the rest needs less.
        """
        settings = self._settings
        most = settings.kohort_response_unread_max_bytes
        timeout_s = settings.kohort_response_unread_timeout_ms / 1000
        cut: dict[Connection, int] = {}
        lately: dict[Connection, int] = {}
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
                self._known[connection] = _Progress(taken, now, taken, held)
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
