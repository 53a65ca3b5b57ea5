"""The transaction coordinator over a log in memory: producer ids, markers, restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kohort.protocol import ErrorCode, KafkaError, TopicPartition
from kohort.transactions import (
    Add,
    Identity,
    Initialize,
    TransactionCoordinator,
    TransactionEnd,
    TransactionMarker,
    TransactionMetadata,
    TransactionSettings,
)
from kohort.transactions.moves import LAST_EPOCH
from tests.coordinator.memory_log import MemoryLog

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)
TIMEOUT_MS = 60_000


@dataclass
class Around:
    """The world around a coordinator: the log, producer ids from 5 on, and what became of markers."""

    log: MemoryLog = field(default_factory=MemoryLog)
    markers: list[tuple[TopicPartition, TransactionMarker]] = field(default_factory=list)
    #: Partitions that take no marker.
    closed: set[TopicPartition] = field(default_factory=set)
    #: Partitions where the attempt fails in a way that nobody has thought of.
    broken: set[TopicPartition] = field(default_factory=set)
    next_id: int = 5
    now_ms: int = 1_700_000_000_000
    reserved: list[int] = field(default_factory=list)

    async def take(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    async def reserve(self, newest: int) -> None:
        self.reserved.append(newest)

    async def write(self, partition: TopicPartition, marker: TransactionMarker) -> bool:
        self.markers.append((partition, marker))
        if partition in self.broken:
            raise RuntimeError("a mistake")
        return partition not in self.closed

    async def start(self, interval_ms: int = 10_000) -> TransactionCoordinator:
        coordinator = TransactionCoordinator(
            settings=TransactionSettings(
                transaction_abort_timed_out_transaction_cleanup_interval_ms=interval_ms
            ),
            take_producer_id=self.take,
            reserve_producer_ids=self.reserve,
            write_marker=self.write,
            epoch_of=lambda _partition: 3,
            clock_ms=lambda: self.now_ms,
        )
        await coordinator.start(self.log)
        return coordinator


async def settled(coordinator: TransactionCoordinator, name: str, state: str) -> TransactionMetadata:
    """The id, once it is in this state."""
    async with asyncio.timeout(5):
        while True:
            found = coordinator.describe(name)
            assert isinstance(found, TransactionMetadata)
            if found.state.value == state:
                return found
            await asyncio.sleep(0.001)


async def marked(around: Around) -> set[int]:
    """Wait for two markers; how many there were at each turn of the loop before that."""
    seen: set[int] = set()
    async with asyncio.timeout(5):
        while True:
            seen.add(len(around.markers))
            if len(around.markers) >= 2:
                return seen
            await asyncio.sleep(0)


async def begun(coordinator: TransactionCoordinator) -> Identity:
    identity = await coordinator.initialize(Initialize("pay", TIMEOUT_MS))
    assert await coordinator.add(Add("pay", *identity[1:], [ONE, TWO], 2)) == ErrorCode.NONE
    return identity


async def test_a_transaction_ends_with_a_marker_in_every_partition() -> None:
    around = Around()
    coordinator = await around.start()
    identity = await begun(coordinator)
    assert identity == (ErrorCode.NONE, 5, 0)
    assert coordinator.verify("pay", 5, 0, ONE) == ErrorCode.NONE
    answer = await coordinator.end(TransactionEnd("pay", 5, 0, True, 2))
    assert answer == (ErrorCode.NONE, 5, 1)
    await settled(coordinator, "pay", "CompleteCommit")
    marker = TransactionMarker(5, 1, True, 3, attempt=0)
    assert around.markers == [(ONE, marker), (TWO, marker)]
    await coordinator.stop()


async def test_a_partition_that_takes_no_marker_is_tried_again_alone() -> None:
    around = Around(closed={TWO})
    coordinator = await around.start()
    await begun(coordinator)
    await coordinator.end(TransactionEnd("pay", 5, 0, False, 1))
    await settled(coordinator, "pay", "PrepareAbort")
    await marked(around)
    assert [partition for partition, _ in around.markers] == [ONE, TWO]
    around.closed.clear()
    await settled(coordinator, "pay", "CompleteAbort")
    assert [(partition, marker.attempt) for partition, marker in around.markers] == [
        (ONE, 0),
        (TWO, 0),
        (TWO, 1),
    ]
    await coordinator.stop()


async def test_a_marker_that_fails_unforeseen_keeps_no_other_one_back_and_is_tried_again() -> None:
    around = Around(broken={ONE})
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context["message"]))
    coordinator = await around.start()
    await begun(coordinator)
    await coordinator.end(TransactionEnd("pay", 5, 0, True, 2))
    await marked(around)
    assert [partition for partition, _ in around.markers] == [ONE, TWO]
    assert "tried again" in told[0]
    around.broken.clear()
    await settled(coordinator, "pay", "CompleteCommit")
    assert [partition for partition, _ in around.markers] == [ONE, TWO, ONE]
    await coordinator.stop()


async def test_others_have_their_turn_between_the_markers_of_a_large_transaction() -> None:
    around = Around()
    coordinator = await around.start()
    await begun(coordinator)
    await coordinator.end(TransactionEnd("pay", 5, 0, True, 2))
    assert 1 in await marked(around)
    await coordinator.stop()


async def test_what_was_decided_is_carried_out_by_the_next_start() -> None:
    around = Around(closed={ONE, TWO})
    coordinator = await around.start()
    await begun(coordinator)
    await coordinator.end(TransactionEnd("pay", 5, 0, True, 2))
    await coordinator.stop()
    around.closed.clear()
    around.markers.clear()
    coordinator = await around.start()
    await settled(coordinator, "pay", "CompleteCommit")
    assert [partition for partition, _ in around.markers] == [ONE, TWO]
    assert around.reserved == [-1, 5]
    await coordinator.stop()


async def test_a_shard_that_cannot_be_read_is_nobodys() -> None:
    """What a producer is told of an id that is only unreadable makes it give up."""

    class Unreadable(MemoryLog):
        def load(self, partition: int, /) -> Iterator[Any]:
            return map(self._fail, [partition])

        def _fail(self, partition: int) -> Any:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"a bad disk below partition {partition}")

    coordinator = await Around(log=Unreadable()).start()
    nowhere = ErrorCode.NOT_COORDINATOR
    assert coordinator.unread
    assert coordinator.verify("pay", 5, 0, ONE) == coordinator.describe("pay") == nowhere
    assert await coordinator.initialize(Initialize("pay", 1_000)) == Identity(nowhere)
    await coordinator.stop()


async def test_what_waits_for_a_disk_keeps_no_other_from_its_end() -> None:
    around = Around(closed={ONE})
    coordinator = await around.start()
    for number in range(120):
        name = f"pay-{number}"
        _, producer_id, epoch = await coordinator.initialize(Initialize(name, TIMEOUT_MS))
        partitions = [ONE if number < 100 else TWO]
        assert await coordinator.add(Add(name, producer_id, epoch, partitions, 2)) == ErrorCode.NONE
        assert not (await coordinator.end(TransactionEnd(name, producer_id, epoch, True, 2))).error
    for number in range(100, 120):
        await settled(coordinator, f"pay-{number}", "CompleteCommit")
    await settled(coordinator, "pay-0", "PrepareCommit")
    around.closed.clear()
    for number in range(100):
        await settled(coordinator, f"pay-{number}", "CompleteCommit")
    await coordinator.stop()


async def test_ids_of_other_makers_are_told_so_that_none_is_given_twice() -> None:
    around = Around(next_id=1_700)
    coordinator = await around.start()
    await coordinator.initialize(Initialize("a", TIMEOUT_MS))
    await coordinator.stop()
    await (await around.start()).stop()
    assert around.reserved[-1] == 1_700


async def test_without_the_topic_there_is_no_coordinator() -> None:
    around = Around()
    coordinator = TransactionCoordinator(
        settings=TransactionSettings(),
        take_producer_id=around.take,
        reserve_producer_ids=around.reserve,
        write_marker=around.write,
        epoch_of=lambda _partition: 0,
        clock_ms=lambda: 0,
    )
    nowhere = ErrorCode.NOT_COORDINATOR
    assert (await coordinator.initialize(Initialize("a", TIMEOUT_MS))).error == nowhere
    assert await coordinator.add(Add("a", 1, 0, [ONE], 2)) == nowhere
    assert (await coordinator.end(TransactionEnd("a", 1, 0, True, 2))).error == nowhere
    assert coordinator.verify("a", 1, 0, ONE) == coordinator.describe("a") == nowhere
    assert coordinator.transactions() == []
    await coordinator.stop()


async def test_the_empty_id_is_no_transactional_id() -> None:
    coordinator = await Around().start()
    invalid = ErrorCode.INVALID_REQUEST
    assert (await coordinator.initialize(Initialize("", TIMEOUT_MS))).error == invalid
    assert await coordinator.add(Add("", 1, 0, [ONE], 2)) == invalid
    assert (await coordinator.end(TransactionEnd("", 1, 0, True, 2))).error == invalid
    assert coordinator.verify("", 1, 0, ONE) == coordinator.describe("") == invalid
    assert coordinator.describe("other") == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    await coordinator.stop()


async def test_what_times_out_is_aborted() -> None:
    around = Around()
    coordinator = await around.start(interval_ms=1)
    await begun(coordinator)
    around.now_ms += TIMEOUT_MS + 1
    found = await settled(coordinator, "pay", "CompleteAbort")
    assert found.producer_epoch == 1
    assert {marker.committed for _, marker in around.markers} == {False}
    await coordinator.stop()


async def test_what_times_out_in_the_last_epoch_goes_on_with_another_producer_id() -> None:
    around = Around()
    coordinator = await around.start(interval_ms=1)
    first = await coordinator.initialize(Initialize("pay", TIMEOUT_MS))
    state = coordinator._state_of("pay")
    assert not isinstance(state, ErrorCode)
    state.store([state.by_id["pay"]._replace(producer_epoch=LAST_EPOCH)])
    assert await coordinator.add(Add("pay", first.producer_id, LAST_EPOCH, [ONE], 2)) == 0
    around.now_ms += TIMEOUT_MS + 1
    found = await settled(coordinator, "pay", "CompleteAbort")
    assert (found.producer_id, found.producer_epoch) == (first.producer_id + 1, 0)
    assert {marker.producer_epoch for _, marker in around.markers} == {LAST_EPOCH + 1}
    await coordinator.stop()


async def test_every_id_is_listed() -> None:
    coordinator = await Around().start()
    for name in ("a", "b", "c"):
        await coordinator.initialize(Initialize(name, TIMEOUT_MS))
    found = coordinator.transactions()
    assert not isinstance(found, ErrorCode)
    assert sorted(each.transactional_id for each in found) == ["a", "b", "c"]
    await coordinator.stop()
