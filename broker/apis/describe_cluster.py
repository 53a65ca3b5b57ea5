"""DescribeCluster (60), v0-2: the brokers and the cluster's id (KIP-700, KIP-919, KIP-1073)."""

from __future__ import annotations

from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from ..node import Node
from ._api import Request, ServedApi
from ._guards import by_handler
from ._lookup import CLUSTER_OPERATIONS_RIGHT, brokers_of, cluster_operations

_BROKERS = 1


async def handle(node: Node, request: Request[DescribeClusterRequest]) -> DescribeClusterResponse:
    """List the brokers, and the controller; controllers of their own (v1) do not exist here."""
    if request.version >= 1 and request.body.endpoint_type != _BROKERS:
        return _error_answer(request)
    brokers = [
        DescribeClusterBroker(broker_id=each.node_id, host=host, port=port, rack=each.rack)
        for each, host, port in brokers_of(node, request)
    ]
    return DescribeClusterResponse(
        cluster_id=node.image.cluster_id,
        controller_id=node.image.controller_id,
        brokers=brokers,
        cluster_authorized_operations=cluster_operations(request),
    )


def _error_answer(request: Request[DescribeClusterRequest]) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE
        if request.body.endpoint_type == _CONTROLLERS
        else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        error_message=f"endpoint type {request.body.endpoint_type}: this is a broker, ask for type 1",
    )


_CONTROLLERS = 2


API = ServedApi(
    key=ApiKey.DESCRIBE_CLUSTER,
    versions=(0, 2),
    handler=handle,
    guard=by_handler(CLUSTER_OPERATIONS_RIGHT),
    reads_only=True,
)
