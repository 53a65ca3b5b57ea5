"""DescribeCluster (60), v0-2: the brokers and the cluster's id (KIP-700, KIP-919, KIP-1073)."""

from __future__ import annotations

from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from ..node import Node
from ._api import Asked, Guard, Request, ServedApi
from ._guards import CLUSTER_OPERATIONS_RIGHT, with_cluster_operations
from ._lookup import CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED, brokers_of

_BROKERS = 1


async def handle(node: Node, request: Request[DescribeClusterRequest]) -> DescribeClusterResponse:
    """List the brokers, and the controller; controllers of their own (v1) do not exist here."""
    body = request.body
    if request.version >= 1 and body.endpoint_type != _BROKERS:
        return _error_answer(request)
    brokers = [
        DescribeClusterBroker(broker_id=each.node_id, host=host, port=port, rack=each.rack)
        for each, host, port in brokers_of(node, request)
    ]
    return DescribeClusterResponse(
        cluster_id=node.image.cluster_id,
        controller_id=node.image.controller_id,
        brokers=brokers,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if body.include_cluster_authorized_operations
        else OPERATIONS_NOT_ASKED,
    )


def _error_answer(request: Request[DescribeClusterRequest]) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE
        if request.body.endpoint_type == _CONTROLLERS
        else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        error_message=f"endpoint type {request.body.endpoint_type}: this is a broker, ask for type 1",
    )


_CONTROLLERS = 2


async def _guard(asked: Asked[DescribeClusterRequest, DescribeClusterResponse]) -> DescribeClusterResponse:
    return with_cluster_operations(asked, await asked.proceed())


API = ServedApi(
    key=ApiKey.DESCRIBE_CLUSTER,
    versions=(0, 2),
    handler=handle,
    guard=Guard((CLUSTER_OPERATIONS_RIGHT,), _guard),
    reads_only=True,
)
