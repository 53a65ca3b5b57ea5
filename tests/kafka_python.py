"""kafka-python's consumer, kept from a trouble of its own."""

from __future__ import annotations

from typing import Any

import kafka


def group_consumer(topic: str, group: str, **settings: Any) -> kafka.KafkaConsumer:
    """A consumer subscribed to a topic.

    kafka-python 3.0.12 can lead its group before it knows the topic's partitions, assign nothing and stay so
    (with any broker, about one start in fifty): so it learns of them before its first join.
    """
    consumer = kafka.KafkaConsumer(topic, group_id=group, **settings)
    try:
        consumer.partitions_for_topic(topic)
    except BaseException:
        consumer.close(autocommit=False)
        raise
    return consumer
