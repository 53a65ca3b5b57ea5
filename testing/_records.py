"""Writes and reads records, for tests without another client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping

from ..client import LATEST, Cluster
from ..consumer import AsyncGroupConsumer, Record
from ..producer import Producer
from ..protocol import ApiKey, KafkaError, TopicPartition
from ..protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

#: Of IncrementalAlterConfigs: a group's configs, and to set one.
_GROUP, _SET = 32, 0


def encode(value: object) -> bytes | None:
    """Bytes as they are, text as UTF-8, pydantic models and everything else as JSON; None stays None."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if (dump := getattr(value, "model_dump_json", None)) is not None:
        text: str = dump()
        return text.encode()
    return json.dumps(value).encode()


async def create_topic(bootstrap: str, name: str, partitions: int, configs: Mapping[str, str]) -> None:
    """Create a topic; returns when it can be written to."""
    async with Cluster(bootstrap) as cluster:
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        await cluster.create_topics({name: partitions}, configs=dotted, if_not_exists=False)


async def configure_share_group(bootstrap: str, group: str, configs: Mapping[str, object]) -> None:
    """Set configs of a share group. Raises KafkaError."""
    rows = [
        AlterableConfig(name.replace("_", "."), _SET, str(value))
        for name, value in {"share_auto_offset_reset": "earliest", **configs}.items()
    ]
    alter = IncrementalAlterConfigsRequest([AlterConfigsResource(_GROUP, group, rows)], validate_only=False)
    async with Cluster(bootstrap) as cluster:
        (row,) = (await cluster.request(None, ApiKey.INCREMENTAL_ALTER_CONFIGS, alter)).responses
        if row.error_code:
            raise KafkaError(row.error_code, row.error_message or f"configs of group {group!r}")


async def produce(bootstrap: str, topic: str, values: Iterable[object], partition: int | None) -> None:
    """Write records; returns when all are acknowledged. Creates the topic if the broker allows that."""
    async with Cluster(bootstrap) as cluster, Producer.on_cluster(cluster, linger_ms=0) as producer:
        state = await cluster.metadata([topic], create=True)
        if topic not in state.topics:
            await cluster.create_topics({topic: -1})
        count = await producer.partitions_for(topic)
        futures = []
        for number, each in enumerate(values):
            key, value = each if isinstance(each, tuple) else (None, each)
            name = encode(key)
            to = number % count if partition is None and name is None else partition
            futures.append(await producer.send(topic, encode(value), name, to))
        await asyncio.gather(*futures)


async def read(bootstrap: str, topic: str) -> list[Record]:
    """Read every record that is there now."""
    async with Cluster(bootstrap) as cluster:
        state = await cluster.metadata([topic])
        if topic not in state.topics:
            return []
        partitions = [TopicPartition(topic, index) for index in range(len(state.topics[topic].partitions))]
        ends = await cluster.list_offsets(dict.fromkeys(partitions, LATEST))
    left = {partition for partition, end in ends.items() if end.offset > 0}
    records: list[Record] = []
    if not left:
        return records
    async with AsyncGroupConsumer(
        partitions=sorted(left), bootstrap=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        while left:
            records += await consumer.getmany(timeout_ms=100)
            left = {p for p in left if (consumer.position(p) or 0) < ends[p].offset}
    return sorted(records, key=lambda record: (record.partition, record.offset))
