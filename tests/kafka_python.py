"""kafka-python's consumer: kept from one trouble of its own, and given a second try after another."""

from __future__ import annotations

from typing import Any

import kafka
import pytest

#: Tests of groups that have no session of their own: its default, 45 s, is longer than they wait.
HANGS = pytest.mark.foreign_client(
    "kafka-python 3.0.12 now and then hangs in its first join until its session is over, with any broker"
)


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
