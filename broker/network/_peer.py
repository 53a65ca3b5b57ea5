"""The other end of a connection: who it is, and what is known of it from request to request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...protocol import ANONYMOUS, MessageCodec, RequestContext, decode_request_header
from .._refused import RefusedBatches
from .._repeats import Repeats
from ..authorizer._authorizer import Readable
from ..metrics import ApiMeter
from ..metrics._traffic import Traffic
from ..quotas import Gauge

#: Where a header's client id starts, after the correlation id.
_CLIENT_ID_AT = 8


class KnownHeader(NamedTuple):
    """The last header that was read, starting after its correlation id: its bytes, where they end, and what
    they say. Most clients never send another.
    """

    flexible: bool
    data: bytes
    end: int
    context: RequestContext


@dataclass(slots=True)
class Peer:
    """Identity of a client, and its listener. ``endpoint`` is the address that the client is to be told."""

    host: str
    endpoint: tuple[str, int]
    listener: str = "PLAINTEXT"
    principal: str = ANONYMOUS
    #: How long its connection takes nothing more once the answer has left, in ms.
    delay_ms: int = 0
    #: How long the request that is being taken up has waited, in seconds, and what measured the last.
    queue_s: float = 0.0
    #: What measures the time of its requests, for this context and state of the quotas.
    gauge: Gauge | None = None
    gauge_context: RequestContext | None = None
    gauge_epoch: int = 0
    meter: ApiMeter | None = None
    traffic: Traffic = field(default_factory=Traffic)
    #: The last header of a request that needed no task.
    header: KnownHeader | None = None
    #: The body of its last heartbeat as bytes and read, and by which codec.
    heartbeat: tuple[MessageCodec | None, bytes, Any] = (None, b"", None)
    #: Its last commit, as far as it may come again.
    commits: Repeats = field(default_factory=Repeats)
    #: Its batches that it is to send again.
    refused: RefusedBatches = field(default_factory=RefusedBatches)
    #: What it is known to be allowed to read.
    readable: Readable | None = None
    _contexts: dict[str, RequestContext] = field(default_factory=dict)

    def identify(self, principal: str) -> None:
        """Let the next requests be those of ``principal`` (``User:alice``)."""
        self.principal = principal
        self._contexts.clear()
        self.header = None
        self.readable = None

    def read_header(self, frame: bytes, *, flexible: bool) -> KnownHeader:
        """The header of a request frame, kept for the next. Raises MalformedFrameError."""
        found = decode_request_header(frame)
        self.header = KnownHeader(
            flexible, frame[_CLIENT_ID_AT : found.size], found.size, self.context(found.client_id)
        )
        return self.header

    def take_delay_s(self) -> float:
        """Seconds that the connection has to wait for its last answer: told once."""
        delay_ms, self.delay_ms = self.delay_ms, 0
        return delay_ms / 1000

    def sent(self, seconds: float) -> None:
        """The last answer is with the system, after this long."""
        if self.meter is not None:
            self.meter.send.record(seconds)

    @property
    def client_id(self) -> str:
        return next(iter(self._contexts), "")

    def context(self, client_id: str | None) -> RequestContext:
        """The context of a request; one object while the client id stays the same."""
        name = client_id or ""
        known = self._contexts.get(name)
        if known is None:
            self._contexts.clear()
            known = self._contexts[name] = RequestContext(
                client_id=name,
                client_host=f"/{self.host}",
                principal=self.principal,
                listener=self.listener,
            )
        return known
