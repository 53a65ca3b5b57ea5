"""AddPartitionsToTxn (24), v0-5: adds partitions to a transaction (KIP-98).

Up to v3 clients send it, for their own transaction. From v4 on brokers send it, for many transactions, and
may only verify that the partitions are in them (KIP-890).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...cluster import INTERNAL
from ...protocol import ApiKey, ErrorCode, TopicPartition
from ...protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from ...transactions import EPOCH_BUMP_VERSION, Add
from ..authorizer import Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ..node import Node
from ._api import Request, ServedApi
from ._errors import ErrorShape, Level
from ._guards import by_handler
from ._transactions import TRANSACTION_RIGHT, fenced_name

#: Version from which brokers send it.
_BROKERS_FROM = 4
#: Version from which PRODUCER_FENCED is known.
_FENCED_FROM = 2

_TOPIC_RIGHT = right(Operation.WRITE, ResourceType.TOPIC, "each topic, up to v3")
_BROKER_RIGHT = right(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "from v4 on: brokers alone")


async def handle(node: Node, request: Request[AddPartitionsToTxnRequest]) -> AddPartitionsToTxnResponse:
    """Add partitions of one producer's transaction, or (from v4, between brokers) of many."""
    if request.version >= _BROKERS_FROM:
        request.require(_BROKER_RIGHT)
        results = [
            AddPartitionsToTxnResult(each.transactional_id, await _add_transaction(node, request, each))
            async for each in in_slices(request.body.transactions)
        ]
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    body = request.body
    request.require(TRANSACTION_RIGHT, body.v3_and_below_transactional_id)
    asked = AddPartitionsToTxnTransaction(
        body.v3_and_below_transactional_id,
        body.v3_and_below_producer_id,
        body.v3_and_below_producer_epoch,
        False,
        body.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=await _add_transaction(node, request, asked)
    )


async def _add_transaction(
    node: Node,
    request: Request[AddPartitionsToTxnRequest],
    asked: AddPartitionsToTxnTransaction,
) -> list[AddPartitionsToTxnTopicResult]:
    """Add all partitions of a transaction, or none."""
    places = list(_places_of(asked))
    errors = {place: _refusal_of(node, request, place) async for place in in_slices(places)}
    if any(errors.values()):
        not_attempted = ErrorCode.OPERATION_NOT_ATTEMPTED
        errors = {place: error or not_attempted for place, error in errors.items()}
    else:
        name, producer_id, epoch, verify_only, _ = asked
        if verify_only:
            errors = {
                place: node.transactions.verify(name, producer_id, epoch, place)
                async for place in in_slices(places)
            }
        else:
            client_version = EPOCH_BUMP_VERSION if request.version >= _BROKERS_FROM else 0
            error = await node.transactions.add(Add(name, producer_id, epoch, places, client_version))
            errors = dict.fromkeys(places, fenced_name(request, error, _FENCED_FROM))
    return [
        AddPartitionsToTxnTopicResult(
            topic.name,
            [
                AddPartitionsToTxnPartitionResult(number, errors[TopicPartition(topic.name, number)])
                for number in topic.partitions
            ],
        )
        for topic in asked.topics
    ]


def _places_of(asked: AddPartitionsToTxnTransaction) -> Iterator[TopicPartition]:
    for topic in asked.topics:
        for number in topic.partitions:
            yield TopicPartition(topic.name, number)


def _refusal_of(
    node: Node,
    request: Request[AddPartitionsToTxnRequest],
    place: TopicPartition,
) -> ErrorCode:
    # clients may not write to the coordinators' topics, with or without access rules
    if request.version < _BROKERS_FROM and (
        place.topic in INTERNAL or not request.allows(_TOPIC_RIGHT, place.topic)
    ):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    known = 0 <= place.partition < (node.topics.count_of(place.topic) or 0)
    return ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


API = ServedApi(
    key=ApiKey.ADD_PARTITIONS_TO_TXN,
    versions=(0, 5),
    handler=handle,
    guard=by_handler(TRANSACTION_RIGHT, _TOPIC_RIGHT, _BROKER_RIGHT),
    errors=ErrorShape(
        top=(_BROKERS_FROM, 5),
        levels={
            0: (
                Level("v3_and_below_topics", "results_by_topic_v3_and_below", {"name": "name"}),
                Level(
                    "partitions",
                    "results_by_partition",
                    {"": "partition_index"},
                    error="partition_error_code",
                ),
            )
        },
    ),
)
