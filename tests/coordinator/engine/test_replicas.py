"""Shards whose topic has replicas: they serve, and answer, when what is in the log is with all of them.

Covers: coordinator/engine/runner.py, coordinator/engine/runtime.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kohort.coordinator import GroupCoordinator
from kohort.offsets_topic import OffsetCommitted, encode
from kohort.protocol import ApiKey, ErrorCode, KafkaError
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.coordinator.bodies import START_MS
from tests.coordinator.memory_log import CONTEXT, MemoryLog, commit, coordinator, fetch


class Replicas:
    """Has nothing until it is told to."""

    def __init__(self, timeout_s: float = 60.0) -> None:
        self.timeout_s = timeout_s
        self.asked: list[int | None] = []
        self.replaced = False
        self._waiting: list[Callable[[KafkaError | None], None]] = []

    def when_committed(
        self, _partition: int, end_offset: int, then: Callable[[KafkaError | None], None]
    ) -> bool:
        self.asked.append(end_offset)
        self._waiting.append(then)
        return False

    def when_loaded(self, _partition: int, then: Callable[[KafkaError | None], None]) -> bool:
        self.asked.append(None)
        self._waiting.append(then)
        return False

    def may_be_replaced(self, _partition: int) -> bool:
        return self.replaced

    def settle(self, error: KafkaError | None = None) -> None:
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then(error)


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_shard_serves_when_all_that_it_has_loaded_is_with_all_replicas() -> None:
    log, replicas = MemoryLog(partition_count=1), Replicas()
    log.append(0, [encode(OffsetCommitted("g", "t", 0, 5, -1, "", START_MS))], START_MS)
    c = coordinator(log, replicas=replicas)
    c.open()
    assert await commit(c, "g") == [ErrorCode.NOT_COORDINATOR]
    loading = asyncio.create_task(c.load(0))
    await turns()
    assert replicas.asked == [None]
    assert await commit(c, "g") == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    replicas.settle()
    await loading
    assert (await fetch(c, "g")).groups[0].topics[0].partitions[0].committed_offset == 5
    c.unload(0)
    assert await commit(c, "g") == [ErrorCode.NOT_COORDINATOR]
    await c.stop()


async def serving(replicas: Replicas) -> GroupCoordinator:
    """A coordinator whose partition is loaded."""
    c = coordinator(MemoryLog(partition_count=1), replicas=replicas)
    c.open()
    loading = asyncio.create_task(c.load(0))
    await turns()
    replicas.settle()
    await loading
    return c


async def test_a_commit_counts_and_is_answered_when_it_is_with_all_replicas() -> None:
    replicas = Replicas()
    c = await serving(replicas)
    committing = asyncio.create_task(commit(c, "g", 7))
    fetching = asyncio.create_task(fetch(c, "g"))
    await turns()
    assert replicas.asked == [None, 1]
    assert not committing.done()
    assert not fetching.done(), "it waits for what is being written"
    replicas.settle()
    assert await committing == [0]
    assert (await fetching).groups[0].topics[0].partitions[0].committed_offset == 7
    await c.stop()


async def test_a_commit_of_a_leader_that_is_none_any_more_is_refused() -> None:
    replicas = Replicas()
    c = await serving(replicas)
    committing = asyncio.create_task(commit(c, "g", 7))
    await turns()
    replicas.settle(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another broker leads"))
    assert await committing == [ErrorCode.NOT_COORDINATOR]
    assert list((await fetch(c, "g")).groups[0].topics) == []
    await c.stop()


async def test_a_commit_that_takes_too_long_is_refused_and_may_count_later() -> None:
    replicas = Replicas(timeout_s=0.0)
    c = await serving(replicas)
    assert await commit(c, "g", 7) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    replicas.settle()
    assert (await fetch(c, "g")).groups[0].topics[0].partitions[0].committed_offset == 7
    await c.stop()


async def test_who_waits_for_a_write_that_takes_too_long_is_answered_without_it() -> None:
    """As in Apache Kafka: a read has what is committed, a change is to be tried again."""
    replicas = Replicas()
    c = await serving(replicas)
    committing = asyncio.create_task(commit(c, "g", 5))
    await turns()
    replicas.settle()
    assert await committing == [0]
    replicas.timeout_s = 0.05

    async def fetched() -> int:
        offset: int = (await fetch(c, "g")).groups[0].topics[0].partitions[0].committed_offset
        return offset

    async def deleted() -> int:
        answer = await c.handle(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(["g"]), CONTEXT)
        error: int = answer.results[0].error_code
        return error

    # they come before the time is over, then after it
    for _ in range(2):
        asked = asyncio.gather(commit(c, "g", 7), fetched(), deleted())
        errors, offset, error = await asyncio.wait_for(asked, 20)
        assert errors == [error] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        assert offset == 5
        assert await asyncio.wait_for(fetched(), 20) == 5
    replicas.settle()
    assert await fetched() == 7
    deleting = asyncio.create_task(deleted())
    await turns()
    replicas.settle()
    assert await deleting == ErrorCode.NONE
    await c.stop()


async def test_a_load_that_was_cancelled_may_be_told_of_its_replicas() -> None:
    """Whoever tells goes on with other partitions: a broker that lost its session leads none of them."""
    replicas = Replicas()
    c = coordinator(MemoryLog(partition_count=1), replicas=replicas)
    c.open()
    loading = asyncio.create_task(c.load(0))
    await turns()
    loading.cancel()
    c.unload(0)
    replicas.settle(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another broker leads"))
    await turns()
    assert loading.cancelled()
    await c.stop()


async def test_a_commit_under_way_when_its_partition_moves_is_answered_once() -> None:
    replicas = Replicas(timeout_s=0.0)
    c = await serving(replicas)
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context))
    committing = asyncio.create_task(commit(c, "g", 7))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(replicas.asked) == 2
    c.unload(0)
    assert await committing == [ErrorCode.NOT_COORDINATOR]
    await asyncio.sleep(0.01)
    assert not failures
    await c.stop()


async def test_offsets_are_not_read_where_another_broker_may_coordinate_by_now() -> None:
    replicas = Replicas()
    c = await serving(replicas)
    replicas.replaced = True
    assert (await fetch(c, "g")).groups[0].error_code == ErrorCode.NOT_COORDINATOR
    replicas.replaced = False
    assert (await fetch(c, "g")).groups[0].error_code == ErrorCode.NONE
    await c.stop()
