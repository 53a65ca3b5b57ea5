"""Key queues: order within one, a bound over all, batches, failures."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.service.run.queues import RECORD_OVERHEAD_BYTES, Begins, Outcome
from tests.service.queues import ORDERS, OTHERS, Bench, Item, backlog_bytes, scheduler, settle

lane_names = st.lists(st.integers(0, 5), min_size=1, max_size=60)


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


async def test_a_limit_lets_no_call_begin_or_only_those_that_later_records_wait_for() -> None:
    bench = Bench(concurrency=2)
    for offset, lane in enumerate("aaabbc"):
        bench.add(offset, lane)
    bench.add(0, "a", OTHERS)
    await settle()
    assert bench.begun == [0, 3]

    bench.queues.limit(Begins.NONE)
    await bench.finish(0, 3)
    assert bench.begun == [0, 3]

    bench.queues.limit(Begins.FIRST)
    await settle()
    assert bench.begun == [0, 3, 1], "one by one, as long as record 3 waits for them"
    await bench.finish(1)
    assert bench.begun == [0, 3, 1, 2]
    await bench.finish(2)
    assert bench.begun == [0, 3, 1, 2]

    bench.queues.limit(Begins.ALL)
    bench.free_running = True
    await settle()
    assert sorted(bench.done) == [0, 0, 1, 2, 3, 4, 5]


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
    assert (held.bytes, backlog_bytes(bench.queues)) == (0, 0)


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


async def test_a_partition_whose_records_all_hang_leaves_the_others_a_slot() -> None:
    bench = Bench(concurrency=3)
    bench.add(100, "a", OTHERS)
    await settle()
    await bench.finish(100)
    for offset in range(9):
        bench.add(offset, offset)
    await settle()
    assert bench.begun == [100, 0, 1]

    for offset in (101, 102, 103):
        bench.add(offset, offset, OTHERS)
    for offset in (101, 102, 103):
        await bench.finish(offset)
    assert bench.done == [100, 101, 102, 103]


async def test_a_partition_that_is_alone_has_all_slots() -> None:
    bench = Bench(concurrency=3)
    for offset in range(9):
        bench.add(offset, offset)
    await settle()
    assert bench.begun == [0, 1, 2]


async def test_the_slot_kept_for_a_partition_is_given_away_when_that_one_leaves() -> None:
    bench = Bench(concurrency=2)
    bench.add(100, "a", OTHERS)
    await settle()
    await bench.finish(100)
    bench.add(0, "a")
    bench.add(1, "b")
    await settle()
    assert bench.begun == [100, 0]

    await bench.queues.release([OTHERS], timeout_s=0)
    await settle()
    assert bench.begun == [100, 0, 1]


async def test_what_looks_like_the_end_of_the_loop_is_a_failure_while_the_loop_runs() -> None:
    failures: list[BaseException] = []
    done: list[int] = []

    async def run(items: list[Item], _: int) -> Outcome:
        if items[0].offset == 0:
            raise GeneratorExit
        return None

    queues = scheduler(run, done=lambda item, _: done.append(item.offset), on_failure=failures.append)
    queues.add(ORDERS, 1, [Item(0, "a"), Item(1, "a")])
    queues.add(OTHERS, 1, [Item(2, "b")])
    await settle()
    assert [type(error) for error in failures] == [GeneratorExit]
    assert done == [2]
    assert await queues.release_all(0) == []


async def test_what_waits_for_its_next_try_is_not_before_records_of_a_later_session() -> None:
    begun: list[int] = []

    async def run(items: list[Item], _: int) -> Outcome:
        begun.append(items[0].offset)
        return 3_600.0 if items[0].offset == 0 else None

    queues = scheduler(run, done=lambda *_: None)
    queues.add(ORDERS, 1, [Item(0, "a"), Item(1, "a")])
    await settle()
    queues.add(ORDERS, 2, [Item(7, "a")])
    await settle()
    assert begun == [0, 7]
    assert (queues.backlog, backlog_bytes(queues)) == (0, 0)
