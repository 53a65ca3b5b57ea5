"""Lanes: order within one, a bound over all, and partitions that are taken away."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.consumer.service._queues import (
    ONE_BY_ONE,
    RECORD_OVERHEAD_BYTES,
    Outcome,
    QueueScheduler,
    Unfinished,
)
from kohort.protocol import TopicPartition

ORDERS, OTHERS = TopicPartition("orders", 0), TopicPartition("orders", 1)


@dataclass(frozen=True)
class Item:
    offset: int
    lane: Hashable = None
    key: bytes | None = None
    value: bytes | None = None


class Bench:
    """A scheduler whose records run until the test lets them go."""

    def __init__(self, *, concurrency: int = 8, batch: int = 1) -> None:
        self.begun: list[int] = []
        self.done: list[int] = []
        self.cancelled: list[int] = []
        self.failures: list[BaseException] = []
        self.tries: dict[int, int] = {}
        self.retries_left: dict[int, int] = defaultdict(int)
        self.poison: set[int] = set()
        self.to_split: set[int] = set()
        self.calls: list[list[int]] = []
        self.gates: dict[int, asyncio.Event] = defaultdict(asyncio.Event)
        self.free_running = False
        self.most_at_once = 0
        self._running = 0
        self.queues = scheduler(
            self._run,
            concurrency=concurrency,
            batch=batch,
            done=lambda item, _: self.done.append(item.offset),
            on_failure=self.failures.append,
        )

    async def _run(self, items: list[Item], attempt: int) -> Outcome:
        first = items[0].offset
        self.begun += [item.offset for item in items]
        self.calls.append([item.offset for item in items])
        self.tries[first] = attempt
        self._running += 1
        self.most_at_once = max(self.most_at_once, self._running)
        try:
            if self.free_running:
                await asyncio.sleep(0)
            else:
                await self.gates[first].wait()
        except asyncio.CancelledError:
            self.cancelled.append(first)
            raise
        finally:
            self._running -= 1
        if first in self.poison:
            raise ValueError(f"record {first}")
        if first in self.to_split and len(items) > 1:
            self.gates[first].clear()
            return ONE_BY_ONE
        if self.retries_left[first]:
            self.retries_left[first] -= 1
            return 0.0
        return None

    def add(
        self, offset: int, lane: Hashable = None, partition: TopicPartition = ORDERS, session: int = 1
    ) -> None:
        self.queues.add(partition, session, [Item(offset, lane)])

    async def finish(self, *offsets: int) -> None:
        for offset in offsets:
            self.gates[offset].set()
        await settle()

    async def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(10_000):
            if holds():
                return
            await asyncio.sleep(0.0001)
        pytest.fail(f"never happened; done: {self.done}")


def scheduler(run: Any, **options: Any) -> QueueScheduler:
    given: dict[str, Any] = {
        "key_of": lambda item: item.lane,
        "concurrency": 1,
        "batch": 1,
        "done": lambda *_: pytest.fail("done"),
        "on_failure": lambda error: pytest.fail(repr(error)),
    }
    return QueueScheduler(run, **{**given, **options})


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_records_of_one_lane_run_one_after_the_other() -> None:
    bench = Bench()
    for offset in range(3):
        bench.add(offset, "a")
    await settle()
    assert bench.begun == [0]

    await bench.finish(0)
    assert (bench.begun, bench.done) == ([0, 1], [0])


async def test_lanes_run_side_by_side_up_to_the_bound() -> None:
    bench = Bench(concurrency=2)
    for offset in range(3):
        bench.add(offset, offset)
    await settle()
    assert bench.begun == [0, 1]

    await bench.finish(1)
    assert bench.begun == [0, 1, 2]
    assert bench.queues.in_flight == 2


async def test_a_lane_with_much_to_do_does_not_keep_the_others_waiting() -> None:
    bench = Bench(concurrency=1)
    for offset in range(10):
        bench.add(offset, "busy")
    bench.add(10, "other")
    await settle()
    await bench.finish(0)

    assert bench.begun == [0, 10]


async def test_a_batch_takes_what_waits_up_to_its_size() -> None:
    bench = Bench(batch=3)
    for offset in range(5):
        bench.add(offset)
    await settle()
    assert bench.begun == [0, 1, 2]
    assert bench.done == []

    await bench.finish(0)
    assert (bench.begun, bench.done) == ([0, 1, 2, 3, 4], [0, 1, 2])


async def test_a_record_that_waits_for_its_next_try_holds_up_its_own_lane_only() -> None:
    bench = Bench(concurrency=1)
    bench.retries_left[0] = 2
    bench.free_running = True
    for offset in (0, 1):
        bench.add(offset, "a")
    bench.add(2, "b")
    await bench.until(lambda: len(bench.done) == 3)

    assert bench.tries[0] == 3
    assert bench.done.index(2) < bench.done.index(0) < bench.done.index(1)


async def test_a_failure_is_reported_and_what_the_lane_held_is_never_done() -> None:
    bench = Bench()
    bench.free_running = True
    bench.poison = {1}
    for offset in range(3):
        bench.add(offset, "a")
    await bench.until(lambda: bool(bench.failures))
    await settle()

    assert bench.done == [0]
    assert [str(failure) for failure in bench.failures] == ["record 1"]
    assert bench.queues.backlog == bench.queues.in_flight == 0


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


lane_names = st.lists(st.integers(0, 5), min_size=1, max_size=60)


@settings(max_examples=60)
@given(lane_names, st.integers(1, 6), st.integers(1, 4), st.data())
def test_every_record_is_done_once_and_in_the_order_of_its_lane(
    names: list[int], concurrency: int, batch: int, data: st.DataObject
) -> None:
    async def run() -> None:
        bench = Bench(concurrency=concurrency, batch=batch)
        bench.free_running = True
        for offset, name in enumerate(names):
            bench.retries_left[offset] = data.draw(st.integers(0, 1))
            bench.add(offset, name)
            if data.draw(st.booleans()):
                await asyncio.sleep(0)
        await bench.until(lambda: len(bench.done) == len(names))

        assert sorted(bench.done) == list(range(len(names)))
        for name in set(names):
            expected = [offset for offset, each in enumerate(names) if each == name]
            assert [offset for offset in bench.done if names[offset] == name] == expected
        assert bench.most_at_once <= concurrency
        assert bench.queues.backlog == bench.queues.in_flight == 0

    asyncio.run(run())


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


async def test_a_record_behind_a_failed_one_does_not_overtake_it() -> None:
    bench = Bench()
    bench.free_running = True
    bench.poison = {0}
    bench.add(0, "a")
    await bench.until(lambda: bool(bench.failures))
    bench.add(1, "a")
    bench.add(2, "b", OTHERS)
    await bench.until(lambda: bench.done == [2])

    assert bench.begun == [0, 2]
    assert await bench.queues.release_all(timeout_s=0) == []


async def test_a_batch_that_is_out_of_tries_is_taken_apart_and_each_record_done_by_itself() -> None:
    bench = Bench(batch=3)
    bench.free_running = True
    bench.to_split = {0}
    bench.poison = {1}
    for offset in range(5):
        bench.add(offset)
    await bench.until(lambda: bool(bench.failures))

    assert bench.begun == [0, 1, 2, 0, 1]
    assert bench.done == [0], "what is before the one to blame may be committed"


async def test_after_a_batch_was_taken_apart_there_are_batches_again() -> None:
    bench = Bench(batch=2)
    bench.free_running = True
    bench.to_split = {0}
    for offset in range(4):
        bench.add(offset)
    await bench.until(lambda: len(bench.done) == 4)
    assert bench.calls == [[0, 1], [0], [1], [2, 3]]


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


async def test_of_an_earlier_session_only_what_has_begun_goes_on() -> None:
    """Its records are delivered anew, or are no longer in the log."""
    bench = Bench()
    for offset in (16, 17):
        bench.add(offset)
    await settle()
    bench.add(12, session=2)
    await bench.finish(16, 12)

    assert bench.begun == [16, 12]
    assert bench.queues.backlog == 0


async def test_what_waits_is_counted_in_bytes_and_to_the_last_one() -> None:
    bench = Bench(batch=2)
    held = bench.queues.add(ORDERS, 1, [Item(n, None, b"key", b"x" * 1_000) for n in range(4)])
    assert held is not None
    assert held.bytes == 4 * (RECORD_OVERHEAD_BYTES + 1_003)
    await settle()
    await bench.finish(0)
    assert held.bytes == 2 * (RECORD_OVERHEAD_BYTES + 1_003)
    await bench.queues.release([ORDERS], timeout_s=0)
    assert (held.bytes, bench.queues.backlog_bytes) == (0, 0)


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
