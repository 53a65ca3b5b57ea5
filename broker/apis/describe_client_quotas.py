"""DescribeClientQuotas (48), v0-1: the quotas that match a filter (KIP-546)."""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ..quotas import check_filter
from ._api import Request, ServedApi
from ._errors import at_top
from ._guards import whole


async def handle(node: Node, request: Request[DescribeClientQuotasRequest]) -> DescribeClientQuotasResponse:
    """List the quotas of the entities that match the filter."""
    body = request.body
    components = ((part.entity_type, part.match_type, part.match) for part in body.components)
    wanted = check_filter(components, strict=body.strict)
    entries = [
        EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.parts],
            values=[ValueData(key=str(key), value=value) for key, value in values.items()],
        )
        for entity, values in node.quotas.table.values.items()
        if wanted.matches(entity)
    ]
    return DescribeClientQuotasResponse(entries=entries)


API = ServedApi(
    key=ApiKey.DESCRIBE_CLIENT_QUOTAS,
    versions=(0, 1),
    handler=handle,
    guard=whole(right(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, "all quotas")),
    errors=at_top(lambda _body, _version, _code: {"entries": None}),
)
