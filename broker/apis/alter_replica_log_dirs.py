"""AlterReplicaLogDirs (34), v1-2: moves replicas to a folder (KIP-113). A broker here has one, where they
are.
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ._api import Request, ServedApi
from ._errors import ErrorShape
from ._guards import whole
from ._lookup import find_partition


async def handle(node: Node, request: Request[AlterReplicaLogDirsRequest]) -> AlterReplicaLogDirsResponse:
    """Accept each partition for the folder that it is in: a broker has one, so none moves."""
    return AlterReplicaLogDirsResponse(
        results=_results_of(request.body, lambda *wanted: _code_for(node, *wanted))
    )


def _code_for(node: Node, topic: str, index: int, folder: str) -> ErrorCode:
    if folder != node.logs.folder:
        return ErrorCode.LOG_DIR_NOT_FOUND
    try:
        find_partition(node, topic, None, index, any_replica=True)
    except KafkaError as error:
        # Apache Kafka's error for a replica that only other brokers have
        elsewhere = error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.REPLICA_NOT_AVAILABLE if elsewhere else error.code
    return ErrorCode.NONE


def _results_of(
    body: AlterReplicaLogDirsRequest, code_of: Callable[[str, int, str], ErrorCode]
) -> list[AlterReplicaLogDirTopicResult]:
    """A code for each partition of a request; if one is named twice the last folder counts."""
    wanted = {
        (topic.name, index): folder.path
        for folder in body.dirs
        for topic in folder.topics
        for index in topic.partitions
    }
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (topic, index), folder in wanted.items():
        result = AlterReplicaLogDirPartitionResult(index, code_of(topic, index, folder))
        topics.setdefault(topic, []).append(result)
    return [AlterReplicaLogDirTopicResult(*each) for each in topics.items()]


API = ServedApi(
    key=ApiKey.ALTER_REPLICA_LOG_DIRS,
    versions=(1, 2),
    handler=handle,
    guard=whole(right(Operation.ALTER, ResourceType.CLUSTER, "all partitions")),
    errors=ErrorShape(fields=lambda body, _version, code: {"results": _results_of(body, lambda *_: code)}),
    reads_only=True,
)
