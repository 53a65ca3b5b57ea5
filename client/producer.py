"""One Produce request, as a dead letter needs it: acknowledged by all replicas in sync (acks -1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from ..protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from .cluster import Cluster

_ALL_IN_SYNC = -1
#: Version 13 names topics by id (KIP-516); up to here they go by name.
_LAST_BY_NAME = 12
#: From version 12 on a broker takes partitions into a transaction by itself (KIP-890), and its end differs.
_LAST_TO_ANNOUNCED = 11


async def produce(
    cluster: Cluster,
    partition: TopicPartition,
    batch: bytes | bytearray,
    *,
    transactional_id: str | None = None,
) -> int:
    """Append a batch to a partition; the offset of its first record. Raises KafkaError.

    One attempt at the leader in the cache. After an error that tells of a move the next one finds fresh
    metadata. A transaction must have been told of the partition.
    """
    data = PartitionProduceData(index=partition.partition, records=memoryview(batch))
    body = ProduceRequest(
        transactional_id=transactional_id,
        acks=_ALL_IN_SYNC,
        timeout_ms=cluster.request_timeout_ms,
        topic_data=[TopicProduceData(name=partition.topic, partition_data=[data])],
    )
    leader = cluster.leader(partition)
    if leader is None:
        await cluster.metadata([partition.topic])
        raise KafkaError(
            ErrorCode.LEADER_NOT_AVAILABLE, f"{partition.topic}-{partition.partition} has no leader yet"
        )
    newest = _LAST_BY_NAME if transactional_id is None else _LAST_TO_ANNOUNCED
    response = await cluster.request(leader, ApiKey.PRODUCE, body, max_version=newest)
    row = response.responses[0].partition_responses[0]
    if row.error_code:
        await cluster.metadata([partition.topic])
        raise KafkaError(
            row.error_code, row.error_message or f"{partition.topic}-{partition.partition} refused records"
        )
    offset: int = row.base_offset
    return offset
