"""DescribeAcls (29), v1-3: the access rules that match a filter (KIP-140, KIP-290)."""

from __future__ import annotations

from typing import Any

from ...protocol import ApiKey
from ..authorizer import AclFilter, Operation, ResourceType, right
from ..node import Node
from ._acls import authorizer_of, typed
from ._api import Request, ServedApi
from ._guards import whole


async def handle(node: Node, request: Request) -> Any:
    make = request.part("DescribeAclsResource")
    make_acl = request.part("AclDescription")
    found: dict[tuple[Any, ...], list[Any]] = {}
    for resource_type, name, pattern_type, *rest in authorizer_of(node).find(AclFilter(*typed(request.body))):
        found.setdefault((resource_type, name, pattern_type), []).append(make_acl(*rest))
    return request.answer(resources=[make(*pattern, acls) for pattern, acls in found.items()])


API = ServedApi(
    key=ApiKey.DESCRIBE_ACLS,
    versions=(1, 3),
    handler=handle,
    guard=whole(right(Operation.DESCRIBE, ResourceType.CLUSTER, "all rules")),
)
