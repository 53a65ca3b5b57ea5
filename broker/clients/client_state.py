"""The other end of a connection: its identity, and what is remembered from request to request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...protocol import ANONYMOUS, MessageCodec, RequestContext, decode_request_header
from ...protocol.named_tuples import NamedTuple
from ..authorizer._authorizer import Readable
from ..metrics import ApiMeter
from ..metrics._traffic import Traffic
from ..quotas import Gauge
from ..share.share_leader import ShareLink
from .known_commits import KnownCommits
from .retriable_batches import RefusedBatches

#: Where a header's client id starts, after the correlation id.
_CLIENT_ID_AT = 8


class KnownHeader(NamedTuple):
    """The last header that was read, from its correlation id on: its bytes, their end, and the decoded
    context. Most clients never send another.
    """

    flexible: bool
    data: bytes
    end: int
    context: RequestContext


@dataclass(slots=True)
class Peer:
    """Identity of a client, and its listener. ``endpoint`` is this broker's address for the client."""

    host: str
    endpoint: tuple[str, int]
    listener: str = "PLAINTEXT"
    principal: str = ANONYMOUS
    #: How long its connection accepts no requests after the response is sent, in ms.
    delay_ms: int = 0
    #: How long the current request waited before it was taken up, in seconds, and the meter of the last one.
    queue_s: float = 0.0
    #: The gauge of its requests' time, with the context and the epoch of the quotas for which it was looked
    #: up.
    gauge: Gauge | None = None
    gauge_context: RequestContext | None = None
    gauge_epoch: int = 0
    meter: ApiMeter | None = None
    traffic: Traffic = field(default_factory=Traffic)
    #: The last header of a request that needed no task.
    header: KnownHeader | None = None
    #: The codec of its last heartbeat, and the body as bytes and decoded.
    heartbeat: tuple[MessageCodec | None, bytes, Any] = (None, b"", None)
    #: Its last commit, if it may be repeated.
    commits: KnownCommits = field(default_factory=KnownCommits)
    #: Its batches that it is to send again.
    refused: RefusedBatches = field(default_factory=RefusedBatches)
    #: Cached decisions about what it may read.
    readable: Readable | None = None
    #: Its share sessions, once it has opened one.
    share: ShareLink | None = None
    _contexts: dict[str, RequestContext] = field(default_factory=dict)

    def identify(self, principal: str) -> None:
        """Attribute later requests to ``principal`` (``User:alice``)."""
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
        """Seconds for which the connection has to pause after its last response; 0.0 when asked again."""
        delay_ms, self.delay_ms = self.delay_ms, 0
        return delay_ms / 1000

    def on_sent(self, seconds: float) -> None:
        """Called when the operating system has the last response, after this many seconds."""
        if self.meter is not None:
            self.meter.send.record(seconds)
        if self.share is not None:
            self.share.on_sent()

    def on_closed(self) -> None:
        """Called when its connection is closed, and all that it sent is carried out."""
        if self.share is not None:
            self.share.close()

    @property
    def client_id(self) -> str:
        """The client id of its latest requests; "" before the first."""
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
