"""FindCoordinator (10), v0-6: the broker that leads the partition of a group or transactional id; a single
broker leads all of them (KIP-699: many keys at once).

Share groups are not supported: INVALID_REQUEST, which clients do not retry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...offsets_topic import partition_for
from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
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


async def handle(node: Node, request: Request[FindCoordinatorRequest]) -> FindCoordinatorResponse:
    body = request.body
    if request.version >= _MANY_FROM and not body.coordinator_keys:
        return FindCoordinatorResponse(coordinators=[])  # nobody is asked for: nothing is begun
    if node.cluster is not None and body.key_type in _TOPICS:
        return await _in_cluster(node, request, node.cluster, _TOPICS[body.key_type])
    if body.key_type == _TRANSACTION:
        # the first such request creates the topic
        await start_transactions(node)
    elif body.key_type != _GROUP:
        words = f"key type {body.key_type} is not offered by this broker: groups (0), transactions (1) are"
        return _answer(request, lambda key: _nowhere(key, ErrorCode.INVALID_REQUEST, words))
    return _answer(request, lambda key: Coordinator(key, node.node_id, *request.endpoint))


async def _in_cluster(
    node: Node, request: Request[FindCoordinatorRequest], cluster: ClusterNode, topic: str
) -> FindCoordinatorResponse:
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

    def find(key: str) -> Coordinator:
        if found is not None:
            state = found.partitions[partition_for(key, len(found.partitions))]
            endpoint = cluster.endpoint(state.leader, request.context.listener)
            if endpoint is not None:
                return Coordinator(key, state.leader, *endpoint)
        words = "no broker leads its partition now" if error is None else str(error)
        return _nowhere(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, words)

    return _answer(request, find)


_NOWHERE: dict[str, object] = {"node_id": -1, "host": "", "port": -1}


def _nowhere(key: str, code: ErrorCode, words: str) -> Coordinator:
    return Coordinator(key, -1, "", -1, code, words)


def _answer(
    request: Request[FindCoordinatorRequest], find: Callable[[str], Coordinator]
) -> FindCoordinatorResponse:
    if request.version >= _MANY_FROM:
        return FindCoordinatorResponse(coordinators=[find(key) for key in request.body.coordinator_keys])
    found = find(request.body.key)
    # Kafka names the error here, even NONE; with many keys it has no message
    words = found.error_message or "NONE"
    return FindCoordinatorResponse(0, found.error_code, words, found.node_id, found.host, found.port)


_GROUP_RIGHT = right(Operation.DESCRIBE, ResourceType.GROUP, "each group")
_TRANSACTION_RIGHT = right(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "each transactional id")
_SHARE_RIGHT = right(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "each share group's partition")


async def _guard(asked: Asked[FindCoordinatorRequest, FindCoordinatorResponse]) -> FindCoordinatorResponse:
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
    if not asked.may(access, name):
        raise refusal(access)
    return await asked.proceed()


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
