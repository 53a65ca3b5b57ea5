"""A router that makes requests fail as a test wants, and the list of faults."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

from ..broker.apis import Request
from ..broker.requests.router import Router
from ..protocol import (
    ApiKey,
    ErrorCode,
    ProtocolError,
    api_for,
    decode_request,
    decode_request_header,
    encode_response,
)

if TYPE_CHECKING:
    from ..broker.clients.client_state import Peer
    from ..broker.requests.pending_response import Caller, PendingResponse

E = TypeVar("E", bound=IntEnum)

_NAMES: dict[type[IntEnum], str] = {
    ApiKey: "API of Kafka; say, for example, 'fetch' or 'offset_commit'",
    ErrorCode: "error of Kafka; say, for example, 'NOT_COORDINATOR'",
}

#: APIs of the coordinator: refused while it is stopped.
GROUP_APIS = frozenset(
    {ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP}
    | {ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH}
)


@dataclass(slots=True, eq=False)
class Fault:
    """A fault that affects the next ``left`` requests of an API; ``hits`` counts the affected ones."""

    apis: frozenset[int]
    left: float
    client_id: str | None
    delay_s: float = 0.0
    error: ErrorCode | None = None
    drop: bool = False
    #: With ``drop``: the request is carried out, only its response is lost.
    answer_only: bool = False
    hits: int = 0

    def fits(self, api_key: int, client_id: str | None) -> bool:
        return self.left > 0 and api_key in self.apis and self.client_id in (None, client_id)


@dataclass(slots=True, eq=False)
class RequestFaults:
    """Faults of a broker's answers, by API: ``ApiKey.FETCH`` or its name, ``"fetch"``.

    Each affects the next ``times`` requests (of ``client_id`` only, if given); ``clear`` removes all. The
    first fault that matches a request hits it.
    """

    _faults: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def drop(
        self, api: ApiKey | str, times: int = 1, *, answer_only: bool = False, client_id: str | None = None
    ) -> Fault:
        """Close the connection instead of answering; with ``answer_only`` the request is carried out."""
        return self._add(api, times, client_id, drop=True, answer_only=answer_only)

    def delay(
        self, api: ApiKey | str, seconds: float, times: int = 1, *, client_id: str | None = None
    ) -> Fault:
        """Delay the request; later requests of its connection wait as well."""
        return self._add(api, times, client_id, delay_s=seconds)

    def error(
        self, api: ApiKey | str, error: ErrorCode | str, times: int = 1, *, client_id: str | None = None
    ) -> Fault:
        """Answer the request with this error, without carrying it out."""
        return self._add(api, times, client_id, error=_member_named(ErrorCode, error))

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._faults.clear()

    @contextmanager
    def coordinator_stopped(self) -> Iterator[None]:
        """Within the block, refuse requests about groups with NOT_COORDINATOR, and find no coordinator."""
        refused, lost = ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE
        both = [
            Fault(GROUP_APIS, float("inf"), None, error=refused),
            Fault(frozenset({ApiKey.FIND_COORDINATOR}), float("inf"), None, error=lost),
        ]
        with self._lock:
            self._faults[:0] = both
        try:
            yield
        finally:
            with self._lock:
                self._faults = [each for each in self._faults if each not in both]

    def _add(self, api: ApiKey | str, times: int, client_id: str | None, **what: Any) -> Fault:
        if times < 1:
            raise ValueError(f"times={times}: a fault happens at least once")
        key = _member_named(ApiKey, api)
        fault = Fault(frozenset({key}), times, client_id, **what)
        with self._lock:
            self._faults.append(fault)
        return fault

    def active(self) -> bool:
        """Return whether any fault is left."""
        return bool(self._faults)

    def take(self, api_key: int, client_id: str | None) -> Fault | None:
        """Take the fault of this request, counting one more hit."""
        with self._lock:
            for fault in self._faults:
                if fault.fits(api_key, client_id):
                    fault.left -= 1
                    fault.hits += 1
                    if not fault.left:
                        self._faults.remove(fault)
                    return fault
        return None


def _member_named(kind: type[E], given: E | str) -> E:
    """Return the API or the error with this name."""
    if isinstance(given, kind):
        return given
    name = str(given).replace("-", "_").upper()
    if name not in kind.__members__:
        raise ValueError(f"{given!r} is no {_NAMES[kind]}")
    return kind[name]


class FaultyRouter(Router):
    """A router with faults; without any it behaves like the normal one."""

    __slots__ = ("_faults",)

    def __init__(self, faults: RequestFaults, *parts: Any) -> None:
        super().__init__(*parts)
        self._faults = faults

    def take(self, frame: bytes, peer: Peer, connection: Caller, calls: deque[PendingResponse]) -> bool:
        if self._faults.active():
            return False
        return super().take(frame, peer, connection, calls)

    async def answer(self, frame: bytes, peer: Peer) -> Any:
        if not self._faults.active():
            return await super().answer(frame, peer)
        header = decode_request_header(frame)
        fault = self._faults.take(header.api_key, header.client_id)
        if fault is not None and fault.delay_s:
            await asyncio.sleep(fault.delay_s)
        if fault is not None and fault.drop:
            if fault.answer_only:
                await super().answer(frame, peer)
            raise ProtocolError(f"{api_for(header.api_key).name} is dropped, as the test wants it")
        if fault is None or fault.error is None:
            return await super().answer(frame, peer)
        api = self.api_of(frame)
        assert api is not None, "a request that can be answered is of an API that is served"
        body = decode_request(frame, header)
        request = Request(api, header.api_version, body, peer.context(header.client_id), peer.endpoint)
        if (answer := request.error_answer(fault.error)) is None:
            return None
        return encode_response(header.api_key, header.api_version, header.correlation_id, answer)
