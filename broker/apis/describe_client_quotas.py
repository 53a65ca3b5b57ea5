"""DescribeClientQuotas (48), v0-1: the quotas that match a filter (KIP-546)."""

from __future__ import annotations

from typing import Any

from ...protocol import ApiKey
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ..quotas import check_filter
from ._api import Request, ServedApi
from ._errors import at_top
from ._guards import whole


async def handle(node: Node, request: Request) -> Any:
    make_entry = request.part("EntryData")
    make_entity = request.part("EntityData")
    make_value = request.part("ValueData")
    body = request.body
    components = ((part.entity_type, part.match_type, part.match) for part in body.components)
    wanted = check_filter(components, strict=body.strict)
    entries = [
        make_entry(
            entity=[make_entity(entity_type=kind, entity_name=name) for kind, name in entity.parts],
            values=[make_value(key=str(key), value=value) for key, value in values.items()],
        )
        for entity, values in node.quotas.table.values.items()
        if wanted.matches(entity)
    ]
    return request.answer(entries=entries)


API = ServedApi(
    key=ApiKey.DESCRIBE_CLIENT_QUOTAS,
    versions=(0, 1),
    handler=handle,
    guard=whole(right(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, "all quotas")),
    errors=at_top(lambda _body, _version, _code: {"entries": None}),
)
