"""Spans: the conventions' names, the producer's trace, failures; and no cost where it is off."""

from __future__ import annotations

import threading

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from kohort.client.threads import DaemonThreads
from kohort.consumer import Record
from kohort.service import LockedRecord
from kohort.service.handlers.handler import HandlerFailedError
from kohort.service.handlers.registration import make_handler
from kohort.service.handlers.retry import Retry
from kohort.service.reporting.tracing import Tracing
from tests.consumer.share.records import Desk

PRODUCER = (("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),)
TRACE_ID = 0x0AF7651916CD43DD8448EB211C80319C

_exporter = InMemorySpanExporter()


@pytest.fixture(scope="module", autouse=True)
def _provider() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(_exporter))
    trace.set_tracer_provider(provider)


@pytest.fixture
def spans() -> InMemorySpanExporter:
    _exporter.clear()
    return _exporter


def _record(offset: int, headers: tuple[tuple[str, bytes | None], ...] = PRODUCER) -> Record:
    return Record("orders", 2, offset, 0, b"k7", b"{}", headers, generation=5)


async def _send(
    topic: str,  # noqa: ARG001
    record: Record,  # noqa: ARG001
    error: BaseException,  # noqa: ARG001
    attempts: int,  # noqa: ARG001
    due_ms: int | None = None,  # noqa: ARG001
) -> None:
    raise AssertionError("no dead letters here")


async def test_a_record_is_one_span_in_the_trace_of_its_producer(spans: InMemorySpanExporter) -> None:
    seen: list[int] = []

    def bill(_: Record) -> None:
        assert threading.current_thread() is not threading.main_thread()
        seen.append(trace.get_current_span().get_span_context().trace_id)

    handler = make_handler(
        bill,
        ("orders",),
        model=None,
        lanes="partition",
        concurrency=1,
        retry=None,
        dead_letter=None,
        batch=1,
        takes_batches=False,
    )
    handler.tracing = Tracing("billing", "app", lambda: "app-1")
    threads = DaemonThreads(1, "orders")
    await handler.run([_record(41)], 1, threads, _send)
    threads.close()
    [span] = spans.get_finished_spans()
    assert (span.name, span.kind) == ("process orders", SpanKind.CONSUMER)
    assert seen == [TRACE_ID], "the sync handler's thread has the span too"
    assert span.parent is not None
    assert span.parent.span_id == 0xB7AD6B7169203331
    assert dict(span.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "2",
        "messaging.kafka.offset": 41,
        "messaging.kafka.message.key": "k7",
        "messaging.consumer.group.name": "billing",
        "messaging.client.id": "app",
        "code.function.name": bill.__qualname__,
        "kohort.attempt": 1,
        "kohort.generation": 5,
        "kohort.member.id": "app-1",
    }


async def test_a_batch_is_linked_to_the_traces_of_its_records(spans: InMemorySpanExporter) -> None:
    async def book(records: list[Record]) -> None: ...

    handler = make_handler(
        book,
        ("orders",),
        model=None,
        lanes="partition",
        concurrency=1,
        retry=None,
        dead_letter=None,
        batch=10,
        takes_batches=True,
    )
    handler.tracing = Tracing("billing", "app", lambda: "app-1")
    await handler.run([_record(1), _record(2), _record(3, ())], 1, None, _send)
    [span] = spans.get_finished_spans()
    assert [link.context.trace_id for link in span.links] == [TRACE_ID]
    assert span.parent is None
    assert (span.attributes or {})["messaging.batch.message_count"] == 3


async def test_the_span_of_a_record_of_a_share_group_tells_its_delivery(spans: InMemorySpanExporter) -> None:
    (share,) = Desk().take(5, delivery_count=3)
    handler = make_handler(lambda _: None, ("orders",), in_share=True)
    handler.tracing = Tracing("queue", "app", lambda: "app-1")
    threads = DaemonThreads(1, "test")
    assert await handler.run([LockedRecord.of(share)], 1, threads, _send) is None
    threads.close()
    (span,) = spans.get_finished_spans()
    assert (span.attributes or {})["kohort.delivery_count"] == 3


async def test_a_try_that_fails_is_a_failed_span(spans: InMemorySpanExporter) -> None:
    async def fail(_: Record) -> None:
        raise OSError("the bank is closed")

    handler = make_handler(
        fail,
        ("orders",),
        model=None,
        lanes="partition",
        concurrency=1,
        retry=Retry(attempts=2, backoff_ms=0),
        dead_letter=None,
        batch=1,
        takes_batches=False,
    )
    handler.tracing = Tracing("billing", "app", lambda: "app-1")
    assert await handler.run([_record(1)], 1, None, _send) is not None
    with pytest.raises(HandlerFailedError):
        await handler.run([_record(1)], 2, None, _send)
    first, second = spans.get_finished_spans()
    assert first.status.status_code is StatusCode.ERROR
    assert [event.name for event in first.events] == ["exception"]
    assert [(span.attributes or {})["kohort.attempt"] for span in (first, second)] == [1, 2]
