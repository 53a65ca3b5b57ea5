"""The clients of the end-to-end tests behind one face.

Nothing is configured that a user would not configure: bootstrap, group, topics and ``auto.offset.reset``; and
what a ``Choice`` says: ``range`` where clients of several makes share one group, for it is the one assignor
that all know, or a short session where a member is going to be killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import aiokafka
import confluent_kafka
import kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AiokafkaRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AiokafkaSticky
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor as KafkaPythonCooperative
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as KafkaPythonRoundRobin
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as KafkaPythonSticky

from kohort.assignors.adapters import for_aiokafka, for_kafka_python
from kohort.consumer import GroupConsumer
from tests.kafka_python import group_consumer

CALL_TIMEOUT_S = 60.0

#: librdkafka tells of a topic that is still being made; its subscription goes on by itself.
UNKNOWN_TOPIC = confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART

NOTHING_TO_COMMIT = confluent_kafka.KafkaError._NO_OFFSET


#: The assignors of each client, by Kafka's names.
KAFKA_PYTHON_ASSIGNORS = {
    "range": KafkaPythonRange,
    "roundrobin": KafkaPythonRoundRobin,
    "sticky": KafkaPythonSticky,
    "cooperative-sticky": KafkaPythonCooperative,
}
AIOKAFKA_ASSIGNORS = {
    "range": AiokafkaRange,
    "roundrobin": AiokafkaRoundRobin,
    "sticky": AiokafkaSticky,
}


class Choice(NamedTuple):
    """What a test wants of a consumer beside its defaults."""

    assignor: str | None = None
    instance_id: str | None = None
    #: A tenth of it goes by between two heartbeats.
    session_timeout_ms: int | None = None

    def settings(self, **names: str) -> dict[str, Any]:
        """What is set, under the names that a client has for ``instance``, ``session`` and ``heartbeat``."""
        chosen: dict[str, Any] = {}
        if self.instance_id is not None:
            chosen[names["instance"]] = self.instance_id
        if self.session_timeout_ms is not None:
            chosen[names["session"]] = self.session_timeout_ms
            chosen[names["heartbeat"]] = self.session_timeout_ms // 10
        return chosen


DEFAULTS = Choice()
RANGE = Choice(assignor="range")
PYTHON_NAMES = {
    "instance": "group_instance_id",
    "session": "session_timeout_ms",
    "heartbeat": "heartbeat_interval_ms",
}
LIBRDKAFKA_NAMES = {
    "instance": "group.instance.id",
    "session": "session.timeout.ms",
    "heartbeat": "heartbeat.interval.ms",
}


class Got(NamedTuple):
    """A consumed record, as far as every client tells of it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class Consumer(Protocol):
    """One client's consumer; made, used and closed by one thread."""

    def poll(self, seconds: float) -> list[Got]:
        """What has come in; waits about ``seconds`` for something, longer while a rebalance is under way."""

    def assignment(self) -> set[int]:
        """The partitions held now, of the one topic subscribed to."""

    def commit(self) -> None:
        """Commit the positions and wait for the answer."""

    def close(self) -> None:
        """Leave the group."""


class Driver(Protocol):
    """One client library."""

    name: str

    def produce(self, bootstrap: str, topic: str, values: Iterable[bytes]) -> None:
        """Send with a default producer, keyed by the value; return when all are acknowledged."""

    def consumer(self, bootstrap: str, group: str, topic: str, choice: Choice = DEFAULTS) -> Consumer:
        """A default consumer that starts at the earliest record where nothing is committed."""


class KafkaPythonConsumer:
    def __init__(
        self, bootstrap: str, group: str, topic: str, choice: Choice, *, adapted: bool = False
    ) -> None:
        settings = choice.settings(**PYTHON_NAMES)
        if choice.assignor is not None:
            adapter = for_kafka_python if adapted else KAFKA_PYTHON_ASSIGNORS.__getitem__
            settings["partition_assignment_strategy"] = (adapter(choice.assignor),)
        self._consumer = group_consumer(
            topic, group, bootstrap_servers=bootstrap, auto_offset_reset="earliest", **settings
        )

    def poll(self, seconds: float) -> list[Got]:
        batches = self._consumer.poll(timeout_ms=int(seconds * 1000))
        return [Got(r.partition, r.offset, r.key, r.value) for batch in batches.values() for r in batch]

    def assignment(self) -> set[int]:
        return {tp.partition for tp in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit()

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonDriver:
    name = "kafka-python"

    def produce(self, bootstrap: str, topic: str, values: Iterable[bytes]) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
        try:
            for sent in [producer.send(topic, key=value, value=value) for value in values]:
                sent.get(CALL_TIMEOUT_S)
        finally:
            producer.close(timeout=5)

    def consumer(self, bootstrap: str, group: str, topic: str, choice: Choice = DEFAULTS) -> Consumer:
        return KafkaPythonConsumer(bootstrap, group, topic, choice)


class ConfluentConsumer:
    def __init__(self, bootstrap: str, group: str, topic: str, choice: Choice) -> None:
        settings = choice.settings(**LIBRDKAFKA_NAMES)
        if choice.assignor is not None:
            settings["partition.assignment.strategy"] = choice.assignor
        self._consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", **settings}
        )
        self._consumer.subscribe([topic])

    def poll(self, seconds: float) -> list[Got]:
        got: list[Got] = []
        message = self._consumer.poll(seconds)
        while message is not None:
            error = message.error()
            if error is None:
                got.append(Got(message.partition(), message.offset(), message.key(), message.value()))
            elif not error.retriable() and error.code() != UNKNOWN_TOPIC:
                raise confluent_kafka.KafkaException(error)
            message = self._consumer.poll(0)
        return got

    def assignment(self) -> set[int]:
        return {tp.partition for tp in self._consumer.assignment()}

    def commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() != NOTHING_TO_COMMIT:
                raise

    def close(self) -> None:
        self._consumer.close()


class ConfluentDriver:
    name = "confluent-kafka"

    def produce(self, bootstrap: str, topic: str, values: Iterable[bytes]) -> None:
        failed: list[confluent_kafka.KafkaError] = []
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})

        def delivered(error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
            if error is not None:
                failed.append(error)

        for value in values:
            producer.produce(topic, key=value, value=value, on_delivery=delivered)
        left = producer.flush(CALL_TIMEOUT_S)
        assert not left, f"{left} records were not acknowledged"
        assert failed == []

    def consumer(self, bootstrap: str, group: str, topic: str, choice: Choice = DEFAULTS) -> Consumer:
        return ConfluentConsumer(bootstrap, group, topic, choice)


class AiokafkaConsumer:
    """Its event loop turns only while a call is under way, so it must be polled all the time."""

    def __init__(
        self, bootstrap: str, group: str, topic: str, choice: Choice, *, adapted: bool = False
    ) -> None:
        settings = choice.settings(**PYTHON_NAMES)
        if choice.assignor is not None:
            adapter = for_aiokafka if adapted else AIOKAFKA_ASSIGNORS.__getitem__
            settings["partition_assignment_strategy"] = (adapter(choice.assignor),)
        self._runner = asyncio.Runner()

        async def start() -> aiokafka.AIOKafkaConsumer:
            consumer = aiokafka.AIOKafkaConsumer(
                topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", **settings
            )
            await consumer.start()
            return consumer

        self._consumer = self._runner.run(start())

    def poll(self, seconds: float) -> list[Got]:
        batches = self._runner.run(self._consumer.getmany(timeout_ms=int(seconds * 1000)))
        return [Got(r.partition, r.offset, r.key, r.value) for batch in batches.values() for r in batch]

    def assignment(self) -> set[int]:
        return {tp.partition for tp in self._consumer.assignment()}

    def commit(self) -> None:
        self._runner.run(self._consumer.commit())

    def close(self) -> None:
        self._runner.run(self._consumer.stop())
        self._runner.close()


class AiokafkaDriver:
    name = "aiokafka"

    def produce(self, bootstrap: str, topic: str, values: Iterable[bytes]) -> None:
        async def send() -> None:
            async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
                sent = [await producer.send(topic, key=value, value=value) for value in values]
                await asyncio.gather(*sent)

        asyncio.run(send())

    def consumer(self, bootstrap: str, group: str, topic: str, choice: Choice = DEFAULTS) -> Consumer:
        return AiokafkaConsumer(bootstrap, group, topic, choice)


class KohortConsumer:
    """Ours, through its blocking face: what was polled counts as done."""

    def __init__(self, bootstrap: str, group: str, topic: str, choice: Choice) -> None:
        settings = choice.settings(**PYTHON_NAMES)
        if choice.assignor is not None:
            settings["assignor"] = choice.assignor
        self._consumer = GroupConsumer(
            topic, bootstrap=bootstrap, group=group, auto_offset_reset="earliest", **settings
        )
        self._consumer.start()

    def poll(self, seconds: float) -> list[Got]:
        records = self._consumer.getmany(timeout_ms=seconds * 1000)
        self._consumer.done_all(records)
        return [Got(record.partition, record.offset, record.key, record.value) for record in records]

    def assignment(self) -> set[int]:
        return {tp.partition for tp in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit()

    def close(self) -> None:
        self._consumer.close()


class KohortDriver(KafkaPythonDriver):
    """kohort has no producer of its own: kafka-python sends."""

    name = "kohort"

    def consumer(self, bootstrap: str, group: str, topic: str, choice: Choice = DEFAULTS) -> Consumer:
        return KohortConsumer(bootstrap, group, topic, choice)


class AdaptedKafkaPythonDriver(KafkaPythonDriver):
    """kafka-python with one of kohort's assignors."""

    name = "kafka-python with ours"

    def consumer(self, bootstrap: str, group: str, topic: str, choice: Choice = DEFAULTS) -> Consumer:
        return KafkaPythonConsumer(bootstrap, group, topic, choice, adapted=True)


class AdaptedAiokafkaDriver(AiokafkaDriver):
    """aiokafka with one of kohort's assignors."""

    name = "aiokafka with ours"

    def consumer(self, bootstrap: str, group: str, topic: str, choice: Choice = DEFAULTS) -> Consumer:
        return AiokafkaConsumer(bootstrap, group, topic, choice, adapted=True)


PRODUCERS: dict[str, Driver] = {
    driver.name: driver for driver in (KafkaPythonDriver(), ConfluentDriver(), AiokafkaDriver())
}
DRIVERS: dict[str, Driver] = {**PRODUCERS, KohortDriver.name: KohortDriver()}
#: Clients with an assignor of kohort's; it is asked for by name.
ADAPTED: dict[str, Driver] = {
    driver.name: driver for driver in (AdaptedKafkaPythonDriver(), AdaptedAiokafkaDriver())
}
