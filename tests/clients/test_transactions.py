"""Transactional producers and readers of committed records, of every make."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import aiokafka
import confluent_kafka
import kafka
import pytest

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

WAIT_S = 30.0
SENT = [(number, number % 3 != 2) for number in range(9)]
COMMITTED = [b"%d" % number for number, committed in SENT if committed]


def send_with_confluent(bootstrap: str, name: str, topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(WAIT_S)
    for number, committed in SENT:
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number, partition=0)
        if committed:
            producer.commit_transaction(WAIT_S)
        else:
            producer.flush(WAIT_S)
            producer.abort_transaction(WAIT_S)


def send_with_kafka_python(bootstrap: str, name: str, topic: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
    try:
        producer.init_transactions()
        for number, committed in SENT:
            producer.begin_transaction()
            producer.send(topic, b"%d" % number, partition=0).get(WAIT_S)
            if committed:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    finally:
        producer.close()


async def send_with_aiokafka(bootstrap: str, name: str, topic: str) -> None:
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name) as producer:
        for number, committed in SENT:
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"%d" % number, partition=0)
            if committed:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()


def read_with_confluent(bootstrap: str, topic: str) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"read-{uuid.uuid4().hex[:8]}",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    try:
        while (message := consumer.poll(WAIT_S)) is not None and message.error() is None:
            values.append(message.value())
    finally:
        consumer.close()
    return values


def read_with_kafka_python(bootstrap: str, topic: str) -> list[bytes]:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        consumer_timeout_ms=1_500,
    )
    consumer.assign([kafka.TopicPartition(topic, 0)])
    try:
        return [message.value for message in consumer]
    finally:
        consumer.close()


async def read_with_aiokafka(bootstrap: str, topic: str) -> list[bytes]:
    place = aiokafka.TopicPartition(topic, 0)
    async with aiokafka.AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([place])
        found = await consumer.getmany(place, timeout_ms=1_500)
        values = [message.value for message in found.get(place, [])]
        while found := await consumer.getmany(place, timeout_ms=500):
            values += (message.value for message in found.get(place, []))
    return values


def _read(bootstrap: str, topic: str) -> None:
    """Both readers that block see what was committed."""
    assert read_with_confluent(bootstrap, topic) == COMMITTED
    assert read_with_kafka_python(bootstrap, topic) == COMMITTED


def test_confluent_commits_and_aborts(bootstrap: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic("txn")
    send_with_confluent(bootstrap, f"txn-{topic}", topic)
    _read(bootstrap, topic)


def test_kafka_python_commits_and_aborts(bootstrap: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic("txn")
    send_with_kafka_python(bootstrap, f"txn-{topic}", topic)
    _read(bootstrap, topic)


async def test_aiokafka_commits_and_aborts(bootstrap: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic("txn")
    await send_with_aiokafka(bootstrap, f"txn-{topic}", topic)
    assert await read_with_aiokafka(bootstrap, topic) == COMMITTED


def test_a_newer_producer_of_an_id_fences_the_older_one(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic("txn")
    settings = {"bootstrap.servers": bootstrap, "transactional.id": f"txn-{topic}"}
    older = confluent_kafka.Producer(settings)
    older.init_transactions(WAIT_S)
    older.begin_transaction()
    older.produce(topic, b"lost", partition=0)
    older.flush(WAIT_S)
    newer = confluent_kafka.Producer(settings)
    newer.init_transactions(WAIT_S)
    with pytest.raises(confluent_kafka.KafkaException):
        older.commit_transaction(WAIT_S)
    newer.begin_transaction()
    newer.produce(topic, b"kept", partition=0)
    newer.commit_transaction(WAIT_S)
    assert read_with_confluent(bootstrap, topic) == [b"kept"]


async def test_aiokafka_is_fenced_by_a_newer_producer_of_its_id(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic("txn")
    settings = {"bootstrap_servers": bootstrap, "transactional_id": f"txn-{topic}"}
    older, newer = aiokafka.AIOKafkaProducer(**settings), aiokafka.AIOKafkaProducer(**settings)
    try:
        await older.start()
        await older.begin_transaction()
        await older.send_and_wait(topic, b"lost", partition=0)
        await newer.start()
        with pytest.raises(aiokafka.errors.KafkaError):
            await older.commit_transaction()
        await newer.begin_transaction()
        await newer.send_and_wait(topic, b"kept", partition=0)
        await newer.commit_transaction()
    finally:
        await newer.stop()
        await older.stop()
    assert await read_with_aiokafka(bootstrap, topic) == [b"kept"]


def test_kafka_python_is_fenced_by_a_newer_producer_of_its_id(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic("txn")
    settings = {"bootstrap_servers": bootstrap, "transactional_id": f"txn-{topic}"}
    older, newer = kafka.KafkaProducer(**settings), kafka.KafkaProducer(**settings)
    try:
        older.init_transactions()
        older.begin_transaction()
        older.send(topic, b"lost", partition=0).get(WAIT_S)
        newer.init_transactions()
        with pytest.raises(kafka.errors.KafkaError):
            older.commit_transaction()
        newer.begin_transaction()
        newer.send(topic, b"kept", partition=0).get(WAIT_S)
        newer.commit_transaction()
    finally:
        newer.close()
        older.close(timeout=1)
    assert read_with_kafka_python(bootstrap, topic) == [b"kept"]


def fill(bootstrap: str, topic: str) -> None:
    """Ten records to consume, transform and produce."""
    plain = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        plain.produce(topic, b"%d" % number, partition=0)
    plain.flush(WAIT_S)


def transform_with_confluent(bootstrap: str, source: str, target: str, group: str) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([source])
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": f"txn-{target}"})
    producer.init_transactions(WAIT_S)
    done = 0
    while done < 10:
        message = consumer.poll(WAIT_S)
        assert message is not None
        assert message.error() is None
        producer.begin_transaction()
        producer.produce(target, b"twice " + message.value(), partition=0)
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), WAIT_S
        )
        producer.commit_transaction(WAIT_S)
        done += 1
    consumer.close()


def transform_with_kafka_python(bootstrap: str, source: str, target: str, group: str) -> None:
    consumer = kafka.KafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_poll_records=3,
    )
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"txn-{target}")
    producer.init_transactions()
    done = 0
    while done < 10:
        for place, messages in consumer.poll(timeout_ms=1_000).items():
            producer.begin_transaction()
            for message in messages:
                producer.send(target, b"twice " + message.value, partition=0)
            offset = kafka.OffsetAndMetadata(messages[-1].offset + 1, "", -1)
            producer.send_offsets_to_transaction({place: offset}, consumer.group_metadata())
            producer.commit_transaction()
            done += len(messages)
    producer.close()
    consumer.close()


async def transform_with_aiokafka(bootstrap: str, source: str, target: str, group: str) -> None:
    consumer = aiokafka.AIOKafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_poll_records=3,
    )
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"txn-{target}")
    done = 0
    async with consumer, producer:
        while done < 10:
            for place, messages in (await consumer.getmany(timeout_ms=1_000)).items():
                async with producer.transaction():
                    for message in messages:
                        await producer.send(target, b"twice " + message.value, partition=0)
                    await producer.send_offsets_to_transaction({place: messages[-1].offset + 1}, group)
                done += len(messages)


TRANSFORMS = {
    "confluent-kafka": transform_with_confluent,
    "kafka-python": transform_with_kafka_python,
    "aiokafka": transform_with_aiokafka,
}


@pytest.mark.parametrize("make", TRANSFORMS)
async def test_what_is_consumed_and_produced_is_committed_together(
    make: str, bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    """Consume, transform, produce: with offsets in the transaction, and the group's metadata (KIP-447)."""
    source, target, name = new_topic("source"), new_topic("target"), group("exactly-once")
    fill(bootstrap, source)
    working = TRANSFORMS[make](bootstrap, source, target, name)
    if working is not None:
        await working
    assert read_with_confluent(bootstrap, target) == [b"twice %d" % number for number in range(10)]
    watch = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    (committed,) = watch.committed([confluent_kafka.TopicPartition(source, 0)], WAIT_S)
    watch.close()
    assert committed.offset == 10
