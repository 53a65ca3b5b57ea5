"""Throttling: the cost of a request against its client's quotas. Nothing else delays responses.

A response over a quota is sent at once and tells its client how long to wait (``throttle_time_ms``, KIP-219);
for that time the connection is not read. Produced records stay; the response to a Fetch is empty, that to a
ShareFetch is not: nobody else could be given its records until their locks end.
"""

from __future__ import annotations

from typing import Final, Protocol

from ...protocol import ErrorCode, KafkaError, RequestContext
from ._client_quotas import ClientQuotas, ClientUse
from ._windows import Gauge

#: Longest delay that a response can express, in seconds.
MAX_DELAY_S: Final = (2**31 - 1) / 1000


class ChargedRequest(Protocol):
    """The part of a request that quotas need."""

    #: Throttle time in seconds for what this request did; delays for time and bytes are added later.
    delay_s: float

    @property
    def context(self) -> RequestContext:
        """Sender of the request."""

    @property
    def produces(self) -> bool:
        """Return whether its bytes count towards the quota of producers."""

    @property
    def knows_quota_error(self) -> bool:
        """Return whether its client knows THROTTLING_QUOTA_EXCEEDED."""


class Throttle:
    """Computes the delays of a client's responses, by its quotas."""

    def __init__(self, quotas: ClientQuotas) -> None:
        self.quotas = quotas

    def use_of(self, context: RequestContext, now: float) -> ClientUse:
        """Return the gauges of a request's sender."""
        return self.quotas.of(context.principal, context.client_id, now)

    def time_delay_s(self, use: ClientUse, spent_s: float, now: float) -> float:
        """The delay for time that was spent on a client's request, in seconds."""
        gauge = use.request
        if gauge is None:
            return 0.0
        delay_s = gauge.record(spent_s * 100.0, now)
        return self.told_s(gauge, delay_s) if delay_s else 0.0

    def told_s(self, gauge: Gauge, delay_s: float) -> float:
        """The part of a delay that is imposed at once: one window at most."""
        delay_s = min(delay_s, self.quotas.max_request_delay_s)
        gauge.throttled_s += delay_s
        return delay_s

    def charge(self, context: RequestContext, spent_s: float, now: float) -> None:
        """Count time that was spent after the response was made: it delays the next one."""
        gauge = self.use_of(context, now).request
        if gauge is not None:
            gauge.record(spent_s * 100.0, now)

    def delay_s(self, request: ChargedRequest, *, request_bytes: int, spent_s: float, now: float) -> float:
        """The delay for a request that was carried out, in seconds."""
        use = self.use_of(request.context, now)
        delay_s = max(request.delay_s, self.time_delay_s(use, spent_s, now))
        if use.produce is not None and request.produces:
            bytes_delay_s = use.produce.record(request_bytes, now)
            use.produce.throttled_s += bytes_delay_s
            delay_s = max(delay_s, bytes_delay_s)
        return min(delay_s, MAX_DELAY_S)

    def fetch_delay_s(
        self, request: ChargedRequest, *, answer_bytes: int, sent: bool, spent_s: float, now: float
    ) -> float:
        """The delay for a response with records, in seconds. ``sent``: it is sent even so, as for ShareFetch;
        else it must not be sent unless the delay is 0.
        """
        use = self.use_of(request.context, now)
        delay_s = self.time_delay_s(use, spent_s, now)
        if use.fetch is not None:
            bytes_delay_s = use.fetch.record(answer_bytes, now)
            use.fetch.throttled_s += bytes_delay_s
            delay_s = max(delay_s, bytes_delay_s)
            if told_ms(delay_s) and not sent:
                use.fetch.take_back(answer_bytes)
        return min(delay_s, MAX_DELAY_S)

    def fetch_limit(self, request: ChargedRequest, now: float) -> int | None:
        """Most bytes that a Fetch may be answered with; None for no limit."""
        return self.quotas.fetch_limit(self.use_of(request.context, now)) if self.quotas.active else None

    def mutate(self, request: ChargedRequest, partitions: int, now: float) -> None:
        """Count partitions that a request is about to create or delete.

        Raises KafkaError THROTTLING_QUOTA_EXCEEDED if the client has to retry later; clients that do not know
        that error are delayed instead.
        """
        gauge = self.use_of(request.context, now).mutation if self.quotas.active else None
        if gauge is None:
            return
        strict = request.knows_quota_error
        refused = strict and gauge.used(now) < 0
        if not refused:
            gauge.record(partitions, now)
        if not strict or refused:
            delay_s = gauge.delay_s(now)
            gauge.throttled_s += delay_s
            request.delay_s = max(request.delay_s, delay_s)
        if refused:
            raise KafkaError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                f"more partitions were made or deleted than {gauge.limit:g} a second: come again later",
            )


def told_ms(delay_s: float) -> int:
    """A delay as a response has it, in ms, rounded."""
    return round(delay_s * 1000)
