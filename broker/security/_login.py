"""One connection's authentication, from the first request to the last renewal (KIP-43, KIP-152, KIP-368).

Until it is complete only ApiVersions, SaslHandshake and SaslAuthenticate are answered. After SaslHandshake v0
the mechanism's messages follow without headers, after v1 in SaslAuthenticate.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from ...protocol import (
    ApiKey,
    ErrorCode,
    ProtocolError,
    RequestHeader,
    api_for,
    decode_request,
    decode_request_header,
    encode_response,
    response_type,
)
from ._errors import LoginFailedError
from ._exchange import Exchange
from ._sasl import SaslMechanisms

#: Least time between two reauthentications, in seconds.
RENEWAL_S = 1.0

#: How long the connection of a client that failed to log in stays open, in seconds: some clients that find a
#: response and the end of the connection together see only the end.
LINGER_S = 0.1

_PREFIX_BYTES = 4


class Pass:
    """Result of ``Login.answer`` for a request that goes on to the router."""


PASS: Final = Pass()


@dataclass(slots=True, eq=False, repr=False)
class Login:
    """The authentication of one connection. Each request goes to ``answer`` first; ``let_in`` is called with
    the proved principal. ``failed`` is the reason why the connection has to be closed, "" if it has not.
    """

    _sasl: SaslMechanisms
    _name: str
    _let_in: Callable[[str], None]
    _now: Callable[[], float] = time.monotonic
    failed: str = field(default="", init=False)
    _principal: str = field(default="", init=False)
    _mechanism: str = field(default="", init=False)
    _claimed: str = field(default="", init=False)
    _exchange: Exchange | None = field(default=None, init=False)
    _raw: bool = field(default=False, init=False)
    _begun: float = field(default=float("-inf"), init=False)
    _ends: float | None = field(default=None, init=False)

    def __repr__(self) -> str:
        return f"Login({self._name}, {self._principal or 'nobody yet'})"

    @property
    def open(self) -> bool:
        """Return whether requests may pass: the client is authenticated, and its session has not expired."""
        return (
            self._principal != ""
            and self._exchange is None
            and not self.failed
            and (self._ends is None or self._now() < self._ends)
        )

    async def answer(self, frame: bytes) -> bytes | bytearray | Pass | None:
        """The response frame, PASS for other requests. Raises ProtocolError if the connection has to end."""
        if self.failed:
            return None
        if self._raw:
            return await self._answer_bare_token(frame)
        header = decode_request_header(frame)
        if header.api_key == ApiKey.SASL_HANDSHAKE and self._may_begin():
            return self._answer_handshake(header, decode_request(frame, header))
        if self._exchange is not None:
            if header.api_key == ApiKey.SASL_HANDSHAKE:
                self._fail_login("another handshake in the middle of its authentication")
                return _response_frame(header, error_code=ErrorCode.ILLEGAL_SASL_STATE)
            if header.api_key != ApiKey.SASL_AUTHENTICATE:
                raise ProtocolError("another request in the middle of its authentication")
            body = decode_request(frame, header)
            return await self._answer_authenticate(header, bytes(body.auth_bytes or b""))
        if self._principal:
            if not self.open and header.api_key != ApiKey.API_VERSIONS:
                raise ProtocolError("its authentication has ended and was not renewed")
            return PASS
        if header.api_key == ApiKey.API_VERSIONS:
            return PASS
        raise ProtocolError(f"API number {header.api_key} before it said who it is (ILLEGAL_SASL_STATE)")

    async def end(self) -> NoReturn:
        """After the response to a ``failed`` login: give time to read it, then raise ProtocolError, which
        also says on which listener it was and who the client said it is.
        """
        await asyncio.sleep(LINGER_S)
        user = f", user {self._claimed}" if self._claimed else ""
        raise ProtocolError(f"{self.failed} (listener {self._sasl.listener_name}{user})")

    def _may_begin(self) -> bool:
        if self._exchange is not None:
            return False
        now = self._now()
        if self._principal and (self._ends is None or now - self._begun < RENEWAL_S):
            return False
        self._begun = now
        return True

    def _answer_handshake(self, header: RequestHeader, body: Any) -> bytes | bytearray:
        exchange = self._sasl.begin(body.mechanism)
        offered = self._sasl.mechanisms
        if self._principal and body.mechanism != self._mechanism:
            # a client that reauthenticates has to use the same mechanism
            exchange, offered = None, [self._mechanism]
        if exchange is None:
            self._fail_login(
                f"it asked for a SASL mechanism that is not offered here ({', '.join(offered)} are)"
            )
            return _response_frame(
                header, error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=offered
            )
        self._exchange, self._mechanism = exchange, body.mechanism
        self._raw = header.api_version == 0
        return _response_frame(header, mechanisms=offered)

    async def _answer_authenticate(self, header: RequestHeader, data: bytes) -> bytes | bytearray:
        try:
            answer = await self._step_exchange(data)
        except LoginFailedError as error:
            text = f"authentication by {self._mechanism} failed: {error}"
            return _response_frame(
                header, error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=text
            )
        lifetime_ms = self._complete_login() if self._exchange is not None and self._exchange.done else 0
        return _response_frame(header, error_message=None, auth_bytes=answer, session_lifetime_ms=lifetime_ms)

    async def _answer_bare_token(self, token: bytes) -> bytes | None:
        try:
            answer = await self._step_exchange(token)
        except LoginFailedError:
            return None
        if self._exchange is not None and self._exchange.done:
            self._complete_login()
        return len(answer).to_bytes(_PREFIX_BYTES, "big") + answer

    async def _step_exchange(self, data: bytes) -> bytes:
        """One step of the exchange. Raises AuthenticationError, after a delay that makes guessing slow."""
        exchange = self._exchange
        assert exchange is not None, "a step follows a handshake"
        try:
            answer = await exchange.step(data)
            if exchange.done and self._principal not in ("", _principal_of(exchange)):
                raise LoginFailedError("it began as somebody else")
            return answer
        except LoginFailedError as error:
            await asyncio.sleep(self._sasl.delay_s)
            self._fail_login(f"authentication by {self._mechanism} failed: {error}")
            raise

    def _complete_login(self) -> int:
        """Let the client in; return its session lifetime in ms."""
        exchange = self._exchange
        assert exchange is not None, "an exchange that is done"
        lifetime_ms = self._sasl.believed_ms(self._mechanism, exchange.expires_ms, int(time.time() * 1000))
        self._ends = self._now() + lifetime_ms / 1000 if lifetime_ms else None
        self._exchange, self._raw = None, False
        self._principal = _principal_of(exchange)
        self._let_in(self._principal)
        return lifetime_ms

    def _fail_login(self, reason: str) -> None:
        self.failed = reason
        if self._exchange is not None:
            self._claimed = self._exchange.claimed
        self._exchange, self._principal = None, ""


def _principal_of(exchange: Exchange) -> str:
    return f"User:{exchange.user}"


def _response_frame(header: RequestHeader, **fields: object) -> bytes | bytearray:
    """The frame of a response; fields not named have the schema's defaults."""
    api_for(header.api_key).require(header.api_version)
    body = response_type(header.api_key)(**fields)
    return encode_response(header.api_key, header.api_version, header.correlation_id, body)
