"""SASL exchange on the broker's side: its interface, and PLAIN, the shortest of them."""

from __future__ import annotations

import hashlib
import hmac
from abc import ABC, abstractmethod
from collections.abc import Mapping

from ._errors import LoginFailedError

#: The same text for a wrong name and a wrong password.
NOT_RIGHT = "the user name or the password is not right"


class Exchange(ABC):
    """One authentication in progress: the client's messages in, the broker's responses out.

    ``done``: the client has proved that it is ``user``; ``expires_ms`` is when the proof expires on the wall
    clock, if it has an expiry of its own. ``claimed`` is the user that the client names, proved or not.
    """

    done = False
    claimed = ""
    user = ""
    expires_ms: int | None = None

    @abstractmethod
    async def step(self, data: bytes) -> bytes:
        """Raises AuthenticationError."""


class PlainExchange(Exchange):
    """PLAIN (RFC 4616): the name and the password, as they are."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    async def step(self, data: bytes) -> bytes:
        """Check name and password, in constant time. Raises LoginFailedError."""
        try:
            wanted, name, password = data.decode().split("\0")
        except ValueError:
            # neither cause nor text: both would contain the password
            raise LoginFailedError("PLAIN: not a name and a password") from None
        self.claimed = name
        if not name or not password or wanted not in ("", name):
            raise LoginFailedError("PLAIN: a name and its own password are asked for")
        expected = self._passwords.get(name)
        # compare something for unknown users, too: it must take as long
        same = hmac.compare_digest(_digest_of(password), _digest_of(expected or ""))
        if expected is None or not same:
            raise LoginFailedError(NOT_RIGHT)
        self.user, self.done = name, True
        return b""


def _digest_of(text: str) -> bytes:
    """A hash of fixed length, so that the comparison does not reveal the length either."""
    return hashlib.sha256(text.encode()).digest()
