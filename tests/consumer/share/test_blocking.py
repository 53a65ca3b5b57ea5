"""The blocking share consumer: the same on a thread, and what other threads may do.

Covers: consumer/share/blocking.py.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress

import pytest

from kohort.client import ConsumerClosedError
from kohort.client.threads import LoopThread
from kohort.consumer import BlockingShareConsumer, ForkedError
from kohort.consumer.share import blocking
from kohort.consumer.share.records import AlreadyAcknowledgedError, RecordLock, ShareRecord
from tests.consumer.share.records import PLACE

pytestmark = [pytest.mark.kafka]

Name = Callable[[str], str]
NewTopic = Callable[..., str]
Produce = Callable[..., None]


def test_records_are_accepted_in_their_blocks_and_released_after_errors(
    bootstrap: str, queue: str, filled_topic: Callable[..., str]
) -> None:
    topic = filled_topic(20)
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
    for read in (consumer.getmany, lambda: list(consumer), lambda: list(consumer.batches())):
        with pytest.raises(ConsumerClosedError, match="was not started"):
            read()
    consumer.start()
    closing = threading.Timer(0.2, consumer.close)
    closing.start()
    assert list(consumer) == []
    closing.join()
    consumer.close()
    with pytest.raises(ConsumerClosedError, match="has been closed"):
        consumer.getmany()


def test_a_call_that_the_end_of_the_loop_breaks_off_says_that_the_consumer_is_closed() -> None:
    consumer = BlockingShareConsumer("orders", bootstrap="localhost:9092", group="billing")

    class Ending:
        is_alive = True

        def run(self, work: Coroutine[object, None, object]) -> object:
            work.close()
            raise CancelledError

    consumer._thread = Ending()  # type: ignore[assignment]
    for call in (consumer.flush, consumer.getmany):
        with pytest.raises(ConsumerClosedError, match="has been closed"):
            call()


def test_a_close_that_takes_what_was_read_ahead_while_a_loop_is_about_to_ends_the_loop() -> None:
    class Taken(deque[ShareRecord]):
        """Has records when it is looked at, and none when one is taken."""

        def __bool__(self) -> bool:
            return True

        def popleft(self) -> ShareRecord:
            consumer.close()
            return super().popleft()

    consumer = BlockingShareConsumer("orders", bootstrap="localhost:9092", group="billing")
    consumer._thread = LoopThread("of the consumer")
    consumer._ahead = Taken()
    assert list(consumer) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_that_is_forked_while_another_thread_says_something_is_told_of_the_fork() -> None:
    consumer = BlockingShareConsumer("orders", bootstrap="localhost:9092", group="billing")
    consumer._thread = LoopThread("of the parent")
    consumer._scheduled = True
    record = ShareRecord(consumer, PLACE, RecordLock(0, 1_000), "orders", 0, 0, None, b"", (), 1)
    is_held, is_over = threading.Event(), threading.Event()

    def say() -> None:
        with consumer._saying:
            is_held.set()
            is_over.wait()

    saying = threading.Thread(target=say)
    saying.start()
    is_held.wait()
    child = os.fork()
    if not child:
        with suppress(BaseException):
            signal.alarm(10)  # ends it if it waits for the lock
            try:
                record.accept()
            except ForkedError:
                os._exit(0)
        os._exit(1)
    is_over.set()
    saying.join()
    consumer._thread.stop()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_an_iteration_that_goes_on_in_a_forked_child_hands_out_no_record_of_the_parent() -> None:
    consumer = BlockingShareConsumer("orders", bootstrap="localhost:9092", group="billing")
    consumer._thread = LoopThread("of the parent")
    lock = RecordLock(0, time.monotonic() * 1000 + 60_000)
    records = [ShareRecord(consumer, PLACE, lock, "orders", at, 0, None, b"", (), 1) for at in range(3)]
    consumer._ahead.extend(records)
    reading = iter(consumer)
    assert next(reading) is records[0]
    child = os.fork()
    if not child:
        with suppress(BaseException):
            try:
                next(reading)
            except ForkedError:
                os._exit(0)
        os._exit(1)
    assert [next(reading), next(reading)] == records[1:]
    consumer._thread.stop()
    assert os.waitpid(child, 0)[1] == 0


def test_what_was_said_is_taken_before_more_records_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "_TAKEN_AFTER_S", 3_600.0)
    consumer = BlockingShareConsumer("orders", bootstrap="localhost:9092", group="billing")
    inner, now = consumer._consumer, time.monotonic() * 1000
    record = ShareRecord(consumer, PLACE, RecordLock(now, now + 60_000), "orders", 0, 0, None, b"", (), 1)
    inner._locks.take(PLACE, [record], (), now)
    unanswered: list[int] = []

    async def next_records(*_: object) -> list[ShareRecord]:
        unanswered.append(inner.state.unanswered)
        return []

    monkeypatch.setattr(inner, "next_records", next_records)
    consumer._thread = thread = LoopThread("kohort billing")
    try:
        record.accept()
        assert consumer.getmany(timeout_ms=0) == []
    finally:
        thread.stop()
    assert unanswered == [1]


def test_a_loop_that_is_left_and_begun_again_goes_on_and_what_it_leaves_is_given_back_at_the_end(
    bootstrap: str, queue: str, filled_topic: Callable[..., str]
) -> None:
    topic = filled_topic(12)
    seen: list[int] = []

    def note(record: ShareRecord) -> None:
        seen.append(record.offset)
        record.accept()

    with BlockingShareConsumer(topic, bootstrap=bootstrap, group=queue) as consumer:
        while len(seen) < 6:
            for record in consumer:
                note(record)
                if len(seen) % 2 == 0:
                    break
        for record in consumer.getmany(2, timeout_ms=10_000):
            note(record)
        consumer.flush()
        assert (consumer.state.locked, consumer.state.buffered) == (0, 4)
    with BlockingShareConsumer(topic, bootstrap=bootstrap, group=queue) as consumer:
        while len(seen) < 12:
            for record in consumer.getmany(timeout_ms=10_000):
                note(record)
    assert seen == list(range(12))


def test_a_handler_that_ends_after_the_close_is_told_that_its_record_is_lost_and_raises_nothing(
    bootstrap: str, queue: str, filled_topic: Callable[..., str]
) -> None:
    topic = filled_topic(2)
    with BlockingShareConsumer(topic, bootstrap=bootstrap, group=queue) as consumer:
        late, failing = consumer.getmany(2, timeout_ms=20_000)
    assert late.lost
    with late:
        late.renew()
    with pytest.raises(ValueError, match="of the handler"), failing:
        raise ValueError("of the handler")
    with pytest.raises(AlreadyAcknowledgedError):
        late.accept()


def test_a_second_thread_that_closes_waits_for_the_first_which_drains(
    bootstrap: str, queue: str, filled_topic: Callable[..., str]
) -> None:
    topic = filled_topic(1)
    with BlockingShareConsumer(topic, bootstrap=bootstrap, group=queue) as consumer:
        (record,) = consumer.getmany(1, timeout_ms=20_000)
        first = threading.Thread(target=consumer.close, kwargs={"drain_timeout_ms": 30_000})
        first.start()
        assert list(consumer) == []
        second = threading.Thread(target=consumer.close)
        second.start()
        record.accept()
        second.join()
        first.join()
    with BlockingShareConsumer(topic, bootstrap=bootstrap, group=queue) as consumer:
        assert consumer.getmany(timeout_ms=1_500) == []
