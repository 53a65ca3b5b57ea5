"""DescribeAcls (29), v1-3: the access rules that a filter means (KIP-140, KIP-290)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol import ApiKey
from ..authorizer import Acl, Operation, PatternType, ResourceType, right
from ._acls import authorizer_of, filter_of
from ._api import Request, ServedApi
from ._errors import AT_TOP
from ._guards import whole

if TYPE_CHECKING:
    from .._node import Node


async def handle(node: Node, request: Request) -> Any:
    make = request.part("DescribeAclsResource")
    make_acl = request.part("AclDescription")
    found: dict[tuple[ResourceType, str, PatternType], list[Acl]] = {}
    for acl in authorizer_of(node).find(filter_of(request.body)):
        found.setdefault((acl.resource_type, acl.name, acl.pattern_type), []).append(acl)
    return request.answer(
        resources=[
            make(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern_type,
                acls=[
                    make_acl(
                        principal=acl.principal,
                        host=acl.host,
                        operation=acl.operation,
                        permission_type=acl.permission,
                    )
                    for acl in acls
                ],
            )
            for (resource_type, name, pattern_type), acls in found.items()
        ]
    )


_RIGHT = right(Operation.DESCRIBE, ResourceType.CLUSTER, "all rules")

API = ServedApi(
    key=ApiKey.DESCRIBE_ACLS,
    versions=(1, 3),
    handler=handle,
    access=(_RIGHT,),
    guard=whole(_RIGHT),
    errors=AT_TOP,
)
