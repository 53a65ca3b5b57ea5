"""Clients of four makes, each behind the few calls that the torture needs. Every commit says its offsets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol

import aiokafka
import confluent_kafka
import kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange

from kohort.consumer import GroupConsumer
from kohort.protocol import TopicPartition

POLL_S = 0.1
COMMIT_TIMEOUT_S = 3.0
SESSION_MS, HEARTBEAT_MS = 3_000, 300
#: A member that hangs holds a rebalance up for so long and no longer.
REBALANCE_MS = 10_000
MAX_RECORDS = 100
#: At DEBUG members of librdkafka tell on standard error what they do, from their own threads. With a logger
#: that comes when they are polled next: nothing of one that hangs in a call.
MEMBERS_LOG = logging.getLogger("torture.members")


class Got(NamedTuple):
    """A record that was read."""

    partition: int
    offset: int
    value: bytes


class Client(Protocol):
    """A consumer; made, used and closed by one thread."""

    def poll(self) -> list[Got]:
        """What has come in; waits about POLL_S for something."""

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit these offsets by partition; returns once they are acknowledged, else raises."""

    def held(self) -> set[int]:
        """The partitions held."""

    def close(self) -> None: ...


class ConfluentClient:
    """In a group, or from given positions on."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        at: Mapping[int, int] | None = None,
        *,
        protocol: str = "classic",
    ) -> None:
        self._topic = topic
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "max.poll.interval.ms": REBALANCE_MS,
            "reconnect.backoff.max.ms": 300,
            "log_level": 0,
            "group.protocol": protocol,
        }
        if at is None and MEMBERS_LOG.isEnabledFor(logging.DEBUG):
            settings |= {"debug": "cgrp,topic,fetch", "log_level": 7}
        if protocol == "classic":
            settings |= {
                "partition.assignment.strategy": "range",
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": HEARTBEAT_MS,
            }
        self._consumer = confluent_kafka.Consumer(settings)
        if at is None:
            self._consumer.subscribe([topic])
        else:
            self._consumer.assign(self._places(at))

    def poll(self) -> list[Got]:
        got: list[Got] = []
        message = self._consumer.poll(POLL_S)
        while message is not None and len(got) < MAX_RECORDS:
            if message.error() is None:
                got.append(Got(message.partition(), message.offset(), message.value()))
            message = self._consumer.poll(0)
        if message is not None and message.error() is None:
            got.append(Got(message.partition(), message.offset(), message.value()))
        return got

    def commit(self, offsets: Mapping[int, int]) -> None:
        answer = self._consumer.commit(offsets=self._places(offsets), asynchronous=False)
        for place in answer or ():
            if place.error is not None:
                raise confluent_kafka.KafkaException(place.error)

    def held(self) -> set[int]:
        return {place.partition for place in self._consumer.assignment()}

    def close(self) -> None:
        self._consumer.close()

    def _places(self, offsets: Mapping[int, int]) -> list[Any]:
        return [confluent_kafka.TopicPartition(self._topic, *pair) for pair in offsets.items()]


class KafkaPythonClient:
    """In a group, or from given positions on."""

    def __init__(self, bootstrap: str, topic: str, group: str, at: Mapping[int, int] | None = None) -> None:
        self._topic = topic
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group if at is None else None,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=(KafkaPythonRange,),
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=REBALANCE_MS,
            reconnect_backoff_max_ms=300,
            request_timeout_ms=5_000,
        )
        if at is None:
            # it can lead its group before it knows the topic's partitions and then assigns nothing
            self._consumer.partitions_for_topic(topic)
            self._consumer.subscribe([topic])
        else:
            self._consumer.assign([kafka.TopicPartition(topic, number) for number in at])
            for number, offset in at.items():
                self._consumer.seek(kafka.TopicPartition(topic, number), offset)

    def poll(self) -> list[Got]:
        batches = self._consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=MAX_RECORDS)
        return [Got(r.partition, r.offset, r.value) for batch in batches.values() for r in batch]

    def commit(self, offsets: Mapping[int, int]) -> None:
        wanted = {
            kafka.TopicPartition(self._topic, number): kafka.OffsetAndMetadata(offset, "", -1)
            for number, offset in offsets.items()
        }
        self._consumer.commit(wanted, timeout_ms=int(COMMIT_TIMEOUT_S * 1000))

    def held(self) -> set[int]:
        return {place.partition for place in self._consumer.assignment()}

    def close(self) -> None:
        self._consumer.close(autocommit=False, timeout_ms=3_000)


class AiokafkaClient:
    """In a group. Its loop turns only while a call is under way."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self._topic = topic
        self._runner = asyncio.Runner()
        self._consumer = self._runner.run(self._started(bootstrap, topic, group))

    @staticmethod
    async def _started(bootstrap: str, topic: str, group: str) -> Any:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=(AiokafkaRange,),
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            request_timeout_ms=5_000,
        )
        try:
            await consumer.start()
        except BaseException:
            await consumer.stop()
            raise
        return consumer

    def poll(self) -> list[Got]:
        work = self._consumer.getmany(timeout_ms=int(POLL_S * 1000), max_records=MAX_RECORDS)
        batches = self._runner.run(work)
        return [Got(r.partition, r.offset, r.value) for batch in batches.values() for r in batch]

    def commit(self, offsets: Mapping[int, int]) -> None:
        wanted = {aiokafka.TopicPartition(self._topic, number): at for number, at in offsets.items()}

        async def commit() -> None:
            await asyncio.wait_for(self._consumer.commit(wanted), COMMIT_TIMEOUT_S)

        self._runner.run(commit())

    def held(self) -> set[int]:
        return {place.partition for place in self._consumer.assignment()}

    def close(self) -> None:
        async def stop() -> None:
            await asyncio.wait_for(self._consumer.stop(), COMMIT_TIMEOUT_S)

        try:
            self._runner.run(stop())
        finally:
            self._runner.close()


class KohortClient:
    """Ours, in a group."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        protocol: Literal["classic", "consumer"] = "classic",
        patience_ms: int = SESSION_MS,
    ) -> None:
        self._topic = topic
        self._consumer = GroupConsumer(
            topic,
            bootstrap=bootstrap,
            group=group,
            protocol=protocol,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            assignor="range",
            session_timeout_ms=patience_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            rebalance_timeout_ms=REBALANCE_MS,
        )
        self._consumer.start()

    def poll(self) -> list[Got]:
        records = self._consumer.getmany(max_records=MAX_RECORDS, timeout_ms=POLL_S * 1000)
        return [Got(record.partition, record.offset, record.value or b"") for record in records]

    def commit(self, offsets: Mapping[int, int]) -> None:
        wanted = {TopicPartition(self._topic, number): at for number, at in offsets.items()}
        self._consumer.commit(wanted, timeout_ms=COMMIT_TIMEOUT_S * 1000)

    def held(self) -> set[int]:
        return {place.partition for place in self._consumer.assignment()}

    def close(self) -> None:
        self._consumer.close()


MEMBERS: dict[str, Callable[..., Client]] = {
    "kohort": KohortClient,
    "confluent-kafka": ConfluentClient,
    "kafka-python": KafkaPythonClient,
    "aiokafka": AiokafkaClient,
}

READERS: dict[str, Callable[[str, str, str, Mapping[int, int]], Client]] = {
    "confluent-kafka": ConfluentClient,
    "kafka-python": KafkaPythonClient,
}
