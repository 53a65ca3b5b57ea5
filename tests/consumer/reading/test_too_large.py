"""A batch that makes a response larger than this client takes: its partition fails, the others are read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from kohort.client.errors import ConfigError, ResponseTooLargeError
from kohort.client.fetch import Fetched
from kohort.client.pool import Channel
from kohort.consumer import BatchTooLargeError, Cluster, FetchFrom
from kohort.producer import Producer
from kohort.protocol import MAX_FRAME_BYTES, TopicPartition
from tests.consumer.batches import batch
from tests.consumer.configs import config
from tests.consumer.fetch_bench import LEADER, FetchBench, ScriptedCluster, fetched
from tests.consumer.members import Maker, read
from tests.waiting import until

ALL = [TopicPartition("orders", number) for number in range(9)]
LARGE = ALL[5]


@dataclass
class Brokers(ScriptedCluster):
    """Answers as a broker does: the first batch of the first partition that has one comes whole."""

    #: Offset of the large batch in its partition; small batches in others, by partition.
    large_at: int = 0
    small: dict[TopicPartition, list[bytes]] = field(default_factory=dict)
    too_large: int = 0

    async def fetch(
        self,
        start: Mapping[TopicPartition, FetchFrom],
        *,
        channel: Channel,
        max_wait_ms: int,
        on_fetched: Callable[[Fetched], None],
        **_: Any,
    ) -> Fetched:
        self.asked.append((LEADER, dict(start), 0))
        self.how.append((channel, max_wait_ms))
        await asyncio.sleep(0)
        for partition, where in start.items():
            if partition == LARGE and where.offset == self.large_at:
                self.too_large += 1
                raise ResponseTooLargeError("node 1", "too much", 110_000_000, MAX_FRAME_BYTES)
            if self.small.get(partition):
                on_fetched(answer := {partition: fetched(self.small[partition].pop(0))})
                # a turn of the event loop later, as with a connection
                await asyncio.sleep(0)
                return answer
        if max_wait_ms:
            await self.answered.wait()
        return {}


def _bench(brokers: Brokers) -> FetchBench:
    bench = FetchBench({})
    bench.cluster = brokers
    bench.fetcher.reading = replace(bench.fetcher.reading, cluster=cast(Cluster, brokers))
    return bench


async def _read(bench: FetchBench, count: int) -> list[tuple[int, bytes | None]]:
    taken: list[tuple[int, bytes | None]] = []

    def poll() -> bool:
        taken.extend((record.partition, record.value) for record in bench.delivery.take(100))
        return len(taken) >= count and bench.positions.first_error() is not None

    running = asyncio.create_task(bench.fetcher.run())
    try:
        await until(poll, timeout_s=20)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return taken


async def test_a_batch_over_the_limit_fails_its_partition_and_the_others_are_read() -> None:
    brokers = Brokers({}, small={p: [batch([b"x"])] for p in ALL if p != LARGE})
    bench = _bench(brokers)
    bench.begin(*ALL)
    taken = await _read(bench, 8)
    assert sorted(partition for partition, _ in taken) == [p.partition for p in ALL if p != LARGE]
    error = bench.positions.first_error()
    assert isinstance(error, BatchTooLargeError)
    assert "orders-5: the batch at offset 0 comes in a response of 110000000 bytes" in str(error)
    assert "receive_message_max_bytes" in str(error)


async def test_the_partition_is_found_by_halves() -> None:
    brokers = Brokers({})
    bench = _bench(brokers)
    bench.begin(*ALL)
    await _read(bench, 0)
    named = [[p.partition for p in start] for _, start, _ in brokers.asked]
    assert named[:5] == [[*range(9)], [0, 1, 2, 3, 4], [5, 6], [5], [0, 1, 2, 3, 4, 6, 7, 8]]
    assert [wait for _, wait in brokers.how[:5]] == [100, 0, 0, 0, 100]


async def test_what_is_before_the_large_batch_is_delivered_first() -> None:
    brokers = Brokers({}, large_at=1, small={LARGE: [batch([b"before"])]})
    bench = _bench(brokers)
    bench.begin(*ALL)
    running = asyncio.create_task(bench.fetcher.run())
    await until(lambda: brokers.too_large > 1 and len(brokers.asked[-1][1]) == 8, timeout_s=20)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert bench.positions.first_error() is None
    assert await _read(bench, 1) == [(LARGE.partition, b"before")]


async def test_after_a_seek_past_the_large_batch_its_partition_is_read_again() -> None:
    brokers = Brokers({})
    bench = _bench(brokers)
    bench.begin(*ALL)
    await _read(bench, 0)
    bench.positions.seek(LARGE, 1)
    assert bench.positions.first_error() is None
    asked = len(brokers.asked)
    running = asyncio.create_task(bench.fetcher.run())
    await until(lambda: any(LARGE in start for _, start, _ in brokers.asked[asked:]), timeout_s=20)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.kafka
async def test_of_a_broker_the_others_are_read_and_reading_goes_on_after_a_seek(
    bootstrap: str, member: Maker, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic = new_topic("large", partitions=2, max_message_bytes="9000000")
    large, small = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with Producer(bootstrap=bootstrap, max_request_size=9_000_000) as producer:
        for partition, value in ((0, b"before"), (0, b"x" * 3_000_000), (0, b"after"), (1, b"small")):
            await producer.send(topic, value, partition=partition)
    limits = {"fetch_max_bytes": 1_000_000, "receive_message_max_bytes": 1_100_000}
    consumer = await member(topic, group=group("billing"), **limits)
    taken: list[tuple[TopicPartition, bytes | None]] = []

    async def poll() -> None:
        while True:
            taken.extend((record.topic_partition, record.value) for record in await consumer.getmany())

    with pytest.raises(BatchTooLargeError, match="-0: the batch at offset 1 comes in a response of 3000"):
        await poll()
    consumer.pause(large)
    while len(taken) < 2:
        taken += [(record.topic_partition, record.value) for record in await consumer.getmany()]
    assert sorted(taken) == [(large, b"before"), (small, b"small")]
    consumer.seek(large, 2)
    consumer.resume(large)
    (after,) = await read(consumer, 1)
    assert after.value == b"after"


def test_the_limit_follows_what_a_fetch_may_bring() -> None:
    assert config().max_response_bytes > MAX_FRAME_BYTES
    assert config(fetch_max_bytes=200_000_000).max_response_bytes > 200_000_000
    assert config(max_partition_fetch_bytes=300_000_000).max_response_bytes > 300_000_000
    assert config(receive_message_max_bytes=400_000_000).max_response_bytes > 400_000_000
    with pytest.raises(ConfigError, match="must be at least fetch_max_bytes"):
        config(fetch_max_bytes=50_000_000, receive_message_max_bytes=1_000_000)
