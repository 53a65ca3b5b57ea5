"""DeleteAcls (31), v1-3: access rules that filters mean go, for good when answered (KIP-140, KIP-290)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol import ErrorCode
from .._requests import Request
from ._acls import authorizer_of, filter_of, is_known

if TYPE_CHECKING:
    from .._node import Node


async def handle(node: Node, request: Request) -> Any:
    make = request.part("DeleteAclsFilterResult")
    make_acl = request.part("DeleteAclsFilterResult", "DeleteAclsMatchingAcl")
    authorizer = authorizer_of(node)
    # a rule that two filters mean is told with both
    filters = [filter_of(item) for item in request.body.filters]
    found = [authorizer.find(wanted) if is_known(wanted) else [] for wanted in filters]
    authorizer.delete(acl for acls in found for acl in acls)
    return request.answer(
        filter_results=[
            make(
                error_code=ErrorCode.NONE if is_known(wanted) else ErrorCode.INVALID_REQUEST,
                error_message=None if is_known(wanted) else "a number in the filter means nothing here",
                matching_acls=[
                    make_acl(
                        error_message=None,
                        resource_type=acl.resource_type,
                        resource_name=acl.name,
                        pattern_type=acl.pattern_type,
                        principal=acl.principal,
                        host=acl.host,
                        operation=acl.operation,
                        permission_type=acl.permission,
                    )
                    for acl in acls
                ],
            )
            for wanted, acls in zip(filters, found, strict=True)
        ]
    )
