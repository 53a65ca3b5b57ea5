"""Pending responses: made when a request is taken, filled when the coordinator has answered."""

from __future__ import annotations

from typing import Any, Protocol

from ..protocol import MessageCodec
from ._stopwatch import clock
from .apis._api import replaced
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


class PendingResponse:
    """Response to a request that is answered without a task. They leave in the order of their requests."""

    __slots__ = ("_codec", "_connection", "_correlation_id", "_meter", "parks", "response")

    def __init__(self, connection: Caller, codec: MessageCodec, correlation_id: int, meter: ApiMeter) -> None:
        self._connection = connection
        self._codec = codec
        self._correlation_id = correlation_id
        self._meter = meter
        self.response: bytes | bytearray | None = None
        #: Whether the answer may have to wait for other members; nothing overtakes it then.
        self.parks = False

    def set(self, body: Any) -> None:
        """The answer, from the coordinator: at once, or when what it promises is written."""
        assert self.response is None, "a request is answered once"
        meter = self._meter
        if not meter.flat or body.error_code:
            meter.see(body)
        self.response = self._codec.response_frame(self._correlation_id, body)
        self._connection.answered()


class TimedResponse(PendingResponse):
    """One that is timed. ``begun_s`` is when its request was taken up, ``queue_s`` what it waited before."""

    __slots__ = ("_begun_s", "_queue_s", "_submitted_s")

    def __init__(
        self,
        connection: Caller,
        codec: MessageCodec,
        correlation_id: int,
        meter: ApiMeter,
        begun_s: float,
        queue_s: float,
    ) -> None:
        super().__init__(connection, codec, correlation_id, meter)
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
        self._meter.took(self._queue_s, worked_until - self._begun_s, now - worked_until)


class MeteredResponse(PendingResponse):
    """One of a client whose time is limited: it tells the delay for what the client has used by now."""

    __slots__ = ("_gauge", "_throttle")

    def __init__(
        self,
        connection: Caller,
        codec: MessageCodec,
        correlation_id: int,
        meter: ApiMeter,
        throttle: Throttle,
        gauge: Gauge,
    ) -> None:
        super().__init__(connection, codec, correlation_id, meter)
        self._throttle = throttle
        self._gauge = gauge

    def set(self, body: Any) -> None:
        """The answer. What the connection has run since its last answer is what this one cost."""
        now = clock()
        if delay_s := self._gauge.record(self._connection.lap(now) * 100.0, now):
            delay_s = self._throttle.told_s(self._gauge, delay_s)
            if delay_ms := told_ms(delay_s):
                body = replaced(body, throttle_time_ms=delay_ms)
                self._meter.throttle.record(delay_s)
                self._connection.mute(delay_ms / 1000)
        super().set(body)
