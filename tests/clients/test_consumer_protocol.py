"""confluent-kafka and Java with ``group.protocol=consumer`` (KIP-848), and classic members beside them.

The same tests run on Apache Kafka with ``--bootstrap``.
"""

from __future__ import annotations

import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.wire import Wire
from tests.clients.java import VERIFIABLE_CONSUMER, java_command
from tests.clients.members import wait_until
from tests.group_configs import change_group_configs

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

PARTITIONS = 6
TIMEOUT_S = 60.0
#: In ms, the first that the broker allows: Apache Kafka has 5,000 as its least by default.
HEARTBEATS = ("300", "5000")


class Readers:
    """Consumers of one group, polled in turn. ``got`` counts the values that they were given."""

    def __init__(self, bootstrap: str) -> None:
        tag = uuid.uuid4().hex[:8]
        self.bootstrap, self.topic, self.group = bootstrap, f"next-{tag}", f"next-group-{tag}"
        self.open: list[Any] = []
        self.got: Counter[bytes] = Counter()
        self.sent = 0
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)])[self.topic].result()
        with Wire(bootstrap, timeout_s=30) as wire:
            assert any(self._beat_every(wire, interval_ms) for interval_ms in HEARTBEATS)

    def _beat_every(self, wire: Wire, interval_ms: str) -> bool:
        values = {"consumer.heartbeat.interval.ms": interval_ms, "consumer.assignment.interval.ms": "0"}
        return change_group_configs(wire, self.group, values) is ErrorCode.NONE

    def add(self, *, protocol: str = "consumer", subscription: str = "", **settings: str) -> Any:
        common = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "auto.offset.reset": "earliest",
        }
        if protocol == "classic":
            settings |= {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}
            settings["partition.assignment.strategy"] = "range"
        else:
            settings["group.protocol"] = "consumer"
        consumer = confluent_kafka.Consumer({**common, "enable.auto.commit": False, **settings})
        consumer.subscribe([subscription or self.topic])
        self.open.append(consumer)
        return consumer

    def produce(self, count: int) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": self.bootstrap})
        for number in range(self.sent, self.sent + count):
            producer.produce(self.topic, value=b"%d" % number)
        self.sent += count
        assert producer.flush(30) == 0

    def until(self, done: Callable[[], bool]) -> None:
        """Poll everybody until ``done``."""
        end = time.monotonic() + TIMEOUT_S
        while not done():
            assert time.monotonic() < end, (self.shares(), sum(self.got.values()), self.sent)
            for consumer in self.open:
                message = consumer.poll(0.02)
                if message is None:
                    continue
                if message.error() is None:
                    self.got[message.value()] += 1
                    consumer.commit(message=message, asynchronous=False)
                else:
                    assert message.error().retriable(), message.error()

    def shares(self) -> Sequence[int]:
        return sorted(len(consumer.assignment()) for consumer in self.open)

    def until_shared(self, *shares: int) -> None:
        self.until(lambda: self.shares() == sorted(shares))
        held = [each.partition for consumer in self.open for each in consumer.assignment()]
        assert len(set(held)) == len(held)

    def until_all_read(self) -> None:
        """Everything was read, and nothing twice: all leave and join in order."""
        self.until(lambda: len(self.got) == self.sent)
        assert set(self.got.values()) <= {1}

    def close(self, consumer: Any) -> None:
        self.open.remove(consumer)
        consumer.close()


@pytest.fixture
def readers(bootstrap: str) -> Iterator[Readers]:
    made = Readers(bootstrap)
    yield made
    for consumer in list(made.open):
        made.close(consumer)


def test_members_come_and_go_and_everything_is_read_once(readers: Readers) -> None:
    readers.produce(60)
    first = readers.add()
    readers.until_shared(6)
    readers.until_all_read()
    readers.add()
    readers.until_shared(3, 3)
    readers.add(subscription=f"^{readers.topic}") if readers_have_regex(readers) else readers.add()
    readers.until_shared(2, 2, 2)
    readers.produce(60)
    readers.until_all_read()
    readers.close(first)
    readers.until_shared(3, 3)
    readers.produce(60)
    readers.until_all_read()


def test_a_static_member_that_restarts_has_its_partitions_back(readers: Readers) -> None:
    readers.add()
    static = readers.add(**{"group.instance.id": "pod-1"})
    readers.until_shared(3, 3)
    held = {each.partition for each in static.assignment()}
    readers.close(static)
    back = readers.add(**{"group.instance.id": "pod-1"})
    readers.until_shared(3, 3)
    assert {each.partition for each in back.assignment()} == held


def test_classic_members_become_consumers_one_after_the_other_and_the_other_way_round(
    readers: Readers,
) -> None:
    readers.produce(60)
    old = [readers.add(protocol="classic") for _ in range(2)]
    readers.until_shared(3, 3)
    readers.until_all_read()
    new = readers.add()
    readers.until_shared(2, 2, 2)
    readers.produce(30)
    readers.until(lambda: len(readers.got) == readers.sent)
    readers.close(old[0])
    readers.until_shared(3, 3)
    readers.close(new)
    readers.until_shared(6)
    readers.produce(30)
    readers.until(lambda: len(readers.got) == readers.sent)


def test_javas_consumers_share_and_take_over_from_each_other(readers: Readers, tmp_path: Path) -> None:
    config = tmp_path / "consumer.properties"
    config.write_text("metadata.max.age.ms=1000\n")
    command = [*java_command(), "-Xmx128m", VERIFIABLE_CONSUMER, "--bootstrap-server", readers.bootstrap]
    command += ["--group-id", readers.group, "--topic", readers.topic, "--command-config", str(config)]
    command += ["--group-protocol", "consumer"]
    gone = subprocess.DEVNULL
    processes = [subprocess.Popen(command, stdout=gone, stderr=gone) for _ in range(2)]
    try:
        wait_until(lambda: shares_told(readers) == [3, 3], "both have half")
        processes[0].terminate()
        wait_until(lambda: shares_told(readers) == [6], "who stays has all")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def shares_told(readers: Readers) -> list[int]:
    """The number of partitions of each member, as the broker describes the group."""
    with Wire(readers.bootstrap, timeout_s=30) as wire:
        answer = wire.call(
            ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[readers.group], include_authorized_operations=False
        )
    members = answer.groups[0].members
    return sorted(
        sum(len(topic.partitions) for topic in member.assignment.topic_partitions) for member in members
    )


def readers_have_regex(readers: Readers) -> bool:
    """Return whether the broker can read regular expressions: ours needs RE2."""
    with Wire(readers.bootstrap, timeout_s=30) as wire:
        answer = wire.call(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            group_id=f"{readers.group}-regex",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1_000,
            subscribed_topic_names=None,
            subscribed_topic_regex="no-such-topic",
            topic_partitions=[],
        )
    return bool(answer.error_code == 0)
