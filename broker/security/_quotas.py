"""Limits on connections: their number and their rate (KIP-308, KIP-402, KIP-612).

At ``max.connections`` an acceptor waits until a slot is free, as in Apache Kafka, or closes new connections.
A connection of the inter-broker listener replaces one of another listener; those of the control listener
count only towards its own limit. Connections over ``max.connections.per.ip`` are always closed: waiting would
hold up everybody else's.
"""

from __future__ import annotations

import math
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ...settings import MAX_INT, SettingsError
from ._listeners import Listener, is_own, settings_for
from ._settings import SecuritySettings


@dataclass(slots=True, eq=False)
class ConnectionSlot:
    """One connection's slot. ``leave`` frees it; safe to call again."""

    listener: Listener
    address: str
    _quotas: ConnectionQuotas = field(repr=False)
    taken: bool = True

    def leave(self) -> None:
        """Give the slot back. Safe to call again."""
        if self.taken:
            self.taken = False
            self._quotas.on_slot_left(self)


class ConnectionQuotas:
    """Counts connections. ``refused`` counts the closed ones by reason; ``on_free`` is called when one ends,
    ``on_excess`` when some have to be closed (see ``excess``).

    Limits are read from ``settings`` whenever they are needed, so that they may change; those of one listener
    change by ``reconfigure``.
    """

    def __init__(
        self, settings: SecuritySettings, listeners: Iterable[Listener], now: Callable[[], float]
    ) -> None:
        self.refused: Counter[str] = Counter()
        self.on_free: list[Callable[[], None]] = []
        self.on_excess: list[Callable[[], None]] = []
        self.total = 0
        self._now = now
        self._by_listener = dict.fromkeys((listener.name for listener in listeners), 0)
        self._own: dict[str, int] = {}
        self._by_address: Counter[str] = Counter()
        # number of those that count towards max.connections
        self._counted = 0
        self._pace: dict[str, _Pace] = {}
        self.reconfigure(settings)

    def __repr__(self) -> str:
        return f"ConnectionQuotas({self.total} connections, {self.refused.total()} refused)"

    def reconfigure(self, settings: SecuritySettings) -> None:
        """Apply these settings from now on. Raises SettingsError."""
        self._settings = settings
        self._overrides = _parse_overrides(settings.max_connections_per_ip_overrides)
        rates = {"": settings.max_connection_creation_rate}
        for name in self._by_listener:
            own = settings_for(settings, name)
            limited = is_own(settings, name, "max_connections")
            self._own[name] = own.max_connections if limited else MAX_INT
            if is_own(settings, name, "max_connection_creation_rate"):
                rates[name] = own.max_connection_creation_rate
        self._pace = {name: _Pace(rate, self._now()) for name, rate in rates.items() if rate < MAX_INT}
        # there may be room for waiting connections
        for tell in self.on_free:
            tell()
        self._tell_excess()

    @property
    def excess(self) -> int:
        """Number of connections over ``max.connections``."""
        return max(0, self._counted - self._settings.max_connections)

    def wait_s(self, listener: Listener) -> float:
        """Seconds that this listener's acceptor has to wait; infinite: until a connection ends."""
        if self._settings.kohort_connections_over_limit == "wait" and self._is_full(listener):
            return math.inf
        now = self._now()
        return max((pace.wait_s(now) for pace in self._paces_of(listener)), default=0.0)

    def reached_limit(self, listener: Listener) -> str:
        """The setting by which this listener is full, and its value."""
        own = self._own[listener.name]
        if self._by_listener[listener.name] >= own:
            return f"listener.name.{listener.name.lower()}.max.connections={own}"
        return f"max.connections={self._settings.max_connections}"

    def by_listener(self) -> dict[str, int]:
        """Connections of each listener."""
        return dict(self._by_listener)

    def admit(self, listener: Listener, address: str) -> ConnectionSlot | None:
        """The slot for a new connection; None if it has to be closed."""
        now = self._now()
        for pace in self._paces_of(listener):
            pace.spend(now)
        if self._is_full(listener):
            self.refused["max.connections"] += 1
            return None
        limit = self._overrides.get(address, self._settings.max_connections_per_ip)
        if self._by_address[address] >= limit:
            if not self._by_address[address]:
                del self._by_address[address]
            self.refused["max.connections.per.ip"] += 1
            return None
        self.total += 1
        self._counted += not listener.control
        self._by_listener[listener.name] += 1
        self._by_address[address] += 1
        self._tell_excess()
        return ConnectionSlot(listener, address, self)

    def on_slot_left(self, slot: ConnectionSlot) -> None:
        """Called by a slot when its connection ends."""
        self.total -= 1
        self._counted -= not slot.listener.control
        self._by_listener[slot.listener.name] -= 1
        self._by_address[slot.address] -= 1
        if not self._by_address[slot.address]:
            del self._by_address[slot.address]
        for tell in self.on_free:
            tell()

    def _tell_excess(self) -> None:
        if self.excess:
            for tell in self.on_excess:
                tell()

    def _is_full(self, listener: Listener) -> bool:
        if self._by_listener[listener.name] >= self._own[listener.name]:
            return True
        return not listener.protected and self._counted >= self._settings.max_connections

    def _paces_of(self, listener: Listener) -> list[_Pace]:
        names = (listener.name,) if listener.protected else ("", listener.name)
        return [self._pace[name] for name in names if name in self._pace]


class _Pace:
    """At most ``rate`` per second; after a second's rest as many at once."""

    __slots__ = ("_left", "_rate", "_since")

    def __init__(self, rate: int, now: float) -> None:
        self._rate = rate
        self._left = float(rate)
        self._since = now

    def wait_s(self, now: float) -> float:
        self._refill_tokens(now)
        return 0.0 if self._left >= 1 else (1 - self._left) / self._rate

    def spend(self, now: float) -> None:
        self._refill_tokens(now)
        self._left -= 1

    def _refill_tokens(self, now: float) -> None:
        self._left = min(float(self._rate), self._left + (now - self._since) * self._rate)
        self._since = now


def _parse_overrides(text: str) -> Mapping[str, int]:
    """``ADDRESS:NUMBER`` with commas, by address. Raises SettingsError."""
    found = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, colon, number = item.rpartition(":")
        if not colon or not host or not number.isdigit():
            raise SettingsError(
                f"max.connections.per.ip.overrides={text} is not allowed: it must be ADDRESS:NUMBER, "
                "with commas"
            )
        try:
            addresses = {row[4][0] for row in socket.getaddrinfo(host.strip("[]"), None)}
        except OSError as error:
            raise SettingsError(
                f"max.connections.per.ip.overrides: {host} has no address ({error}): name one that has"
            ) from None
        found.update({str(address): int(number) for address in addresses})
    return found
