"""Traffic counters: of a connection, gathered by user and client id, and of a topic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from ._snapshot import ClientFigures, TopicFigures

#: Users and client ids whose closed connections are remembered; the rest is one line without a name.
MAX_CLIENTS: Final = 1_000

#: Longest client id that is told whole, in characters.
MAX_NAME: Final = 249

#: The name of that line, which no client can have: control characters are escaped.
OTHERS: Final = "(others)"


class Traffic:
    """Counters of one connection; raised by the router."""

    __slots__ = ("fetched_bytes", "produced_bytes", "requests")

    def __init__(self) -> None:
        self.requests = 0
        self.produced_bytes = 0
        self.fetched_bytes = 0

    def add(self, other: Traffic) -> None:
        """Take another's counts in."""
        self.requests += other.requests
        self.produced_bytes += other.produced_bytes
        self.fetched_bytes += other.fetched_bytes


class TopicTraffic:
    """Counters of one topic; raised by the handlers."""

    __slots__ = ("bytes_in", "bytes_out", "fetch_requests", "messages_in", "produce_requests")

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.produce_requests = 0
        self.fetch_requests = 0

    def figures(self) -> TopicFigures:
        """The counters as plain data."""
        return TopicFigures(
            self.messages_in, self.bytes_in, self.bytes_out, self.produce_requests, self.fetch_requests
        )


class Client(Protocol):
    """The other end of a connection."""

    traffic: Traffic

    @property
    def principal(self) -> str: ...

    @property
    def client_id(self) -> str:
        """Client id of its last request."""


class Clients:
    """Clients whose connections are closed."""

    __slots__ = ("_closed",)

    def __init__(self) -> None:
        self._closed: dict[tuple[str, str], Traffic] = {}

    def left(self, client: Client) -> None:
        """A connection is closed: its counts are its client's."""
        if client.traffic.requests:
            self._of(self._closed, _name(client)).add(client.traffic)

    def figures(self, clients: Iterable[Client]) -> list[ClientFigures]:
        """Every client with what it did since the start."""
        found: dict[tuple[str, str], Traffic] = {}
        open_now: dict[tuple[str, str], int] = {}
        for name, traffic in self._closed.items():
            self._of(found, name).add(traffic)
        for client in clients:
            name = _name(client)
            if name not in found and len(found) >= MAX_CLIENTS:
                name = (OTHERS, OTHERS)
            self._of(found, name).add(client.traffic)
            open_now[name] = open_now.get(name, 0) + 1
        return [
            ClientFigures(
                user,
                client_id,
                open_now.get((user, client_id), 0),
                traffic.requests,
                traffic.produced_bytes,
                traffic.fetched_bytes,
            )
            for (user, client_id), traffic in found.items()
        ]

    @staticmethod
    def _of(known: dict[tuple[str, str], Traffic], name: tuple[str, str]) -> Traffic:
        if name not in known and len(known) >= MAX_CLIENTS:
            name = (OTHERS, OTHERS)
        return known.setdefault(name, Traffic())


def _name(client: Client) -> tuple[str, str]:
    return client.principal.removeprefix("User:"), client.client_id[:MAX_NAME]
