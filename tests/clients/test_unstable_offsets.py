"""Consumers that begin while a transaction holds their group's offsets."""

from __future__ import annotations

from collections.abc import Callable

import confluent_kafka
import pytest

# librdkafka begins at 0 on Apache Kafka
pytestmark = pytest.mark.clients

WAIT_S = 30.0
#: librdkafka asks again after 0.1 s: an assignment changes before that, and the answer comes after it.
PAUSES_S = (0.03, 0.5) * 4


def test_an_assignment_that_changes_during_a_transaction_begins_where_the_transaction_ends(
    bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic, name = new_topic("unstable"), group("unstable")
    plain = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(4):
        plain.produce(topic, b"%d" % number, partition=0)
    assert plain.flush(WAIT_S) == 0
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 1)], asynchronous=False)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": f"txn-{topic}"})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    held = [confluent_kafka.TopicPartition(topic, 0, 3)]
    producer.send_offsets_to_transaction(held, consumer.consumer_group_metadata(), WAIT_S)
    found = []
    for pause_s in PAUSES_S:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_STORED)])
        found += consumer.consume(9, pause_s)
    producer.commit_transaction(WAIT_S)
    while not found:
        found = consumer.consume(1, WAIT_S)
    consumer.close()
    assert found[0].offset() == 3
