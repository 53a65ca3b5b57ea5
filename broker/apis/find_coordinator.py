"""FindCoordinator (10), v0-6: the broker that leads the partition of a group or transactional id; a single
broker leads all of them (KIP-699: many keys at once).

Share groups are not supported: INVALID_REQUEST, which clients do not retry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...offsets_topic import partition_for
from ...protocol import ApiKey, ErrorCode, KafkaError
from ..authorizer import CLUSTER_NAME, Access, Operation, ResourceType, right
from ..node import Node
from ..partitions.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ..transactions import start_transactions
from ._api import Asked, Guard, Request, ServedApi
from ._errors import ErrorShape, Level
from ._guards import each, refusal

if TYPE_CHECKING:
    from ..metadata.cluster_node import ClusterNode

#: Kinds of coordinators.
_GROUP, _TRANSACTION, _SHARE_GROUP = range(3)
_MANY_FROM = 4

#: Topics whose partition leaders are the coordinators, by kind of coordinator.
_TOPICS = {_GROUP: OFFSETS_TOPIC, _TRANSACTION: TRANSACTIONS_TOPIC}

_NOWHERE: dict[str, Any] = {"node_id": -1, "host": "", "port": -1}


async def handle(node: Node, request: Request) -> Any:
    body = request.body
    if request.version >= _MANY_FROM and not body.coordinator_keys:
        return request.answer(coordinators=[])  # nobody is asked for: nothing is begun
    host, port = request.endpoint
    found: dict[str, Any] = {"node_id": node.node_id, "host": host, "port": port}
    if node.cluster is not None and body.key_type in _TOPICS:
        return await _in_cluster(node, request, node.cluster, _TOPICS[body.key_type])
    if body.key_type == _TRANSACTION:
        # the first such request creates the topic
        await start_transactions(node)
    elif body.key_type != _GROUP:
        words = f"key type {body.key_type} is not offered by this broker: groups (0), transactions (1) are"
        found = {"error_code": ErrorCode.INVALID_REQUEST, "error_message": words, **_NOWHERE}
    if request.version < _MANY_FROM:
        # Kafka names the error here, even NONE; with many keys it has no message
        return request.answer(**{"error_message": "NONE", **found})
    make = request.part("Coordinator")
    return request.answer(coordinators=[make(key=key, **found) for key in body.coordinator_keys])


async def _in_cluster(node: Node, request: Request, cluster: ClusterNode, topic: str) -> Any:
    """The leaders of the keys' partitions of the coordinator's topic."""
    found = node.topics.get(topic)
    error: KafkaError | None = None
    if found is None:
        # the first such request creates it
        try:
            await cluster.create_internal(topic)
        except KafkaError as failed:
            error = failed
        found = node.topics.get(topic)

    def of(key: str) -> dict[str, Any]:
        if found is not None:
            state = found.partitions[partition_for(key, len(found.partitions))]
            endpoint = cluster.endpoint(state.leader, request.context.listener)
            if endpoint is not None:
                return {"node_id": state.leader, "host": endpoint[0], "port": endpoint[1]}
        words = "no broker leads its partition now" if error is None else str(error)
        return {"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE, "error_message": words, **_NOWHERE}

    if request.version < _MANY_FROM:
        return request.answer(**{"error_message": "NONE", **of(request.body.key)})
    make = request.part("Coordinator")
    return request.answer(coordinators=[make(key=key, **of(key)) for key in request.body.coordinator_keys])


_GROUP_RIGHT = right(Operation.DESCRIBE, ResourceType.GROUP, "each group")
_TRANSACTION_RIGHT = right(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "each transactional id")
_SHARE_RIGHT = right(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "each share group's partition")


async def _guard(asked: Asked) -> Any:
    request, body = asked.request, asked.request.body
    if body.key_type not in (_GROUP, _TRANSACTION, _SHARE_GROUP):
        return await asked.proceed()  # which refuses it

    def wanted(key: str) -> tuple[Access, str]:
        if body.key_type == _GROUP:
            return _GROUP_RIGHT, key
        return (_TRANSACTION_RIGHT, key) if body.key_type == _TRANSACTION else (_SHARE_RIGHT, CLUSTER_NAME)

    if request.version >= _MANY_FROM:
        return await each(asked, wanted)
    access, name = wanted(body.key)
    return await asked.proceed() if asked.may(access, name) else request.error_answer(refusal(access).code)


API = ServedApi(
    key=ApiKey.FIND_COORDINATOR,
    versions=(0, 6),
    handler=handle,
    guard=Guard((_GROUP_RIGHT, _TRANSACTION_RIGHT, _SHARE_RIGHT), _guard),
    errors=ErrorShape(
        top=(0, _MANY_FROM - 1),
        levels={0: (Level("coordinator_keys", "coordinators", {"": "key"}, _NOWHERE),)},
        fields=lambda _body, _version, _code: _NOWHERE,
    ),
    reads_only=True,
)
