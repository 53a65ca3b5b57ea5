"""Spans around handlers, by OpenTelemetry's conventions for messaging. Needs the extra "tracing"."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ...client.errors import ConfigError
from ..share.deliveries import LockedRecord

if TYPE_CHECKING:
    from ...consumer.record import Record


def require_opentelemetry() -> None:
    """Raises ConfigError when it is not installed."""
    if importlib.util.find_spec("opentelemetry") is None:
        raise ConfigError("tracing=True needs OpenTelemetry: pip install 'kohort[tracing]'")


class Tracing:
    """Makes a span for each call of a handler; the producer's trace goes on in it.

    A single record's span is a child of the span in its headers (W3C ``traceparent``); the span of a batch is
    linked to those of all its records. Sync handlers see the span too: their threads get the context.
    """

    def __init__(self, group: str, client_id: str, member_id: Callable[[], str]) -> None:
        from opentelemetry import propagate, trace

        self._trace = trace
        self._extract = propagate.extract
        self._tracer = trace.get_tracer("kohort.service")
        self._member_id = member_id
        self._common: dict[str, Any] = {
            "messaging.system": "kafka",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.consumer.group.name": group,
            "messaging.client.id": client_id,
        }

    def span(self, handler: str, records: Sequence[Record], attempt: int) -> AbstractContextManager[Any]:
        """A context manager around the handler's call; an exception marks the span as failed."""
        first = records[0]
        attributes = {
            **self._common,
            "messaging.destination.name": first.topic,
            "messaging.destination.partition.id": str(first.partition),
            "messaging.kafka.offset": first.offset,
            "code.function.name": handler,
            "kohort.attempt": attempt,
            "kohort.generation": first.generation,
            "kohort.member.id": self._member_id(),
        }
        if isinstance(first, LockedRecord):
            attributes["kohort.delivery_count"] = first.delivery_count
        links, parent = None, None
        if len(records) > 1:
            attributes["messaging.batch.message_count"] = len(records)
            spans = [self._trace.get_current_span(self._context_of(each)) for each in records]
            contexts = {context.span_id: context for context in (span.get_span_context() for span in spans)}
            links = [self._trace.Link(context) for context in contexts.values() if context.is_valid]
        else:
            if first.key is not None:
                attributes["messaging.kafka.message.key"] = first.key.decode(errors="replace")
            parent = self._context_of(first)
        return self._tracer.start_as_current_span(
            f"process {first.topic}",
            context=parent,
            kind=self._trace.SpanKind.CONSUMER,
            attributes=attributes,
            links=links,
        )

    def _context_of(self, record: Record) -> Any:
        carrier = {name: value.decode(errors="replace") for name, value in record.headers if value}
        return self._extract(carrier)
