"""Producers with every acknowledgement, codec and kind of record, and readers of other makes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import aiokafka
import confluent_kafka
import kafka
import pytest
from kafka.errors import MessageSizeTooLargeError

from tests.clients.drivers import DRIVERS, Got
from tests.clients.members import Member, wait_for_records

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

WAIT_S = 20.0

#: Who reads what. kafka-python unpacks the last three only where further libraries are installed.
READERS = {
    "none": ["kafka-python", "aiokafka", "confluent-kafka"],
    "gzip": ["kafka-python", "aiokafka", "confluent-kafka"],
    "snappy": ["aiokafka", "confluent-kafka"],
    "lz4": ["aiokafka", "confluent-kafka"],
    "zstd": ["aiokafka", "confluent-kafka"],
}
VALUES = [b"the quick brown fox %03d " % number * 20 for number in range(200)]


def send_with_confluent(settings: dict[str, object], topic: str, values: list[bytes]) -> list[int]:
    """The offsets that the broker acknowledged (-1001 where it was not asked to)."""
    offsets: list[int] = []
    failed: list[confluent_kafka.KafkaError] = []

    def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is None:
            offsets.append(message.offset())
        else:
            failed.append(error)

    producer = confluent_kafka.Producer(settings)
    for value in values:
        producer.produce(topic, value, on_delivery=delivered)
    assert producer.flush(WAIT_S) == 0
    assert failed == []
    return offsets


def read_all(reader: str, bootstrap: str, topic: str, group: str, count: int) -> list[Got]:
    with Member(DRIVERS[reader], bootstrap, group, topic) as member:
        return wait_for_records([member], count)


@pytest.mark.parametrize(
    ("codec", "reader"), [(codec, reader) for codec in READERS for reader in READERS[codec]]
)
def test_every_codec_is_kept_as_it_was_sent(
    codec: str, reader: str, bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic = new_topic(f"codec-{codec}", partitions=1)
    settings: dict[str, object] = {
        "bootstrap.servers": bootstrap,
        "compression.type": codec,
        "linger.ms": 50,
    }
    assert send_with_confluent(settings, topic, VALUES) == list(range(len(VALUES)))
    got = read_all(reader, bootstrap, topic, group("codec"), len(VALUES))
    assert [record.value for record in got] == VALUES


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_confluent_with_every_kind_of_acknowledgement(
    acks: str, bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic = new_topic(f"acks-{acks}", partitions=1)
    offsets = send_with_confluent({"bootstrap.servers": bootstrap, "acks": acks}, topic, VALUES)
    assert len(offsets) == len(VALUES)
    if acks != "0":
        assert offsets == list(range(len(VALUES)))
    got = read_all("confluent-kafka", bootstrap, topic, group("acks"), len(VALUES))
    assert [record.value for record in got] == VALUES


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_kafka_python_with_every_kind_of_acknowledgement(
    acks: int | str, bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic = new_topic(f"acks-{acks}", partitions=1)
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap, acks=acks, enable_idempotence=False, linger_ms=5
    )
    sent = [producer.send(topic, value) for value in VALUES]
    offsets = [future.get(WAIT_S).offset for future in sent]
    producer.close()
    if acks != 0:
        assert offsets == list(range(len(VALUES)))
    got = read_all("kafka-python", bootstrap, topic, group("acks"), len(VALUES))
    assert [record.value for record in got] == VALUES


def test_an_idempotent_producer_with_many_requests_under_way_keeps_order(
    bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic = new_topic("idempotent", partitions=1)
    values = [b"%05d" % number for number in range(5000)]
    settings: dict[str, object] = {
        "bootstrap.servers": bootstrap,
        "enable.idempotence": True,
        "batch.num.messages": 50,
        "linger.ms": 0,
    }
    assert send_with_confluent(settings, topic, values) == list(range(len(values)))
    got = read_all("aiokafka", bootstrap, topic, group("idempotent"), len(values))
    assert [record.value for record in got] == values


async def test_an_idempotent_aiokafka_producer(bootstrap: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic("idempotent", partitions=1)
    async with aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, linger_ms=2
    ) as producer:
        sent = [await producer.send(topic, b"%d" % number, partition=0) for number in range(300)]
        answers = await asyncio.gather(*sent)
    assert [answer.offset for answer in answers] == list(range(300))


def test_headers_nulls_and_timestamps_arrive_as_they_were_sent(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic("shapes", partitions=1, retention_ms="-1")
    sent = [
        (b"key", b"value", 1_700_000_000_001, [("one", b"1"), ("none", None), ("one", b"again")]),
        (None, b"value", 1_700_000_000_002, []),
        (b"key", None, 1_700_000_000_003, [("", b"")]),
        (None, None, 1_700_000_000_004, []),
        (b"", b"", 1_700_000_000_005, [("ключ", "значение".encode())]),
    ]
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for key, value, timestamp, headers in sent:
        producer.produce(topic, value, key, timestamp=timestamp, headers=headers)
    assert producer.flush(WAIT_S) == 0

    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=10_000)
    partition = kafka.TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    got = [next(consumer) for _ in sent]
    consumer.close()
    assert [(r.key, r.value, r.timestamp, [tuple(header) for header in r.headers]) for r in got] == sent
    assert {record.timestamp_type for record in got} == {0}


def test_log_append_time_is_stamped_by_the_broker(bootstrap: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic("append-time", partitions=1, message_timestamp_type="LogAppendTime")
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    told = producer.send(topic, b"value", timestamp_ms=1_000).get(WAIT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=10_000)
    partition = kafka.TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    record = next(consumer)
    consumer.close()
    assert record.timestamp > 1_600_000_000_000
    assert (record.timestamp, record.timestamp_type) == (told.timestamp, 1)


def test_a_record_over_the_topics_limit_is_refused_and_the_next_is_not(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic("limit", partitions=1, max_message_bytes="2000")
    # An idempotent producer of kafka-python's does not go on after such an error.
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=False)
    with pytest.raises(MessageSizeTooLargeError):
        producer.send(topic, b"x" * 5000).get(WAIT_S)
    assert producer.send(topic, b"x" * 500).get(WAIT_S).offset == 0
    producer.close()


def test_a_record_of_many_megabytes_goes_through_where_the_topic_allows_it(
    bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic = new_topic("large", partitions=1, max_message_bytes="20000000")
    value = bytes(range(256)) * 32_000
    settings: dict[str, object] = {"bootstrap.servers": bootstrap, "message.max.bytes": 20_000_000}
    assert send_with_confluent(settings, topic, [value, b"after"]) == [0, 1]
    got = read_all("kafka-python", bootstrap, topic, group("large"), 2)
    assert [record.value for record in got] == [value, b"after"]
