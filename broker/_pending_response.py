"""Pending responses: made when a request is taken, filled when the coordinator has answered."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ..protocol import MessageCodec
from ._stopwatch import clock
from .apis._api import ServedApi, replaced
from .metrics import ApiMeter
from .quotas import Gauge, Throttle, told_ms


class Caller(Protocol):
    """The connection that a request came by."""

    def answered(self) -> None:
        """A response is there: send what is now due."""

    def lap(self, now: float) -> float:
        """Seconds that the connection has run since the last lap; 0.0 while it does not run."""

    def mute(self, seconds: float) -> None:
        """Take nothing more for so long."""


class Route(NamedTuple):
    """Where requests of one API and version go, and how they are read, counted and answered."""

    codec: MessageCodec
    meter: ApiMeter
    api: ServedApi


class PendingResponse:
    """Response to a request that is answered without a task. They leave in the order of their requests."""

    __slots__ = ("_connection", "_correlation_id", "_route", "response")

    def __init__(self, connection: Caller, route: Route, correlation_id: int) -> None:
        self._connection = connection
        self._route = route
        self._correlation_id = correlation_id
        self.response: bytes | bytearray | None = None

    @property
    def parks(self) -> bool:
        """Whether the answer may have to wait for other members; nothing overtakes it then."""
        return self._route.api.parks

    def set(self, body: Any) -> None:
        """The answer, from the coordinator: at once, or when what it promises is written."""
        assert self.response is None, "a request is answered once"
        codec, meter, _ = self._route
        if not meter.flat or body.error_code:
            meter.see(body)
        self.response = codec.response_frame(self._correlation_id, body)
        self._connection.answered()


class TimedResponse(PendingResponse):
    """One that is timed. ``begun_s`` is when its request was taken up, ``queue_s`` what it waited before."""

    __slots__ = ("_begun_s", "_queue_s", "_submitted_s")

    def __init__(
        self,
        connection: Caller,
        route: Route,
        correlation_id: int,
        begun_s: float,
        queue_s: float,
    ) -> None:
        super().__init__(connection, route, correlation_id)
        self._begun_s = begun_s
        self._queue_s = queue_s
        self._submitted_s: float | None = None

    def submitted(self) -> None:
        """The coordinator has it: if it is not answered by now it waits."""
        if self.response is None:
            self._submitted_s = clock()

    def set(self, body: Any) -> None:
        """The answer, with which its time ends."""
        super().set(body)
        now = clock()
        worked_until = now if self._submitted_s is None else self._submitted_s
        self._route.meter.took(self._queue_s, worked_until - self._begun_s, now - worked_until)


class MeteredResponse(PendingResponse):
    """One of a client whose time is limited: it tells the delay for what the client has used by now."""

    __slots__ = ("_gauge", "_throttle")

    def __init__(
        self,
        connection: Caller,
        route: Route,
        correlation_id: int,
        throttle: Throttle,
        gauge: Gauge,
    ) -> None:
        super().__init__(connection, route, correlation_id)
        self._throttle = throttle
        self._gauge = gauge

    def set(self, body: Any) -> None:
        """The answer. What the connection has run since its last answer is what this one cost."""
        now = clock()
        if delay_s := self._gauge.record(self._connection.lap(now) * 100.0, now):
            delay_s = self._throttle.told_s(self._gauge, delay_s)
            if delay_ms := told_ms(delay_s):
                body = replaced(body, throttle_time_ms=delay_ms)
                self._route.meter.throttle.record(delay_s)
                self._connection.mute(delay_ms / 1000)
        super().set(body)
