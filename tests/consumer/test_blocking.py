"""The blocking face, where it differs from the async one: threads, and use before or after its time."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kohort.consumer import BrokerConnectionError, ConsumerClosedError, GroupConsumer, Record


def _consumer(**settings: Any) -> GroupConsumer:
    return GroupConsumer("orders", bootstrap="127.0.0.1:1", group="billing", **settings)


def test_a_consumer_that_was_not_started_says_so() -> None:
    consumer = _consumer()
    with pytest.raises(ConsumerClosedError, match="was not started: use it in 'with'"):
        consumer.getmany()
    with pytest.raises(ConsumerClosedError, match="not started"):
        consumer.done(Record("orders", 0, 0, 0, None, None))
    with pytest.raises(ConsumerClosedError, match="not started"):
        next(iter(consumer))
    consumer.close()


def test_no_broker_is_an_error_and_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    consumer = _consumer(default_api_timeout_ms=50)
    with pytest.raises(BrokerConnectionError, match=r"127\.0\.0\.1:1"), consumer:
        pass
    assert threading.active_count() == before
    with pytest.raises(ConsumerClosedError, match="has been closed"):
        consumer.getmany()
    consumer.close()


def test_its_name_says_what_it_is() -> None:
    assert repr(_consumer()).startswith("GroupConsumer('billing', Unjoined")
