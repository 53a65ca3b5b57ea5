"""FindCoordinator (10), v0-6: the broker that leads the partition of a group or transactional id; a single
broker leads all of them (KIP-699: many keys at once).

Version 6 adds share partitions, whose keys are ``group:topic-id:partition`` (KIP-932), where
their feature is on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ...coordinator.share_groups import SHARE_VERSION
from ...offsets_topic import partition_for
from ...protocol import ApiKey, ErrorCode, KafkaError, SharePartitionKey
from ...protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ..authorizer import CLUSTER_NAME, Access, Operation, ResourceType, right
from ..coordinators.share_state import find_share_coordinators
from ..coordinators.transactions import start_transactions
from ..node import Node
from ..partitions.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ._api import Guard, Request, ServedApi
from ._errors import ErrorShape, Level
from ._guards import each

if TYPE_CHECKING:
    from ...client.share_state import Found
    from ..metadata.cluster_node import ClusterNode

#: Kinds of coordinators.
_GROUP, _TRANSACTION, _SHARE = range(3)
_MANY_FROM, _SHARE_FROM = 4, 6

#: Topics whose partition leaders are the coordinators, by kind of coordinator.
_TOPICS = {_GROUP: OFFSETS_TOPIC, _TRANSACTION: TRANSACTIONS_TOPIC}


async def handle(node: Node, request: Request[FindCoordinatorRequest]) -> FindCoordinatorResponse:
    """Return the coordinator of a key, from v4 of many keys."""
    body = request.body
    if body.key_type == _SHARE and request.version >= _SHARE_FROM:
        return await _find_share_coordinators(node, request)
    if request.version >= _MANY_FROM and not body.coordinator_keys:
        return FindCoordinatorResponse(coordinators=[])  # nobody is asked for: nothing is begun
    if node.cluster is not None and body.key_type in _TOPICS:
        return await _in_cluster(node, request, node.cluster, _TOPICS[body.key_type])
    if body.key_type == _TRANSACTION:
        # the first such request creates the topic
        await start_transactions(node)
    elif body.key_type != _GROUP:
        words = (
            f"key type {body.key_type} is not known in version {request.version}: groups (0) and "
            "transactions (1) are and, from version 6 on, share partitions (2)"
        )
        return _answer_keys(request, lambda key: _no_coordinator(key, ErrorCode.INVALID_REQUEST, words))
    return _answer_keys(request, lambda key: Coordinator(key, node.node_id, *request.endpoint))


async def _find_share_coordinators(
    node: Node, request: Request[FindCoordinatorRequest]
) -> FindCoordinatorResponse:
    """The share coordinators of share partitions."""
    if not node.features.levels[SHARE_VERSION]:
        off = ErrorCode.UNSUPPORTED_VERSION, f"share groups are off: {SHARE_VERSION} is at level 0"
        return _answer_keys(request, lambda key: _no_coordinator(key, *off))
    wrong: dict[str, str] = {}
    for key in request.body.coordinator_keys:
        try:
            SharePartitionKey.parse(key)
        except ValueError as error:
            wrong[key] = str(error)
    keys = [key for key in request.body.coordinator_keys if key not in wrong]
    leaders: Mapping[str, Found] = {}
    if keys:
        try:
            leaders = await find_share_coordinators(node, keys)
        except KafkaError as error:
            leaders = dict.fromkeys(keys, error)

    def find(key: str) -> Coordinator:
        if key in wrong:
            return _no_coordinator(key, ErrorCode.INVALID_REQUEST, wrong[key])
        leader = leaders[key]
        if isinstance(leader, KafkaError):
            return _no_coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, str(leader))
        if node.cluster is None:
            return Coordinator(key, leader, *request.endpoint)
        endpoint = node.cluster.endpoint(leader, request.context.listener)
        if endpoint is None:
            return _no_coordinator(
                key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "its broker has no such listener"
            )
        return Coordinator(key, leader, *endpoint)

    return _answer_keys(request, find)


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
        return _no_coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, words)

    return _answer_keys(request, find)


_NOWHERE: dict[str, object] = {"node_id": -1, "host": "", "port": -1}


def _no_coordinator(key: str, code: ErrorCode, words: str) -> Coordinator:
    return Coordinator(key, -1, "", -1, code, words)


def _answer_keys(
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


async def _guard(node: Node, request: Request[FindCoordinatorRequest]) -> object:
    body = request.body
    if body.key_type not in (_GROUP, _TRANSACTION, _SHARE):
        return await request.proceed(node)  # which refuses it

    def wanted(key: str) -> tuple[Access, str]:
        if body.key_type == _GROUP:
            return _GROUP_RIGHT, key
        return (_TRANSACTION_RIGHT, key) if body.key_type == _TRANSACTION else (_SHARE_RIGHT, CLUSTER_NAME)

    if request.version >= _MANY_FROM:
        return await each(node, request, wanted)
    access, name = wanted(body.key)
    request.require(access, name)
    return await request.proceed(node)


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
