"""DescribeProducers (61), v0: the producers of a partition, with their open transactions (KIP-664)."""

from __future__ import annotations

from ...coordinator import RepeatLimit
from ...log import ProducerEntry
from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from ..authorizer import Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ..node import Node
from ._api import Request, ServedApi
from ._errors import TOPICS_BY_NAME, Level, in_elements
from ._guards import topics
from ._lookup import find_partition


async def handle(node: Node, request: Request[DescribeProducersRequest]) -> DescribeProducersResponse:
    """List the idempotent and transactional producers that have written to each partition (KIP-664)."""
    repeats = RepeatLimit()

    async def describe(topic: TopicRequest, number: int) -> dict[str, object]:
        if repeats.refuses((topic.name, number)):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "the partition is in the request too often: name it once"
            )
        partition = find_partition(node, topic.name, None, number, any_replica=True)
        producers = list(partition.producers())
        return {"active_producers": [_producer_state(producer) async for producer in in_slices(producers)]}

    return await request.each_partition(DescribeProducersResponse, describe)


def _producer_state(producer: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        last_sequence=producer.batches[-1].last_sequence if producer.batches else -1,
        last_timestamp=producer.last_timestamp_ms,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.transaction_start,
    )


API = ServedApi(
    key=ApiKey.DESCRIBE_PRODUCERS,
    versions=(0, 0),
    handler=handle,
    guard=topics(right(Operation.READ, ResourceType.TOPIC, "each topic")),
    errors=in_elements(TOPICS_BY_NAME, Level("partition_indexes", "partitions", {"": "partition_index"})),
    reads_only=True,
)
