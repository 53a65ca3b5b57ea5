"""Connects to the first address of a host that answers: all are tried, each a moment after the one before.

As in RFC 8305, which asyncio's own loop offers and uvloop does not.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from typing import Any

#: Time for an address before the next one is tried beside it, in seconds (RFC 8305, section 5).
STAGGER_S = 0.25

#: An entry of getaddrinfo's result.
_Info = tuple[Any, Any, int, str, tuple[Any, ...]]


async def connect_socket(host: str, port: int) -> socket.socket:
    """Return a socket that is connected to the host. Raises OSError, of every address if there are several.

    It is a ConnectionRefusedError if all addresses refuse.
    """
    infos = deque(await _resolve_host(host, port))
    if len(infos) == 1:
        return await _connect_socket(infos[0])
    failures: list[tuple[str, OSError]] = []
    attempts: dict[asyncio.Task[socket.socket], str] = {}
    try:
        while infos or attempts:
            if infos:
                info = infos.popleft()
                attempts[asyncio.create_task(_connect_socket(info), name="kohort connect")] = info[4][0]
            wait_s = STAGGER_S if infos else None
            done, _ = await asyncio.wait(attempts, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            for attempt in done:
                address = attempts.pop(attempt)
                try:
                    return attempt.result()
                except OSError as error:
                    failures.append((address, error))
    finally:
        for attempt in attempts:
            attempt.add_done_callback(_close)
            attempt.cancel()
    if all(isinstance(error, ConnectionRefusedError) for _, error in failures):
        raise failures[0][1]
    raise OSError("; ".join(f"{address}: {reason_of(error)}" for address, error in failures))


def reason_of(error: OSError) -> str:
    """The reason of an error, without its number and address."""
    number = error.errno or 0
    return os.strerror(number) if number > 0 else error.strerror or str(error)


async def _resolve_host(host: str, port: int) -> list[_Info]:
    try:
        # needs no thread, and never blocks
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except UnicodeError as error:
        raise OSError(f"{host!r} is no host name") from error
    except socket.gaierror:
        loop = asyncio.get_running_loop()
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)


async def _connect_socket(info: _Info) -> socket.socket:
    family, kind, protocol, _, address = info
    connected = socket.socket(family, kind, protocol)
    try:
        connected.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connected, address)
    except BaseException:
        connected.close()
        raise
    return connected


def _close(attempt: asyncio.Task[socket.socket]) -> None:
    """Close the socket of an attempt that another one was faster than."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()
