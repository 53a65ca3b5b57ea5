"""DeleteAcls (31), v1-3: deletes the access rules that match filters, durably (KIP-140, KIP-290)."""

from __future__ import annotations

from functools import partial

from ...coordinator import RepeatLimit
from ...coordinator.element_limits import MAX_REPEATS
from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ..authorizer import Acl, AclBindingFilter, Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ..node import Node
from ._acls import authorizer_of, is_known, typed_fields
from ._api import Request, ServedApi, always
from ._errors import Level, in_elements
from ._guards import whole


async def handle(node: Node, request: Request[DeleteAclsRequest]) -> DeleteAclsResponse:
    """Delete the rules that match any filter; each filter is answered with those it matched."""
    make_acl = partial(DeleteAclsMatchingAcl, ErrorCode.NONE, None)
    authorizer = authorizer_of(node)
    # a rule that matches two filters is listed with both
    repeats, listed = RepeatLimit(), 0
    found: list[tuple[str | None, list[Acl]]] = []
    async for item in in_slices(request.body.filters):
        wanted = AclBindingFilter(*typed_fields(item))
        flaw = _flaw_of(wanted, repeats)
        acls = [] if flaw else authorizer.find(wanted)
        if listed + len(acls) > (1 + MAX_REPEATS) * authorizer.rule_count:
            flaw, acls = "its rules are in the answer too often: name them by fewer filters", []
        listed += len(acls)
        found.append((flaw, acls))
    await authorizer.delete(acl for _, acls in found for acl in acls)
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(
                ErrorCode.INVALID_REQUEST if flaw else ErrorCode.NONE, flaw, [make_acl(*acl) for acl in acls]
            )
            async for flaw, acls in in_slices(found)
        ]
    )


def _flaw_of(wanted: AclBindingFilter, repeats: RepeatLimit) -> str | None:
    """Return the error of a filter, in words; None without."""
    if not is_known(wanted):
        return "a number in the filter means nothing here"
    return "the filter is in the request too often: name it once" if repeats.refuses(wanted) else None


API = ServedApi(
    key=ApiKey.DELETE_ACLS,
    versions=(1, 3),
    handler=handle,
    guard=whole(right(Operation.ALTER, ResourceType.CLUSTER, "all rules")),
    errors=in_elements(Level("filters", "filter_results", {})),
    by_controller=always,
    one_at_a_time=True,
)
