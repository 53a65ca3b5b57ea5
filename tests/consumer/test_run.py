"""Runs: records made one by one, taken back by another thread at any moment."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from itertools import islice

import pytest

from kohort.consumer import CommittedOffset, Record
from kohort.consumer.done.tracker import Tracker
from kohort.consumer.reading.delivery import RUN, Delivery
from kohort.consumer.reading.fetched_records import ChunkReader
from kohort.consumer.reading.positions import Positions
from kohort.consumer.record import Run
from kohort.protocol import TopicPartition
from tests.consumer.batches import batch

A = TopicPartition("orders", 0)


def _delivery(records: int, *, hole_at: int | None = None) -> tuple[Delivery, Tracker]:
    """With so many records to take; before offset ``hole_at`` some are missing."""
    positions, tracker = Positions("earliest"), Tracker()
    delivery = Delivery(positions, tracker, max_undone=100_000, wake=lambda: None, report=lambda _: None)
    positions.add([A], 1)
    positions.hold_partitions([A], held=False)
    positions.found_committed(A, CommittedOffset(0))
    position = positions.get(A)
    assert position is not None
    delivery.start(position)
    if hole_at is None:
        data = batch([b"%d" % n for n in range(records)])
    else:
        data = batch([b"x"] * hole_at) + batch([b"x"] * (records - hole_at), hole_at + 5)
    delivery.put(ChunkReader(A, data, 0, session_id=delivery.session_id(A)))
    return delivery, tracker


def _run(delivery: Delivery) -> Run:
    run = delivery.run()
    assert run is not None
    return run


def _offsets(records: Iterator[Record]) -> list[int]:
    return [record.offset for record in records]


def test_a_long_batch_takes_several_runs() -> None:
    delivery, _ = _delivery(RUN + 10)
    assert _offsets(iter(_run(delivery))) == list(range(RUN))
    assert _offsets(iter(_run(delivery))) == list(range(RUN, RUN + 10))
    assert delivery.run() is None
    assert delivery.taken_one_by_one == RUN + 10


@pytest.mark.parametrize("taken", [0, 1, 7, 10])
def test_what_was_not_taken_of_a_run_is_neither_delivered_nor_counted(taken: int) -> None:
    delivery, tracker = _delivery(10)
    run = _run(delivery)
    assert len(list(islice(run, taken))) == taken
    assert delivery.taken_one_by_one == taken
    delivery.recall()
    stay = tracker.get(A)
    assert stay is not None
    assert (stay.undone, stay.position, delivery.taken_one_by_one) == (taken, taken, taken)
    assert list(run) == []
    assert run.over
    assert _offsets(iter(delivery.take(100))) == list(range(taken, 10))


@pytest.mark.parametrize("taken", [0, 3, 5, 6, 9])
def test_a_run_over_a_hole_is_taken_back_exactly(taken: int) -> None:
    delivery, tracker = _delivery(9, hole_at=5)
    offsets = [*range(5), *range(10, 14)]
    seen: list[int] = []
    while len(seen) < taken:
        seen += _offsets(islice(_run(delivery), taken - len(seen)))
    delivery.recall()
    stay = tracker.get(A)
    assert stay is not None
    assert (seen, stay.undone) == (offsets[:taken], taken)
    for offset in seen:
        stay.done(offset)
    assert (stay.undone, stay.first_undone) == (0, None)
    assert _offsets(iter(delivery.take(100))) == offsets[taken:]
    assert stay.committable == offsets[taken] if taken < 9 else True


def test_another_taker_goes_on_where_a_run_was() -> None:
    delivery, tracker = _delivery(10)
    first = _run(delivery)
    seen = _offsets(islice(first, 3))
    second = _run(delivery)
    seen += _offsets(islice(second, 3))
    seen += _offsets(iter(delivery.take(2)))
    assert list(first) == list(second) == []
    seen += _offsets(iter(_run(delivery)))
    assert seen == list(range(10))
    assert tracker.undone() == 10


def test_a_run_recalled_by_another_thread_knows_what_it_gave() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for turn in range(200):
            delivery, tracker = _delivery(400)
            run = _run(delivery)
            seen: list[int] = []
            began = threading.Event()

            def take(run: Run = run, seen: list[int] = seen, began: threading.Event = began) -> None:
                for record in run:
                    seen.append(record.offset)
                    if len(seen) == 3:
                        began.set()

            taker = threading.Thread(target=take)
            taker.start()
            began.wait(30)
            for _ in range(turn):
                pass
            delivery.recall()
            taker.join()
            stay = tracker.get(A)
            assert stay is not None
            assert stay.undone == len(seen) == stay.position
            assert _offsets(iter(delivery.take(1_000))) == list(range(len(seen), 400))
    finally:
        sys.setswitchinterval(interval)
