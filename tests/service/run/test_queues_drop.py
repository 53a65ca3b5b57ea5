"""Key queues of records that others have by now: what waits is dropped, what runs is cancelled or left alone.

Covers: service/run/queues.py.
"""

from __future__ import annotations

import asyncio

from kohort.service.run.queues import Outcome
from tests.service.queues import ORDERS, Bench, Item, scheduler, settle


def drop(bench: Bench, offset: int, *, cancel: bool = True) -> bool:
    """Drop the record, and leave its call; return whether there is one."""
    work = bench.queues._partitions[ORDERS]
    records = [
        r for queue in work.queues.values() for r in (*queue.taken, *queue.waiting) if r.offset == offset
    ]
    queue = bench.queues.drop(ORDERS, records[0])
    if queue is not None:
        bench.queues.leave_call(queue, cancel=cancel)
    return queue is not None


async def test_what_waits_is_dropped_and_what_is_dropped_is_told() -> None:
    bench = Bench(concurrency=1)
    dropped: list[int] = []
    bench.queues.dropped = lambda item, _: dropped.append(item.offset)
    for offset, lane in enumerate("aab"):
        bench.add(offset, lane)
    await settle()
    assert not drop(bench, 1)
    assert not drop(bench, 2)
    await bench.finish(0)
    assert bench.begun == bench.done == [0]
    assert dropped == [1, 2]
    assert bench.queues.backlog == 0


async def test_a_call_is_cancelled_and_what_waits_behind_it_goes_on() -> None:
    bench = Bench(concurrency=1)
    bench.add(0, "a")
    bench.add(1, "a")
    await settle()
    assert drop(bench, 0)
    await settle()
    assert bench.cancelled == [0]
    await bench.finish(1)
    assert bench.done == [1]
    assert bench.queues.backlog == 0


async def test_a_call_that_runs_on_keeps_its_slot_and_does_not_count() -> None:
    bench = Bench(concurrency=2)
    bench.add(0, "a")
    await settle()
    assert drop(bench, 0, cancel=False)
    bench.add(0, "a", session=1)  # delivered here again
    bench.gates[0] = asyncio.Event()
    bench.add(1, "b")
    await settle()
    assert [queue.taken[0].offset for queue in bench.queues.calls()] == [0, 0]
    assert bench.begun == [0, 0]
    assert bench.queues.backlog == 2
    assert await bench.queues.close(1.0) == 0
    assert bench.done == []


async def test_a_call_that_nobody_leaves_goes_on() -> None:
    bench = Bench(batch=5)
    records = Item(0), Item(1)
    bench.queues.add(ORDERS, 1, records)
    await settle()
    assert bench.queues.drop(ORDERS, records[1]) is not None
    await bench.finish(0)
    assert bench.done == [0, 1]


async def test_a_record_that_waits_for_its_next_try_is_not_tried_again() -> None:
    async def run(_: list[Item], attempt: int) -> Outcome:
        assert attempt == 1
        return 60.0

    queues, record = scheduler(run), Item(0)
    queues.add(ORDERS, 1, [record])
    await settle()
    assert queues.in_flight == 1
    assert queues.drop(ORDERS, record) is None
    assert queues.backlog == 0
    assert await queues.release([ORDERS], timeout_s=30) == []


async def test_what_is_late_begins_no_call_and_those_behind_it_go_on() -> None:
    bench = Bench(concurrency=1)
    bench.free_running = True
    dropped: list[int] = []
    bench.queues.dropped = lambda item, _: dropped.append(item.offset)
    bench.queues.is_late = lambda item: item.offset in (0, 2, 3)
    bench.queues.add(ORDERS, 1, [Item(0, "a"), Item(1, "a"), Item(2, "b"), Item(3, "a"), Item(4, "b")])
    await bench.until(lambda: bench.queues.backlog == 0)
    assert sorted(bench.begun) == sorted(bench.done) == [1, 4]
    assert sorted(dropped) == [0, 2, 3]
    assert await bench.queues.release([ORDERS], timeout_s=30) == []


async def test_of_a_batch_only_what_is_not_late_is_called() -> None:
    bench = Bench(batch=5)
    bench.queues.is_late = lambda item: item.offset == 1
    bench.queues.add(ORDERS, 1, [Item(0), Item(1), Item(2)])
    await bench.finish(0)
    assert bench.calls == [[0, 2]]
    assert bench.done == [0, 2]
    assert bench.queues.backlog == 0
