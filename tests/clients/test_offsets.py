"""Where a partition begins and ends, and what was written when: every client's ways to ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import aiokafka
import confluent_kafka
import kafka
import pytest
from kafka.admin import OffsetSpec
from kafka.errors import OffsetOutOfRangeError

from tests.clients.drivers import DRIVERS

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

WAIT_S = 20.0
START_MS = 1_700_000_000_000


@pytest.fixture
def timed(bootstrap: str, new_topic: Callable[..., str]) -> str:
    """A topic of one partition whose records 0..9 were made 1,000 ms apart, long ago, and are kept."""
    topic = new_topic("timed", partitions=1, retention_ms="-1")
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(10):
        producer.send(topic, b"%d" % number, timestamp_ms=START_MS + 1000 * number).get(WAIT_S)
    producer.close()
    return topic


@pytest.fixture
def consumer(bootstrap: str) -> Iterator[kafka.KafkaConsumer]:
    client = kafka.KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=5000)
    yield client
    client.close()


@pytest.mark.parametrize(
    ("asked_ms", "offset", "timestamp_ms"),
    [(0, 0, START_MS), (START_MS + 3000, 3, START_MS + 3000), (START_MS + 3001, 4, START_MS + 4000)],
)
def test_the_first_record_at_or_after_a_time(
    asked_ms: int, offset: int, timestamp_ms: int, timed: str, consumer: kafka.KafkaConsumer
) -> None:
    partition = kafka.TopicPartition(timed, 0)
    found = consumer.offsets_for_times({partition: asked_ms})[partition]
    assert (found.offset, found.timestamp) == (offset, timestamp_ms)


def test_no_record_at_or_after_a_time(timed: str, consumer: kafka.KafkaConsumer) -> None:
    partition = kafka.TopicPartition(timed, 0)
    assert consumer.offsets_for_times({partition: START_MS + 9001}) == {partition: None}


def test_beginning_and_end(timed: str, consumer: kafka.KafkaConsumer) -> None:
    partition = kafka.TopicPartition(timed, 0)
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 10}


def test_the_newest_record(timed: str, bootstrap: str) -> None:
    partition = kafka.TopicPartition(timed, 0)
    with kafka.KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        found = admin.list_partition_offsets({partition: OffsetSpec.MAX_TIMESTAMP})[partition]
    assert (found.offset, found.timestamp) == (9, START_MS + 9000)


def test_confluents_watermarks_and_times(timed: str, bootstrap: str) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    try:
        partition = confluent_kafka.TopicPartition(timed, 0)
        assert consumer.get_watermark_offsets(partition, timeout=WAIT_S) == (0, 10)
        asked = confluent_kafka.TopicPartition(timed, 0, START_MS + 4500)
        assert [tp.offset for tp in consumer.offsets_for_times([asked], timeout=WAIT_S)] == [5]
    finally:
        consumer.close()


async def test_aiokafkas_beginning_end_and_times(timed: str, bootstrap: str) -> None:
    partition = aiokafka.TopicPartition(timed, 0)
    async with aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        assert await consumer.beginning_offsets([partition]) == {partition: 0}
        assert await consumer.end_offsets([partition]) == {partition: 10}
        found = await consumer.offsets_for_times({partition: START_MS + 4500})
        assert (found[partition].offset, found[partition].timestamp) == (5, START_MS + 5000)


def test_reading_goes_on_from_a_sought_offset(timed: str, consumer: kafka.KafkaConsumer) -> None:
    partition = kafka.TopicPartition(timed, 0)
    consumer.assign([partition])
    consumer.seek(partition, 7)
    assert [next(consumer).offset for _ in range(3)] == [7, 8, 9]


def test_an_offset_beyond_the_end_is_out_of_range(timed: str, bootstrap: str) -> None:
    partition = kafka.TopicPartition(timed, 0)
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="none")
    try:
        consumer.assign([partition])
        consumer.seek(partition, 50)
        with pytest.raises(OffsetOutOfRangeError):
            consumer.poll(timeout_ms=20_000)
    finally:
        consumer.close()


def test_a_waiting_fetch_is_answered_when_a_record_comes(
    bootstrap: str, new_topic: Callable[..., str], consumer: kafka.KafkaConsumer
) -> None:
    topic = new_topic("wait", partitions=1)
    partition = kafka.TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_end(partition)
    assert consumer.poll(timeout_ms=200) == {}
    DRIVERS["confluent-kafka"].produce(bootstrap, topic, [b"now"])
    assert next(consumer).value == b"now"
