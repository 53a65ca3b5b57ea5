"""DescribeAcls (29), v1-3: the access rules that match a filter (KIP-140, KIP-290)."""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ..authorizer import AclBindingFilter, Operation, ResourceType, right
from ..node import Node
from ._acls import authorizer_of, typed_fields
from ._api import Request, ServedApi
from ._guards import whole


async def handle(node: Node, request: Request[DescribeAclsRequest]) -> DescribeAclsResponse:
    """List the rules that match the filter, by resource."""
    found: dict[tuple[int, str, int], list[AclDescription]] = {}
    for resource, name, pattern, principal, host, operation, permission in authorizer_of(node).find(
        AclBindingFilter(*typed_fields(request.body))
    ):
        described = AclDescription(principal, host, operation, permission)
        found.setdefault((resource, name, pattern), []).append(described)
    return DescribeAclsResponse(
        resources=[DescribeAclsResource(*pattern, acls) for pattern, acls in found.items()]
    )


API = ServedApi(
    key=ApiKey.DESCRIBE_ACLS,
    versions=(1, 3),
    handler=handle,
    guard=whole(right(Operation.DESCRIBE, ResourceType.CLUSTER, "all rules")),
)
