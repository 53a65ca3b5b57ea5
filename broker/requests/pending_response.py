"""Pending responses: created when a request is accepted, filled when the coordinator answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from ...protocol import MessageCodec
from ...protocol.named_tuples import NamedTuple
from ..apis._api import AnyApi, replaced
from ..clients.known_commits import KnownCommit
from ..event_loop.stopwatch import clock
from ..metrics import ApiMeter
from ..quotas import Gauge, Throttle, told_ms


class Caller(Protocol):
    """The connection that a request arrived on."""

    #: Whether the next request of a limited client is charged with the time since the previous one.
    unmetered: bool

    def on_answer(self) -> None:
        """Called when a response is available: send what is now due."""

    def take_run_time(self, now: float) -> float:
        """Seconds that the connection has run and is not charged for yet; 0.0 while it does not run."""

    def mute(self, seconds: float) -> None:
        """Accept no requests for this long."""


class Route(NamedTuple):
    """How requests of one API and version are read, counted and answered."""

    codec: MessageCodec
    meter: ApiMeter
    api: AnyApi


@dataclass(slots=True, eq=False)
class PendingResponse:
    """Response to a request that is answered without a task. Responses are sent in the order of their
    requests.
    """

    _connection: Caller
    _route: Route
    _correlation_id: int
    response: bytes | bytearray | None = field(default=None, init=False)

    @property
    def parks(self) -> bool:
        """Return whether the response may have to wait for other members; no other response overtakes it
        then.
        """
        return self._route.api.parks

    def set(self, body: Any) -> None:
        """Take the coordinator's response, at once or when the records that it depends on are written."""
        assert self.response is None, "a request is answered once"
        codec, meter, _ = self._route
        if not meter.flat or body.error_code:
            meter.count_error(body)
        self.response = codec.response_frame(self._correlation_id, body)
        self._connection.on_answer()


@dataclass(slots=True, eq=False)
class KnownResponse(PendingResponse):
    """Response to a repeated commit, whose usual response is already encoded."""

    _known: KnownCommit

    def set(self, body: object) -> None:
        """Take the answer; the one known in advance is sent as bytes that were made before."""
        known = self._known
        if body is not known.answer:
            PendingResponse.set(self, body)
            return
        assert self.response is None, "a request is answered once"
        self._route.meter.items += known.partitions
        self.response = known.response_frame(self._correlation_id)
        self._connection.on_answer()


@dataclass(slots=True, eq=False)
class TimedResponse(PendingResponse):
    """A timed response: its request waited for ``queue_s`` and was started at ``begun_s``."""

    _begun_s: float
    _queue_s: float
    _submitted_s: float | None = field(default=None, init=False)

    def on_submitted(self) -> None:
        """Called when the coordinator has the request. Without a response by now, it is waiting."""
        if self.response is None:
            self._submitted_s = clock()

    def set(self, body: object) -> None:
        """Take the answer, and record how long the request waited and was worked on."""
        PendingResponse.set(self, body)
        now = clock()
        worked_until = now if self._submitted_s is None else self._submitted_s
        self._route.meter.record_phases(self._queue_s, worked_until - self._begun_s, now - worked_until)


@dataclass(slots=True, eq=False)
class MeteredResponse(PendingResponse):
    """Response to a client with a quota of time: it carries the delay for what the client has used."""

    _throttle: Throttle
    _gauge: Gauge

    def set(self, body: object) -> None:
        """Take the response. It cost the time that the connection has run since its last response."""
        now = clock()
        if delay_s := self._gauge.record(self._connection.take_run_time(now) * 100.0, now):
            delay_s = self._throttle.told_s(self._gauge, delay_s)
            if delay_ms := told_ms(delay_s):
                body = replaced(body, throttle_time_ms=delay_ms)
                self._route.meter.throttle.record(delay_s)
                self._connection.mute(delay_ms / 1000)
        PendingResponse.set(self, body)
