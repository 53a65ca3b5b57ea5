"""The consumer's events as lines that a person understands."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from kohort.consumer import Record, events
from kohort.protocol import KafkaError, TopicPartition
from kohort.service import ConsumerService
from kohort.service.reporting.log import ServiceLog
from kohort.testing import RunningBroker, run_service

ORDERS = TopicPartition("orders", 3)


def _written(event: events.Event, caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    caplog.set_level("DEBUG", "kohort")
    ServiceLog().event("billing", event)
    return [(each.levelname, each.getMessage()) for each in caplog.records]


@pytest.mark.parametrize(
    ("event", "level", "text"),
    [
        (
            events.OffsetReset(ORDERS, None, "nothing is committed", "earliest", 0),
            "INFO",
            "orders-3 starts at offset 0: nothing is committed (auto_offset_reset: earliest)",
        ),
        (events.LogTruncated(ORDERS, 18, 3, 12), "WARNING", "the log of orders-3 was cut before offset 18"),
        (events.TopicMissing("orders", KafkaError(3, "no such topic")), "WARNING", "topic orders cannot be"),
        (
            events.BrokerUnavailable("joining", OSError("connection refused")),
            "WARNING",
            "joining failed and is tried again: OSError: connection refused",
        ),
        (events.ConsumerFailed(ValueError("no right to read")), "ERROR", "no right to read"),
        (events.PartitionsLost((ORDERS,), "the session ended"), "WARNING", "lost orders-3, so records may"),
        (events.CommitFailed((ORDERS,), KafkaError(16, "")), "WARNING", "a commit of orders-3 failed"),
        (events.WindowFull(ORDERS, 7, 42), "WARNING", "7 records of orders-3 are delivered and not done"),
        (events.LoopBlocked(4_000, "bill (billing.py:31)"), "WARNING", "bill (billing.py:31)"),
    ],
)
async def test_an_event_is_a_sentence_at_its_level(
    event: events.Event, level: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    ((written, line),) = _written(event, caplog)
    assert written == level
    assert text in line
    assert line.startswith("group billing: ")


#: Of each kind of field one that an event could have.
SAMPLES: dict[str, Any] = {
    "Partitions": (ORDERS,),
    "TopicPartition": ORDERS,
    "Exception": ValueError("no"),
    "BaseException": ValueError("no"),
    "Mapping[TopicPartition, int]": {ORDERS: 1},
    "tuple[str, ...]": ("orders",),
    "str": "text",
    "int": 1,
    "int | None": 1,
    "float": 1.0,
    "bool": True,
}


async def test_nothing_above_debug_is_the_repr_of_an_event(caplog: pytest.LogCaptureFixture) -> None:
    kinds = [
        each for _, each in inspect.getmembers(events, inspect.isclass) if issubclass(each, events.Event)
    ]
    for kind in kinds:
        if kind in (events.Event, events.StateChanged):
            continue
        values = {name: SAMPLES[text] for name, text in inspect.get_annotations(kind).items()}
        caplog.clear()
        ((level, line),) = _written(kind(**values), caplog)
        assert level == "DEBUG" or kind.__name__ not in line


async def test_an_event_that_goes_on_and_on_is_a_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    lines = ServiceLog()
    for _ in range(1_000):
        lines.event("billing", events.BrokerUnavailable("joining", OSError("connection refused")))
    assert len(caplog.records) < 10


def test_the_service_writes_what_its_consumer_then_does_not(
    kohort_broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "kohort")
    service = ConsumerService(bootstrap="127.0.0.1:1", group="billing")

    @service.handler("orders")
    async def bill(record: Record) -> None:
        pass

    kohort_broker.create_topic("orders", 1)
    run_service(kohort_broker, service, {"orders": ["x"]})
    written = [each for each in caplog.records if "starts at offset 0: nothing is" in each.getMessage()]
    assert len(written) == 1
    assert {each.name for each in written} == {"kohort.service"}
