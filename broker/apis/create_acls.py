"""CreateAcls (30), v1-3: creates access rules, durable and in force with the response (KIP-140, KIP-290)."""

from __future__ import annotations

from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from ..authorizer import CLUSTER_NAME, Acl, Operation, PatternType, ResourceType, right
from ..event_loop.time_slices import in_slices
from ..node import Node
from ._acls import authorizer_of, typed_fields
from ._api import Request, ServedApi, always, make_result
from ._errors import Level, in_elements
from ._guards import whole

#: Numbers that requests may contain, but no rule: UNKNOWN and ANY.
_NO_RULES = (0, 1)


async def handle(node: Node, request: Request[CreateAclsRequest]) -> CreateAclsResponse:
    """Add the rules that are valid, in one durable change; the others get an error each."""
    authorizer = authorizer_of(node)
    results, good = [], []
    async for item in in_slices(request.body.creations):
        try:
            good.append(_read_acl(item))
            results.append(make_result(AclCreationResult))
        except KafkaError as error:
            results.append(make_result(AclCreationResult, error))
    await authorizer.create(good)
    return CreateAclsResponse(results=results)


def _read_acl(item: AclCreation) -> Acl:
    acl = Acl(*typed_fields(item))
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _refusal_for(
            f"pattern type {item.resource_pattern_type}: a rule is LITERAL (3) or PREFIXED (4)"
        )
    for what, given, meant in (
        ("resource type", item.resource_type, acl.resource_type),
        ("operation", item.operation, acl.operation),
        ("permission", item.permission_type, acl.permission),
    ):
        if meant in _NO_RULES:
            raise _refusal_for(f"{what} {given}: no rule can have it, name one")
    if not acl.name:
        raise _refusal_for("the name of the resource is empty: name one, or * for all")
    if acl.resource_type is ResourceType.CLUSTER and acl.name != CLUSTER_NAME:
        raise _refusal_for(f"the cluster is named {CLUSTER_NAME}, not {acl.name!r}")
    if ":" not in acl.principal:
        raise _refusal_for(
            f"the principal {acl.principal!r} has no type: write User:{acl.principal or 'NAME'}"
        )
    return acl


def _refusal_for(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)


API = ServedApi(
    key=ApiKey.CREATE_ACLS,
    versions=(1, 3),
    handler=handle,
    guard=whole(right(Operation.ALTER, ResourceType.CLUSTER, "all rules")),
    errors=in_elements(Level("creations", "results", {})),
    by_controller=always,
    one_at_a_time=True,
)
