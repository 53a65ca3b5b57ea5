"""Tokens of a client: its provider is the user's code, and may hang."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from .errors import AuthenticationError, BrokerConnectionError
from .sasl import Token
from .threads import DaemonThreads

#: Longest wait of one connection for the provider, in seconds: less than the time to connect.
WAIT_S = 8.0
#: A token that came when nobody waited any more is given to the next connection within this time, in seconds:
#: more than the pause before it is opened.
LATE_S = 2.0


class Tokens:
    """Asks the provider of one client, at most one call at a time. All connections that are opened meanwhile
    get its result.

    ``provider`` is a function, or an object with ``token()`` and perhaps ``extensions()``.
    """

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._threads = DaemonThreads(1, "kohort token provider")
        self._call: asyncio.Task[Token] | None = None
        self._began = self._ended = 0.0

    def __repr__(self) -> str:
        return f"Tokens({'no call' if self._call is None else self._call})"

    async def ask(self, address: str) -> Token:
        """Return a token for a connection to this address.

        Raises AuthenticationError of the provider, and BrokerConnectionError if it fails otherwise or does
        not answer.
        """
        now = asyncio.get_running_loop().time
        if self._call is None or (self._call.done() and now() > self._ended + LATE_S):
            self._began = now()
            self._call = asyncio.create_task(self._ask_provider(), name="kohort token")
            self._call.add_done_callback(self._on_token)
        call = self._call
        await asyncio.wait({call}, timeout=WAIT_S)
        if not call.done():
            waited_s = now() - self._began
            why = f"the token provider has not answered for {waited_s:.0f} s, and is not called again before"
            raise BrokerConnectionError(address, why)
        if self._call is call:
            self._call = None
        try:
            return call.result()
        except AuthenticationError:
            raise
        except Exception as error:
            raise BrokerConnectionError(address, f"the token provider failed: {error!r}") from error

    async def _ask_provider(self) -> Token:
        token: Token = await self._threads.call(self._ask_token)
        return token

    def _ask_token(self) -> Token:
        provider = self._provider
        token: str = provider() if callable(provider) else provider.token()
        extensions: Mapping[str, str] = getattr(provider, "extensions", dict)()
        return Token(token, dict(extensions))

    def _on_token(self, call: asyncio.Task[Token]) -> None:
        self._ended = call.get_loop().time()
        if not call.cancelled():
            call.exception()  # nobody may be left to get it

    def close(self) -> None:
        """Wait for nothing any more; a call that hangs does not keep the process."""
        if self._call is not None:
            self._call.cancel()
        self._threads.close()
