"""What a client or a broker works in, besides its event loop: a simulation has its own.

A broker that is alone needs this and no client: nothing of one is loaded here.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .connection import Connection
    from .metadata import Address
    from .zookeeper import ZooKeeperSession, ZooKeeperSettings

#: A function with the arguments and errors of Connection.open.
OpenConnection = Callable[..., "Awaitable[Connection]"]


async def _open_connection(address: Address, **settings: Any) -> Connection:
    """``Connection.open``, loaded by whoever opens the first one."""
    from .connection import Connection

    return await Connection.open(address, **settings)


def _open_zookeeper(
    settings: ZooKeeperSettings, log: logging.Logger, joined: tuple[int, bytes] | None = None
) -> ZooKeeperSession:
    """``ZooKeeperSession``, loaded by whoever opens the first one."""
    from .zookeeper import ZooKeeperSession

    return ZooKeeperSession(settings, log, joined)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Dependencies of a client or broker besides its event loop, which a simulation replaces for one context.

    ``open_connection`` and ``open_zookeeper`` open connections. ``make_random`` is called for each part of
    the client that draws random numbers. ``in_thread(pool, size, function)`` replaces a pool of ``size``
    threads and returns the function's result; if it is set, no thread watches the event loop. ``time_ms`` is
    the wall clock, and ``work_clock``, in seconds, tells for how long work has kept others waiting.
    """

    open_connection: OpenConnection = _open_connection
    make_random: Callable[[], random.Random] = random.Random
    in_thread: Callable[[object, int, Callable[[], Any]], Awaitable[Any]] | None = None
    open_zookeeper: Callable[..., ZooKeeperSession] = _open_zookeeper
    time_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    work_clock: Callable[[], float] = time.perf_counter

    @property
    def in_virtual_time(self) -> bool:
        """Return whether this is a simulation: nobody looks at its machine."""
        return self.work_clock is not time.perf_counter


_REAL: Final = Surroundings()

#: The surroundings of the context in which a client is built and started.
SURROUNDINGS: Final[ContextVar[Surroundings]] = ContextVar("kohort_surroundings", default=_REAL)
