"""Key queues of partitions that are taken away, and of handlers that are cancelled."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.service.run.queues import Unfinished
from tests.service.queues import ORDERS, OTHERS, Bench, Item, backlog_bytes, scheduler, settle


async def test_release_waits_for_what_runs_and_drops_what_has_not_begun() -> None:
    bench = Bench()
    for offset in range(3):
        bench.add(offset, "a")
    bench.add(9, "a", OTHERS)
    await settle()
    release = asyncio.create_task(bench.queues.release([ORDERS], timeout_s=30))
    await settle()
    assert not release.done()

    await bench.finish(0)
    assert await release == []
    assert bench.done == [0]
    assert bench.begun == [0, 9]


async def test_release_finishes_records_before_one_that_has_begun() -> None:
    bench = Bench()
    bench.add(0, "a")
    bench.add(1, "a")
    bench.add(2, "b")
    bench.add(3, "b")
    await settle()
    assert bench.begun == [0, 2]
    release = asyncio.create_task(bench.queues.release([ORDERS], timeout_s=30))
    await bench.finish(0, 1, 2)

    assert await release == []
    assert sorted(bench.done) == [0, 1, 2]


async def test_release_cancels_and_names_what_is_late_and_never_calls_it_done() -> None:
    bench = Bench()
    bench.add(0, "a")
    await settle()

    assert await bench.queues.release([ORDERS], timeout_s=0.01) == [Unfinished(ORDERS, 0)]
    await settle()
    assert bench.cancelled == [0]
    assert bench.done == []
    assert bench.queues.backlog == bench.queues.in_flight == 0


async def test_a_partition_that_comes_back_is_handled_again() -> None:
    bench = Bench(concurrency=1)
    bench.add(0)
    await settle()
    await bench.queues.release([ORDERS], timeout_s=0)
    bench.free_running = True
    bench.add(0)
    await bench.until(lambda: bench.done == [0])


async def test_a_record_that_arrives_during_the_release_is_dropped() -> None:
    bench = Bench()
    bench.add(0)
    await settle()
    release = asyncio.create_task(bench.queues.release([ORDERS], timeout_s=30))
    await settle()
    bench.add(1)
    await bench.finish(0)
    await release

    assert bench.begun == [0]


async def test_a_handler_that_swallows_its_cancellation_is_still_not_done() -> None:
    done: list[Item] = []

    async def stubborn(_: list[Item], __: int) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return

    queues = scheduler(stubborn, done=lambda item, _: done.append(item))
    queues.add(ORDERS, 1, [Item(0)])
    await settle()
    await queues.release([ORDERS], timeout_s=0)
    await settle()

    assert done == []


async def test_release_does_not_wait_for_a_next_try_beyond_its_time() -> None:
    async def later(_: list[Item], __: int) -> float:
        return 60.0

    queues = scheduler(later)
    queues.add(ORDERS, 1, [Item(0)])
    await settle()

    assert await queues.release([ORDERS], timeout_s=0.01) == [Unfinished(ORDERS, 0)]


async def test_a_partition_that_was_idle_is_waited_for_like_any_other() -> None:
    bench = Bench()
    bench.add(0)
    await settle()
    await bench.finish(0)
    assert bench.done == [0]

    bench.add(1)
    await settle()
    release = asyncio.create_task(bench.queues.release([ORDERS], timeout_s=30))
    await settle()
    assert (release.done(), bench.cancelled) == (False, [])
    await bench.finish(1)
    assert await release == []
    assert bench.done == [0, 1]


async def test_a_slot_that_somebody_cancels_is_a_failure_and_not_silence() -> None:
    bench = Bench(concurrency=1)
    bench.add(0)
    bench.add(1, "other", OTHERS)
    await settle()
    (slot,) = bench.queues._slots
    slot.cancel()
    await settle()

    assert [type(failure) for failure in bench.failures] == [asyncio.CancelledError]
    await bench.finish(1)
    assert bench.done == [1], "what it left behind meets no other queue"


async def test_a_batch_that_is_being_taken_apart_is_finished_at_a_release() -> None:
    bench = Bench(batch=3)
    bench.to_split = {0}
    for offset in range(3):
        bench.add(offset)
    await settle()
    await bench.finish(0)
    assert bench.calls == [[0, 1, 2], [0]]
    release = asyncio.create_task(bench.queues.release([ORDERS], timeout_s=30))
    await bench.finish(0, 1, 2)

    assert await release == []
    assert bench.done == [0, 1, 2]


async def test_a_release_waits_for_no_slot_of_another_partition() -> None:
    bench = Bench(concurrency=1)
    bench.add(0, "a", OTHERS)
    await settle()
    bench.add(5)

    assert await asyncio.wait_for(bench.queues.release([ORDERS], timeout_s=30), 5) == []
    assert bench.begun == [0]


async def test_a_loss_in_the_middle_of_a_release_ends_both() -> None:
    bench = Bench()
    bench.add(0)
    await settle()
    release = asyncio.create_task(bench.queues.release([ORDERS], timeout_s=30))
    await settle()

    assert await bench.queues.release([ORDERS], timeout_s=0) == [Unfinished(ORDERS, 0)]
    assert await asyncio.wait_for(release, 5) == []
    assert bench.cancelled == [0]


async def test_a_release_that_is_cancelled_does_not_leave_the_partition_shut() -> None:
    bench = Bench()
    bench.add(0)
    await settle()
    release = asyncio.create_task(bench.queues.release([ORDERS], timeout_s=30))
    await settle()
    release.cancel()
    await settle()
    bench.free_running = True
    bench.add(0)
    await bench.until(lambda: bench.done == [0])


async def test_a_call_that_does_not_end_when_cancelled_is_counted_and_not_waited_for() -> None:
    go_on = asyncio.Event()

    async def stubborn(_: list[Item], __: int) -> None:
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue

    queues = scheduler(stubborn)
    queues.add(ORDERS, 1, [Item(0)])
    await settle()
    assert await queues.close(timeout_s=0.01) == 1
    go_on.set()
    await settle()


lane_names = st.lists(st.integers(0, 5), min_size=1, max_size=60)


@settings(max_examples=60)
@given(lane_names, st.integers(1, 6), st.integers(0, 20))
def test_after_a_release_the_done_records_are_a_prefix(
    names: list[int], concurrency: int, steps: int
) -> None:
    async def run() -> None:
        bench = Bench(concurrency=concurrency)
        bench.free_running = True
        for offset, name in enumerate(names):
            bench.add(offset, name)
        for _ in range(steps):
            await asyncio.sleep(0)

        assert await bench.queues.release([ORDERS], timeout_s=30) == []
        assert sorted(bench.done) == list(range(len(bench.done)))

    asyncio.run(run())


async def test_a_call_does_not_meet_the_cancellation_of_the_one_before_it() -> None:
    cancelled: list[int] = []

    async def run(items: list[Item], _: int) -> None:
        this = asyncio.current_task()
        assert this is not None
        cancelled.append(this.cancelling())
        if items[0].offset == 0:
            await asyncio.sleep(60)

    queues = scheduler(run, done=lambda *_: None)
    queues.add(ORDERS, 1, [Item(0)])
    queues.add(OTHERS, 1, [Item(1)])
    await settle()
    await queues.release([ORDERS], timeout_s=0)
    await settle()
    assert cancelled == [0, 0]


async def test_a_release_does_not_wait_at_all_for_what_is_tried_again_after_its_time() -> None:
    tries: list[int] = []
    go_on = asyncio.Event()

    async def later(items: list[Item], attempt: int) -> float:
        tries.append(items[0].offset)
        if items[0].offset == 1 or attempt > 1:
            await go_on.wait()
        return 60.0

    queues = scheduler(later, concurrency=2)
    queues.add(ORDERS, 1, [Item(0, "a"), Item(1, "b")])
    await settle()
    assert tries == [0, 1]
    release = asyncio.create_task(queues.release([ORDERS], timeout_s=30))
    await settle()
    assert not release.done(), "one of them is under way"
    go_on.set()
    assert await asyncio.wait_for(release, 5) == [Unfinished(ORDERS, 0), Unfinished(ORDERS, 1)]
    assert (queues.backlog, backlog_bytes(queues)) == (0, 0)
