"""Reading planned ranges from a real broker, without a JVM.

Covers: spark/_client.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from kohort.consumer.reading import arrow
from kohort.protocol import MAX_FRAME_BYTES, CorruptBatchError, build_batch
from kohort.spark import DataLossError, OffsetRange
from kohort.spark import _fetch as fetch
from kohort.spark._client import Client, ConnectionOptions
from kohort.spark._fetch import ReadTask, read_task
from kohort.testing import running_broker
from tests.broker.wire import Wire, create_topic, produce
from tests.spark.conftest import Side

pytestmark = pytest.mark.kafka

NewTopic = Callable[..., str]


@pytest.fixture
def read(side: Side) -> Callable[..., pa.Table]:
    def rows(*ranges: OffsetRange, **options: Any) -> pa.Table:
        task = ReadTask(ConnectionOptions(side.bootstrap), ranges, **options)
        schema = arrow.SCHEMA_WITH_HEADERS if task.include_headers else arrow.SCHEMA
        return pa.Table.from_batches(read_task(task, side.client), schema=schema)

    return rows


def places(table: pa.Table) -> list[tuple[str, int, int]]:
    return list(
        zip(
            table["topic"].to_pylist(),
            table["partition"].to_pylist(),
            table["offset"].to_pylist(),
            strict=True,
        )
    )


@pytest.fixture
def small_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a range takes many of them."""
    monkeypatch.setattr(fetch, "FIRST_FETCH_BYTES", 2_000)
    monkeypatch.setattr(fetch, "MAX_FETCH_BYTES", 5_000)


@pytest.mark.usefixtures("small_fetches")
def test_gives_each_range_in_full_and_nothing_else(
    side: Side, new_topic: NewTopic, read: Callable[..., pa.Table]
) -> None:
    orders, clicks = new_topic("orders", partitions=6), new_topic("clicks", partitions=1)
    side.produce(orders, dict.fromkeys(range(6), 400))
    side.produce(clicks, {0: 400}, value=lambda n: b"x" * (n * 7 % 900))
    ranges = [OffsetRange(orders, number, 10 * number, 400 - number) for number in range(6)]
    ranges.append(OffsetRange(clicks, 0, 3, 397))
    table = read(*ranges)
    assert places(table) == [
        (span.topic, span.partition, offset) for span in ranges for offset in range(span.start, span.end)
    ]
    keys = [b"%d" % offset for _, _, offset in places(table)]
    assert table["key"].to_pylist() == keys
    assert table["value"].to_pylist()[-1] == b"x" * (396 * 7 % 900)


@pytest.mark.usefixtures("small_fetches")
def test_reads_batches_far_larger_than_a_fetch(
    side: Side, new_topic: NewTopic, read: Callable[..., pa.Table]
) -> None:
    orders = new_topic("orders", partitions=1)
    side.produce(orders, {0: 3}, value=lambda n: bytes([n]) * 300_000)
    sizes = [len(value) for value in read(OffsetRange(orders, 0, 1, 3))["value"].to_pylist()]
    assert sizes == [300_000, 300_000]


def test_reads_a_batch_in_a_response_of_any_size() -> None:
    value, most = bytes(MAX_FRAME_BYTES), 2 * MAX_FRAME_BYTES
    with (
        running_broker(message_max_bytes=most, socket_request_max_bytes=most) as broker,
        Wire(broker.bootstrap, timeout_s=60) as wire,
    ):
        create_topic(wire, "orders")
        produced = produce(wire, "orders", bytes(build_batch([(None, value, ())], timestamp_ms=0)))
        assert produced.error_code == 0
        options = ConnectionOptions(broker.bootstrap)
        client = Client(options)
        (read,) = read_task(ReadTask(options, (OffsetRange("orders", 0, 0, 1),)), client)
        client.close()
    assert len(read["value"][0].as_py()) == len(value)


def test_no_ranges_are_no_rows(read: Callable[..., pa.Table]) -> None:
    assert read().num_rows == 0


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_reads_what_librdkafka_compresses(
    codec: str, side: Side, new_topic: NewTopic, read: Callable[..., pa.Table]
) -> None:
    orders = new_topic("orders", partitions=1)
    producer = Producer({"bootstrap.servers": side.bootstrap, "compression.type": codec, "linger.ms": 50})
    for n in range(200):
        producer.produce(orders, key=None, value=b"order %d" % n * 20, partition=0, headers={"n": b"%d" % n})
    assert producer.flush(30) == 0
    table = read(OffsetRange(orders, 0, 0, 200), include_headers=True)
    assert table["value"].to_pylist() == [b"order %d" % n * 20 for n in range(200)]
    assert table["headers"].to_pylist() == [[{"key": "n", "value": b"%d" % n}] for n in range(200)]


def test_loss_while_reading_is_an_error_that_names_the_range(
    side: Side, new_topic: NewTopic, read: Callable[..., pa.Table]
) -> None:
    orders = new_topic("orders", partitions=1)
    side.produce(orders, {0: 100})
    side.delete_before(orders, {0: 60})
    with pytest.raises(DataLossError, match=rf"{orders}-0 \[20, 50\)"):
        read(OffsetRange(orders, 0, 20, 50))
    with pytest.raises(DataLossError, match=rf"{orders}-0 \[20, 60\)"):
        read(OffsetRange(orders, 0, 20, 90))
    table = read(OffsetRange(orders, 0, 20, 90), fail_on_data_loss=False)
    assert table["offset"].to_pylist() == list(range(60, 90))


@pytest.mark.usefixtures("small_fetches")
def test_a_reader_that_is_left_half_way_does_no_harm(side: Side, new_topic: NewTopic) -> None:
    orders = new_topic("orders", partitions=2)
    side.produce(orders, {0: 500, 1: 500})
    task = ReadTask(
        ConnectionOptions(side.bootstrap), tuple(OffsetRange(orders, number, 0, 500) for number in (0, 1))
    )
    batches: Iterator[pa.RecordBatch] = read_task(task, side.client)
    next(batches)
    del batches
    assert sum(batch.num_rows for batch in read_task(task, side.client)) == 1000


def test_uncommitted_transactions_are_left_out_when_asked_for(
    bootstrap: str, new_topic: NewTopic, read: Callable[..., pa.Table]
) -> None:
    orders = new_topic("orders", partitions=1)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": orders})
    try:
        producer.init_transactions(5)
    except Exception as error:
        pytest.skip(f"this broker offers no transactions: {error}")
    for value, end in ((b"a", "commit"), (b"b", "abort"), (b"c", "commit")):
        producer.begin_transaction()
        producer.produce(orders, value=value, partition=0)
        producer.flush()
        producer.commit_transaction() if end == "commit" else producer.abort_transaction()
    whole = OffsetRange(orders, 0, 0, 6)
    assert read(whole)["value"].to_pylist() == [b"a", b"b", b"c"]
    assert read(whole, read_committed=True)["value"].to_pylist() == [b"a", b"c"]


def test_corrupt_bytes_are_never_rows(
    side: Side, new_topic: NewTopic, read: Callable[..., pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = new_topic("orders", partitions=1)
    side.produce(orders, {0: 10})
    real = fetch.fetch_records

    async def flipped(*arguments: Any) -> Any:
        import dataclasses

        answer = await real(*arguments)
        records = bytearray(answer.records)
        records[-1] ^= 1
        return dataclasses.replace(answer, records=bytes(records))

    monkeypatch.setattr(fetch, "fetch_records", flipped)
    with pytest.raises(CorruptBatchError):
        read(OffsetRange(orders, 0, 0, 10))
