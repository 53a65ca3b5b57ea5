"""Does the user still take records?"""

from __future__ import annotations

import asyncio
import threading

from kohort.consumer.run.watchdogs import PollWatch


def test_whoever_waits_for_records_is_alive_however_long() -> None:
    watch = PollWatch(100)
    watch.polling(0)
    assert watch.deadline() is None
    assert not watch.is_expired(10_000)
    assert watch.age(10_000) == 0


def test_the_interval_runs_from_the_end_of_the_last_poll() -> None:
    watch = PollWatch(100)
    watch.polling(0)
    watch.on_poll(50)
    assert watch.deadline() == 150
    assert [watch.is_expired(149), watch.is_expired(150)] == [False, True]
    assert watch.age(170) == 120


def test_several_may_wait_at_the_same_time() -> None:
    watch = PollWatch(100)
    watch.polling(0)
    watch.polling(10)
    watch.on_poll(20)
    assert watch.deadline() is None
    watch.on_poll(30)
    assert watch.deadline() == 130


def test_a_sign_of_life_starts_the_interval_anew() -> None:
    watch = PollWatch(100)
    watch.note_poll(70)
    assert watch.deadline() == 170


def test_taking_single_records_is_seen_at_the_next_look() -> None:
    taken = [0]
    watch = PollWatch(320, taken=lambda: taken[0])
    watch.polling(0)
    watch.on_poll(0)
    taken[0] += 5
    assert watch.deadline() == 0, "a look is due"
    assert not watch.is_expired(100)
    assert (watch.age(150), watch.deadline()) == (50, 420)
    taken[0] += 1
    assert watch.deadline() == 110, "the next look"
    assert not watch.is_expired(200)
    assert [watch.is_expired(519), watch.is_expired(520)] == [False, True], "nothing was taken since"


async def test_who_reads_is_told_from_who_closes() -> None:
    watch = PollWatch(1_000)
    me = asyncio.current_task()
    assert not watch.read_by_another(me), "nobody has polled"
    watch.poller = me
    assert not watch.read_by_another(me)
    watch.poller = other = asyncio.create_task(asyncio.sleep(0))
    assert watch.read_by_another(me)
    await other
    assert not watch.read_by_another(me), "that task has ended"
    watch.poller = threading.get_ident()
    assert watch.read_by_another(me)
    assert not watch.read_by_another(threading.get_ident())
    thread = threading.Thread(target=lambda: setattr(watch, "poller", threading.get_ident()))
    thread.start()
    thread.join()
    assert not watch.read_by_another(me), "that thread has ended"


def test_nobody_reads_who_neither_waits_nor_takes() -> None:
    taken = [0]
    watch = PollWatch(1_000, taken=lambda: taken[0])
    watch.polling(0.0)
    assert not watch.idle(900.0, 300.0)
    watch.on_poll(1_000.0)
    assert not watch.idle(1_299.0, 300.0)
    taken[0] = 1
    assert not watch.idle(1_300.0, 300.0)
    assert not watch.idle(1_599.0, 300.0)
    assert watch.idle(1_600.0, 300.0)
