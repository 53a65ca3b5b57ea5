"""What is read from a log for a share partition: only what could be acquired, and no aborted records."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kohort.broker.partitions.partition import Partition
from kohort.broker.share.reading import ReadBatches, _add_batches, read_wanted
from kohort.log import ReadInfo
from kohort.protocol import ErrorCode, KafkaError, build_batch, iter_batches
from kohort.share_partitions import AcquiredRange, BatchOffsets, ShareLimits, ShareRules
from tests.broker.share.test_share_leader import RELEASE, World, ask, on_broker, say, take
from tests.broker.wire import batch

LIMITS = ShareLimits()
ABORT, COMMIT = 0, 1


def of_transaction(producer: int, base_offset: int, count: int = 2) -> bytes:
    records = [(b"k", b"v")] * count
    return bytes(
        build_batch(
            records,
            timestamp_ms=1,
            base_offset=base_offset,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
    )


def marker(producer: int, offset: int, kind: int) -> bytes:
    record = (struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0))
    return bytes(
        build_batch(
            [record],
            timestamp_ms=1,
            base_offset=offset,
            producer_id=producer,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
    )


def test_records_of_aborted_transactions_are_found_up_to_their_markers() -> None:
    records = b"".join(
        [
            of_transaction(7, 0),
            of_transaction(8, 2),
            marker(7, 4, ABORT),
            of_transaction(7, 5),
            marker(8, 7, COMMIT),
            marker(7, 8, COMMIT),
            of_transaction(7, 9),
            marker(7, 11, ABORT),
            bytes(batch(1, base_offset=12)),
        ]
    )
    read = ReadBatches()
    assert _add_batches(read, records, [(7, 9), (7, 0)]) == 12
    assert read.aborted == [(0, 1), (9, 10)]
    assert read.offsets[-1] == BatchOffsets(12, 12)


def test_a_transaction_that_began_before_what_is_read() -> None:
    read = ReadBatches()
    _add_batches(read, of_transaction(7, 20) + marker(7, 22, ABORT) + of_transaction(7, 23), [(7, 3)])
    assert read.aborted == [(20, 21)]


def test_a_batch_that_is_cut_short_is_corrupt() -> None:
    with pytest.raises(KafkaError) as refused:
        _add_batches(ReadBatches(), bytes(batch(3))[:-1], ())
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_only_batches_that_hold_something_of_the_ranges_are_selected() -> None:
    read = ReadBatches()
    parts = [bytes(batch(2, base_offset=first)) for first in (0, 2, 4, 6)]
    _add_batches(read, b"".join(parts), ())
    assert read.select([AcquiredRange(1, 2, 1), AcquiredRange(7, 7, 2)]) == parts[0] + parts[1] + parts[3]
    assert read.select([]) == b""


def test_what_others_have_is_not_read() -> None:
    async def body(world: World) -> None:
        world.write(*[10] * 6)
        led = await world.load()
        take(led, "m", 40)
        await say(led, "m", 12, 13, RELEASE)
        await say(led, "m", 30, 31, RELEASE)
        assert led.records is not None
        wanted = {"most_bytes": 1 << 20, "at_least_one": True, "committed": False}
        # one read holds what follows, too; the next begins where something is free again
        read = read_wanted(world.partition, led.records, LIMITS, 12, most_records=2, **wanted)  # type: ignore[arg-type]
        assert read.offsets[0] == (10, 19)
        size = len(batch(10))
        wanted["most_bytes"] = 2 * size
        few = read_wanted(world.partition, led.records, LIMITS, 12, most_records=50, **wanted)  # type: ignore[arg-type]
        assert few.offsets == [(10, 19), (20, 29)]

    on_broker(body)


@pytest.mark.parametrize(("size", "is_kept"), [(4, True), (4_000, False)], ids=["small", "large"])
def test_a_small_batch_that_is_given_in_parts_is_read_once(
    monkeypatch: pytest.MonkeyPatch, size: int, is_kept: bool
) -> None:
    read: list[int] = []
    whole = Partition.read

    def counted(partition: Partition, offset: int, *args: Any, **more: Any) -> ReadInfo:
        read.append(offset)
        return whole(partition, offset, *args, **more)

    async def body(world: World) -> None:
        world.write(size, 4)
        led = await world.load()
        monkeypatch.setattr(Partition, "read", counted)
        for number in range(4):
            given = led.acquire(ask("m" if number % 2 else "n", 1, strict=True))
            assert given is not None
            assert given.ranges == [(number, number, 1)]
            ((_, header),) = iter_batches(given.records)
            assert (header.base_offset, header.record_count) == (0, size)
        assert (len(read) == 1) is is_kept

    on_broker(body)


def test_a_batch_in_memory_is_given_in_parts_within_the_bytes_that_are_asked_for() -> None:
    async def body(world: World) -> None:
        world.write(4)
        led = await world.load()
        assert take(led, "m", 1, strict=True) == [(0, 0, 1)]
        assert take(led, "m", 1, strict=True, most_bytes=10, at_least_one=False) == []
        assert take(led, "m", 1, strict=True, most_bytes=10) == [(1, 1, 1)]

    on_broker(body)


def test_aborted_records_are_left_out_when_the_isolation_level_rises_within_a_batch() -> None:
    async def body(world: World) -> None:
        world.partition.append(bytearray(of_transaction(7, 0, 4)), now_ms=world.node.now_ms())
        world.partition.append(bytearray(marker(7, 4, ABORT)), now_ms=world.node.now_ms(), from_client=False)
        world.write(1)
        led = await world.load()
        assert take(led, "m", 1, strict=True) == [(0, 0, 1)]
        world.rules = ShareRules(committed=True, start="earliest")
        # as in Apache Kafka the marker is for a member, which finds no record there
        assert take(led, "m", 1, strict=True) == [(4, 4, 1)]

    on_broker(body)
