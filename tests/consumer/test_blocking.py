"""The blocking face, where it differs from the async one: threads, and use before or after its time.

Covers: consumer/run/driver.py.
"""

from __future__ import annotations

import asyncio
import gc
import queue
import sys
import threading
import warnings
from itertools import islice
from typing import Any

import pytest

from kohort.consumer import BrokerConnectionError, ConsumerClosedError, GroupConsumer, Record
from kohort.testing import RunningBroker

RECORDS = 5_000


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


def test_without_a_global_interpreter_lock_records_come_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    records = [Record("orders", 0, offset, 0, None, None) for offset in range(5)]
    consumer = _consumer()
    monkeypatch.setattr(consumer, "_next_batches", lambda _: iter([records[:3], records[3:]]))
    assert list(consumer) == records


def test_no_record_marked_done_by_several_threads_at_once_is_forgotten(kohort_broker: RunningBroker) -> None:
    kohort_broker.create_topic("orders", 2)
    for partition in range(2):
        kohort_broker.produce("orders", ["x"] * RECORDS, partition=partition)
    interval = sys.getswitchinterval()
    settings: dict[str, Any] = {"bootstrap": kohort_broker.bootstrap, "group": "billing"}
    with GroupConsumer("orders", auto_offset_reset="earliest", **settings) as consumer:
        records: queue.SimpleQueue[Record | None] = queue.SimpleQueue()

        def mark() -> None:
            while (record := records.get()) is not None:
                consumer.done(record)

        threads = [threading.Thread(target=mark) for _ in range(4)]
        # not less: CPython 3.11 does not always bear to be interrupted while it compiles
        sys.setswitchinterval(1e-4)
        try:
            for thread in threads:
                thread.start()
            for record in islice(consumer, 2 * RECORDS):
                records.put(record)
            for _ in threads:
                records.put(None)
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        # which waits for what was marked before
        consumer.commit()
        assert consumer.state.undone == 0
        assert {p.partition: row.offset for p, row in consumer.committed().items()} == {
            0: RECORDS,
            1: RECORDS,
        }


def test_calls_that_a_loop_no_longer_runs_leave_no_coroutine_behind() -> None:
    consumer = _consumer()
    consumer._loop, consumer._thread = asyncio.new_event_loop(), threading.Thread(target=lambda: None)
    consumer._thread.start()
    # the loop has ended and is not closed yet: another thread was quicker to close the consumer
    consumer._over = True
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with pytest.raises(ConsumerClosedError):
            consumer.commit()
        consumer._stop_loop()
        consumer._loop.close()
        gc.collect()
    # what tests before this one left behind may be collected here too
    assert [str(each.message) for each in seen if "never awaited" in str(each.message)] == []
