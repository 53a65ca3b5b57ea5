from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from kohort.protocol import Codec
from kohort.spark import UnknownTopicError, _produce
from kohort.spark._produce import RecordWriter
from tests.spark.conftest import Side
from tests.spark.loops import NewTopic

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
    topic = new_topic("out", partitions=1, retention_ms="-1")
    writer = RecordWriter(side.client, codec)
    writer.add(topic, b"k", b"v" * 1000, headers=[("a", b"1"), ("b", None)], timestamp_ms=1_700_000_000_123)
    writer.add(topic, None, None, timestamp_ms=1_700_000_000_023)
    writer.add(topic, b"", b"")
    writer.close()
    found = [(r.key, r.value, r.headers) for r in read_back(side.bootstrap, topic, 3)]
    assert found == [(b"k", b"v" * 1000, [("a", b"1"), ("b", None)]), (None, None, []), (b"", b"", [])]
    times = [r.timestamp for r in read_back(side.bootstrap, topic, 3)]
    assert times[:2] == [1_700_000_000_123, 1_700_000_000_023]


def test_keys_go_where_other_producers_send_them(side: Side, new_topic: NewTopic) -> None:
    ours, theirs = new_topic("ours", partitions=7), new_topic("theirs", partitions=7)
    writer = RecordWriter(side.client)
    for n in range(50):
        writer.add(ours, b"key-%d" % n, b"v")
        side.send(theirs, key=b"key-%d" % n, value=b"v")
    writer.close()
    by_us, by_them = (
        Counter((record.key, record.partition) for record in read_back(side.bootstrap, topic, 50))
        for topic in (ours, theirs)
    )
    assert by_us == by_them
    assert len({partition for _, partition in by_us}) == 7


def test_many_batches_arrive_in_order_and_once(
    side: Side, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_produce, "BATCH_BYTES", 500)
    topic = new_topic("out", partitions=2)
    writer = RecordWriter(side.client)
    for n in range(600):
        writer.add(topic, None, b"%d" % n, partition=n % 2)
    writer.close()
    assert writer.records == 600
    values: dict[int, list[int]] = {0: [], 1: []}
    for record in read_back(side.bootstrap, topic, 600):
        values[record.partition].append(int(record.value or b""))
    assert values == {0: list(range(0, 600, 2)), 1: list(range(1, 600, 2))}


def test_a_place_that_is_not_there_is_named(side: Side, new_topic: NewTopic) -> None:
    topic = new_topic("out", partitions=2)
    writer = RecordWriter(side.client)
    with pytest.raises(UnknownTopicError, match="has 2 partitions, not number 2"):
        writer.add(topic, None, b"v", partition=2)
    with pytest.raises(UnknownTopicError, match="'no-such-topic' does not exist"):
        writer.add("no-such-topic", None, b"v")
