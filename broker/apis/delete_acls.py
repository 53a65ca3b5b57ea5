"""DeleteAcls (31), v1-3: access rules that filters mean go, for good when answered (KIP-140, KIP-290)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...coordinator import Repeats
from ...protocol import ApiKey, ErrorCode
from ..authorizer import AclFilter, Operation, ResourceType, right
from ._acls import authorizer_of, filter_of, is_known
from ._api import Request, ServedApi
from ._errors import Level, in_elements
from ._guards import whole

if TYPE_CHECKING:
    from .._node import Node


async def handle(node: Node, request: Request) -> Any:
    make = request.part("DeleteAclsFilterResult")
    make_acl = request.part("DeleteAclsMatchingAcl")
    authorizer = authorizer_of(node)
    # a rule that two filters mean is told with both
    filters = [filter_of(item) for item in request.body.filters]
    repeats = Repeats()
    flaws = [_flaw(wanted, repeats) for wanted in filters]
    found = [[] if flaw else authorizer.find(wanted) for wanted, flaw in zip(filters, flaws, strict=True)]
    authorizer.delete(acl for acls in found for acl in acls)
    return request.answer(
        filter_results=[
            make(
                error_code=ErrorCode.INVALID_REQUEST if flaw else ErrorCode.NONE,
                error_message=flaw,
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
            for flaw, acls in zip(flaws, found, strict=True)
        ]
    )


def _flaw(wanted: AclFilter, repeats: Repeats) -> str | None:
    """Why a filter is not looked at; None if it is."""
    if not is_known(wanted):
        return "a number in the filter means nothing here"
    return "the filter is in the request too often: name it once" if repeats.refuses(wanted) else None


_RIGHT = right(Operation.ALTER, ResourceType.CLUSTER, "all rules")

API = ServedApi(
    key=ApiKey.DELETE_ACLS,
    versions=(1, 3),
    handler=handle,
    access=(_RIGHT,),
    guard=whole(_RIGHT),
    errors=in_elements(Level("filters", "filter_results", {})),
)
