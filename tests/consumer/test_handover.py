"""Taking over and giving up: what happens in which order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import cast

import pytest

from kohort.consumer import CommittedOffset, Record
from kohort.consumer.committer import Committer
from kohort.consumer.delivery import Delivery
from kohort.consumer.effects import Adopt, Release
from kohort.consumer.events import (
    CallbackFailed,
    DrainTimedOut,
    Event,
    PartitionsLost,
    PartitionsRevoked,
)
from kohort.consumer.handover import Callbacks, Handover, HandoverSettings
from kohort.consumer.positions import Positions
from kohort.consumer.tracker import Tracker
from kohort.protocol import TopicPartition
from tests.consumer.members import until

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


class _Committer:
    """Notes what it is told to commit."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        #: Does it instead.
        self.act: Callable[[Iterable[TopicPartition], float], Awaitable[bool]] | None = None

    async def commit_done(self, partitions: Iterable[TopicPartition], timeout_ms: float) -> bool:
        if self.act is not None:
            return await self.act(partitions, timeout_ms)
        self._note(f"commit {_names(partitions)}")
        return True


class _Bench:
    """A handover whose surroundings write down what happens."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.events: list[Event] = []
        self.positions = Positions("earliest")
        self.tracker = Tracker()
        self.settings = HandoverSettings(drain_ms=5_000, step_ms=200, auto_commit=True)
        self.callbacks = Callbacks(
            assigned=lambda p: self.steps.append(f"assigned {_names(p)}"),
            revoking=lambda p: self.steps.append(f"revoking {_names(p)}"),
            revoked=lambda p: self.steps.append(f"revoked {_names(p)}"),
            lost=lambda p: self.steps.append(f"lost {_names(p)}"),
        )
        delivery = Delivery(
            self.positions, self.tracker, max_undone=1_000, wake=lambda: None, report=self.events.append
        )
        self.committer = _Committer(self.steps.append)
        self.handover = Handover(
            self.settings,
            self.callbacks,
            self.positions,
            delivery,
            self.tracker,
            cast(Committer, self.committer),
            announced=lambda: self.steps.append("announced"),
            released=lambda: self.steps.append("released"),
            report=self.events.append,
        )
        self.task = asyncio.create_task(self.handover.run())

    async def own(self, *partitions: TopicPartition, undone: int = 0) -> None:
        """Partitions that are read, with so many records delivered of each."""
        self.handover.adopt(Adopt(1, partitions, ()))
        await self.then("announced")
        self.steps.clear()
        for partition in partitions:
            self.positions.found_committed(partition, CommittedOffset(0))
            stay = self.tracker.begin(partition, 0)
            if undone:
                stay.delivered_all(list(range(undone)))

    def done(self, partition: TopicPartition, offset: int) -> None:
        stay = self.tracker.get(partition)
        assert stay is not None
        self.tracker.done(Record(*partition, offset, 0, None, None, session_id=stay.session_id))
        self.handover.record_done()

    async def then(self, step: str) -> None:
        await until(lambda: step in self.steps, timeout_s=30)

    def seen(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(f"{p.partition}" for p in partitions)


@pytest.fixture
async def bench() -> AsyncIterator[_Bench]:
    bench = _Bench()
    yield bench
    bench.task.cancel()
    await asyncio.gather(bench.task, return_exceptions=True)


async def test_the_user_is_told_before_anything_is_delivered(bench: _Bench) -> None:
    readable: list[bool] = []

    async def assigned(partitions: tuple[TopicPartition, ...]) -> None:
        bench.positions.found_committed(A, CommittedOffset(0))
        await asyncio.sleep(0.01)
        position = bench.positions.get(partitions[0])
        assert position is not None
        readable.append(position.readable)

    bench.callbacks.assigned = assigned
    bench.handover.adopt(Adopt(1, (A,), ()))
    await bench.then("announced")
    position = bench.positions.get(A)
    assert position is not None
    assert [*readable, position.readable] == [False, True]


async def test_giving_up_stops_delivery_waits_tells_commits_and_forgets_in_this_order(bench: _Bench) -> None:
    await bench.own(A, B, undone=2)
    bench.handover.release(Release((A, B), lost=False, reason="moves"))
    position = bench.positions.get(A)
    assert position is not None
    assert not position.readable
    for partition, offset in ((A, 1), (B, 0), (B, 1)):
        bench.done(partition, offset)
        await asyncio.sleep(0.01)
        assert bench.steps == ["revoking 0,1"]
    bench.done(A, 0)
    await bench.then("released")
    assert bench.steps == ["revoking 0,1", "revoked 0,1", "commit 0,1", "released"]
    assert bench.positions.partitions() == frozenset()
    assert bench.tracker.get(A) is None
    assert bench.seen(PartitionsRevoked) == [PartitionsRevoked((A, B), {})]


async def test_what_is_not_done_in_time_is_named_and_the_rest_is_committed(bench: _Bench) -> None:
    bench.settings.drain_ms = 30
    await bench.own(A, undone=3)
    bench.done(A, 0)
    bench.handover.release(Release((A,), lost=False, reason="moves"))
    await bench.then("released")
    (timed_out,) = bench.seen(DrainTimedOut)
    assert isinstance(timed_out, DrainTimedOut)
    assert timed_out.offsets == {A: 1}
    assert bench.steps[-2:] == ["commit 0", "released"]
    assert bench.seen(PartitionsRevoked) == [PartitionsRevoked((A,), {A: 2})]


async def test_what_is_lost_is_neither_waited_for_nor_committed(bench: _Bench) -> None:
    await bench.own(A, undone=2)
    bench.handover.release(Release((A,), lost=True, reason="forgotten"))
    await bench.then("released")
    assert bench.steps == ["lost 0", "released"]
    assert bench.seen(PartitionsLost) == [PartitionsLost((A,), "forgotten")]


async def test_a_loss_ends_the_wait_of_what_is_being_given_up(bench: _Bench) -> None:
    await bench.own(A, undone=2)
    bench.handover.release(Release((A,), lost=False, reason="moves"))
    await bench.then("revoking 0")
    bench.handover.release(Release((), lost=True, reason="forgotten"))
    await until(lambda: bench.steps.count("released") == 2)
    assert bench.steps == ["revoking 0", "lost 0", "released", "released"]


async def test_lost_falls_back_on_revoked(bench: _Bench) -> None:
    bench.callbacks.lost = None
    await bench.own(A)
    bench.handover.release(Release((A,), lost=True, reason="forgotten"))
    await bench.then("released")
    assert bench.steps == ["revoked 0", "released"]


async def test_a_callback_that_raises_or_takes_too_long_is_reported_and_all_goes_on(bench: _Bench) -> None:
    async def hang(_: tuple[TopicPartition, ...]) -> None:
        await asyncio.sleep(60)

    def fail(_: tuple[TopicPartition, ...]) -> None:
        raise RuntimeError("a bug")

    await bench.own(A)
    bench.callbacks.revoking, bench.callbacks.revoked = hang, fail
    bench.handover.release(Release((A,), lost=False, reason="moves"))
    await bench.then("released")
    assert bench.steps == ["commit 0", "released"]
    first, second = bench.seen(CallbackFailed)
    assert isinstance(first, CallbackFailed)
    assert isinstance(second, CallbackFailed)
    assert (first.callback, type(first.error)) == ("on_partitions_revoking", TimeoutError)
    assert (second.callback, str(second.error)) == ("on_partitions_revoked", "a bug")


async def test_a_callback_may_still_mark_records_done(bench: _Bench) -> None:
    await bench.own(A, undone=2)

    async def flush(_: tuple[TopicPartition, ...]) -> None:
        bench.done(A, 0)
        bench.done(A, 1)

    bench.callbacks.revoking = flush
    bench.handover.release(Release((A,), lost=False, reason="moves"))
    await bench.then("released")
    assert bench.seen(DrainTimedOut) == []
    assert bench.seen(PartitionsRevoked) == [PartitionsRevoked((A,), {})]


async def test_nothing_is_committed_without_auto_commit(bench: _Bench) -> None:
    bench.settings.auto_commit = False
    await bench.own(A)
    bench.handover.release(Release((A,), lost=False, reason="moves"))
    await bench.then("released")
    assert bench.steps == ["revoking 0", "revoked 0", "released"]


async def test_closing_cuts_waits_short_and_gives_up_everything(bench: _Bench) -> None:
    await bench.own(A, B, undone=1)
    bench.handover.release(Release((A,), lost=False, reason="moves"))
    await bench.then("revoking 0")
    assert await bench.handover.give_up_all(0, 5_000)
    assert bench.positions.partitions() == frozenset()
    assert [s for s in bench.steps if s.startswith("commit")] == ["commit 0", "commit 1"]
    assert bench.steps.count("released") == 1


async def test_partitions_given_while_closing_are_not_taken(bench: _Bench) -> None:
    await bench.own(A)
    assert await bench.handover.give_up_all(0, 5_000)
    bench.handover.adopt(Adopt(2, (B,), ()))
    await asyncio.sleep(0.01)
    assert "assigned 1" not in bench.steps
    assert bench.positions.partitions() == frozenset()


async def test_draining_waits_for_the_partitions_it_is_asked_for(bench: _Bench) -> None:
    await bench.own(A, B, undone=1)
    assert not await bench.handover.drain([A], 20)
    draining = asyncio.create_task(bench.handover.drain([A], 5_000))
    await asyncio.sleep(0)
    bench.done(A, 0)
    assert await draining


async def test_closing_while_a_commit_is_called_off_ends_the_steps(bench: _Bench) -> None:
    """A cancellation that comes while a cancelled commit winds up is not taken for the commit's."""
    begun, winding_up = asyncio.Event(), asyncio.Event()

    async def commit_done(_: Iterable[TopicPartition], timeout_ms: float) -> bool:
        begun.set()
        try:
            await asyncio.sleep(timeout_ms)
        finally:
            winding_up.set()
            await asyncio.sleep(0.05)
        return True

    await bench.own(A)
    bench.committer.act = commit_done
    bench.handover.release(Release((A,), lost=False, reason="moves"))
    await begun.wait()
    bench.handover.release(Release((A,), lost=True, reason="out of the group"))
    await winding_up.wait()
    bench.task.cancel()
    await asyncio.wait({bench.task}, timeout=20)
    assert bench.task.cancelled()
