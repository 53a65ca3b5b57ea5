"""TCP ports for servers that are told their port, or are killed and started again on the same one."""

from __future__ import annotations

import random
import socket
import sys
from collections.abc import Iterable

#: Below the ports that the system gives to connections, and to servers that ask for any port.
_FIRST, _LAST = 20_000, 30_000
#: Sockets that keep the ports of this process from the other processes of the test run.
_kept: list[socket.socket] = []


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody else is given until this process ends."""
    return free_ports(range(1))


def free_ports(offsets: Iterable[int]) -> int:
    """Return a port that is free, as are those at the other ``offsets`` from it; they stay this process's."""
    offsets = tuple(offsets)
    while True:
        first = random.SystemRandom().randrange(_FIRST, _LAST - max(offsets))
        try:
            _kept.extend([_keep(first + offset) for offset in offsets])
        except OSError:
            continue
        return first


def _keep(port: int) -> socket.socket:
    """Bind the port without listening: where every server allows reuse, only other keepers are refused."""
    keeper = socket.socket()
    try:
        keeper.bind(("127.0.0.1", port))
    except OSError:
        keeper.close()
        raise
    # allowed after the bind, so that it was not shared with another keeper
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sys.platform != "linux":
        keeper.close()  # other systems refuse the server
    return keeper
