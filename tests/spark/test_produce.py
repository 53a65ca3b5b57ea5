from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from kohort.producer import Producer
from kohort.protocol import Codec
from kohort.protocol.rows import EncodedRecords
from kohort.spark import UnknownTopicError, _produce
from kohort.spark._client import Client, ConnectionOptions
from kohort.spark._produce import RecordWriter, WriteSettings
from tests.spark.conftest import Side
from tests.spark.loops import NewTopic
from tests.spark.sink_rows import one_row

pytestmark = pytest.mark.kafka


@dataclass(frozen=True)
class Found:
    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: list[tuple[str, bytes | None]]


def read_back(bootstrap: str, topic: str, count: int) -> list[Found]:
    """By a client that knows every codec; in order within each partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "check.crcs": True})
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([Place(topic, number, 0) for number in sorted(partitions)])
    found: list[Found] = []
    while len(found) < count:
        message = consumer.poll(10)
        assert message is not None, f"only {len(found)} of {count} records came"
        assert message.error() is None, message.error()
        found.append(
            Found(
                message.partition(),
                message.key(),
                message.value(),
                message.timestamp()[1],
                message.headers() or [],
            )
        )
    consumer.close()
    return found


@pytest.mark.parametrize("codec", list(Codec))
def test_records_come_back_as_they_were_written(codec: Codec, side: Side, new_topic: NewTopic) -> None:
    # the broker must not take records of that age for old ones
    topic = new_topic("out", partitions=1)
    writer = RecordWriter(side.client, WriteSettings(codec))
    writer.add(
        one_row(topic, b"k", b"v" * 1000, headers=[("a", b"1"), ("b", None)], timestamp_ms=1_700_000_000_123)
    )
    writer.add(one_row(topic, None, None, timestamp_ms=1_700_000_000_023))
    writer.add(one_row(topic, b"", b""))
    writer.close()
    found = [(r.key, r.value, r.headers) for r in read_back(side.bootstrap, topic, 3)]
    assert found == [(b"k", b"v" * 1000, [("a", b"1"), ("b", None)]), (None, None, []), (b"", b"", [])]
    times = [r.timestamp for r in read_back(side.bootstrap, topic, 3)]
    assert times[:2] == [1_700_000_000_123, 1_700_000_000_023]


def test_keys_go_where_other_producers_send_them(side: Side, new_topic: NewTopic) -> None:
    ours, theirs = new_topic("ours", partitions=7), new_topic("theirs", partitions=7)
    writer = RecordWriter(side.client)
    for n in range(50):
        writer.add(one_row(ours, b"key-%d" % n, b"v"))
        side.send(theirs, key=b"key-%d" % n, value=b"v")
    writer.close()
    by_us, by_them = (
        Counter((record.key, record.partition) for record in read_back(side.bootstrap, topic, 50))
        for topic in (ours, theirs)
    )
    assert by_us == by_them
    assert len({partition for _, partition in by_us}) == 7


def test_keys_are_spread_like_other_records_if_they_are_to_be_ignored(
    side: Side, new_topic: NewTopic
) -> None:
    topic = new_topic("out", partitions=7)
    writer = RecordWriter(side.client, WriteSettings(batch_bytes=100, ignore_keys=True))
    for n in range(50):
        writer.add(one_row(topic, b"the same", b"%d" % n))
    writer.close()
    assert {record.partition for record in read_back(side.bootstrap, topic, 50)} == set(range(7))


def test_a_batch_is_full_as_the_settings_say_and_many_arrive_in_order_and_once(
    side: Side, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, send = list[int](), Producer.send_encoded

    async def send_counted(producer: Producer, topic: str, partition: int, records: EncodedRecords) -> Any:
        sizes.append(len(records.data))
        return await send(producer, topic, partition, records)

    monkeypatch.setattr(Producer, "send_encoded", send_counted)
    topic = new_topic("out", partitions=2)
    writer = RecordWriter(side.client, WriteSettings(batch_bytes=500))
    for n in range(600):
        writer.add(one_row(topic, None, b"%d" % n, partition=n % 2))
    writer.close()
    assert writer.records == 600
    values: dict[int, list[int]] = {0: [], 1: []}
    for record in read_back(side.bootstrap, topic, 600):
        values[record.partition].append(int(record.value or b""))
    assert values == {0: list(range(0, 600, 2)), 1: list(range(1, 600, 2))}
    assert len(sizes) > 2
    assert all(400 < size <= 500 for size in sizes[:-2])


def test_batches_that_are_being_filled_are_bounded_together(
    side: Side, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_produce, "_FILLING_BYTES", 100_000)
    topics = [new_topic("out", partitions=40) for _ in range(2)]
    writer, most = RecordWriter(side.client), 0
    for n in range(800):
        writer.add(one_row(topics[n % 2], None, b"x" * 1000, partition=n // 2 % 40))
        held = [len(records) for filling in writer._filling.values() for records in filling.records]
        most = max(most, sum(held))
    writer.close()
    assert 90_000 < most <= 100_000
    assert [len(read_back(side.bootstrap, topic, 400)) for topic in topics] == [400, 400]


def test_tasks_of_a_process_share_a_producer_and_not_one_that_has_failed(
    side: Side, new_topic: NewTopic
) -> None:
    topic = new_topic("out", partitions=1)
    client = Client(ConnectionOptions(side.bootstrap))

    def write(rows: list[bytes]) -> RecordWriter:
        writer = RecordWriter(client)
        for row in rows:
            writer.add(one_row(topic, None, row))
        return writer

    first, beside = write([b"0"]), write([b"1"])
    first.close()
    beside.close()
    assert beside._producer is not first._producer
    again = write([b"2"])
    again.close()
    assert again._producer is first._producer
    failed = write([b"never sent"])
    failed.abort()
    after = write([b"3"])
    after.close()
    assert failed._producer is first._producer is not after._producer
    assert [record.value for record in read_back(side.bootstrap, topic, 4)] == [b"0", b"1", b"2", b"3"]
    client.close()


def test_a_place_that_is_not_there_is_named(side: Side, new_topic: NewTopic) -> None:
    topic = new_topic("out", partitions=2)
    writer = RecordWriter(side.client)
    with pytest.raises(UnknownTopicError, match="has 2 partitions, not number 2"):
        writer.add(one_row(topic, None, b"v", partition=2))
    with pytest.raises(UnknownTopicError, match="'no-such-topic' does not exist"):
        writer.add(one_row("no-such-topic", None, b"v"))
