"""Taking over and giving up: what happens in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from kohort.consumer import CommittedOffset
from kohort.consumer.events import CallbackFailed, DrainTimedOut, PartitionsLost, PartitionsRevoked
from kohort.consumer.group.effects import Assign, Revoke
from kohort.protocol import TopicPartition
from tests.consumer.handover_bench import A, B, HandoverBench
from tests.waiting import until


async def test_the_user_is_told_before_anything_is_delivered(bench: HandoverBench) -> None:
    readable: list[bool] = []

    async def assigned(partitions: tuple[TopicPartition, ...]) -> None:
        bench.positions.found_committed(A, CommittedOffset(0))
        await asyncio.sleep(0.01)
        position = bench.positions.get(partitions[0])
        assert position is not None
        readable.append(position.readable)

    bench.callbacks.assigned = assigned
    bench.handover.assign(Assign(1, (A,), ()))
    await bench.then("announced")
    position = bench.positions.get(A)
    assert position is not None
    assert [*readable, position.readable] == [False, True]


async def test_where_partitions_begin_is_looked_up_while_the_user_is_told(bench: HandoverBench) -> None:
    came, told = [], asyncio.Event()
    bench.handover.came = lambda: came.append(bench.positions.partitions())

    async def assigned(_: tuple[TopicPartition, ...]) -> None:
        await told.wait()

    bench.callbacks.assigned = assigned
    bench.handover.assign(Assign(1, (A,), ()))
    assert came == [{A}]
    told.set()
    await bench.then("announced")


async def test_without_a_callback_partitions_are_read_at_once(bench: HandoverBench) -> None:
    bench.callbacks.assigned = None
    bench.handover.assign(Assign(1, (A,), ()))
    await bench.then("announced")
    position = bench.positions.get(A)
    assert position is not None
    assert not position.held


async def test_giving_up_stops_delivery_waits_tells_commits_and_forgets_in_this_order(
    bench: HandoverBench,
) -> None:
    await bench.own(A, B, undone=2)
    bench.handover.revoke(Revoke((A, B), lost=False, reason="moves"))
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


async def test_what_is_not_done_in_time_is_named_and_the_rest_is_committed(bench: HandoverBench) -> None:
    bench.settings.drain_ms = 30
    await bench.own(A, undone=3)
    bench.done(A, 0)
    bench.handover.revoke(Revoke((A,), lost=False, reason="moves"))
    await bench.then("released")
    (timed_out,) = bench.seen(DrainTimedOut)
    assert isinstance(timed_out, DrainTimedOut)
    assert timed_out.offsets == {A: 1}
    assert bench.steps[-2:] == ["commit 0", "released"]
    assert bench.seen(PartitionsRevoked) == [PartitionsRevoked((A,), {A: 2})]


async def test_what_is_lost_is_neither_waited_for_nor_committed(bench: HandoverBench) -> None:
    await bench.own(A, undone=2)
    bench.handover.revoke(Revoke((A,), lost=True, reason="forgotten"))
    await bench.then("released")
    assert bench.steps == ["lost 0", "released"]
    assert bench.seen(PartitionsLost) == [PartitionsLost((A,), "forgotten")]


async def test_a_loss_ends_the_wait_of_what_is_being_given_up(bench: HandoverBench) -> None:
    await bench.own(A, undone=2)
    bench.handover.revoke(Revoke((A,), lost=False, reason="moves"))
    await bench.then("revoking 0")
    bench.handover.revoke(Revoke((), lost=True, reason="forgotten"))
    await until(lambda: bench.steps.count("released") == 2)
    assert [step for step in bench.steps if step != "released"] == ["revoking 0", "lost 0"]


async def test_at_a_close_a_hanging_callback_leaves_time_for_the_commit(bench: HandoverBench) -> None:
    bench.settings.rebalance_ms = 60_000

    async def hang(_: tuple[TopicPartition, ...]) -> None:
        bench.steps.append("hangs")
        await asyncio.Event().wait()

    await bench.own(A, B)
    bench.callbacks.revoked = hang
    # one hangs already when the close begins
    bench.handover.revoke(Revoke((A,), lost=False, reason="moves"))
    await bench.then("hangs")
    assert await bench.handover.give_up_all(0, 2_000)
    assert {"commit 0", "commit 1"} <= set(bench.steps)
    assert [event.callback for event in bench.seen(CallbackFailed) if isinstance(event, CallbackFailed)] == [
        "on_partitions_revoked",
        "on_partitions_revoked",
    ]


async def test_at_a_close_records_that_are_never_done_leave_time_for_the_commit(bench: HandoverBench) -> None:
    await bench.own(A, undone=2)
    bench.done(A, 0)
    assert await bench.handover.give_up_all(2_000, 2_000)
    assert bench.steps == ["revoking 0", "revoked 0", "commit 0"]
    assert len(bench.seen(DrainTimedOut)) == 1


async def test_lost_falls_back_on_revoked(bench: HandoverBench) -> None:
    bench.callbacks.lost = None
    await bench.own(A)
    bench.handover.revoke(Revoke((A,), lost=True, reason="forgotten"))
    await bench.then("released")
    assert bench.steps == ["revoked 0", "released"]


async def test_a_callback_that_raises_or_takes_too_long_is_reported_and_all_goes_on(
    bench: HandoverBench,
) -> None:
    async def hang(_: tuple[TopicPartition, ...]) -> None:
        await asyncio.sleep(60)

    def fail(_: tuple[TopicPartition, ...]) -> None:
        raise RuntimeError("a bug")

    await bench.own(A)
    bench.callbacks.revoking, bench.callbacks.revoked = hang, fail
    bench.handover.revoke(Revoke((A,), lost=False, reason="moves"))
    await bench.then("released")
    assert bench.steps == ["commit 0", "released"]
    first, second = bench.seen(CallbackFailed)
    assert isinstance(first, CallbackFailed)
    assert isinstance(second, CallbackFailed)
    assert (first.callback, type(first.error)) == ("on_partitions_revoking", TimeoutError)
    assert (second.callback, str(second.error)) == ("on_partitions_revoked", "a bug")


async def test_a_callback_may_still_mark_records_done(bench: HandoverBench) -> None:
    await bench.own(A, undone=2)

    async def flush(_: tuple[TopicPartition, ...]) -> None:
        bench.done(A, 0)
        bench.done(A, 1)

    bench.callbacks.revoking = flush
    bench.handover.revoke(Revoke((A,), lost=False, reason="moves"))
    await bench.then("released")
    assert bench.seen(DrainTimedOut) == []
    assert bench.seen(PartitionsRevoked) == [PartitionsRevoked((A,), {})]


async def test_nothing_is_committed_without_auto_commit(bench: HandoverBench) -> None:
    bench.settings.commits = False
    await bench.own(A)
    bench.handover.revoke(Revoke((A,), lost=False, reason="moves"))
    await bench.then("released")
    assert bench.steps == ["revoking 0", "revoked 0", "released"]


async def test_closing_cuts_waits_short_and_gives_up_everything(bench: HandoverBench) -> None:
    await bench.own(A, B, undone=1)
    bench.handover.revoke(Revoke((A,), lost=False, reason="moves"))
    await bench.then("revoking 0")
    assert await bench.handover.give_up_all(0, 5_000)
    assert bench.positions.partitions() == frozenset()
    assert [s for s in bench.steps if s.startswith("commit")] == ["commit 0", "commit 1"]
    assert bench.steps.count("released") == 1


async def test_partitions_given_while_closing_are_not_taken(bench: HandoverBench) -> None:
    await bench.own(A)
    assert await bench.handover.give_up_all(0, 5_000)
    bench.handover.assign(Assign(2, (B,), ()))
    await asyncio.sleep(0.01)
    assert "assigned 1" not in bench.steps
    assert bench.positions.partitions() == frozenset()


async def test_draining_waits_for_the_partitions_it_is_asked_for(bench: HandoverBench) -> None:
    await bench.own(A, B, undone=1)
    assert not await bench.handover.drain([A], 20)
    draining = asyncio.create_task(bench.handover.drain([A], 5_000))
    await asyncio.sleep(0)
    bench.done(A, 0)
    assert await draining


async def test_closing_while_a_commit_is_called_off_ends_the_steps(bench: HandoverBench) -> None:
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
    bench.handover.revoke(Revoke((A,), lost=False, reason="moves"))
    await begun.wait()
    bench.handover.revoke(Revoke((A,), lost=True, reason="out of the group"))
    await winding_up.wait()
    bench.task.cancel()
    await asyncio.wait({bench.task}, timeout=20)
    assert bench.task.cancelled()
