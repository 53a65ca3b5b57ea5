"""The blocking share consumer: the same on a thread, and what other threads may do.

Covers: consumer/share/blocking.py.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest

from kohort.client import ConsumerClosedError
from kohort.consumer import BlockingShareConsumer
from kohort.consumer.share.records import AlreadyAcknowledgedError, ShareRecord

pytestmark = [pytest.mark.kafka]

Name = Callable[[str], str]
NewTopic = Callable[..., str]
Produce = Callable[..., None]


def test_records_are_accepted_in_their_blocks_and_released_after_errors(
    bootstrap: str, queue: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic("orders", partitions=1)
    produce(topic, range(20))
    seen: Counter[int] = Counter()
    with BlockingShareConsumer(topic, bootstrap=bootstrap, group=queue) as consumer:
        for record in consumer:
            number = int(record.value or b"")
            seen[number] += 1
            try:
                with record:
                    assert number != 7 or record.delivery_count > 1
            except AssertionError:
                continue
            if seen.total() == 21:
                break
        with pytest.raises(AlreadyAcknowledgedError):
            record.accept()
        assert set(consumer.flush().values()) <= {None}
        assert consumer.getmany(timeout_ms=200) == []
    assert seen == Counter(range(20)) + Counter([7])


def test_other_threads_say_what_became_of_records_and_all_of_it_counts(
    bootstrap: str, queue: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic, found = new_topic("shared", partitions=2), list[ShareRecord]()
    produce(topic, range(400), partitions=2)
    with BlockingShareConsumer(topic, bootstrap=bootstrap, group=queue) as consumer:
        while len(found) < 400:
            records = consumer.getmany(timeout_ms=10_000)
            assert records
            found += records
            parts = [records[at::4] for at in range(4)]
            threads = [threading.Thread(target=consumer.accept, args=(part,)) for part in parts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert all(error is None for error in consumer.flush().values())
    assert Counter(int(record.value or b"") for record in found) == Counter(range(400))
    with BlockingShareConsumer(topic, bootstrap=bootstrap, group=queue) as consumer:
        assert consumer.getmany(timeout_ms=1_500) == []


def test_a_loop_ends_when_another_thread_closes_and_calls_are_refused_then(
    bootstrap: str, queue: str, new_topic: NewTopic
) -> None:
    consumer = BlockingShareConsumer(new_topic("idle", partitions=1), bootstrap=bootstrap, group=queue)
    with pytest.raises(ConsumerClosedError, match="was not started"):
        consumer.getmany()
    consumer.start()
    closing = threading.Timer(0.2, consumer.close)
    closing.start()
    assert list(consumer) == []
    closing.join()
    consumer.close()
    with pytest.raises(ConsumerClosedError, match="has been closed"):
        consumer.getmany()
