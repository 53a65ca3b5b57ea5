"""WriteTxnMarkers (27), v1-2: writes the ends of transactions to partitions on this broker (KIP-98).

Coordinators on other brokers send it, and tools that end a hanging transaction (KIP-664).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from ...protocol import ApiKey, ErrorCode, TopicPartition
from ...protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ...transactions import EPOCH_BUMP_VERSION, TransactionMarker
from ..authorizer import Operation, ResourceType, right
from ..coordinators.transactions import write_marker
from ..event_loop.time_slices import in_slices
from ..node import Node
from ._api import Guard, Request, ServedApi
from ._errors import Level, in_elements, same_fields

#: A producer epoch that stands for none.
_NO_EPOCH: Final = -1
#: Stands for the leader epoch that a request does not name.
_ANY_EPOCH: Final = -1

_ALTER_RIGHT = right(Operation.ALTER, ResourceType.CLUSTER, "the cluster")
_BROKER_RIGHT = right(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "or this one")


async def handle(node: Node, request: Request[WriteTxnMarkersRequest]) -> WriteTxnMarkersResponse:
    """Write the ends of transactions into the partitions led here, for their coordinators."""
    answers: list[list[list[WritableTxnMarkerPartitionResult]]] = [
        [[] for _ in asked.topics] for asked in request.body.markers
    ]
    places = (
        (asked, topic.name, number, leader_epoch, partitions)
        for asked, topics in zip(request.body.markers, answers, strict=True)
        for topic, partitions in zip(asked.topics, topics, strict=True)
        for number, leader_epoch in _with_epochs(topic)
    )
    async for asked, topic, number, leader_epoch, partitions in in_slices(places):
        marker = TransactionMarker(
            asked.producer_id,
            asked.producer_epoch,
            asked.transaction_result,
            asked.coordinator_epoch,
            asked.attempt,
        )
        rises = asked.transaction_version >= EPOCH_BUMP_VERSION
        error = await _write_marker(node, TopicPartition(topic, number), marker, leader_epoch, rises=rises)
        partitions.append(WritableTxnMarkerPartitionResult(number, error))
    results = []
    for asked, topics in zip(request.body.markers, answers, strict=True):
        names = [topic.name for topic in asked.topics]
        told = [WritableTxnMarkerTopicResult(*each) for each in zip(names, topics, strict=True)]
        results.append(WritableTxnMarkerResult(asked.producer_id, told))
    return WriteTxnMarkersResponse(markers=results)


def _with_epochs(topic: WritableTxnMarkerTopic) -> Iterator[tuple[int, int]]:
    """The partitions of a topic, each with the leader epoch that the request is for."""
    count = len(topic.partition_indexes)
    return zip_longest(topic.partition_indexes, topic.leader_epochs[:count], fillvalue=_ANY_EPOCH)


async def _write_marker(
    node: Node, place: TopicPartition, marker: TransactionMarker, leader_epoch: int, *, rises: bool
) -> ErrorCode:
    if marker.producer_id < 0:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    partition = node.logs.led(*place)
    if partition is not None and marker.producer_epoch < 0:
        none = marker.producer_epoch == _NO_EPOCH
        return ErrorCode.UNKNOWN_SERVER_ERROR if none else ErrorCode.INVALID_PRODUCER_EPOCH
    if partition is not None and _ANY_EPOCH < leader_epoch < partition.leader_epoch:
        # its sender has given it up: others have led since
        return ErrorCode.FENCED_LEADER_EPOCH
    if rises and partition is not None:
        producer = partition.producer(marker.producer_id)
        open_ = producer is not None and producer.transaction_start >= 0
        # if nothing is open this repeats a marker that is written already
        if producer is not None and marker.producer_epoch < producer.epoch + open_:
            return ErrorCode.INVALID_PRODUCER_EPOCH
    return await write_marker(node, place, marker)


async def _guard(node: Node, request: Request[WriteTxnMarkersRequest]) -> object:
    if not request.shows(_ALTER_RIGHT):
        request.require(_BROKER_RIGHT)
    return await request.proceed(node)


API = ServedApi(
    key=ApiKey.WRITE_TXN_MARKERS,
    versions=(1, 2),
    handler=handle,
    guard=Guard((_ALTER_RIGHT, _BROKER_RIGHT), _guard),
    errors=in_elements(
        Level("markers", "markers", same_fields("producer_id")),
        Level("topics", "topics", same_fields("name")),
        Level("partition_indexes", "partitions", {"": "partition_index"}),
    ),
)
