"""OAUTHBEARER on the broker's side (RFC 7628, KIP-255, KIP-768): a signed token names the client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ._errors import LoginFailedError
from ._exchange import Exchange

if TYPE_CHECKING:
    from ._tokens import TokenVerifier

_SEPARATOR = "\x01"


class OauthExchange(Exchange):
    """One message with the token; a refused client sends another one to end the exchange."""

    def __init__(self, tokens: TokenVerifier) -> None:
        self._tokens = tokens
        self._refused: LoginFailedError | None = None

    async def step(self, data: bytes) -> bytes:
        """Verify the token of the first message (RFC 7628). Raises LoginFailedError."""
        if self._refused is not None:
            raise self._refused
        wanted, token = _parse_message(data)
        self.claimed = wanted
        try:
            user, self.expires_ms = await self._tokens.verify_token(token)
            if wanted not in ("", user):
                raise LoginFailedError("OAUTHBEARER: the token is somebody else's")
        except LoginFailedError as error:
            self._refused = error
            return json.dumps({"status": "invalid_token"}).encode()
        self.user, self.done = user, True
        return b""


def _parse_message(data: bytes) -> tuple[str, str]:
    """The user that the client requests ("": the token's) and the token. Raises AuthenticationError."""
    try:
        head, *pairs, end, last = data.decode().split(_SEPARATOR)
        flag, wanted, rest = head.split(",")
        given = dict(pair.split("=", 1) for pair in pairs)
        kind, token = given["auth"].split(" ", 1)
        if flag != "n" or rest or end or last or kind.lower() != "bearer" or wanted[:2] not in ("", "a="):
            raise ValueError
    except (ValueError, KeyError):
        raise LoginFailedError("OAUTHBEARER: not a message of this mechanism") from None
    return wanted[2:], token.strip()
