"""DescribeGroups (15), v0-6: state, members and assignments of groups (KIP-430, KIP-1043)."""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ..authorizer import Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ..node import Node
from ._api import Guard, Request, ServedApi, replaced
from ._errors import Level, in_elements
from ._guards import each_group, with_operations

_GROUP_RIGHT = right(Operation.DESCRIBE, ResourceType.GROUP, "each group")


async def _guard(node: Node, request: Request[DescribeGroupsRequest]) -> object:
    answer = await each_group(node, request, _GROUP_RIGHT)
    if not request.body.include_authorized_operations:
        return answer
    told = [
        group
        if group.error_code
        else with_operations(request, group, ResourceType.GROUP, group.group_id, "authorized_operations")
        async for group in in_slices(answer.groups)
    ]
    return replaced(answer, groups=told)


API: ServedApi[DescribeGroupsRequest, DescribeGroupsResponse] = ServedApi(
    key=ApiKey.DESCRIBE_GROUPS,
    versions=(0, 6),
    guard=Guard((_GROUP_RIGHT,), _guard),
    errors=in_elements(Level("groups", "groups", {"": "group_id"})),
    reads_only=True,
)
