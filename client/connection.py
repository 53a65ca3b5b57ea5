"""One connection to a broker: frames, correlation ids, version negotiation (KIP-35, KIP-511).

A broker answers the requests of a connection in order, so requests sent after a long poll wait for it.
Requests that must not wait are sent over another connection (see ``pool``).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ..protocol import (
    APIS,
    MAX_FRAME_BYTES,
    MAX_STRING,
    OWN_FEATURES,
    ApiKey,
    ErrorCode,
    FrameReceiver,
    FrameTooLargeError,
    KafkaError,
    KohortError,
    RequestBody,
    UnsupportedVersionError,
    api_for,
    api_key_of,
    check_strings,
    decode_response,
    encode_request,
)
from ..protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ..protocol.named_tuples import NamedTuple
from .addresses import connect_socket, reason_of
from .errors import (
    AuthenticationError,
    BrokerConnectionError,
    BrokerRefusedError,
    BrokerTimeoutError,
    ResponseTooLargeError,
)
from .metadata import Address
from .sasl import AskToken, Sasl, authenticate

T = TypeVar("T")

_SOFTWARE_NAME = "kohort"

#: Hint in the error text of connections that end before the broker has answered.
_TAKES_TLS = "does this listener take TLS? See security_protocol"
_IS_BROKER = "is it a broker's, and does it take TLS? See security_protocol"
_NO_BROKER = "; is this a broker's port?"

#: Timeout of requests while the connection is opened: longer than the timeout of ``open``, which applies.
_LONG_MS = 3_600_000

#: Value of SO_LINGER: on, for 0 seconds.
_AT_ONCE = struct.pack("ii", 1, 0)

#: Share of an authenticated session's lifetime after which a new connection replaces this one (KIP-368).
_LIFETIME_USED = 0.85


class _Waiting(NamedTuple):
    """An in-flight request; ``until`` is in seconds of the loop's clock."""

    answer: asyncio.Future[Any]
    api_key: int
    version: int
    timeout_ms: float
    until: float
    on_answer: Callable[..., None] | None


class Connection(asyncio.BufferedProtocol):
    """A connection to one broker, made by :meth:`open`. Many requests may be pending at a time.

    Every pending request raises BrokerConnectionError when the connection breaks, or BrokerTimeoutError when
    one of them was not answered in time. A request raises UnsupportedVersionError if client and broker have
    no version in common.
    """

    def __init__(self, address: Address, client_id: str, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self.address = address
        #: Lowest and highest version that the broker offers, by API key.
        self.versions: dict[int, tuple[int, int]] = {}
        #: Finalized feature levels (KIP-584), by name.
        self.features: dict[str, int] = {}
        self._client_id = client_id
        self._max_frame_bytes = max_frame_bytes
        # what is no broker begins with bytes that announce more, and may then wait for ever
        self._frames = FrameReceiver(min(max_frame_bytes, MAX_FRAME_BYTES))
        self._waiting: dict[int, _Waiting] = {}
        self._next_id = 0
        #: When to check for overdue requests, in seconds of the loop's clock: not after the first deadline.
        self._look_at = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._closed_because: str | None = None
        self._retire_at: float | None = None
        self._ended = asyncio.Event()
        #: Set while the transport takes more data, and when the connection is closed.
        self._writable = asyncio.Event()
        self._writable.set()

    def __repr__(self) -> str:
        state = f"closed: {self._closed_because}" if self.is_closed else f"{len(self._waiting)} under way"
        return f"Connection({self.address}, {state})"

    @classmethod
    async def open(
        cls,
        address: Address,
        *,
        client_id: str,
        timeout_ms: float = 10_000,
        ssl_context: ssl.SSLContext | None = None,
        sasl: Sasl | None = None,
        ask_token: AskToken | None = None,
        max_frame_bytes: int = MAX_FRAME_BYTES,
    ) -> Connection:
        """Connect, negotiate versions and authenticate, within ``timeout_ms`` in total.

        Raises BrokerConnectionError, BrokerTimeoutError, AuthenticationError, or KafkaError if the broker
        refuses ApiVersions.
        """
        connection = cls(address, client_id, max_frame_bytes)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await connection._open_socket(ssl_context)
                await connection._negotiate_versions()
                if sasl is not None:
                    await connection._authenticate_client(sasl, ask_token)
        except TimeoutError:
            why = f"no connection within {timeout_ms:.0f} ms"
            if connection._transport is not None and not connection.versions:
                why += f": the port takes connections and answers nothing; {_IS_BROKER}"
            connection.close("timed out")
            raise BrokerTimeoutError(str(address), why) from None
        except BaseException:
            connection.close("not usable")
            raise
        return connection

    @property
    def is_closed(self) -> bool:
        """Whether no request can be sent any more, or not yet."""
        return self._transport is None or self._closed_because is not None

    @property
    def is_retired(self) -> bool:
        """Return whether the authentication expires soon (KIP-368).

        Pending requests may finish; new ones are sent over another connection.
        """
        return self._retire_at is not None and asyncio.get_running_loop().time() >= self._retire_at

    @property
    def idle(self) -> bool:
        """Whether no response is awaited."""
        return not self._waiting

    def is_usable(self) -> bool:
        """Return whether requests may be sent. Closes the connection if it is retired and idle."""
        if self.is_retired and self.idle:
            self.close("its authentication ends soon")
        return not self.is_closed

    def version_for(self, api_key: int, max_version: int | None = None) -> int:
        """Return the highest version that client and broker support, up to ``max_version``.

        Raises UnsupportedVersionError if there is none.
        """
        ours = api_for(api_key)
        theirs = self.versions.get(api_key)
        if theirs is None:
            raise UnsupportedVersionError(
                f"{self.address} does not offer {ours.name}: it is too old for this"
            )
        ceiling = ours.max_version if max_version is None else min(ours.max_version, max_version)
        version = min(ceiling, theirs[1])
        if version < max(ours.min_version, theirs[0]):
            raise UnsupportedVersionError(
                f"{self.address} offers {ours.name} v{theirs[0]} to v{theirs[1]}, "
                f"this client speaks v{ours.min_version} to v{ceiling}"
            )
        return version

    async def request(self, body: RequestBody[T], *, timeout_ms: float, max_version: int | None = None) -> T:
        """Send a request and return the body of the response. The caller checks its error codes.

        The records in a Fetch response are views of the received bytes.
        """
        return await self.ask(body, timeout_ms=timeout_ms, max_version=max_version)

    def ask(
        self,
        body: RequestBody[T],
        *,
        timeout_ms: float,
        max_version: int | None = None,
        on_answer: Callable[[T], None] | None = None,
    ) -> asyncio.Future[T]:
        """As ``request``, but sends at once and returns a future of the response's body.

        ``on_answer`` is called with the body as soon as it is there, a turn of the event loop before those
        that wait for the future go on. What it raises, the future raises.
        """
        version = self.version_for(api_key_of(body), max_version)
        return self._send_request(body, version, timeout_ms, on_answer)

    def _send_request(
        self,
        body: RequestBody[T],
        version: int,
        timeout_ms: float,
        on_answer: Callable[[T], None] | None = None,
    ) -> asyncio.Future[T]:
        transport = self._open_transport()
        correlation_id = self._next_id
        self._next_id = (self._next_id + 1) & 0x7FFFFFFF
        frame = self._encode(version, correlation_id, body)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        until = loop.time() + timeout_ms / 1000
        self._waiting[correlation_id] = _Waiting(
            answer, api_key_of(body), version, timeout_ms, until, on_answer
        )
        if until < self._look_at:
            self._look_again(until)
        transport.write(frame)
        return answer

    def _encode(self, version: int, correlation_id: int, body: object) -> bytearray:
        try:
            frame = encode_request(version, correlation_id, self._client_id, body)
        except struct.error:
            check_strings(body)
            raise
        if len(frame) > MAX_STRING:
            check_strings(body)
        return frame

    def _look_again(self, at: float) -> None:
        """Check for overdue requests at this time of the loop's clock, in seconds."""
        if self._timer is not None:
            self._timer.cancel()
        self._look_at = at
        self._timer = asyncio.get_running_loop().call_at(at, self._check_timeouts)

    def _check_timeouts(self) -> None:
        self._timer, self._look_at = None, math.inf
        now = asyncio.get_running_loop().time()
        waiting = [each for each in self._waiting.values() if not each.answer.done()]
        why = ""
        for each in waiting:
            if each.until <= now:
                why = f"{api_for(each.api_key).name} was not answered within {each.timeout_ms:.0f} ms"
                each.answer.set_exception(BrokerTimeoutError(str(self.address), why))
        if why:
            self._reset_connection()
            self.close(why)
        elif waiting:
            self._look_again(min(each.until for each in waiting))

    async def tell(
        self, body: RequestBody[object], *, timeout_ms: float, max_version: int | None = None
    ) -> None:
        """Send a request that has no response (Produce with acks=0), and wait until more may be written.

        Raises BrokerTimeoutError if that takes longer than ``timeout_ms``, and BrokerConnectionError.
        """
        version = self.version_for(api_key_of(body), max_version)
        self._open_transport().write(self._encode(version, -1, body))
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._writable.wait()
        except TimeoutError:
            self._reset_connection()
            self.close(why := f"{api_for(api_key_of(body)).name} was not taken within {timeout_ms:.0f} ms")
            raise BrokerTimeoutError(str(self.address), why) from None

    @property
    def certificate_end_s(self) -> float | None:
        """When the broker's certificate ends, in seconds since 1970; None without TLS, or where it is not
        checked.
        """
        found = None if self._transport is None else self._transport.get_extra_info("peercert")
        return ssl.cert_time_to_seconds(found["notAfter"]) if found and "notAfter" in found else None

    def _reset_connection(self) -> None:
        """Have the connection end with a reset: what was given up is not delivered any more. The system would
        go on sending it behind a socket that is closed in the usual way, and the broker carry it out long
        after it was sent again.
        """
        found = None if self._transport is None else self._transport.get_extra_info("socket")
        if found is not None:
            with contextlib.suppress(OSError):
                found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)

    def pause_writing(self) -> None:
        """See asyncio.BufferedProtocol."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """See asyncio.BufferedProtocol."""
        self._writable.set()

    def _open_transport(self) -> asyncio.Transport:
        if self._transport is None or self._closed_because is not None:
            raise BrokerConnectionError(str(self.address), f"connection closed: {self._closed_because}")
        return self._transport

    async def _open_socket(self, ssl_context: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        try:
            connected = await connect_socket(self.address.host, self.address.port)
            name = None if ssl_context is None else self.address.host
            await loop.create_connection(lambda: self, sock=connected, ssl=ssl_context, server_hostname=name)
        except ssl.SSLCertVerificationError as error:
            why = f"the broker's certificate is not trusted: {error.verify_message}"
            raise AuthenticationError(str(self.address), f"{why}; see ssl_cafile") from error
        except ssl.SSLError as error:
            why = error.reason or str(error)
            if why == "WRONG_VERSION_NUMBER":
                why += f"; {_TAKES_TLS}"
            raise BrokerConnectionError(str(self.address), f"TLS: {why}") from error
        except OSError as error:
            why = reason_of(error)
            if ssl_context is not None and isinstance(error, ConnectionResetError):
                why = f"closed during the TLS handshake; {_TAKES_TLS}"
            refused = isinstance(error, ConnectionRefusedError)
            kind = BrokerRefusedError if refused else BrokerConnectionError
            raise kind(str(self.address), f"cannot connect: {why}") from error

    async def _negotiate_versions(self) -> None:
        api = APIS[ApiKey.API_VERSIONS]
        response = await self._ask_versions(api.max_version)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            offered = {row.api_key: row.max_version for row in response.api_keys}
            response = await self._ask_versions(min(offered.get(api.key, 0), api.max_version))
        if response.error_code:
            raise KafkaError(response.error_code, f"{self.address} refused ApiVersions")
        self._frames.limit(self._max_frame_bytes)
        self.versions = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
        self.features = {row.name: row.max_version_level for row in response.finalized_features or ()}
        for feature in response.supported_features or ():
            key = OWN_FEATURES.get(feature.name)
            if key is not None:
                # versions of features begin at 1, those of APIs at 0
                self.versions[key] = feature.min_version - 1, feature.max_version - 1

    async def _authenticate_client(self, sasl: Sasl, ask_token: AskToken | None) -> None:
        async def ask(body: RequestBody[T]) -> T:
            return await self.request(body, timeout_ms=_LONG_MS)

        lifetime_ms = await authenticate(sasl, str(self.address), ask, ask_token)
        if lifetime_ms is not None:
            self._retire_at = asyncio.get_running_loop().time() + lifetime_ms * _LIFETIME_USED / 1000

    async def _ask_versions(self, version: int) -> ApiVersionsResponse:
        from .. import __version__

        # brokers refuse a version with a "+", which kohort's has between two releases
        shown = __version__.replace("+", "-")
        body = ApiVersionsRequest(client_software_name=_SOFTWARE_NAME, client_software_version=shown)
        return await self._send_request(body, version, _LONG_MS)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.BufferedProtocol."""
        # uvloop's transports have the methods of Transport, but do not derive from it
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        """See asyncio.BufferedProtocol. Received bytes go right into the frame reader's buffer."""
        return self._frames.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """See asyncio.BufferedProtocol. A malformed frame ends the connection."""
        try:
            for frame in self._frames.on_received(nbytes):
                self._on_frame(frame)
        except FrameTooLargeError as error:
            self._too_large(error)
        except KohortError as error:
            self.close(f"unreadable answer: {error}" + ("" if self.versions else _NO_BROKER))

    def _too_large(self, error: FrameTooLargeError) -> None:
        """Close. The request that it answers, the first one of those that wait, learns of its size."""
        why = f"unreadable answer: {error}" + ("" if self.versions else _NO_BROKER)
        if self.versions and (first := next(iter(self._waiting.values()), None)) and not first.answer.done():
            first.answer.set_exception(ResponseTooLargeError(str(self.address), why, error.size, error.limit))
        self.close(why)

    def _on_frame(self, frame: bytes | memoryview) -> None:
        waiting = self._waiting.pop(int.from_bytes(frame[:4], "big", signed=True), None)
        if waiting is None:
            self.close("response to an unknown correlation id" + ("" if self.versions else _NO_BROKER))
            return
        answer, api_key, version, _, _, on_answer = waiting
        if answer.done():
            return
        try:
            data = memoryview(frame) if api_key == ApiKey.FETCH else frame
            body = decode_response(api_key, version, data)[1]
            if on_answer is not None:
                on_answer(body)
        except Exception as error:
            answer.set_exception(error)
        else:
            answer.set_result(body)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.BufferedProtocol. All requests under way fail."""
        why = f"connection lost: {error}" if error else "the broker closed the connection"
        first = self._waiting.get(1)
        if not self.versions and self._transport is not None:
            tls = self._transport.get_extra_info("sslcontext")
            why += " before it answered" + ("" if tls else f"; {_TAKES_TLS}")
        elif first is not None and first.api_key != ApiKey.SASL_HANDSHAKE:
            why += " at the first request; does this listener ask for SASL? See security_protocol"
        self.close(why)

    async def wait_closed(self) -> None:
        """Wait until either side has closed the connection."""
        await self._ended.wait()

    def close(self, because: str = "closed by this client") -> None:
        """Close at once; pending requests fail with BrokerConnectionError. Safe to call again."""
        if self._closed_because is None:
            self._closed_because = because
            self._ended.set()
        self._writable.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        waiting, self._waiting = self._waiting, {}
        for answer, *_ in waiting.values():
            if not answer.done():
                answer.set_exception(BrokerConnectionError(str(self.address), self._closed_because))
                # the caller may be gone: keep asyncio from logging that the exception was never retrieved
                answer.exception()
