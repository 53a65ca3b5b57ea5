"""Connections without sockets: a broker's own part of each, for more than there may be descriptors.

``python -m benchmarks._sized_connections COUNT...`` prints a JSON list of points for each count.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kohort.broker import Broker

from . import _wire as wire

MODULE: Final = "benchmarks._sized_connections"
#: Connections between two turns of the broker's loop.
AT_ONCE: Final = 100
#: Nothing is refused for its number alone.
_SETTINGS: Final = {"max.connections": 1_000_000, "max.connections.per.ip": 1_000_000}


class Silent(NamedTuple):
    """A number of connections, KiB of the process, its seconds of processors so far, and those of one look at
    all connections, which a broker takes every few seconds.
    """

    number: int
    kib: int
    cpu_s: float
    look_s: float


def measure(counts: Sequence[int]) -> Iterator[Silent]:
    """The points, the first of which has no connection, of a process of its own."""
    command = [sys.executable, "-m", MODULE, *map(str, counts)]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return (Silent(*each) for each in json.loads(found.stdout))


class NoSocket(asyncio.Transport):
    """Takes what is written to it, and counts it."""

    __slots__ = ("_number", "taken")

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number, self.taken = number, 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """The peer's address alone."""
        return (f"10.0.{self._number >> 15}.1", self._number & 0x7FFF) if name == "peername" else default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """See asyncio.WriteTransport."""
        self.taken += len(data)

    def get_write_buffer_size(self) -> int:
        """See asyncio.WriteTransport."""
        return 0

    def is_closing(self) -> bool:
        """See asyncio.BaseTransport."""
        return False

    def abort(self) -> None:
        """See asyncio.WriteTransport."""


async def _measure(counts: Sequence[int]) -> list[Silent]:
    found, links = list[Silent](), list[NoSocket]()
    with tempfile.TemporaryDirectory() as folder:
        async with Broker(port=0, data=Path(folder), settings=_SETTINGS) as broker:
            server = broker._require_running().server
            acceptor = server.acceptors[0]
            ask = wire.find_coordinator(b"sizing")
            for count in (0, *counts):
                while len(links) < count:
                    link = NoSocket(len(links))
                    slot = server.quotas.admit(acceptor.listener, link.get_extra_info("peername")[0])
                    assert slot is not None, "none is refused"
                    connection = acceptor._connected(acceptor, slot)
                    connection.connection_made(link)
                    connection.data_received(ask)
                    links.append(link)
                    if not len(links) % AT_ONCE:
                        await asyncio.sleep(0)
                await asyncio.sleep(0.5)
                assert all(link.taken for link in links), "each is answered"
                kib, cpu_s = _resident_kib(), time.process_time()
                server._slow.find_slow(server._connections, server.now())
                for each in list(server._connections):
                    server._look_at(each, server.now())
                found.append(Silent(count, kib, cpu_s, time.process_time() - cpu_s))
            os.write(1, json.dumps(found).encode())
            # what is measured is said: nothing has to be closed
            os._exit(0)


def _resident_kib() -> int:
    return int(re.findall(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[0])


if __name__ == "__main__":
    asyncio.run(_measure([int(each) for each in sys.argv[1:]]))
