"""The blocking share consumer beside many threads, on a broker: whatever they say meanwhile, each record
comes once, each verdict counts once, and nobody hears an error that is not theirs.

Covers: consumer/share/blocking.py, consumer/share/locks.py.
"""

from __future__ import annotations

import queue as queues
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import pytest

from kohort.consumer import BlockingShareConsumer
from kohort.consumer.share.records import AlreadyAcknowledgedError, ShareRecord
from kohort.protocol import AcknowledgeType

pytestmark = [pytest.mark.kafka]

RECORDS = 3_000
#: Longest time for all of it.
BOUND_S = 90.0
#: Of the threads of this process: they interrupt each other everywhere.
_SWITCH_S = 1e-5


@pytest.fixture(autouse=True)
def _threads_that_switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    yield
    sys.setswitchinterval(before)


@dataclass
class Workers:
    """Threads that say something of the records that they are given, some twice, and look around."""

    consumer: BlockingShareConsumer
    given: queues.SimpleQueue[ShareRecord | None] = field(default_factory=queues.SimpleQueue)
    #: What was said, by record; and what threads raised.
    accepted: Counter[int] = field(default_factory=Counter)
    raised: list[BaseException] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, work: Callable[[Random], None], seed: int) -> threading.Thread:
        def guarded() -> None:
            try:
                work(Random(seed))
            except BaseException as error:
                self.raised.append(error)

        thread = threading.Thread(target=guarded)
        thread.start()
        return thread

    def say(self, rng: Random) -> None:
        """Accept most, some of them twice; release the rest, and renew some before."""
        while (record := self.given.get()) is not None:
            if rng.random() < 0.05:
                record.renew()
            if rng.random() < 0.1 and record.delivery_count < 3:
                record.release()
                continue
            with self._lock:
                self.accepted[int(record.value or b"")] += 1
            if rng.random() < 0.5:
                record.accept()
            else:
                self.consumer.accept([record])
            if rng.random() < 0.1:
                with pytest.raises(AlreadyAcknowledgedError):
                    record.reject()

    def look(self, _: Random) -> None:
        """Look at what is held and what waits, as a page with figures does."""
        while not self.over.is_set():
            state = self.consumer.state
            assert state.locked >= 0, state
            assert "ShareConsumer" in repr(self.consumer)

    def flush(self, rng: Random) -> None:
        """Wait for answers, all of which have to count."""
        while not self.over.is_set():
            answers = self.consumer.flush(timeout_ms=rng.choice((1.0, 5_000.0)))
            assert set(answers.values()) <= {None}, answers
            self.over.wait(0.01)


def test_many_threads_say_what_became_of_records_look_and_flush_while_one_reads(
    bootstrap: str, queue: str, filled_topic: Callable[..., str]
) -> None:
    topic, rng = filled_topic(RECORDS, 3), Random(7)
    until = time.monotonic() + BOUND_S
    with BlockingShareConsumer(topic, bootstrap=bootstrap, group=queue, max_locked_records=200) as consumer:
        workers = Workers(consumer)
        saying = [workers.run(workers.say, seed) for seed in range(4)]
        others = [workers.run(work, 9) for work in (workers.look, workers.look, workers.flush)]
        try:
            while workers.accepted.total() < RECORDS and not workers.raised and time.monotonic() < until:
                for record in consumer.getmany(rng.choice((None, 1, 7)), timeout_ms=200):
                    workers.given.put(record)
        finally:
            workers.over.set()
            for _ in saying:
                workers.given.put(None)
            for thread in (*saying, *others):
                thread.join()
        assert not workers.raised
        assert set(consumer.flush().values()) <= {None}
    assert workers.accepted == Counter(range(RECORDS))


@pytest.mark.parametrize("verdict", [AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE])
def test_a_close_in_the_middle_of_all_that_ends_all_of_it(
    bootstrap: str, queue: str, filled_topic: Callable[..., str], verdict: AcknowledgeType
) -> None:
    topic = filled_topic(RECORDS, 3)
    consumer = BlockingShareConsumer(topic, bootstrap=bootstrap, group=queue)
    consumer.start()
    workers = Workers(consumer)
    read: list[ShareRecord] = []

    def read_all(_: Random) -> None:
        for record in consumer:
            read.append(record)
            with suppress(AlreadyAcknowledgedError):
                consumer.acknowledge(record, verdict)

    threads = [workers.run(read_all, 0), workers.run(workers.look, 1)]
    while len(read) < RECORDS // 10 and not workers.raised:
        time.sleep(0.001)
    closing = [workers.run(lambda _: consumer.close(), 2) for _ in range(3)]
    for thread in (threads[0], *closing):
        thread.join(BOUND_S)
        assert not thread.is_alive()
    workers.over.set()
    threads[1].join()
    assert not workers.raised
    assert len(read) == len(set(read))
    for record in read:
        with pytest.raises(AlreadyAcknowledgedError):
            record.accept()
