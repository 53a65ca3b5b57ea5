"""What hangs while partitions are taken over and given up: whom it holds up, and what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from kohort.consumer.events import CallbackFailed, PartitionsLost
from kohort.consumer.group.effects import Assign, Revoke
from kohort.protocol import TopicPartition
from tests.consumer.handover_bench import A, B, HandoverBench
from tests.waiting import until


async def test_a_callback_that_hangs_with_some_partitions_holds_up_no_others(bench: HandoverBench) -> None:
    hung = asyncio.Event()

    async def assigned(partitions: tuple[TopicPartition, ...]) -> None:
        if partitions == (B,):
            await hung.wait()

    bench.settings.rebalance_ms = 60_000
    await bench.own(A, undone=1)
    bench.callbacks.assigned = assigned
    bench.handover.assign(Assign(2, (B,), (A,)))
    bench.done(A, 0)
    bench.handover.revoke(Revoke((A,), lost=False, reason="moves"))
    await bench.then("released")
    assert bench.steps == ["revoking 0", "revoked 0", "commit 0", "released"]
    hung.set()


async def test_what_is_given_up_waits_for_no_other_partition_that_hangs(bench: HandoverBench) -> None:
    """One release of two partitions, of which the user is still being told of one."""
    hung = asyncio.Event()

    async def assigned(partitions: tuple[TopicPartition, ...]) -> None:
        if partitions == (B,):
            await hung.wait()

    bench.settings.rebalance_ms = 60_000
    await bench.own(A)
    bench.callbacks.assigned = assigned
    bench.handover.assign(Assign(2, (B,), (A,)))
    bench.handover.revoke(Revoke((A, B), lost=False, reason="moves"))
    await bench.then("commit 0")
    assert "released" not in bench.steps
    hung.set()
    await bench.then("released")
    assert bench.steps.count("released") == 1
    assert bench.steps.index("revoking 1") < bench.steps.index("commit 1")


async def test_the_user_is_told_of_a_partition_before_it_is_taken_away_again(bench: HandoverBench) -> None:
    told = asyncio.Event()

    async def assigned(_: tuple[TopicPartition, ...]) -> None:
        await told.wait()
        bench.steps.append("assigned")

    bench.settings.rebalance_ms = 60_000
    bench.callbacks.assigned = assigned
    bench.handover.assign(Assign(1, (A,), ()))
    bench.handover.revoke(Revoke((A,), lost=False, reason="moves"))
    await asyncio.sleep(0.01)
    assert bench.steps == []
    told.set()
    await bench.then("released")
    assert [step for step in bench.steps if step != "announced"] == [
        "assigned",
        "revoking 0",
        "revoked 0",
        "commit 0",
        "released",
    ]


@pytest.mark.parametrize("hanging", ["assigned", "revoking", "revoked", "commit"])
async def test_a_loss_is_acted_on_at_once_whatever_is_under_way(bench: HandoverBench, hanging: str) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def hang(*_: object) -> bool:
        began.set()
        try:
            await asyncio.sleep(3_600)
        finally:
            ended.set()
        return True

    bench.settings.rebalance_ms = 3_600_000
    if hanging == "commit":
        bench.committer.act = hang
    else:
        setattr(bench.callbacks, hanging, hang)
    bench.handover.assign(Assign(1, (A,), ()))
    if hanging != "assigned":
        await bench.then("announced")
        bench.handover.revoke(Revoke((A,), lost=False, reason="moves"))
    await began.wait()
    bench.handover.revoke(Revoke((A,) if hanging == "assigned" else (), lost=True, reason="forgotten"))
    await until(lambda: bench.steps.count("released") == (1 if hanging == "assigned" else 2))
    assert ended.is_set()
    assert bench.seen(PartitionsLost) == [PartitionsLost((A,), "forgotten")]
    # what had been told that they are revoked is not told once more
    assert ("lost 0" in bench.steps) is (hanging != "commit")


async def test_a_callback_that_lets_a_cancellation_out_is_reported_and_all_goes_on(
    bench: HandoverBench,
) -> None:
    async def revoking(_: tuple[TopicPartition, ...]) -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task

    await bench.own(A)
    bench.callbacks.revoking = revoking
    bench.handover.revoke(Revoke((A,), lost=False, reason="moves"))
    await bench.then("released")
    (failed,) = bench.seen(CallbackFailed)
    assert isinstance(failed, CallbackFailed)
    assert isinstance(failed.error, asyncio.CancelledError)
    assert bench.steps == ["revoked 0", "commit 0", "released"]


async def test_the_commit_of_a_release_has_what_the_drain_has_left_of_the_rebalance_timeout(
    bench: HandoverBench,
) -> None:
    limits: list[float] = []

    async def note(_: Iterable[TopicPartition], timeout_ms: float) -> bool:
        limits.append(timeout_ms)
        return True

    bench.settings.rebalance_ms, bench.settings.default_api_timeout_ms = 10_000, 5_000
    bench.committer.act = note
    await bench.own(A)
    bench.handover.revoke(Revoke((A,), lost=False, reason="moves"))
    await bench.then("released")
    bench.settings.default_api_timeout_ms = 60_000
    await bench.own(B)
    bench.handover.revoke(Revoke((B,), lost=False, reason="moves"))
    await bench.then("released")
    assert limits[0] == 5_000
    assert 1_000 <= limits[1] <= 10_000


async def test_a_fault_of_ours_in_a_step_ends_the_consumer(bench: HandoverBench) -> None:
    async def broken(_: Iterable[TopicPartition], __: float) -> bool:
        raise LookupError("a fault of ours")

    bench.committer.act = broken
    await bench.own(A)
    bench.handover.revoke(Revoke((A,), lost=False, reason="moves"))
    with pytest.raises(LookupError):
        await asyncio.wait_for(asyncio.shield(bench.task), 20)
