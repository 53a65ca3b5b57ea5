"""ListConfigResources (74), v0-1: names of what has configs, of the types that are asked for (KIP-1142).

Version 0 asks for client metrics alone, of which there are none here.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.list_config_resources import ConfigResource as ListedResource
from ...protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ._api import Request, ServedApi
from ._configs import ConfigResourceType
from ._guards import whole


async def handle(node: Node, request: Request[ListConfigResourcesRequest]) -> ListConfigResourcesResponse:
    """List names of resources with configs; v0 knows client metrics only, which do not exist here."""
    wanted = set(request.body.resource_types) if request.version >= 1 else {ConfigResourceType.CLIENT_METRICS}
    if not wanted <= set(ConfigResourceType):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ListedResource(resource_name=name, resource_type=int(kind))
            for kind in ConfigResourceType
            if kind in wanted or not wanted
            for name in _names_of_kind(node, kind)
        ]
    )


def _names_of_kind(node: Node, kind: ConfigResourceType) -> Iterable[str]:
    match kind:
        case ConfigResourceType.TOPIC:
            return [topic.name for topic in node.topics.all()]
        case ConfigResourceType.BROKER:
            return [str(node_id) for node_id in node.image.brokers]
        case ConfigResourceType.GROUP:
            return list(node.group_configs.of_group)
        case _:
            return ()  # there are no configs of loggers and of client metrics


API = ServedApi(
    key=ApiKey.LIST_CONFIG_RESOURCES,
    versions=(0, 1),
    handler=handle,
    guard=whole(right(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, "the names of all that has configs")),
    reads_only=True,
)
