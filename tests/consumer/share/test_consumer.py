"""The share consumer without a broker: what is delivered, and what is refused.

Covers: consumer/share/consumer.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from kohort.client import ConfigError, ConsumerClosedError
from kohort.client.waiting import now_ms
from kohort.consumer import ShareConsumer
from kohort.consumer.share.records import RecordLock, ShareRecord
from kohort.protocol import AcknowledgeType
from tests.consumer.share.records import PLACE


def consumer_of(*topics: str) -> ShareConsumer:
    return ShareConsumer(*topics, bootstrap="localhost:9092", group="billing")


async def test_a_record_whose_lock_ended_while_it_waited_is_given_back_and_not_delivered() -> None:
    consumer = consumer_of("orders")
    ends = (now_ms() - 1, now_ms() + 60_000)
    late, fresh = (
        ShareRecord(consumer, PLACE, RecordLock(0, end), "orders", offset, 0, None, b"", (), 1)
        for offset, end in enumerate(ends)
    )
    consumer._locks.take(PLACE, [late, fresh], (), now_ms())
    consumer._on_records([late, fresh])
    consumer._started = True
    assert await consumer.getmany(timeout_ms=0) == [fresh]
    assert late.verdict is AcknowledgeType.RELEASE
    assert (consumer.state.locked, consumer.state.unanswered) == (1, 1)


async def test_calls_are_refused_before_the_start_and_after_the_end() -> None:
    consumer = consumer_of("orders")
    with pytest.raises(ConsumerClosedError, match="was not started"):
        await consumer.getmany()
    await consumer.close()
    with pytest.raises(ConsumerClosedError, match="has been closed"):
        await consumer.getmany()
    with pytest.raises(ConsumerClosedError, match="starts once"):
        await consumer.start()


@pytest.mark.parametrize("topics", [(), ("",), (None,)])
def test_topics_have_names(topics: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="give the names of one or more"):
        consumer_of(*topics)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"group": ""}, "group"),
        ({"max_locked_records": 0}, "max_locked_records"),
        ({"fetch_max_wait_ms": 30_000}, "fetch_max_wait_ms"),
        ({"auto_offset_reset": "earliest"}, "auto_offset_reset"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ShareConsumer("orders", **{"bootstrap": "localhost:9092", "group": "billing", **settings})
