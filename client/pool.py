"""Connections to brokers by address and purpose, with back-off after an address has failed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from .connection import Connection
from .errors import AuthenticationError, BrokerConnectionError
from .metadata import Address
from .waiting import Backoff

#: Opens a connection or raises BrokerConnectionError, or AuthenticationError.
Opener = Callable[[Address], Awaitable[Connection]]


class Channel(StrEnum):
    """Purpose of a connection. Requests wait for earlier ones, so slow ones use separate connections."""

    CONTROL = "control"  # metadata, offsets, commits: answered soon
    GROUP = "group"  # JoinGroup may wait for the whole rebalance timeout
    HEARTBEAT = "heartbeat"  # must overtake a waiting JoinGroup
    DATA = "data"  # long polls
    BESIDE = "beside"  # short polls for partitions that were added after a long poll began


@dataclass(slots=True)
class _Failures:
    count: int = 0
    not_before: float = 0.0


class ConnectionPool:
    """Keeps at most one open connection for each address and channel, opened in one attempt at a time."""

    def __init__(self, opener: Opener, backoff: Backoff) -> None:
        self._opener = opener
        self._backoff = backoff
        self._open: dict[tuple[Address, Channel], Connection] = {}
        self._leaving: list[Connection] = []
        self._locks: dict[tuple[Address, Channel], asyncio.Lock] = {}
        self._failures: dict[Address, _Failures] = {}

    def __repr__(self) -> str:
        alive = sum(not connection.is_closed for connection in self._open.values())
        return f"ConnectionPool({alive} open, {len(self._failures)} addresses failing)"

    def is_connected(self, address: Address) -> bool:
        """Return whether some connection to the address is open."""
        return any(key[0] == address and not open_.is_closed for key, open_ in self._open.items())

    def failing(self, address: Address) -> bool:
        """Return whether the last attempt to connect to the address failed."""
        return address in self._failures

    def ready(self, address: Address, channel: Channel) -> Connection | None:
        """Return the open connection, if there is one."""
        connection = self._open.get((address, channel))
        if connection is None or connection.is_closed or connection.is_retired:
            return None
        return connection

    async def get(self, address: Address, channel: Channel) -> Connection:
        """Return the open connection, or open one. Raises what the opener raises after one failed attempt.

        After a failure the next attempt at that address, by any caller, waits for the back-off.
        """
        connection = self.ready(address, channel)
        if connection is not None:
            return connection
        key = address, channel
        async with self._locks.setdefault(key, asyncio.Lock()):
            connection = self._open.get(key)
            if connection is not None and connection.is_retired and not connection.is_closed:
                self._leaving.append(connection)
                connection = None
            if connection is None or connection.is_closed:
                connection = self._open[key] = await self._connect_to(address)
            self._close_idle()
            return connection

    def _close_idle(self) -> None:
        """Close replaced connections that have no pending requests."""
        for connection in self._leaving:
            if connection.idle:
                connection.close("its authentication ends")
        self._leaving = [connection for connection in self._leaving if not connection.is_closed]

    async def _connect_to(self, address: Address) -> Connection:
        failures = self._failures.get(address)
        if failures is not None:
            await asyncio.sleep(max(0.0, failures.not_before - asyncio.get_running_loop().time()))
        try:
            connection = await self._opener(address)
        except (BrokerConnectionError, AuthenticationError):
            failures = self._failures.setdefault(address, _Failures())
            delay_ms = self._backoff.delay_ms(failures.count)
            failures.count += 1
            failures.not_before = asyncio.get_running_loop().time() + delay_ms / 1000
            raise
        self._failures.pop(address, None)
        return connection

    def close(self) -> None:
        """Close every connection; requests under way fail."""
        for connection in (*self._open.values(), *self._leaving):
            connection.close()
        self._open.clear()
