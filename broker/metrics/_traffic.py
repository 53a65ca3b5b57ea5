"""Traffic counters: of connections, added up by user and client id, and of topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Final, Protocol

from ._snapshot import ClientFigures, TopicFigures

#: Most users and client ids whose closed connections are counted by name; the rest share one line.
MAX_CLIENTS: Final = 1_000

#: Longest client id that is shown whole, in characters.
MAX_NAME: Final = 249

#: The name of that line, which no client can have: control characters are escaped.
OTHERS: Final = "(others)"


@dataclass(slots=True, eq=False)
class Traffic:
    """Counters of one connection; raised by the router."""

    requests: int = 0
    produced_bytes: int = 0
    fetched_bytes: int = 0

    def add(self, other: Traffic) -> None:
        """Add another client's or connection's counts."""
        self.requests += other.requests
        self.produced_bytes += other.produced_bytes
        self.fetched_bytes += other.fetched_bytes


@dataclass(slots=True, eq=False)
class TopicTraffic:
    """Counters of one topic; raised by the handlers."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    produce_requests: int = 0
    fetch_requests: int = 0

    def figures(self) -> TopicFigures:
        """Return the counts as they are now."""
        return TopicFigures(*astuple(self))


class ClientTraffic(Protocol):
    """The other end of a connection."""

    traffic: Traffic

    @property
    def principal(self) -> str:
        """The principal of its requests."""

    @property
    def client_id(self) -> str:
        """Client id of its last request."""


class Clients:
    """Clients whose connections are closed."""

    def __init__(self) -> None:
        self._closed: dict[tuple[str, str], Traffic] = {}

    def add_closed(self, client: ClientTraffic) -> None:
        """Add the counts of a closed connection to those of its client."""
        if client.traffic.requests:
            name = _place_of(self._closed, _name_of(client))
            self._closed.setdefault(name, Traffic()).add(client.traffic)

    def figures(self, clients: Iterable[ClientTraffic]) -> list[ClientFigures]:
        """Return the traffic of each principal and client id, connections that are open included."""
        found: dict[tuple[str, str], Traffic] = {}
        open_now: dict[tuple[str, str], int] = {}
        for name, traffic in self._closed.items():
            found.setdefault(name, Traffic()).add(traffic)
        for client in clients:
            name = _place_of(found, _name_of(client))
            found.setdefault(name, Traffic()).add(client.traffic)
            open_now[name] = open_now.get(name, 0) + 1
        return [
            ClientFigures(*name, open_now.get(name, 0), *astuple(traffic)) for name, traffic in found.items()
        ]


def _place_of(known: Mapping[tuple[str, str], Traffic], name: tuple[str, str]) -> tuple[str, str]:
    return name if name in known or len(known) < MAX_CLIENTS else (OTHERS, OTHERS)


def _name_of(client: ClientTraffic) -> tuple[str, str]:
    return client.principal.removeprefix("User:"), client.client_id[:MAX_NAME]
