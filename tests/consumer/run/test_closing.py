"""The end of a consumer: called twice, called off, called from a callback, with everything hanging."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import threading
from typing import Any

import pytest

from kohort.client.errors import BrokerConnectionError
from kohort.consumer import AsyncGroupConsumer, ConsumerClosedError, GroupConsumer
from kohort.testing import RunningBroker
from tests.consumer.members import read
from tests.waiting import until

GROUP = "billing"


@pytest.fixture
def broker(kohort_broker: RunningBroker) -> RunningBroker:
    kohort_broker.create_topic("orders", 1)
    kohort_broker.produce("orders", ["a", "b"])
    return kohort_broker


def consumer(broker: RunningBroker, **settings: Any) -> AsyncGroupConsumer:
    return AsyncGroupConsumer("orders", **_settings(broker), **settings)


def blocking(broker: RunningBroker, **settings: Any) -> GroupConsumer:
    return GroupConsumer("orders", **_settings(broker), **settings)


def _settings(broker: RunningBroker) -> dict[str, Any]:
    return {"bootstrap": broker.bootstrap, "group": GROUP, "auto_offset_reset": "earliest"}


def ours() -> set[str]:
    """Tasks of consumers that are still there."""
    return {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("kohort")}


class Hang:
    """A callback that returns when it is told to."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, _: object) -> None:
        self.began.set()
        await self.go_on.wait()


async def test_who_closes_a_second_time_waits_for_the_first(broker: RunningBroker) -> None:
    hang = Hang()
    one = consumer(broker, on_partitions_revoked=hang)
    await one.start()
    await read(one, 2)
    first = asyncio.create_task(one.close())
    await hang.began.wait()
    second = asyncio.create_task(one.close())
    await asyncio.sleep(0.05)
    assert not second.done()
    assert broker.members(GROUP)
    hang.go_on.set()
    await asyncio.wait_for(asyncio.gather(first, second), 30)
    assert broker.members(GROUP) == {}
    assert ours() == set()


async def test_a_close_that_is_called_off_still_commits_and_leaves_and_nothing_runs_on(
    broker: RunningBroker,
) -> None:
    one = consumer(broker)
    await one.start()
    record, _ = await read(one, 2)
    one.done(record)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(one.close(drain_timeout_ms=3_600_000), 0.1)
    assert ours() == set()
    assert broker.members(GROUP) == {}
    async with consumer(broker) as two:
        assert [each.offset for each in await read(two, 1)] == [1]


async def test_a_close_that_is_called_off_while_a_callback_hangs_leaves_nothing_running(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kohort.consumer.run.closing.CANCELLED_S", 0.05)
    one = consumer(broker, on_partitions_revoked=Hang())
    await one.start()
    await read(one, 2)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(one.close(), 0.1)
    assert ours() == set()
    assert broker.members(GROUP) == {}
    await one.close()


async def test_the_group_is_left_though_everything_before_that_took_all_the_time(
    broker: RunningBroker,
) -> None:
    one = consumer(broker, on_partitions_revoked=Hang())
    await one.start()
    await read(one, 2)
    await asyncio.wait_for(one.close(timeout_ms=20), 30)
    assert broker.members(GROUP) == {}
    assert ours() == set()


def test_a_blocking_callback_that_never_returns_keeps_neither_the_commit_nor_the_process(
    broker: RunningBroker,
) -> None:
    never = threading.Event()
    one = blocking(broker, on_partitions_revoked=lambda _: never.wait())
    one.start()
    for record in one.getmany(2, timeout_ms=30_000):
        one.done(record)
    one.close(timeout_ms=2_000)
    hanging = [thread for thread in threading.enumerate() if thread.name.startswith("kohort callback")]
    assert [thread.daemon for thread in hanging] == [True]
    never.set()
    hanging[0].join()
    with blocking(broker) as two:
        broker.produce("orders", ["c"])
        assert [record.value for record in two.getmany(timeout_ms=30_000)] == [b"c"]


async def test_the_end_of_async_with_waits_for_a_close_and_its_drain(broker: RunningBroker) -> None:
    """A signal's task closes; the reading loop ends, and the block with it, while others are at records."""
    async with consumer(broker, leave_notice_ms=0) as one:
        first, second = await read(one, 2)
        closing = asyncio.create_task(one.close(drain_timeout_ms=60_000))

        async def finish() -> None:
            await until(lambda: one.parts.tracker.awaited > 0)
            await asyncio.sleep(0.05)
            one.done(first)
            one.done(second)

        finishing = asyncio.create_task(finish())
        assert await anext(one, None) is None
    assert closing.done()
    await finishing
    async with consumer(broker) as two:
        assert (await two.committed(first.topic_partition))[first.topic_partition].offset == 2


async def test_a_callback_that_closes_is_not_waited_for_by_what_it_waits_for(broker: RunningBroker) -> None:
    closed = asyncio.Event()

    async def close(_: object) -> None:
        await one.close()
        closed.set()

    one = consumer(broker, on_partitions_assigned=close)
    await one.start()
    await asyncio.wait_for(closed.wait(), 30)
    await asyncio.wait_for(one.close(), 30)
    assert broker.members(GROUP) == {}


async def test_a_task_that_a_callback_left_behind_waits_for_closing_as_others_do(
    broker: RunningBroker,
) -> None:
    hang, closings = Hang(), []

    async def assigned(_: object) -> None:
        closings.append(asyncio.create_task(close_later()))

    async def close_later() -> None:
        await reads.wait()
        await one.close()

    reads = asyncio.Event()
    one = consumer(broker, on_partitions_assigned=assigned, on_partitions_revoked=hang)
    await one.start()
    await read(one, 2)
    reads.set()
    await hang.began.wait()
    await asyncio.sleep(0.02)
    assert not closings[0].done()
    hang.go_on.set()
    await asyncio.wait_for(closings[0], 30)
    assert broker.members(GROUP) == {}


async def test_a_consumer_that_is_closed_while_it_starts_does_not_go_on_starting() -> None:
    one = AsyncGroupConsumer("orders", bootstrap="127.0.0.1:1", group=GROUP)
    starting = asyncio.create_task(one.start())
    await asyncio.sleep(0.05)
    await one.close()
    with pytest.raises((BrokerConnectionError, ConsumerClosedError)):
        await asyncio.wait_for(starting, 30)
    assert ours() == set()


# the blocking face


def test_a_signals_handler_may_close_while_close_runs(broker: RunningBroker) -> None:
    began, again = threading.Event(), threading.Event()

    def revoked(_: object) -> None:
        began.set()
        assert again.wait(60)

    one = blocking(broker, on_partitions_revoked=revoked)
    one.start()
    assert len(one.getmany(2, 60_000)) > 0

    def interrupt(*_: object) -> None:
        threading.Timer(0.05, again.set).start()
        one.close()

    def send() -> None:
        assert began.wait(60)
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    sending = threading.Thread(target=send)
    sending.start()
    try:
        one.close()
    finally:
        signal.signal(signal.SIGUSR1, before)
        sending.join()
    assert broker.members(GROUP) == {}
    with pytest.raises(ConsumerClosedError, match="has been closed"):
        one.getmany()


def test_a_signals_handler_may_close_while_start_looks_for_a_broker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    one = GroupConsumer("orders", bootstrap="127.0.0.1:1", group=GROUP)
    before = signal.signal(signal.SIGUSR1, lambda *_: one.close())
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        with pytest.raises((BrokerConnectionError, ConsumerClosedError)):
            one.start()
    finally:
        signal.signal(signal.SIGUSR1, before)
        timer.join()
    gc.collect()
    assert "Task was destroyed" not in caplog.text
    assert not [thread for thread in threading.enumerate() if thread.name == f"kohort {GROUP}"]


def test_two_threads_may_close_at_once_while_a_third_reads(broker: RunningBroker) -> None:
    one = blocking(broker, leave_notice_ms=0)
    one.start()
    reads, ended = threading.Event(), threading.Event()

    def reading() -> None:
        for _ in one:
            reads.set()
        ended.set()

    threads = [threading.Thread(target=reading), *(threading.Thread(target=one.close) for _ in range(2))]
    threads[0].start()
    assert reads.wait(60)
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert ended.is_set()
    assert not any(thread.is_alive() for thread in threads)
    assert broker.members(GROUP) == {}


def test_a_callback_of_the_blocking_face_may_close(broker: RunningBroker) -> None:
    closed = threading.Event()

    def assigned(_: object) -> None:
        one.close()
        closed.set()

    one = blocking(broker, on_partitions_assigned=assigned)
    one.start()
    assert closed.wait(60)
    one.close()
    assert broker.members(GROUP) == {}


def test_an_interrupt_while_it_closes_leaves_no_thread_and_no_member(broker: RunningBroker) -> None:
    one = blocking(broker)
    one.start()
    assert one.getmany(2, 60_000)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            one.close(drain_timeout_ms=3_600_000, timeout_ms=3_600_000)
    finally:
        signal.signal(signal.SIGUSR1, before)
        timer.join()
    assert broker.members(GROUP) == {}
    assert not [thread for thread in threading.enumerate() if thread.name == f"kohort {GROUP}"]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_told_so_and_its_parent_goes_on(broker: RunningBroker) -> None:
    with blocking(broker) as one:
        records = one.getmany(2, 60_000)
        child = os.fork()
        if not child:
            status = 1
            with contextlib.suppress(BaseException):
                try:
                    one.getmany()
                except ConsumerClosedError as error:
                    one.close()
                    status = 0 if "forked" in str(error) else 2
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert broker.members(GROUP)
        one.done_all(records)
        one.commit()
